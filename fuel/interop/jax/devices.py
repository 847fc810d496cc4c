"""Copy arrays to the devices of JAX, laid out by shardings."""
from __future__ import annotations

import copyreg
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import jax
from numpy.typing import NDArray
from jax.sharding import Sharding, SingleDeviceSharding

from fuel.transformers.source_names import check_known
from fuel.typing import Batch

#: A place of arrays: a sharding, a device or the name of a device.
Place: TypeAlias = 'Sharding | jax.Device | str'


def checked_places(places: Place | Mapping[str, Place] | None,
                   sources: Sequence[str],
                   ) -> Sharding | dict[str, Sharding] | None:
    """Return places as shardings; raise ValueError for a missing device."""
    if places is None:
        return None
    if isinstance(places, Mapping):
        check_known('sharding', places, sources)
        return {source: _as_sharding(place)
                for source, place in places.items()}
    return _as_sharding(places)


def _as_sharding(place: Place) -> Sharding:
    if isinstance(place, Sharding):
        return place
    if isinstance(place, jax.Device):
        return SingleDeviceSharding(place)
    if isinstance(place, str):
        platform, _, number = place.partition(':')
        return SingleDeviceSharding(_device_at(platform, number, place))
    raise TypeError(
        'sharding must be a sharding or a device of JAX, the name of a '
        "device such as 'gpu:1', or a dict from names of sources to these, "
        f'got {type(place).__name__}')


def _device_at(platform: str, number: str, name: str) -> jax.Device:
    devices: list[jax.Device] = []
    with suppress(RuntimeError):
        devices = jax.local_devices(backend=platform)
    place = int(number or '0') if (number or '0').isdecimal() else -1
    if not 0 <= place < len(devices):
        there = ', '.join(f'{device.platform}:{index}' for index, device
                          in enumerate(jax.local_devices()))
        raise ValueError(
            f'sharding must name a device that is there ({there}), got '
            f'{name!r}')
    return devices[place]


def find_device(platform: str, number: int) -> jax.Device:
    """Return a device by its number among the devices of all processes."""
    with suppress(RuntimeError):
        for device in jax.devices(platform):
            if device.id == number:
                return device
    raise ValueError(
        f'the stage was pickled with the device {platform}:{number}, which '
        f'is not there ({", ".join(map(str, jax.devices()))}): build it '
        'anew, and load the state of the one that was saved')


def _reduce_device(device: jax.Device) -> tuple[Any, tuple[str, int]]:
    return find_device, (device.platform, device.id)


# Shardings pickle only if devices do, and JAX does not pickle devices.
copyreg.pickle(jax.Device, _reduce_device)


class DeviceCopier:
    """Starts copies of arrays to devices; JAX waits for them by itself."""

    def __init__(self, sharding: Sharding | Mapping[str, Sharding] | None,
                 sources: Sequence[str],
                 chosen: Collection[str] | None) -> None:
        self._chosen = sources if chosen is None else chosen
        self._shardings = [
            sharding.get(source) if isinstance(sharding, Mapping)
            else sharding for source in sources]
        self._sources = sources

    def start(self, batch: Batch) -> Batch:
        """Return the batch on the devices; copies may not be finished yet."""
        return tuple([
            self._copy(part, sharding, source)
            if source in self._chosen else part
            for part, sharding, source in zip(
                batch, self._shardings, self._sources, strict=False)])

    def finish(self, batch: Batch) -> Batch:
        """Return the batch unchanged, since JAX waits for copies."""
        return batch

    def _copy(self, array: NDArray[Any] | jax.Array,
              sharding: Sharding | None, source: str) -> jax.Array:
        if sharding is None:
            return jax.device_put(array)
        try:
            if not sharding.is_fully_addressable:
                return jax.make_array_from_process_local_data(
                    sharding, array)
            sharding.shard_shape(array.shape)
        except IndexError:
            raise _misfit(array, sharding, source,
                          'it has more axes than the data') from None
        except ValueError as error:
            raise _misfit(array, sharding, source, str(error)) from error
        return jax.device_put(array, sharding)


def _misfit(array: NDArray[Any] | jax.Array, sharding: Sharding, source: str,
            reason: str) -> ValueError:
    """Return the error for data that cannot be divided over devices."""
    return ValueError(
        f'source {source!r} of shape {array.shape} cannot be laid out over '
        f'{sharding.num_devices} devices by {sharding}: {reason}. Batches '
        'need a size that can be divided; if only the last of an epoch is '
        'smaller, write to_jax(stream.shard(0, 1, by="example", '
        'uneven="drop"), ...) to leave it out, or "pad" to fill it')
