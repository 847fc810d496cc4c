"""Binarized MNIST, from Hugo Larochelle."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, raw_files, urls

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download binarized_mnist``:
    ``binarized_mnist_{train,valid,test}.amat``."""
    files = raw_files('binarized_mnist')
    subparser.set_defaults(urls=urls(files), filenames=files)
    return default_downloader
