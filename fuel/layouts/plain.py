"""Recognise arrays of one length, at any depth."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen, SeenFile

# A file of more lengths is no list of candidates.
MOST_LENGTHS = 5


def recognise(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays of one length; of several, a call for each."""
    file = seen.files[0]
    arrays = file.arrays()
    if _has_weights(file, arrays):
        raise ValueError(
            f'{file.path!r} holds the weights of a Keras model, and is no '
            f'data set')
    lengths = {array.shape[0] for array in arrays}
    if len(lengths) > MOST_LENGTHS or file.has_more():
        return None
    return [Call(
        {array.path: Rows(array.path) for array in arrays
         if array.shape[0] == length},
        notes=note_of([array for array in arrays
                       if array.shape[0] != length],
                      f'they do not have {length} rows'))
        for length in sorted(lengths, reverse=True)] or None


def _has_weights(file: SeenFile, arrays: Sequence[Array]) -> bool:
    """Return whether a file is of a Keras model, of any version."""
    if file.attribute('keras_version') is not None:
        return True
    # Since version 3 each layer has its weights in a group of this name.
    return file.is_group('model_weights') or (bool(arrays) and all(
        f'/{array.path}'.split('/')[-2] == 'vars' for array in arrays))
