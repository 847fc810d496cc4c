"""The development kits of the ImageNet challenges."""
import io
from typing import Any

import numpy

from fuel.converters.output import Array
from fuel.converters.raw.archives import MAX_IMAGE
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.matlab import read_table
from fuel.converters.raw.tar import Archive, name_of, open_tar

NUM_CLASSES = 1000
# Most bytes of the texts and children of all synsets; the original table has
# about 2 MB.
MAX_TABLE = 1 << 26

Synsets = numpy.ndarray[Any, Any]


def wnid_classes(synsets: Synsets) -> dict[str, int]:
    """Return a mapping from the WordNet identifiers of the 1000 classes to the
    classes."""
    return {wnid.decode('utf8'): number for number, wnid in
            enumerate(synsets['WNID'][:NUM_CLASSES].tolist())}


def classes_of(synsets: Synsets, field: str, identifiers: Array,
               where: str) -> list[int]:
    """Return the class of each identifier in a ground truth."""
    class_of = {identifier: number
                for number, identifier in enumerate(synsets[field].tolist())}
    numbers = identifiers.tolist()
    unknown = set(numbers) - set(class_of)
    if unknown:
        raise BadInputFile(where, f'the ground truth names {min(unknown)}, '
                           'which is not a class of the development kit')
    return [class_of[number] for number in numbers]


def read_numbers(file: Archive, where: str) -> Any:
    """Read a ground truth: a number in each line."""
    try:
        return numpy.loadtxt(file, dtype='int16', ndmin=1)
    except (ValueError, OverflowError) as error:
        raise BadInputFile(where, f'expected a number in each line ({error})'
                           ) from error


def read_devkit_files(f: Archive, meta_path: str, groundtruth_path: str
                      ) -> tuple[Any, Any]:
    """Return two files of a development kit: the metadata as an open file, and
    the numbers in the ground truth."""
    where = name_of(f)
    wanted = (meta_path, groundtruth_path)
    found = {}
    with open_tar(f) as archive:
        for member in archive.walk():
            if member.name in wanted:
                found[member.name] = io.BytesIO(
                    archive.read(member, MAX_IMAGE))
    for name in wanted:
        if name not in found:
            raise BadInputFile(where, f'there is no member {name!r}')
    return found[meta_path], read_numbers(
        found[groundtruth_path], f'{where}: {groundtruth_path}')


def synset_table(meta_mat: Archive, id_field: str) -> Synsets:
    """Return the table of synsets in ``meta.mat``, with texts as bytes."""
    try:
        return _table(read_table(meta_mat, 'meta.mat', 'synsets'), id_field)
    except BadInputFile:
        raise
    except (KeyError, IndexError, TypeError, ValueError,
            OverflowError) as error:
        raise BadInputFile('meta.mat', 'expected a table of synsets '
                           f'({error})') from error


def _table(raw: dict[str, list[Any]], id_field: str) -> Synsets:
    texts = {field: [_text(cell).encode('utf8') for cell in raw[field]]
             for field in ('WNID', 'gloss', 'words')}
    children = [_numbers(cell) for cell in raw['children']]
    widest = max([1, *map(len, children)])
    width = {field: max([1, *map(len, column)])
             for field, column in texts.items()}
    if len(children) * (2 * widest + sum(width.values())) > MAX_TABLE:
        raise ValueError(
            f'it would take more than {MAX_TABLE} bytes: {len(children)} rows '
            f'with texts of up to {max(width.values())} characters and up to '
            f'{widest} children')
    table = numpy.zeros(len(children), dtype=[
        (id_field, 'int16'), ('WNID', f'S{width["WNID"]}'),
        ('wordnet_height', 'int8'), ('gloss', f'S{width["gloss"]}'),
        ('num_children', 'int8'), ('words', f'S{width["words"]}'),
        # Identifiers go up to 1676.
        ('children', 'int16', (widest,)), ('num_train_images', 'uint16')])
    for field in (id_field, 'wordnet_height', 'num_children',
                  'num_train_images'):
        numbers = numpy.array([
            _numbers(cell).item() for cell in raw[field]], 'float64')
        table[field] = _fitting(numbers, table.dtype[field])
    for field, column in texts.items():
        table[field] = column
    for row, ids in zip(table, children, strict=True):
        row['children'] = -1
        row['children'][:len(ids)] = _fitting(ids, numpy.dtype('int16'))
    return table


def _text(cell: Any) -> str:
    if not isinstance(cell, str) and cell.size:
        raise ValueError(f'expected a text, got {cell!r:.80}')
    return str(cell) if isinstance(cell, str) else ''


def _numbers(cell: Any) -> Array:
    if isinstance(cell, str):
        raise ValueError(f'expected numbers, got {cell!r:.80}')
    numbers: Array = cell
    return numbers


def _fitting(numbers: Array, dtype: Any) -> Array:
    """Return numbers in a smaller type; raise ValueError if a number is not
    whole, or does not fit."""
    with numpy.errstate(invalid='ignore'):
        cast = numbers.astype(dtype)
    if (cast != numbers).any():
        raise ValueError(
            f'{numbers[cast != numbers][0]} is not a valid {dtype}')
    return cast
