"""Description of a pipeline that a saved state must fit.

It holds the arguments that decide the values or their order; not those that
say where data lie or how fast they come.
"""
from __future__ import annotations

import functools
import types
import weakref
import zlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy

from fuel.epochs.sharding import bound_shard
from fuel.schemes.iteration_scheme import ShardedScheme
from fuel.typing import State
from fuel.utils import rng_state
from fuel.utils.arguments import parameters_of
from fuel.utils.overrides import is_own

FORMAT = 2

# Arguments that decide neither values nor their order, or are described
# apart: data and streams by their numbers and names, generators by states.
_LEFT_OUT = frozenset({
    'args', 'kwargs', 'data_stream', 'data_streams', 'dataset',
    'iteration_scheme', 'axis_labels', 'sources', 'produces_examples', 'rng',
    'indexables', 'iterables', 'path', 'paths', 'file_or_path', 'files',
    'driver', 'load_in_memory', 'sort_indices', 'cache_bytes', 'cache_size',
    'prefetch', 'num_threads', 'num_workers', 'max_store', 'max_bytes',
    'start_method', 'timeout', 'host', 'port', 'hwm', 'curve', 'reconnect',
    'rank', 'num_ranks', 'num_shards', 'subset', 'device', 'pin_memory',
    'copies', 'sharding'})

# Attributes that hold an argument under another name.
_ATTRIBUTES = {'examples': 'indices'}

# Types of values that describe themselves.
_PLAIN = frozenset({str, int, bool})

# Longer sequences are described by a checksum.
_LONGEST = 16

_described: weakref.WeakKeyDictionary[object, dict[str, tuple[Any, Any]]] = (
    weakref.WeakKeyDictionary())


def fingerprint(stream: Any) -> State:
    """Return what must be equal where a state is taken up."""
    described: State = {
        'class': name_of(type(stream)), 'sources': list(stream.sources)}
    scheme = getattr(stream, 'iteration_scheme', None)
    if isinstance(scheme, ShardedScheme):
        # A state is that of the whole order.
        scheme = scheme.scheme
    dataset = getattr(stream, 'dataset', None)
    shard = bound_shard(stream)
    if shard is not None:
        described['shard'] = [shard.rank, shard.num_shards]
    _describe_object(described, '', stream)
    if scheme is not None:
        described['scheme'] = name_of(type(scheme))
        _describe_object(described, 'scheme ', scheme)
        _describe_size(described, 'scheme ', scheme)
    if dataset is not None:
        described['data set'] = name_of(type(dataset))
        _describe_object(described, 'data set ', dataset)
        _describe_size(described, 'data set ', dataset)
    return described


def _describe_size(described: State, prefix: str, owner: Any) -> None:
    """Add a number of examples; NaN is not equal to itself."""
    count: Any = getattr(owner, 'num_examples', None)
    if isinstance(count, int) or hasattr(count, '__index__'):
        described[f'{prefix}num_examples'] = int(count)


def name_of(named: Any) -> str:
    """Return the qualified name of a class or a function."""
    module = getattr(named, '__module__', None) or ''
    # A worker that is not forked imports the script under this name.
    module = '__main__' if module == '__mp_main__' else module
    return f'{module}.{getattr(named, "__qualname__", type(named).__name__)}'


def _describe_object(described: State, prefix: str, owner: Any) -> None:
    """Add the arguments of an object and the kind of its generator."""
    present = vars(owner)
    cls: Any = type(owner)
    for name, attribute, is_computed in _kept_arguments(cls):
        if attribute in present:
            value = present[attribute]
        elif is_computed:
            value = getattr(owner, attribute)
        else:
            value = present.get(f'_{attribute}')
        if type(value) in _PLAIN:
            described[prefix + name] = value
        elif value is not None:
            described[prefix + name] = _cached(owner, name, value)
    kind = rng_state.kind_of(getattr(owner, 'rng', None))
    if kind is not None:
        described[f'{prefix}rng'] = kind


@functools.lru_cache(512)
def _kept_arguments(cls: type) -> tuple[tuple[str, str, bool], ...]:
    """Return arguments of a class, the attributes that hold them, and
    whether Fuel's class computes these."""
    found = []
    for name in _arguments(cls):
        attribute = _ATTRIBUTES.get(name, name)
        found.append((name, attribute, is_own(cls) and isinstance(
            getattr(cls, attribute, None),
            (property, functools.cached_property))))
    return tuple(found)


@functools.lru_cache(512)
def _arguments(cls: type) -> tuple[str, ...]:
    """Return the names of the arguments that a state must fit."""
    return tuple(sorted(parameters_of(cls).keys() - _LEFT_OUT))


def _cached(owner: object, name: str, value: Any) -> Any:
    """Return the description of an argument, made once for large ones."""
    if isinstance(value, (str, bytes, range)) or not isinstance(
            value, (numpy.ndarray, Sequence, Mapping, AbstractSet)):
        return describe(value)
    try:
        known = _described.setdefault(owner, {})
    except TypeError:
        return describe(value)
    if name not in known or known[name][0] is not value:
        known[name] = value, describe(value)
    return known[name][1]


def describe(value: Any) -> Any:
    """Return an argument as plain data that JSON takes.

    Arrays and long sequences become checksums, functions their qualified
    names, other objects the names of their classes.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (numpy.ndarray, numpy.generic, numpy.dtype)):
        return _describe_numpy(value)
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, functools.partial):
        return ['partial', describe(value.func), describe(value.args),
                describe(value.keywords)]
    if isinstance(value, Mapping):
        return _shortened({str(key): describe(value[key])
                           for key in sorted(value, key=str)})
    if isinstance(value, AbstractSet):
        return _shortened(sorted(map(repr, value)))
    if isinstance(value, bytes):
        return f'{len(value)} bytes {zlib.crc32(value):08x}'
    if isinstance(value, (list, tuple)):
        return _describe_sequence(value)
    if isinstance(value, (type, types.FunctionType, types.MethodType,
                          types.BuiltinFunctionType, numpy.ufunc)):
        return name_of(value)
    return name_of(type(value))


def _describe_numpy(value: Any) -> Any:
    if isinstance(value, numpy.dtype):
        return value.str if value.names is None else repr(value)
    if isinstance(value, numpy.generic):
        return describe(value.item()) if value.dtype.kind in 'biufSU' \
            else repr(value)
    if value.dtype.hasobject:
        return describe(value.tolist())
    data = numpy.ascontiguousarray(value)
    checksum = zlib.crc32(data.reshape(-1).view(numpy.uint8).data)
    return f'{value.dtype.str} {value.shape} {checksum:08x}'


def _describe_sequence(values: list[Any] | tuple[Any, ...]) -> Any:
    if len(values) > _LONGEST and {*map(type, values)} == {int}:
        try:
            return describe(numpy.array(values, numpy.int64))
        except OverflowError:
            pass
    return _shortened([describe(value) for value in values])


def _shortened(described: Any) -> Any:
    """Return a description, or its checksum where it is long."""
    if len(described) <= _LONGEST:
        return described
    return (f'{len(described)} elements '
            f'{zlib.crc32(repr(described).encode()):08x}')
