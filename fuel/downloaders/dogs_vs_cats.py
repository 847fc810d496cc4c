"""Dogs vs. Cats, of a Kaggle competition."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('dogs_vs_cats')
