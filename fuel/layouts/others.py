"""Recognise files of other fields: variables of MATLAB since version 7.3,
sequences of RETURNN, tokens of ``fuel-convert tokens``."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.rows import calls_by_length, note_of
from fuel.layouts.seen import Array, Seen, SeenFile


def recognise_matlab(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays that say what they are in MATLAB.

    The examples are along the axis that all have in common, the first or the
    last; if that is both, there is a call for each. If it is neither, there is
    one for each length of the last.
    """
    file = seen.files[0]
    found = _variables(file)
    if not found or any('MATLAB_class' not in file.attribute_names(array.path)
                        for array in found):
        return None
    arrays = [array for array in found if _has_examples(file, array)]
    left_out = note_of([array for array in found if array not in arrays],
                       'they are text, single values or no numbers')
    calls = [Call({array.path: Rows(array.path, axis=axis)
                   for array in arrays}, notes=left_out)
             for axis in (0, -1)
             if len({array.shape[axis] for array in arrays}) == 1]
    if not calls:
        by_length: dict[int, dict[str, FileColumn]] = {}
        for array in arrays:
            by_length.setdefault(array.shape[-1], {})[array.path] = Rows(
                array.path, axis=-1)
        return calls_by_length(by_length)
    # Of one axis, the first is the last.
    return (calls[:1] if all(len(array.shape) == 1 for array in arrays)
            else calls) or None


def _variables(file: SeenFile) -> list[Array]:
    """Return the arrays of variables, none if one is not MATLAB's; not those
    that cells and objects refer to, which may be very many."""
    found: list[Array] = []
    for name in file.names():
        array = file.array(name)
        if name.startswith('#'):
            continue
        if 'MATLAB_class' not in file.attribute_names(name):
            return []
        if array is None:
            found += [field._replace(path=f'{name}/{field.path}')
                      for field in file.arrays(name)]
        elif 0 not in array.shape:
            found.append(array)
    return [array for array in found if 'MATLAB_sparse' not in (
        file.attribute_names(array.path.rpartition('/')[0] or '/'))]


def _has_examples(file: SeenFile, array: Array) -> bool:
    """Return whether an array has numbers, more than one."""
    # Of an empty array the shape is stored, of an object a reference.
    return (file.text('MATLAB_class', array.path)
            not in ('cell', 'char', 'struct')
            and not file.attribute_names(array.path) & {
                'MATLAB_empty', 'MATLAB_object_decode'}
            and any(length > 1 for length in array.shape))


def recognise_returnn(seen: Seen) -> Call | None:
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


def recognise_tokens(seen: Seen) -> Call | None:
    """Recognise a group for each split, with documents as runs."""
    file = seen.files[0]
    if file.attribute('fuel_tokens') is None:
        return None
    names = [name for name in file.names('/') if file.is_group(name)]
    return Call({'tokens': Rows('tokens')}, parts='*',
                runs={'lengths': 'document_lengths'},
                splits={name: [name] for name in names})
