"""Fingerprint of a pipeline: the description that a saved state must fit.

It contains the arguments that determine the values or their order. It leaves
out arguments that say where data are stored or how fast they are read.
"""
from __future__ import annotations

import functools
import json
import types
import zlib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.epochs.moved_names import FIRST_NAMES
from fuel.epochs.state import as_text, copier_of
from fuel.epochs.stage import Stage
from fuel.schemes.iteration_scheme import (
    ShardedScheme, is_scheme, num_examples_of, order_version_of,
    parts_of_scheme)
from fuel.schemes.shard import Shard
from fuel.typing import State
from fuel.utils import rng_state
from fuel.utils.arguments import PlainArgument, kept_values

FORMAT = 3

# Keys in a fingerprint: for a stream, its scheme and its data set, the key of
# the class and the prefix of the keys of the arguments.
_OWNERS = (('class', ''), ('scheme', 'scheme '), ('data set', 'data set '))

# Types of values that are compared by value, since a new object may be equal.
_BY_VALUE = frozenset({str, int, bool, float, range, Shard})

# Longer sequences are described by a checksum.
_MOST_LISTED = 16


def encoded_fingerprint(stage: Stage, is_sharded: bool = True,
                        is_copied: bool = True) -> tuple[str, Any]:
    """Return the fingerprint of a stage as JSON, and a function that returns
    a decoded copy of it.

    The fingerprint seldom changes, so it is kept.

    `is_sharded`: whether streams that the stage reads may take a share.
    `is_copied`: whether the function is needed; otherwise it may be None.
    """
    known: _Known | None = stage.fingerprint
    is_bound = None if known is None else known.is_bound
    if is_bound is None and is_sharded:
        # Determined once, since it depends only on the class.
        is_bound = stage.depends_on_data
    inputs = _inputs_of(stage, is_bound)
    if known is None or known.is_bound is not is_bound or not _are_same(
            known.inputs, inputs):
        known = stage.fingerprint = _Known(
            inputs, is_bound, as_text(_described(inputs)))
    if is_copied and known.copy is None:
        known = stage.fingerprint = known._replace(
            copy=copier_of(json.loads(known.text)))
    return known.text, known.copy


class _Known(NamedTuple):
    """The fingerprint of a stream, and the inputs from which it was made.

    `is_bound`: whether the fingerprint names the rank, if there are several
        ranks; None if that was not needed yet.
    `text`: the fingerprint as JSON.
    `copy`: returns a decoded copy; None if that was not needed yet.
    """

    inputs: list[Any]
    is_bound: bool | None
    text: str
    copy: Callable[[], Any] | None = None


def _inputs_of(stage: Stage, is_bound: bool | None) -> list[Any]:
    """Return the inputs of a stage's fingerprint.

    These are the sources, the share that the stage's input streams take, and
    the class, arguments and generator of the stream, of its scheme and of its
    data set.
    """
    scheme = stage.scheme
    if isinstance(scheme, ShardedScheme):
        # A state belongs to the whole order, not to the share of one rank.
        scheme = scheme.scheme
    inputs: list[Any] = [tuple(stage.stream.sources),
                         stage.shard_of_inputs if is_bound else None]
    owners: tuple[Any, ...] = stage.stream, scheme, stage.dataset
    for owner in owners:
        if owner is None:
            inputs.append(None)
            continue
        # Do not use `__getattr__`: a source of a data set may have this name.
        has_rng = 'rng' in vars(owner) or hasattr(type(owner), 'rng')
        inputs += (type(owner), *kept_values(owner),
                   owner.rng if has_rng else None)
        if owner is not stage.stream:
            inputs.append(num_examples_of(owner))
        if owner is scheme:
            inputs.append(order_version_of(owner))
    return inputs


def _are_same(old: list[Any], new: list[Any]) -> bool:
    """Return whether two lists of inputs make the same fingerprint.

    Arrays, lists and most other objects are compared by identity: a change
    inside them is not noticed.
    """
    if len(old) != len(new) or old[0] != new[0]:
        return False
    for one, other in zip(old[1:], new[1:], strict=True):
        if one is not other and not (
                type(one) is type(other) and type(one) in _BY_VALUE
                and one == other):
            return False
    return True


def _described(inputs: list[Any]) -> State:
    """Return the fingerprint as plain data, from its inputs."""
    values = iter(inputs)
    described: State = {'sources': list(next(values))}
    shard = next(values)
    if shard is not None:
        described['shard'] = [shard.rank, shard.num_shards]
    for title, prefix in _OWNERS:
        cls = next(values)
        if cls is None:
            continue
        described[title] = name_of(cls)
        for name in next(values).splitlines():
            value = next(values)
            if value is not None:
                described[prefix + name] = _describe(value)
            if name == 'schemes' and title == 'scheme' and isinstance(
                    value, (list, tuple)) and all(map(is_scheme, value)):
                described['scheme parts'] = list(map(_described_part, value))
        rng = next(values)
        if rng is not None and (kind := rng_state.kind_of(rng)) is not None:
            described[f'{prefix}rng'] = kind
        count = next(values) if prefix else None
        # NaN, which stands for an unknown number of examples, is not equal to
        # itself.
        if isinstance(count, (int, numpy.integer)):
            described[f'{prefix}num_examples'] = int(count)
        version = next(values) if title == 'scheme' else 1
        if version != 1:
            described['scheme order_version'] = _describe(version)
    return described


def _described_part(scheme: Any) -> State:
    """Return the description of a scheme that is part of another."""
    names, *values = kept_values(scheme)
    found = {'class': name_of(type(scheme)), **{
        name: _describe(value) for name, value in zip(
            names.splitlines(), values, strict=True) if value is not None}}
    if found.pop('schemes', None):
        found['parts'] = list(map(_described_part, parts_of_scheme(scheme)))
    # Some schemes count the examples when they begin an epoch.
    count = num_examples_of(scheme)
    found['num_examples'] = int(count) if isinstance(
        count, (int, numpy.integer)) else None
    version = order_version_of(scheme)
    return found if version == 1 else {
        **found, 'order_version': _describe(version)}


def name_of(named: Any) -> str:
    """Return the qualified name of a class or function that states use.

    It is the first name that the class or function had.
    """
    if isinstance(named, numpy.ufunc):
        return f'numpy.{named.__name__}'
    module = named.__module__ or ''
    # A worker that is not forked imports the script under this name.
    module = '__main__' if module == '__mp_main__' else module
    name = f'{module}.{named.__qualname__}'
    return FIRST_NAMES.get(name, name)


def _describe(value: object) -> Any:
    """Return an argument as plain data that JSON can encode.

    Arrays and long sequences become checksums, functions become their
    qualified names, and other objects become the names of their classes.
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
        return ['partial', _describe(value.func), _describe(value.args),
                _describe(value.keywords)]
    if isinstance(value, PlainArgument):
        return {'class': name_of(type(value)), **_describe(value.plain())}
    if isinstance(value, Mapping):
        return _shortened({str(key): _describe(value[key])
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


def _describe_numpy(
        value: NDArray[Any] | numpy.generic | numpy.dtype[Any]) -> Any:
    if isinstance(value, numpy.dtype):
        return value.str if value.names is None else repr(value)
    if isinstance(value, numpy.generic):
        return _describe(value.item()) if value.dtype.kind in 'biufSU' \
            else repr(value)
    if value.dtype.hasobject:
        return _describe(value.tolist())
    data = numpy.ascontiguousarray(value)
    checksum = zlib.crc32(data.reshape(-1).view(numpy.uint8).data)
    return f'{value.dtype.str} {value.shape} {checksum:08x}'


def _describe_sequence(values: list[Any] | tuple[Any, ...]) -> Any:
    if len(values) > _MOST_LISTED and {*map(type, values)} == {int}:
        try:
            return _describe(numpy.array(values, numpy.int64))
        except OverflowError:
            pass
    return _shortened([_describe(value) for value in values])


def _shortened(described: dict[str, Any] | list[Any]) -> Any:
    """Return a description, or its length and checksum if it is long."""
    if len(described) <= _MOST_LISTED:
        return described
    return (f'{len(described)} elements '
            f'{zlib.crc32(repr(described).encode()):08x}')
