"""Kuzushiji-MNIST, from the ROIS-DS Center for Open Data."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, raw_files, urls

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download kmnist``:
    four files with the names of MNIST's."""
    files = raw_files('kmnist')
    subparser.set_defaults(urls=urls(files), filenames=files)
    return default_downloader
