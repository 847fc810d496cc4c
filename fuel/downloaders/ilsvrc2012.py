"""ILSVRC 2012 (ImageNet)."""
from argparse import ArgumentParser

from fuel.downloaders.base import Downloader, default_downloader, set_files
from fuel.downloaders.ilsvrc2010 import add_prefix

__all__ = ['fill_subparser']

FILES = ('ILSVRC2012_devkit_t12.tar.gz', 'ILSVRC2012_img_train.tar',
         'ILSVRC2012_img_val.tar', 'ILSVRC2012_img_test.tar')


def fill_subparser(subparser: ArgumentParser) -> Downloader:
    """Set up the parser of ``fuel-download ilsvrc2012``: the archives, which
    need registration and so a prefix of their addresses."""
    set_files(subparser, 'ilsvrc2012', *FILES)
    add_prefix(subparser)
    return default_downloader
