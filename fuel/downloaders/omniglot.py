"""Omniglot, from Brenden Lake."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download omniglot``:
    ``images_{background,evaluation}.zip``."""
    set_files(subparser, 'omniglot')
    return default_downloader
