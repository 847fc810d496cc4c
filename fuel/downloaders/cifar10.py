"""CIFAR-10, from Alex Krizhevsky."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download cifar10``:
    ``cifar-10-python.tar.gz``."""
    set_files(subparser, 'cifar10')
    return default_downloader
