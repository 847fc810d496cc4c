"""Kuzushiji-MNIST, from the ROIS-DS Center for Open Data."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('kmnist')
