"""Street View House Numbers, from Stanford."""
from fuel.downloaders.base import Options, default_downloader
from fuel.utils.extensions import filler_of

__all__ = ['fill_subparser', 'svhn_downloader']

URL_PREFIX = 'http://ufldl.stanford.edu/housenumbers/'
FILES = {1: ('train.tar.gz', 'test.tar.gz', 'extra.tar.gz'),
         2: ('train_32x32.mat', 'test_32x32.mat', 'extra_32x32.mat')}


def svhn_downloader(which_format: int, directory: str,
                    clear: bool = False, **kwargs: Options) -> None:
    """Download the files of one format, or delete them.

    `which_format`: {1, 2}; 1 is for images of whole numbers, 2 for images of
        single digits.
    `clear`: delete the files instead. Default False.
    `**kwargs`: for `default_downloader`: `options`.
    """
    if which_format not in FILES:
        raise ValueError(f'SVHN has the formats 1 and 2, got '
                         f'{which_format!r}')
    files = list(FILES[which_format])
    default_downloader(directory=directory, urls=[None] * len(files),
                       filenames=files, url_prefix=URL_PREFIX, clear=clear,
                       **kwargs)


fill_subparser = filler_of(
    svhn_downloader, 'which_format', type=int, choices=(1, 2),
    help='1: images of whole numbers; 2: images of single digits')
