"""Recognise tokens of documents, as ``fuel-convert tokens`` writes them."""
from __future__ import annotations

from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise a group for each split, with documents as runs."""
    file = seen.files[0]
    if file.attribute('fuel_tokens') is None:
        return None
    names = [name for name in file.names('/') if file.is_group(name)]
    return Call({'tokens': Rows('tokens')}, parts='*',
                runs={'lengths': 'document_lengths'},
                splits={name: [name] for name in names})
