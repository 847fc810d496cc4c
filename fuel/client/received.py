"""What a server sent, as data or as an exception."""
from __future__ import annotations

from fuel.client.channel import Delivery
from fuel.exceptions import ServerError
from fuel.typing import Batch
from fuel.wire import WireError, decode
from fuel.wire.header import Fields, get_field
from fuel.workers.remote_errors import ErrorReport


def take_data(delivery: Delivery, num_sources: int) -> Batch:
    """Return the data of a batch; its arrays are the user's own."""
    data = _take(delivery)
    if len(data) != num_sources:
        raise WireError(f'the server sent {len(data)} items for '
                        f'{num_sources} sources')
    return data


def _take(delivery: Delivery) -> Batch:
    fields, leases = delivery.fields, delivery.leases
    slot = get_field(fields, 'slot', dict, None)
    if slot is None:
        return decode(fields.get('items'), delivery.frames)
    extents = get_field(slot, 'extents', list)
    segment = get_field(slot, 'segment', int)
    if not leases.has_segment(segment) or not extents or not all(
            isinstance(extent, list) and len(extent) == 2
            and all(type(part) is int and part >= 0 for part in extent)
            for extent in extents):
        raise WireError('a batch in memory that is not known')
    try:
        batch: Batch = leases.lend(
            get_field(slot, 'number', int), segment,
            [(offset, size) for offset, size in extents],
            lambda buffers: decode(fields.get('items'), buffers))
        return batch
    except (ValueError, BufferError) as error:
        raise WireError(f'a batch outside its memory: {error}') from error


def as_exception(described: Fields) -> Exception:
    """Return an error of the server's pipeline as one of ours."""
    return ErrorReport(
        get_field(described, 'kind', str, None),
        get_field(described, 'summary', str, ''),
        get_field(described, 'text', str, ''),
        [str(note) for note in get_field(described, 'notes', list, [])],
        get_field(described, 'traceback', str, ''),
    ).rebuild(ServerError, 'the pipeline of the server raised ')
