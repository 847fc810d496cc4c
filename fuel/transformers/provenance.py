"""Which examples of the data set a batch was made of, for errors and logs."""
from __future__ import annotations

from typing import Any

from fuel.schemes.requests import RequestIterator
from fuel.streams import DataStream
from fuel.transformers.base import Transformer
from fuel.transformers.batch import Batch
from fuel.transformers.mapping import Mapping
from fuel.transformers.seeded import SeededStage
from fuel.transformers.skipping import definer_of
from fuel.utils.overrides import is_own


def note_examples(error: Exception, stage: Any, data: Any) -> None:
    """Add to an error which example of the data set it came from.

    Parameters
    ----------
    error : Exception
        With an attribute `place` if the place in the batch is known.
    stage : Transformer
        Where it was raised.
    data : tuple
        What the stage had read.

    """
    place = getattr(error, 'place', None)
    name = name_examples(stage, data, None if place is None else [place])
    if name:
        error.add_note(name)


def name_examples(stage: Any, data: Any,
                  places: list[int] | None = None) -> str:
    """Return how to call the examples that a stage has just read.

    Parameters
    ----------
    data : tuple
        What it has read.
    places : list of int, optional
        Which of them are meant. Default is all.

    Returns
    -------
    str
        Empty if they are not known: a stage between mixes examples, or the
        scheme has iterators of its own.

    """
    try:
        size = len(data[0]) if not stage.data_stream.produces_examples else 1
        indices, in_order = _last(stage.child_epoch_iterator, size)
        if len(indices) != size:
            return ''
        exact = size == 1 or (in_order and places is not None)
        if exact and places is not None:
            indices = [indices[place] for place in places]
    except Exception:  # noqa: BLE001 (it must not hide what it is about)
        return ''
    if len(indices) == 1:
        return f'example {indices[0]!r} of the data set'
    among = '' if exact else 'among the '
    return f'{among}examples {indices!r:.500} of the data set'


def _last(iterator: Any, size: int) -> tuple[list[Any], bool]:
    """Return the indices of the last item of an epoch.

    Returns
    -------
    indices : list
        Empty if they are not known.
    in_order : bool
        Whether no stage may have changed their order.

    """
    count, in_order = 1, True
    while True:
        stream, epoch = iterator.data_stream, iterator.epoch
        definer = definer_of(stream)
        if definer is DataStream:
            return _read(stream, epoch, count), in_order
        if definer is Batch:
            count = size
        elif definer not in (Transformer, SeededStage) and not (
                'one_to_one' in vars(definer) and stream.one_to_one):
            return [], False
        elif not stream.produces_examples and (
                isinstance(stream, Mapping) or not is_own(type(stream))):
            # A user's function, which may sort.
            in_order = False
        iterator = epoch.attributes['child_epoch_iterator']


def _read(stream: Any, epoch: Any, count: int) -> list[Any]:
    """Return the indices of the last `count` items of a data set's epoch."""
    epoch.commit_taken()
    requests = epoch.request_iterator
    if requests is None:
        # A data set that is read in order.
        return ([*range(epoch.position - count, epoch.position)]
                if stream.produces_examples else [])
    if not isinstance(requests, RequestIterator) or (
            type(requests).__next__ is not RequestIterator.__next__):
        return []
    if stream.produces_examples:
        return [requests.request_at(number) for number in range(
            epoch.requested - count, epoch.requested)]
    return [*requests.request_at(epoch.requested - 1)]
