"""One Billion Word, from the statmt.org language model benchmark."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of('one_billion_word')
