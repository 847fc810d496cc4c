"""Binarized MNIST, from Hugo Larochelle."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download binarized_mnist``:
    ``binarized_mnist_{train,valid,test}.amat``."""
    set_files(subparser, 'binarized_mnist')
    return default_downloader
