"""Which examples of the data set a batch was made of, for errors and logs."""
from __future__ import annotations

from fuel.epochs.pipeline import source_examples
from fuel.iterator import DataIterator
from fuel.typing import Batch


def note_examples(error: Exception, child: DataIterator,
                  data: Batch) -> None:
    """Add to an error which example of the data set it came from."""
    place = getattr(error, 'place', None)
    name = name_examples(child, data, None if place is None else [place])
    if name:
        error.add_note(name)


def name_examples(child: DataIterator, data: Batch,
                  places: list[int] | None = None) -> str:
    """Return a description of the examples that a stage has just read."""
    try:
        size = 1 if child.data_stream.produces_examples else len(data[0])
        found = source_examples(child, 1)
        if found is None or len(found.indices) != size:
            return ''
        indices = found.indices
        exact = size == 1 or (found.in_order and places is not None)
        if exact and places is not None:
            indices = [indices[place] for place in places]
    except Exception:  # noqa: BLE001 (it must not hide what it is about)
        return ''
    if len(indices) == 1:
        return f'example {indices[0]!r} of the data set'
    among = '' if exact else 'among the '
    return f'{among}examples {indices!r:.500} of the data set'
