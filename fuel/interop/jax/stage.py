"""A stage that makes arrays of JAX, on their devices in advance."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jax.typing import DTypeLike

from fuel.interop.device_stage import DeviceStage, names_of_types
from fuel.interop.jax.arrays import (
    as_host_array,
    is_floating,
    name_of_type,
    narrowed,
)
from fuel.interop.jax.devices import DeviceCopier, Place, checked_places
from fuel.typing import Batch, StreamLike


def to_jax(stream: StreamLike,
           sharding: Place | Mapping[str, Place] | None = None,
           dtype: DTypeLike | Mapping[str, DTypeLike] | None = None,
           which_sources: Sequence[str] | None = None) -> ToJax:
    """Return a stream whose data are arrays of JAX.

    The next batch is copied to its devices while this one is used.

    Parameters
    ----------
    stream : AbstractDataStream
    sharding : jax.sharding.Sharding, jax.Device, str or dict, optional
        How arrays are laid out over devices; or the one device they go to,
        which may be given by name, such as ``'gpu:1'``; or a dict from names
        of sources to these.  Defaults to None: JAX's default device, and the
        same for sources that a dict leaves out.
    dtype : dtype, str or dict, optional
        The type of floating numbers, such as ``'bfloat16'``; or a dict from
        names of sources to types, also for other numbers.  Defaults to None:
        the types of the arrays.
    which_sources : tuple of str, optional
        The sources to make arrays of JAX of; others stay as they are.
        Defaults to all.

    Returns
    -------
    ToJax
        A stage, whose epochs and states are those of any stream.

    Raises
    ------
    TypeError
        If `sharding` is of another kind.
    ValueError
        If a device is not there, a type is not known, or the stream does not
        have the sources.

    Examples
    --------
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
    """A stage that makes arrays of JAX, one batch ahead.

    :func:`to_jax` makes it, with the same arguments.

    Attributes
    ----------
    placement : jax.sharding.Sharding, dict of these or None
        The argument `sharding`.
    dtype : str, dict of str or None
    which_sources : tuple of str or None

    Notes
    -----
    Types of 64 bits become those of 32, as in all of JAX, unless its
    ``jax_enable_x64`` is on; integers that do not fit are refused.

    If the sharding spans several processes, the batches of each are its
    part of the global array: read ``stream.shard('auto', by='example')``,
    with `uneven` 'drop' or 'pad', so that all parts have one shape.

    A state does not depend on the sharding: one saved on eight devices is
    resumed on one.  A batch that was copied in advance counts as not read.
    """

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
        """Return what copies batches in this process."""
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
