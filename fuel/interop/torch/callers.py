"""Find out which library reads a stream, and refuse what would be wrong.

A loader does not show itself to its data set, but it calls it: it is one of
those whose methods are running.
"""
from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_FETCHER = 'torch.utils.data._utils.fetch._BaseDatasetFetcher'


def find_caller(*names: str) -> Any:
    """Return the object whose method is running, None if there is none.

    A worker that was forked finds those of its parent too.

    Parameters
    ----------
    *names : str
        Full names of classes.  Its class is one of them, or derives from
        one; the innermost such object is found.  So nothing needs to be
        imported.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get('self')
        if any(f'{cls.__module__}.{cls.__qualname__}' in names
               for cls in type(owner).__mro__):
            return owner
        frame = frame.f_back
    return None


def refuse_to_collate() -> None:
    """Raise ValueError if a loader would make batches of batches."""
    fetcher = find_caller(_FETCHER)
    if fetcher is not None and fetcher.auto_collation:
        raise ValueError(
            'the stream makes batches, and this DataLoader would make '
            'batches of them: write DataLoader(as_iterable(stream), '
            'batch_size=None); a trainer that makes the loader itself needs '
            'one that you make, or a stream of examples. If your collate_fn '
            'joins batches, write as_iterable(stream, joins_batches=True)')
