"""Whether a stream's iteration scheme and its data set fit each other."""
from __future__ import annotations

from typing import Any

from fuel.describe.pipeline import short
from fuel.utils.overrides import covers, is_own


def takes_requests(dataset: object) -> bool | None:
    """Return whether a data set needs requests; None if it is not known.

    It is where `get_data` is Fuel's, or the class that overrides it says.
    """
    if covers(dataset, 'takes_requests', ('get_data',)):
        known: bool | None = getattr(dataset, 'takes_requests', None)
        return known
    return None


def check_requests(stream: Any) -> None:
    """Refuse a missing scheme, or one that the data set has no use for.

    Only where both are Fuel's, so that what happens later is known.
    """
    if not covers(stream, 'open_reader', ('get_data',)):
        return
    needed = takes_requests(stream.dataset)
    scheme = stream.iteration_scheme
    name = type(stream.dataset).__name__
    if needed and scheme is None:
        raise ValueError(
            f'{short(stream)} has no iteration scheme, which says which '
            f'examples of {name} come next: write {type(stream).__name__}('
            'dataset, batch_size=128, shuffle=True), or give it an '
            'iteration_scheme such as ShuffledScheme(dataset.num_examples, '
            '128)')
    if needed is False and scheme is not None and is_own(type(scheme)):
        raise ValueError(
            f'{short(stream)} has the iteration scheme {scheme!r}, but {name} '
            'is read in order and takes no requests: leave it out; batches '
            'come from a stage, Batch(DataStream(dataset), '
            'iteration_scheme=ConstantScheme(128)), and a random order from '
            'ShuffleBuffer(stream, buffer_size)')
