"""One Billion Word, from the statmt.org language model benchmark."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download one_billion_word``: one archive,
    which ``fuel-convert one_billion_word`` unpacks."""
    set_files(subparser, 'one_billion_word')
    return default_downloader
