"""CalTech 101 Silhouettes, from Benjamin Marlin."""
from fuel.downloaders.options import DEFAULT
from fuel.downloaders.base import Options, default_downloader, raw_files
from fuel.utils.extensions import filler_of

__all__ = ['fill_subparser', 'silhouettes_downloader']

SIZES = (16, 28)


def silhouettes_downloader(size: int, directory: str, clear: bool = False,
                           *, options: Options = DEFAULT) -> None:
    """Download the file of one size, or delete it.

    `size`: {16, 28}; height and width of the images, in pixels.
    `clear`: delete the file instead. Default False.
    `options`: options of the download.
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


fill_subparser = filler_of(
    silhouettes_downloader, 'size', type=int, choices=SIZES,
    help='height and width of the images')
