"""Dogs vs. Cats, of a Kaggle competition."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download dogs_vs_cats``:
    ``dogs_vs_cats.train.zip`` and ``dogs_vs_cats.test1.zip``."""
    set_files(subparser, 'dogs_vs_cats')
    return default_downloader
