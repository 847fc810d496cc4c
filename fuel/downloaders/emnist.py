"""EMNIST, from NIST."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download emnist``:
    ``gzip.zip``."""
    set_files(subparser, 'emnist', 'gzip.zip')
    return default_downloader
