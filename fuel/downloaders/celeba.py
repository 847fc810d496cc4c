"""CelebA: images of faces and their attributes."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, raw_files, urls

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download celeba``:
    ``img_align_celeba.zip`` and ``list_attr_celeba.txt``."""
    files = raw_files('celeba')
    subparser.set_defaults(urls=urls(files), filenames=files)
    return default_downloader
