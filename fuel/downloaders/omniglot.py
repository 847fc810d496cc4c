"""Omniglot, from Brenden Lake."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, raw_files, urls

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download omniglot``:
    ``images_{background,evaluation}.zip``."""
    files = raw_files('omniglot')
    subparser.set_defaults(urls=urls(files), filenames=files)
    return default_downloader
