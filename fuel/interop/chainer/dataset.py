"""The names of ``chainer.dataset``: interfaces, conversion and files."""
from fuel.interop.chainer.conversion import concat_examples, to_device
from fuel.interop.chainer.examples import DatasetMixin
from fuel.interop.chainer.files import (
    cache_or_load_file,
    cached_download,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)
from fuel.interop.chainer.iterator import Iterator

__all__ = ['DatasetMixin', 'Iterator', 'cache_or_load_file',
           'cached_download', 'concat_examples', 'get_dataset_directory',
           'get_dataset_root', 'set_dataset_root', 'to_device']
