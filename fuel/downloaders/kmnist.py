"""Kuzushiji-MNIST, from the ROIS-DS Center for Open Data."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download kmnist``:
    four files with the names of MNIST's."""
    set_files(subparser, 'kmnist')
    return default_downloader
