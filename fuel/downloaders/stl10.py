"""STL-10, from Adam Coates."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('stl10')
