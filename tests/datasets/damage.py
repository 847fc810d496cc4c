"""Read HDF5 files in which a few bytes were overwritten.

Run as ``python damage.py FOLDER SEED FILES KIND``, where the kind is ``own``,
files in Fuel's format, or ``any``, files of another layout. Prints a line for
each file before it is read and one with what came of it, so that the last
line names the file that ended the process.
"""
import faulthandler
import os
import random
import sys

import h5py
import numpy

from fuel.datasets import (
    CSR, Categorical, Constant, H5PYDataset, HDF5Dataset, Ragged, Scaled)

# So many bytes are overwritten.
BYTES = 1, 2, 8
EXAMPLES = 12


def write_whole(path, libver):
    """Write a small file: a compressed source, a contiguous one, and one of
    variable length."""
    with h5py.File(path, 'w', libver=libver) as file:
        file.create_dataset(
            'images', data=numpy.arange(EXAMPLES * 6, dtype='uint8').reshape(
                EXAMPLES, 2, 3), chunks=(4, 2, 3), compression='gzip')
        file['numbers'] = numpy.arange(EXAMPLES)
        file['images'].dims[0].label = 'batch'
        file.create_dataset('filled', (EXAMPLES, 2), 'i4', chunks=(5, 2),
                            fillvalue=7)
        ragged = file.create_dataset('ragged', (EXAMPLES,),
                                     h5py.vlen_dtype('uint8'))
        shapes = file.create_dataset('shapes', (EXAMPLES, 2), 'int32')
        for row in range(EXAMPLES):
            ragged[row] = numpy.arange(2 * row)
            shapes[row] = 2, row
        shapes.make_scale('shapes')
        ragged.dims[0].attach_scale(shapes)
        names = 'filled', 'images', 'numbers', 'ragged'
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(names, (0, 8)),
             'test': dict.fromkeys(names, (8, EXAMPLES))})


def write_any(path, libver):
    """Write a small file of groups, and of what columns read."""
    with h5py.File(path, 'w', libver=libver) as file:
        for number in range(3):
            part = file.create_group(f'data/demo_{number}')
            part.attrs['count'] = 4
            part['actions'] = numpy.arange(8.).reshape(4, 2)
            part.create_dataset('image', data=numpy.arange(16).reshape(4, 4),
                                chunks=(2, 4), compression='gzip')
            part['note'] = ['some text'] * 4
            part['packed'] = numpy.arange(4, dtype='i2')
            part['packed'].attrs['scale_factor'] = [.5]
            part['type/codes'] = numpy.arange(4, dtype='i1') % 2
            part['type/categories'] = ['one', 'two']
            part['name'] = f'number {number}'
            matrix = part.create_group('X')
            matrix.attrs['encoding-type'] = 'csr_matrix'
            matrix.attrs['shape'] = 4, 6
            matrix['data'] = numpy.ones(8)
            matrix['indices'] = numpy.arange(8) % 6
            matrix['indptr'] = numpy.arange(0, 10, 2)
            part['words'] = numpy.arange(10)
            part['lengths'] = numpy.array([1, 2, 3, 4])
        file['mask/train'] = ['demo_1', 'demo_0']
        file['mask/rows'] = [4, 2, 7]


COLUMNS = ['actions', 'image', 'note', Scaled('packed'), Categorical('type'),
           Constant('name'), CSR('X'), Ragged('words', lengths='lengths')]


def read_any(path, use_split):
    """Read all there is to read of such a file."""
    which_sets = ('train', 'rows') if use_split else None
    with HDF5Dataset(path, COLUMNS, parts='data/demo_*', splits='mask',
                     which_sets=which_sets) as data_set:
        # A mask or a list of rows may be another by its damage.
        last = data_set.num_examples - 1
        for request in ([min(3, last), 0, last], slice(0, last + 1), last):
            data_set.get_data(None, request)
        data_set.run_attributes('count')
    HDF5Dataset(path, parts='data/*', sources=('actions',)).close(None)


def read(path, load_in_memory):
    """Read all there is to read of a file."""
    data_set = H5PYDataset(path, ('train', 'test'),
                           load_in_memory=load_in_memory)
    try:
        for request in ([3, 0, 11], slice(0, EXAMPLES), 5):
            data_set.get_data(request=request)
    finally:
        data_set.close(None)


KINDS = {'own': (write_whole, read), 'any': (write_any, read_any)}


def main(folder, seed, files, kind='own'):
    """Damage and read files; print what came of each."""
    generator = random.Random(seed)
    write, read = KINDS[kind]
    contents = []
    for libver in 'earliest', 'latest':
        whole = os.path.join(folder, f'{libver}.hdf5')
        write(whole, libver)
        read(whole, False)
        with open(whole, 'rb') as file:
            contents.append(file.read())
    for number in range(files):
        path = os.path.join(folder, f'damaged-{number}.hdf5')
        content = contents[number % 2]
        damaged = bytearray(content)
        # Most of a small file is free, and nothing is found by damage there.
        used = [place for place, byte in enumerate(content) if byte]
        for place in generator.sample(used, generator.choice(BYTES)):
            damaged[place] = generator.randrange(256)
        with open(path, 'wb') as file:
            file.write(damaged)
        for option in (False, True):
            print(number, option, end=' ', flush=True)
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                read(path, option)
                print('read')
            except Exception as error:
                named = os.path.basename(path) in str(error)
                print('named' if named else 'NAMELESS',
                      type(error).__name__, str(error).replace('\n', ' '))
        os.unlink(path)


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
