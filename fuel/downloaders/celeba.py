"""CelebA: images of faces and their attributes."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download celeba``:
    ``list_attr_celeba.txt`` and ``img_align_celeba.zip``."""
    set_files(subparser, 'celeba', 'list_attr_celeba.txt',
              'img_align_celeba.zip')
    return default_downloader
