"""Read chunks of plug-in filters after damage to their stored bytes.

Run as ``python damaged_plugins.py SEED COUNT FOLDER DECODER``, which is
``imagecodecs`` or ``HDF5``. Writes filter and kind
of each damage to the file ``told`` before it is read, and what came of it
after: the last line names the damage that ended the process. (Plug-ins print
lines of their own.)
"""
import faulthandler
import os
import random
import shutil
import sys

import h5py
import numpy
from test_plugins import FILTERS, write

from fuel.exceptions import DamagedFileError
from fuel.storage import choose_reader, filters


def damaged(stored, generator):
    """Return what is left of some bytes, and how they were damaged."""
    content = bytearray(stored)
    kind = generator.choice(['cut', 'zeroed', 'header', 'bytes', 'longer'])
    place = generator.randrange(1, len(content))
    if kind == 'cut':
        del content[place:]
    elif kind == 'zeroed':
        content[place:] = bytes(len(content) - place)
    elif kind == 'longer':
        content += generator.randbytes(place + 1)
    else:
        end = min(20, len(content)) if kind == 'header' else len(content)
        for _ in range(generator.choice([1, 2, 8])):
            content[generator.randrange(end)] = generator.randrange(256)
    return bytes(content), kind


def main(seed, count, folder):
    """Damage chunks of every filter."""
    generator = random.Random(seed)
    with open(os.path.join(folder, 'told'), 'w', buffering=1) as told:
        for name in FILTERS:
            damage(name, generator, count, folder, told)


def damage(name, generator, count, folder, told):
    """Damage and read; tell what came of each."""
    data = numpy.random.RandomState(0).randint(0, 9, (100, 50)).astype('<i4')
    whole = os.path.join(folder, 'plugin.hdf5')
    write(whole, data, FILTERS[name]())
    with h5py.File(whole, 'r') as file:
        mask, stored = file['x'].id.read_direct_chunk((32, 0))
    for number in range(count):
        content, kind = damaged(stored, generator)
        # A file of its own: the reader keeps that of the last open.
        path = os.path.join(folder, f'plugin{number}.hdf5')
        shutil.copy(whole, path)
        told.write(f'{name},{kind},')
        told.flush()
        faulthandler.dump_traceback_later(20, exit=True)
        with h5py.File(path, 'r+') as file:
            file['x'].id.write_direct_chunk((32, 0), content, mask)
        with h5py.File(path, 'r') as file:
            reader = choose_reader(file['x'])
            assert (reader.read(50) == data[50]).all()
            try:
                rows = reader.read(numpy.arange(32, 48))
                same = (rows == data[32:48]).all()
                told.write('right\n' if same else 'wrong\n')
            except DamagedFileError as error:
                named = f"plugin{number}.hdf5, source 'x', row" in str(error)
                told.write('named\n' if named else f'nameless {error}\n')
        os.unlink(path)


if __name__ == '__main__':
    if sys.argv[4] == 'HDF5':
        filters.codes = frozenset
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
