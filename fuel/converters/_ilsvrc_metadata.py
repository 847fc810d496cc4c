"""The development kits of the ImageNet challenges."""
import io
from typing import Any

import numpy

from fuel.converters.output import Array
from fuel.converters.raw.archives import MAX_IMAGE
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.tar import Archive, open_tar

__all__ = ['Synsets', 'classes_of', 'read_devkit_files', 'read_numbers',
           'synset_table', 'wnid_classes']

NUM_CLASSES = 1000

Synsets = numpy.ndarray[Any, Any]


def wnid_classes(synsets: Synsets) -> dict[str, int]:
    """Return the class of each WordNet identifier of the leaves."""
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
                           'which is no class of the development kit')
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
    """Return the metadata, as an open file, and the numbers in the ground
    truth of a development kit."""
    is_path = not hasattr(f, 'read')
    where = str(f) if is_path else str(getattr(f, 'name', 'archive'))
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


def synset_table(content: dict[str, Any], id_field: str) -> Synsets:
    """Return MATLAB's structures as a table of numbers and bytes."""
    try:
        return _table(numpy.atleast_1d(content['synsets']), id_field)
    except (KeyError, IndexError, TypeError, ValueError,
            OverflowError) as error:
        raise BadInputFile('meta.mat', 'expected a table of synsets '
                           f'({error})') from error


def _table(raw: Array, id_field: str) -> Synsets:
    texts = {field: [str(text).encode('utf8') for text in raw[field]]
             for field in ('WNID', 'gloss', 'words')}
    children = [numpy.atleast_1d(ids) for ids in raw['children']]
    widest = max(1, *map(len, children))
    width = {field: max(1, *map(len, column))
             for field, column in texts.items()}
    table = numpy.zeros(len(raw), dtype=[
        (id_field, 'int16'), ('WNID', f'S{width["WNID"]}'),
        ('wordnet_height', 'int8'), ('gloss', f'S{width["gloss"]}'),
        ('num_children', 'int8'), ('words', f'S{width["words"]}'),
        # Identifiers go up to 1676.
        ('children', 'int16', (widest,)), ('num_train_images', 'uint16')])
    for field in (id_field, 'wordnet_height', 'num_children',
                  'num_train_images'):
        table[field] = [int(value) for value in raw[field]]
    for field, column in texts.items():
        table[field] = column
    for row, ids in zip(table, children, strict=True):
        row['children'] = -1
        row['children'][:len(ids)] = ids
    return table
