"""Find loaders that would make batches of batches."""
from __future__ import annotations

from typing import Any

from torch.utils.data import default_collate


def refuse_to_collate(reader: Any) -> None:
    """Raise ValueError if a loader would make batches of batches.

    `reader` is what iterates: a loader does not show itself to its data set,
    but what opens the epoch for it knows. With a `collate_fn` of the user's,
    that is no mistake.
    """
    if getattr(reader, 'auto_collation', False) and (
            reader.collate_fn is default_collate):
        raise ValueError(
            'the stream makes batches, and this DataLoader would make '
            'batches of them: write DataLoader(as_iterable(stream), '
            'batch_size=None), or pass a collate_fn that joins batches')
