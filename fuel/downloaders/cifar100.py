"""CIFAR-100, from Alex Krizhevsky."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('cifar100')
