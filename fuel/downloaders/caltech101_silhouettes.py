"""CalTech 101 Silhouettes, from Benjamin Marlin."""
from argparse import ArgumentParser

from fuel.downloaders.options import DEFAULT
from fuel.downloaders.base import (Downloader, Options, default_downloader,
                                   raw_files)

__all__ = ['fill_subparser', 'silhouettes_downloader']

SIZES = (16, 28)


def silhouettes_downloader(size: int, directory: str, clear: bool = False,
                           *, options: Options = DEFAULT) -> None:
    """Download the file of one size, or delete it.

    `size`: {16, 28}; height and width of the images, in pixels.
    `clear`: delete the file instead. Default False.
    `options`: how to download.
    """
    if size not in SIZES:
        raise ValueError(f'CalTech 101 Silhouettes has the sizes 16 and 28, '
                         f'got {size!r}')
    files = raw_files('caltech101_silhouettes',
                      f'caltech101_silhouettes_{size}_split1.mat')
    default_downloader(directory=directory, clear=clear,
                       urls=[file.urls[0] for file in files],
                       filenames=[str(file) for file in files],
                       options=options)


def fill_subparser(subparser: ArgumentParser) -> Downloader:
    """Set up the parser of ``fuel-download caltech101_silhouettes SIZE``."""
    subparser.add_argument('size', type=int, choices=SIZES,
                           help='height and width of the images')
    return silhouettes_downloader
