"""Iris, from the UCI machine learning repository."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download iris``: ``iris.data``."""
    set_files(subparser, 'iris')
    return default_downloader
