"""ILSVRC 2012 (ImageNet)."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']

FILES = ('ILSVRC2012_devkit_t12.tar.gz', 'ILSVRC2012_img_train.tar',
         'ILSVRC2012_img_val.tar', 'ILSVRC2012_img_test.tar')


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download ilsvrc2012``: the archives, which
    need registration and so a prefix of their addresses."""
    set_files(subparser, 'ilsvrc2012', *FILES)
    subparser.add_argument(
        '-P', '--url-prefix', default=None, metavar='PREFIX',
        help='a folder, or the start of an address, to take the files from '
        'that have no public address')
    return default_downloader
