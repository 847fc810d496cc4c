"""The development kits of the ImageNet challenges."""
import io
from typing import Any

import numpy

from fuel.converters._archives import open_tar, read_member, walk_tar
from fuel.converters._inputs import BadInputFile

__all__ = ['Synsets', 'class_numbers', 'read_devkit_files', 'synset_table',
           'wnid_classes']

NUM_CLASSES = 1000

Synsets = numpy.ndarray[Any, Any]


def wnid_classes(synsets: Synsets) -> dict[str, int]:
    """Return the class of each WordNet identifier of the leaves."""
    return {wnid.decode('ascii'): number for number, wnid in
            enumerate(synsets['WNID'][:NUM_CLASSES].tolist())}


def class_numbers(synsets: Synsets, field: str) -> dict[int, int]:
    """Return the class of each identifier that ground truth is given by."""
    return {identifier: number
            for number, identifier in enumerate(synsets[field].tolist())}


def read_devkit_files(f: Any, meta_path: str, groundtruth_path: str
                      ) -> tuple[Any, Any]:
    """Return the metadata, as an open file, and the numbers in the ground
    truth of a development kit."""
    is_path = not hasattr(f, 'read')
    where = str(f) if is_path else str(getattr(f, 'name', 'archive'))
    wanted = (meta_path, groundtruth_path)
    with open_tar(where, None if is_path else f) as archive:
        found = {member.name: io.BytesIO(read_member(where, archive, member))
                 for member in walk_tar(where, archive)
                 if member.name in wanted}
    for name in wanted:
        if name not in found:
            raise BadInputFile(where, f'there is no member {name!r}')
    return found[meta_path], numpy.loadtxt(found[groundtruth_path],
                                           dtype='int16', ndmin=1)


def synset_table(raw: Any, id_field: str) -> Synsets:
    """Return MATLAB's structures as a table of numbers and bytes."""
    raw = numpy.atleast_1d(raw)
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
        # Identifiers go up to 1676, which is no matter for a byte.
        ('children', 'int16', (widest,)), ('num_train_images', 'uint16')])
    for field in (id_field, 'wordnet_height', 'num_children',
                  'num_train_images'):
        table[field] = [int(value) for value in raw[field]]
    for field, column in texts.items():
        table[field] = column
    for row, ids in zip(table, children, strict=True):
        row['children'][:len(ids)] = ids
    return table
