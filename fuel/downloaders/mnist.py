"""MNIST: images and labels in four files."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('mnist')
