"""Images of data sets: decoded in threads, and written many at a time.

They are written as rows of one shape, or to ragged sources, whose examples
differ in shape.
"""
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import h5py
import numpy

from fuel.converters.base import progress_bar
from fuel.converters.output import Array, create_source, write_arrays
from fuel.converters.raw.archives import open_zip, read_zipped
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.images import decode_image
from fuel.utils.threads import number_of_threads

T = TypeVar('T')
R = TypeVar('R')


def ordered_map(function: Callable[[T], R], items: Iterable[T], name: str,
                count: int) -> Iterator[R]:
    """Call a function for each item in threads; yield the results in order.

    A bounded number of results is in memory. A progress bar called `name`
    shows how many of `count` items are done.
    """
    workers = number_of_threads()
    waiting: deque[Future[R]] = deque()
    with (ThreadPoolExecutor(workers) as pool,
          progress_bar(name, count) as bar):
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 4 * workers:
                    yield waiting.popleft().result()
                    bar.advance(1)
            while waiting:
                yield waiting.popleft().result()
                bar.advance(1)
        finally:
            for future in waiting:
                future.cancel()


def zipped_images(path: str, names: Sequence[str], mode: str = 'RGB',
                  change: Callable[[Any], Any] | None = None,
                  size: tuple[int, int] | None = None) -> Iterator[Array]:
    """Decode images of a zip archive; see `decode_image`.

    `size`: height and width; images of another size are refused.
    """
    def one(item: tuple[str, bytes]) -> Array:
        where = f'{path}: {item[0]}'
        array = decode_image(item[1], where, mode, change)
        if size is not None and array.shape[1:] != size:
            raise BadInputFile(where, f'expected an image of {size} pixels, '
                               f'got {array.shape[1:]}')
        return array

    with open_zip(path) as archive:
        yield from ordered_map(
            one, ((name, read_zipped(path, archive, name)) for name in names),
            os.path.basename(path), len(names))


def batched(items: Iterator[T], size: int) -> Iterator[list[T]]:
    """Iterate over lists of `size` items; the last list may be shorter."""
    while batch := list(islice(items, size)):
        yield batch


def create_ragged(h5file: h5py.File, name: str, rows: int, dtype: str,
                  labels: Sequence[str], shapes_name: str, labels_name: str,
                  shapes_dtype: str) -> h5py.Dataset:
    """Create a source of arrays of different shapes, which are stored flat.

    Two data sets are created as its dimension scales: the shapes of the
    examples, and the labels of their axes.
    """
    source = create_source(h5file, name, (rows,), h5py.vlen_dtype(
        numpy.dtype(dtype)))
    shapes = h5file.create_dataset(shapes_name, (rows, len(labels)),
                                   dtype=shapes_dtype)
    texts = numpy.array([label.encode('utf8') for label in labels])
    axis_labels = h5file.create_dataset(labels_name, data=texts)
    for scale, scale_name in ((shapes, 'shapes'),
                              (axis_labels, 'shape_labels')):
        scale.make_scale(scale_name)
        source.dims[0].attach_scale(scale)
    source.dims[0].label = 'batch'
    return source


def write_ragged(dataset: h5py.Dataset, start: int,
                 arrays: Sequence[numpy.ndarray[Any, Any]]) -> None:
    """Write arrays of different shapes, and their shapes, to a source made by
    `create_ragged`, from row `start` on."""
    rows = slice(start, start + len(arrays))
    if arrays:
        write_arrays(dataset, rows, [array.reshape(-1) for array in arrays])
        dataset.dims[0]['shapes'][rows] = numpy.array(
            [array.shape for array in arrays])


def write_images(source: h5py.Dataset, start: int, images: Iterator[Array],
                 at_once: int = 64) -> None:
    """Write images to a source, from row `start` on.

    The source is ragged if images differ in size.
    """
    is_ragged = h5py.check_vlen_dtype(source.dtype) is not None
    for batch in batched(images, at_once):
        if is_ragged:
            write_ragged(source, start, batch)
        else:
            source[start:start + len(batch)] = numpy.stack(batch)
        start += len(batch)
