"""Recognise sequences of RETURNN, such as speech."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen


def recognise(seen: Seen) -> Call | None:
    """Recognise lengths of sequences, and their number."""
    file = seen.files[0]
    lengths = file.array('seqLengths')
    if lengths is None or file.attribute('numSeqs') is None:
        return None
    for one in seen.files:
        one.check_length('numSeqs', '/', 'seqLengths')
    values = ['inputs'] if file.array('inputs') is not None else []
    values += [f'targets/data/{key}'
               for key in sorted(file.names('targets/data'))]
    # Old files have one length for all.
    columns: dict[str, FileColumn] = {
        path: Ragged(path, lengths='seqLengths' if len(lengths.shape) == 1
                     else ('seqLengths', number))
        for number, path in enumerate(values)}
    if file.length('seqTags') is not None:
        columns['seqTags'] = Rows('seqTags')
    return Call(columns)
