"""A stage that makes arrays of JAX, and copies them to devices in advance."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy
from jax import numpy as jnp
from jax.typing import DTypeLike
from numpy.typing import NDArray

from fuel.interop.device_stage import DeviceStage, names_of_types
from fuel.interop.jax.devices import DeviceCopier, Place, checked_places
from fuel.interop.number_arrays import list_as_array, refusal
from fuel.typing import Batch, StreamLike
from fuel.utils.sparse import require_plain

_NUMBERS = (bool, int, float, complex, numpy.generic)
_HOLDER = 'array of JAX'
_ENABLE = "jax.config.update('jax_enable_x64', True)"


def to_jax(stream: StreamLike,
           sharding: Place | Mapping[str, Place] | None = None,
           dtype: DTypeLike | Mapping[str, DTypeLike] | None = None,
           which_sources: Sequence[str] | None = None) -> ToJax:
    """Return a stream whose data are arrays of JAX.

    The next batch is copied to its devices while the program uses the present
    batch.

    Parameters
    ----------
    stream : AbstractDataStream
    sharding : jax.sharding.Sharding, jax.Device, str or dict, optional
        A sharding, which lays arrays out over devices; a single device, or
        its name, such as ``'gpu:1'``; or a dict from names of sources to
        shardings or devices.  Defaults to None: JAX's default device.  Sources
        that a dict leaves out are copied there too.
    dtype : dtype, str or dict, optional
        The type to which floating-point numbers are cast, such as
        ``'bfloat16'``; or a dict from names of sources to types, which casts
        other numbers too.  Defaults to None: no cast.
    which_sources : tuple of str, optional
        The sources that become arrays of JAX; other sources stay as they are.
        Defaults to all.

    Returns
    -------
    ToJax
        A stage, with epochs and states like those of any stream.

    Raises
    ------
    TypeError
        If `sharding` has another type.
    ValueError
        If a device does not exist, a type is not known, or the stream does
        not have the sources.

    Examples
    --------
    This needs the extra ``jax``.

    >>> import jax, numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> dataset = IndexableDataset({
    ...     'features': numpy.ones((4, 2)), 'targets': numpy.arange(4)})
    >>> stream = to_jax(
    ...     DataStream(dataset, iteration_scheme=SequentialScheme(4, 2)),
    ...     sharding='cpu', dtype='bfloat16')
    >>> for features, targets in stream.get_epoch_iterator():
    ...     print(features.shape, features.dtype, targets)
    (2, 2) bfloat16 [0 1]
    (2, 2) bfloat16 [2 3]

    Over a mesh, a batch is one array in parts:

    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ('batch',))
    >>> rows = jax.sharding.NamedSharding(
    ...     mesh, jax.sharding.PartitionSpec('batch'))
    >>> stream = to_jax(stream.data_stream, sharding=rows)
    >>> features, targets = next(stream.get_epoch_iterator())
    >>> [part.data.shape for part in features.addressable_shards]
    [(2, 2)]
    """
    return ToJax(stream, sharding, dtype, which_sources)


class ToJax(DeviceStage):
    """A stage that makes arrays of JAX, and copies one batch in advance.

    :func:`to_jax` makes it, with the same arguments.

    Attributes
    ----------
    placement : jax.sharding.Sharding, dict of these or None
        The argument `sharding`.
    dtype : str, dict of str or None
    which_sources : tuple of str or None

    Notes
    -----
    Types of 64 bits become types of 32 bits, as everywhere in JAX, unless
    ``jax_enable_x64`` is on.  Integers that do not fit are an error.

    If the sharding spans several processes, the batches of each process are
    its part of the global array.  Then read
    ``stream.shard('auto', by='example')``, with `uneven` 'drop' or 'pad', so
    that all parts have one shape.

    A state does not depend on the sharding: a state saved on eight devices
    can be resumed on one device.  A batch that was copied in advance counts
    as not read.
    """

    keeps_rows = True
    unsaved_arguments = ('sharding',)

    def __init__(self, data_stream: StreamLike,
                 sharding: Place | Mapping[str, Place] | None = None,
                 dtype: DTypeLike | Mapping[str, DTypeLike] | None = None,
                 which_sources: Sequence[str] | None = None) -> None:
        super().__init__(
            data_stream, copies=True, which_sources=which_sources)
        self.placement = checked_places(sharding, data_stream.sources)
        self.dtype = names_of_types(
            dtype, data_stream.sources, name_of_type, is_floating)

    def __repr__(self) -> str:
        return self.described(
            'to_jax', sharding=self.placement, dtype=self.dtype,
            which_sources=self.which_sources)

    def make_copier(self) -> DeviceCopier:
        """Return a copier of batches to the device, for this process."""
        return DeviceCopier(self.placement, self.sources, self.which_sources)

    def transform_any(self, data: Batch) -> Batch:
        """Return the data of each source as arrays in memory."""
        chosen = self.which_sources
        return tuple([
            self._as_array(part, source)
            if chosen is None or source in chosen else part
            for part, source in zip(data, self.sources, strict=False)])

    def _as_array(self, value: object, source: str) -> Any:
        array = as_host_array(value, source)
        name = self.type_of(source, is_floating(array.dtype))
        return narrowed(array if name is None else array.astype(name), source)


def as_host_array(value: object, source: str) -> Any:
    """Return the data of one source as an array of numbers.

    Arrays of NumPy and of JAX are not copied, unless their byte order is not
    that of this machine.
    """
    if isinstance(value, jax.Array):
        return value
    require_plain(value, source, 'to_jax')
    if isinstance(value, _NUMBERS):
        value = numpy.asarray(value)
    elif isinstance(value, (list, tuple)):
        value = list_as_array(value, source, _HOLDER)
    if not isinstance(value, numpy.ndarray) or not is_number(value.dtype):
        raise refusal(value, source, _HOLDER)
    return (value if value.dtype.isnative
            else value.astype(value.dtype.newbyteorder('=')))


def is_number(dtype: numpy.dtype[Any]) -> bool:
    """Return whether a type is one of numbers or truth values in JAX."""
    # The codes g and G are long doubles, and m is a time span, which NumPy
    # counts as an integer.
    return dtype.kind == 'b' or bool(
        jnp.issubdtype(dtype, jnp.number) and dtype.char not in 'gGm')


def narrowed(array: NDArray[Any], source: str) -> Any:
    """Return an array in the type that it has in JAX.

    By default JAX disables 64-bit types, and they become 32-bit types.
    Integers that do not fit raise ValueError.
    """
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    if array.dtype.kind in 'iu' and array.size:
        bounds = jnp.iinfo(dtype)
        for value in (array.min(), array.max()):
            if not bounds.min <= value <= bounds.max:
                raise ValueError(
                    f'source {source!r} holds {value}, which {dtype} does '
                    'not, and JAX has 64-bit types only after '
                    f'{_ENABLE}; or leave the source out, '
                    'which_sources=(...), so that it stays as it is')
    return array.astype(dtype)


def name_of_type(dtype: object) -> str:
    """Return the name of a type of JAX; raise ValueError for other values."""
    try:
        found = jnp.dtype(dtype)
        known = is_number(found)
    except TypeError:
        known = False
    if not known:
        raise ValueError(
            'dtype must be a type of JAX, such as jax.numpy.bfloat16 or '
            f"'bfloat16', got {dtype!r}")
    if jax.dtypes.canonicalize_dtype(found) != found:
        raise ValueError(
            f'dtype {found.name!r} is one of 64 bits, which JAX has only '
            f'after {_ENABLE}')
    return str(found.name)


def is_floating(dtype: object) -> bool:
    """Return whether a type, or the type with a name, is floating-point."""
    return bool(jnp.issubdtype(jnp.dtype(dtype), jnp.floating))
