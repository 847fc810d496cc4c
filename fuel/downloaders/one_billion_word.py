"""One Billion Word, from the statmt.org language model benchmark."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, raw_files, urls

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download one_billion_word``: one archive,
    which ``fuel-convert one_billion_word`` unpacks."""
    files = raw_files('one_billion_word')
    subparser.set_defaults(urls=urls(files), filenames=files)
    return default_downloader
