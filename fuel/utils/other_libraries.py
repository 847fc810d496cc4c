"""Names of other libraries, and the code that does the same in Fuel.

Users of tf.data, PyTorch or Hugging Face's datasets write the names that they
know. The error for such a name says what to write in Fuel.
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy


class Line(NamedTuple):
    """Equivalent code in Fuel, and a remark about it.

    Both texts may have these fields:

    {item}: 'batch' or 'example'.
    {parts}: the sources as a tuple of variables.
    {names}: the names of the sources.
    {first}: the name of the first source.
    """

    code: str
    more: str = ''


_PADDED = ('stream.apply(Batch, batch_size=32)'
           '.apply(Padding, mask_sources=({first},))')
_ONLY_OF_STREAMS = {
    'map': Line('stream.apply(Mapping, function)',
                '; the function takes each {item}, a tuple {parts}, and '
                'returns one'),
    'filter': Line('stream.apply(Filter, predicate)',
                   '; the predicate takes each {item}, a tuple {parts}, and '
                   'returns whether to keep it'),
    'take': Line('stream.apply(Take, 10)', ', the first 10 of each epoch'),
    'repeat': Line('for {item} in stream: ...',
                   ' for each epoch; stream.iterate_epochs() has no end'),
    'prefetch': Line('stream.apply(MultiProcessing, num_workers=4)',
                     ', for stages in Python, or stream.apply('
                     'MultiThreading)'),
    'zip': Line("Merge((stream, other), sources=({names}, 'other'))"),
    'collate': Line(_PADDED, ' for sequences of any length, or stream.apply('
                             'Mapping, function), which gets batches'),
    'interleave': Line('Mix((stream, other), weights=(1, 1))',
                       ', or Chain((stream, other)) for one after another'),
    'unbatch': Line('stream.apply(Unpack)'),
    'padded_batch': Line(_PADDED, ' for sequences of any length'),
    'rename_columns': Line("stream.apply(Rename, {{{first}: 'new'}})"),
    'select_columns': Line('stream.apply(FilterSources, sources=({first},))'),
    'as_numpy_iterator': Line('for {parts} in stream: ...',
                              '; these are arrays of NumPy already'),
    'cardinality': Line('len(stream)'),
}
_OF_BOTH = {
    'batch': Line('DataStream(dataset, batch_size=32)',
                  '; for examples that come from a stage stream.apply(Batch, '
                  'batch_size=32); Cache makes batches of another size'),
    'shuffle': Line('DataStream(dataset, batch_size=32, shuffle=True, seed=1)',
                    '; for examples that are read in order stream.apply('
                    'shuffling.ShuffleBuffer, 10_000)'),
    'concatenate': Line('Chain((stream, other))'),
}
# For a method that only streams have, the code for a data set makes a stream
# first.
_STREAM = 'stream = DataStream(dataset, batch_size=32), then '
_ONLY_OF_DATASETS = {
    **dict.fromkeys(('collate', 'padded_batch'), Line(
        f'{_STREAM}stream.apply(Padding, mask_sources=({{first}},))',
        ' for sequences of any length')),
    'cache': Line(
        'IndexableDataset(dict(zip(dataset.sources, dataset[:])))',
        ', which holds all in memory'),
    'take': Line('dataset[:10]', '; of a stream, stream.apply(Take, 10)'),
    'cardinality': Line('len(dataset)'),
    'shard': Line(
        'DataStream(dataset, batch_size=32, shard=(rank, num_shards))'),
    'select': Line('dataset[[3, 1, 4]]',
                   ', or in batches iteration_scheme=SequentialScheme('
                   '[3, 1, 4], batch_size)'),
    'train_test_split': Line(
        "random_split(dataset, {{'train': .8, 'test': .2}})"),
    'column_names': Line('dataset.sources'),
    'num_rows': Line('dataset.num_examples'),
}
FOR_STREAMS: Mapping[str, Line] = {
    **_ONLY_OF_STREAMS, **_OF_BOTH,
    'cache': Line('rows = stream.as_dataset(), then IndexableDataset('
                  'dict(zip(rows.sources, rows[:])))',
                  ', which holds all in memory')}
FOR_DATASETS: Mapping[str, Line] = {
    **{name: Line(_STREAM + code, more)
       for name, (code, more) in _ONLY_OF_STREAMS.items()},
    **_OF_BOTH, **_ONLY_OF_DATASETS}
# Keywords of the loaders and data sets of other libraries, and texts that say
# what to write instead, for the attribute `instead_of` of a class.
_IN_PROCESSES = ('batches are made in other processes by stream.apply('
                 'MultiProcessing, num_workers=4), of fuel.transformers')
_BY_SCHEME = ('an iteration scheme says which examples come, as in '
              'iteration_scheme=SequentialScheme(rows, batch_size), of '
              'fuel.schemes')
_BY_STAGE = ('put a stage over the stream, stream.apply(Mapping, function), '
             'of fuel.transformers')
_BY_SPLIT = "name the split, as in fuel.load(name, split='train')"
LOADER_KEYWORDS: Mapping[str, str] = {
    **dict.fromkeys(('num_workers', 'persistent_workers', 'prefetch_factor',
                     'worker_init_fn', 'multiprocessing_context'),
                    _IN_PROCESSES),
    **dict.fromkeys(('sampler', 'batch_sampler', 'indices'), _BY_SCHEME),
    **dict.fromkeys(('collate_fn', 'transform', 'transforms', 'map_fn'),
                    _BY_STAGE),
    **dict.fromkeys(('generator', 'rng'),
                    'pass seed, or iteration_scheme=ShuffledScheme(len('
                    'dataset), batch_size, rng=rng), of fuel.schemes'),
    'pin_memory': 'it is an argument of to_torch(stream), of '
                  'fuel.interop.torch',
    'buffer_size': 'shuffle=True shuffles all examples; of those that are '
                   'read in order, stream.apply(ShuffleBuffer, buffer_size), '
                   'of fuel.transformers.shuffling'}
DATASET_KEYWORDS: Mapping[str, str] = {
    **dict.fromkeys(('transform', 'target_transform', 'transforms'),
                    _BY_STAGE),
    **dict.fromkeys(('split', 'train'), _BY_SPLIT),
    **dict.fromkeys(('batch_size', 'shuffle'),
                    'they are of the stream, DataStream(dataset, batch_size='
                    '32, shuffle=True)'),
    'root': 'files are looked for in config.data_path',
    'download': "fuel.load(name, split='train', download=True) downloads and "
                'converts'}
CSV_KEYWORDS: Mapping[str, str] = {
    'sep': "the character between cells is delimiter=';'",
    'usecols': "columns={{'features': ['x', 'y']}} chooses columns",
    'names': "columns={{'features': [0, 1]}} takes columns by number",
    **dict.fromkeys(('parse_dates', 'date_format'),
                    'dates of ISO 8601 are recognised; others are read as '
                    'text by dtypes={{source: object}}, and made dates by a '
                    'function in Mapping, of fuel.transformers'),
    **dict.fromkeys(('na_values', 'keep_default_na'),
                    'empty cells are missing, and those that '
                    "missing=('NA',) names: NaN among floating numbers, and "
                    'marked by masks=(source,)')}
# Modules from which the names in the equivalent code are imported.
_MODULES = {
    'fuel.transformers': (
        'Batch', 'Cache', 'Chain', 'Filter', 'FilterSources', 'Mapping',
        'Merge', 'Mix', 'MultiProcessing', 'MultiThreading', 'Padding',
        'Rename', 'Take', 'Unpack', 'shuffling'),
    'fuel.datasets': ('IndexableDataset', 'random_split'),
    'fuel.schemes': ('SequentialScheme',),
    'fuel.streams': ('DataStream',),
}

# Files in which Hugging Face's datasets caches results of `map` and `filter`,
# in the folder of the data set.
_HUGGING_FACE_CACHE = re.compile(r'cache-[0-9a-f]+(_\d+_of_\d+)?\.arrow')


def is_hugging_face_cache(path: str) -> bool:
    """Return whether a file is a cached result of Hugging Face's `map` or
    `filter`. Such a file contains rows of the data set a second time."""
    return _HUGGING_FACE_CACHE.fullmatch(os.path.basename(path)) is not None


def no_member(owner: object, name: str, lines: Mapping[str, Line],
              sources: Iterable[str], item: str) -> AttributeError:
    """Return the error for a name of another library, with Fuel's equivalent.

    `lines`: the code to write instead, by the name.
    `sources`: names of the sources, for examples in the error.
    `item`: 'batch' or 'example'.
    """
    names = tuple(map(str, sources))
    line = ''.join(lines[name]).format(
        item=item, first=repr(names[0]), names=', '.join(map(repr, names)),
        parts=f'({", ".join(names)}{"," * (len(names) == 1)})')
    modules = {module: [one for one in members
                        if re.search(rf'\b{one}\b', line)]
               for module, members in _MODULES.items()}
    where = '; '.join(f'from {module} import {", ".join(found)}'
                      for module, found in modules.items() if found)
    cls = owner if isinstance(owner, type) else type(owner)
    # If the error has a name but no object, Python does not suggest another
    # attribute.
    return AttributeError(
        f'{cls.__name__} has no attribute {name!r}: in Fuel, write {line}'
        f'{f" ({where})" if where else ""}', name=name)


class OtherLibraryName:
    """Descriptor for a name of other libraries.

    Reading it raises an AttributeError that names Fuel's equivalent, and
    `hasattr` returns False. A user's class may define the attribute. Its
    definition is also used if it is in a base class that follows `owner`.
    """

    def __init__(self, owner: type, name: str,
                 error: Callable[[Any, str], AttributeError]) -> None:
        self._owner = owner
        self._name = name
        self._error = error

    def __get__(self, instance: object, cls: type) -> Any:
        read = cls if instance is None else instance
        try:
            return getattr(super(self._owner, read), self._name)
        except AttributeError:
            raise self._error(read, self._name) from None

    def __repr__(self) -> str:
        return f'<nothing: see the error of reading {self._name!r}>'


def names_shown(owner: object, names: Iterable[str]) -> list[str]:
    """Return the names of those attributes that an object really has, without
    names of other libraries."""
    cls, own = type(owner), vars(owner)
    return [name for name in names if name in own or not isinstance(
        getattr_static(cls, name, None), OtherLibraryName)
            or hasattr(owner, name)]


def class_for(data: object) -> str:
    """Return advice on how to make a data set of an object, for errors."""
    if isinstance(data, type):
        return f'make one, {data.__name__}(...)'
    if _are_paths(data):
        return f'open files with fuel.load({data!r:.80})'
    bases = type(data).__mro__
    names = {base.__name__ for base in bases}
    libraries = {base.__module__.partition('.')[0] for base in bases}
    if is_named_class(data, ('IterableDataset',), 'datasets'):
        return 'put it into a HuggingFaceIterable, of fuel.interop.arrow'
    if libraries & {'datasets', 'pandas', 'polars', 'pyarrow'}:
        return 'put tables into an ArrowDataset, of fuel.interop.arrow'
    if 'torch' in libraries and 'Dataset' in names:
        return ('put it into an IterableDataset' if 'IterableDataset' in names
                else 'put it into a TorchDataset, of fuel.interop.torch')
    if 'torch' in libraries and 'DataLoader' in names:
        return ('put the data set that it reads into a TorchDataset, of '
                'fuel.interop.torch; DataStream makes the batches')
    if libraries & {'torch', 'tensorflow', 'jaxlib'} and 'Tensor' in ' '.join(
            names):
        return ("put tensors into an IndexableDataset, as arrays: "
                "IndexableDataset({'features': tensor.numpy()})")
    if isinstance(data, Iterator):
        return ('put it into an IterableDataset, for one epoch; for several, '
                'an object whose __iter__ begins anew')
    if isinstance(data, Iterable) and '__getitem__' not in dir(type(data)):
        return 'put it into an IterableDataset'
    return 'put arrays and lists into an IndexableDataset'


def checked_path(reader: str, path: object) -> str:
    """Return a path or URL as text; raise TypeError for any other object."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f'{reader} reads one file, by its path or URL, got '
                        f'{short_repr(path)}: {class_for(path)}')
    return os.fsdecode(path)


def short_repr(data: object) -> str:
    """Return a short description of an object, for errors."""
    if isinstance(data, (str, int, float, os.PathLike, type(None))):
        return f'{data!r:.80} ({type(data).__name__})'
    name = data.__name__ if isinstance(data, type) else type(data).__name__
    return f'the class {name}' if isinstance(data, type) else f'a {name}'


def is_table(data: object) -> bool:
    """Return whether an object is a table of another library.

    A table is indexed by the names of its columns. Iterating over it returns
    these names, or rows as dicts.
    """
    names = ('DataFrame', 'DatasetDict', 'Dataset', 'IterableDataset', 'Table')
    return is_named_class(
        data, names, 'datasets', 'pandas', 'polars', 'pyarrow')


def is_named_class(data: object, names: Collection[str], *libraries: str,
                   ) -> bool:
    """Return whether an object is an instance of a class of another library.

    The names of the class and of the library are compared, so the library
    need not be installed.
    """
    # A fast loop, since each object in a new data set is checked.
    for base in type(data).__mro__:
        if base.__name__ in names and (
                base.__module__.partition('.')[0] in libraries):
            return True
    return False


def is_labelled(data: Any) -> bool:
    """Return whether an object is a column of pandas whose index is not 0, 1,
    2, ...

    A list of numbers selects rows of such a column by their labels, not by
    their positions.
    """
    if not is_named_class(data, ('Series',), 'pandas'):
        return False
    labels = numpy.asarray(data.index)
    # NumPy 1 warns if text is compared with numbers.
    return labels.dtype.kind not in 'biuf' or not numpy.array_equal(
        labels, numpy.arange(len(labels)))


def _are_paths(data: object) -> bool:
    """Return whether an object is a path, or a list of paths."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(map(_are_paths, data[:8]))
    return isinstance(data, os.PathLike) or (
        isinstance(data, str) and len(data) < 1000 and '\n' not in data
        and bool(os.path.dirname(data) or os.path.splitext(data)[1]))
