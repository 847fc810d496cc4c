"""ILSVRC 2010 (ImageNet)."""
from argparse import ArgumentParser

from fuel.downloaders.base import Downloader, default_downloader, set_files

__all__ = ['fill_subparser']

FILES = ('ILSVRC2010_test_ground_truth.txt', 'ILSVRC2010_devkit-1.0.tar.gz',
         'ILSVRC2010_images_train.tar', 'ILSVRC2010_images_val.tar',
         'ILSVRC2010_images_test.tar', 'patch_images.tar')


def fill_subparser(subparser: ArgumentParser) -> Downloader:
    """Set up the parser of ``fuel-download ilsvrc2010``: the archives, which
    need registration and so a prefix of their addresses."""
    set_files(subparser, 'ilsvrc2010', *FILES)
    add_prefix(subparser)
    return default_downloader


def add_prefix(subparser: ArgumentParser) -> None:
    """Add the option for files that registered users get."""
    subparser.add_argument(
        '-P', '--url-prefix', default=None, metavar='PREFIX',
        help='a folder, or the start of an address, to take the files from '
        'that have no public address')
