"""CelebA: images of faces and their attributes."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('celeba', 'list_attr_celeba.txt',
                           'img_align_celeba.zip')
