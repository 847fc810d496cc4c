"""Miniatures of raw files, byte for byte in the form of the real ones."""
import gzip
import struct

import numpy

PAGE = b'<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n'
IRIS_CLASSES = ('Iris-setosa', 'Iris-versicolor', 'Iris-virginica')


def iris(folder):
    """Write ``iris.data``: 150 lines and a blank one."""
    values = numpy.random.RandomState(0).randint(1, 80, (150, 4)) / 10
    lines = [','.join(f'{value:.1f}' for value in row) + ',' +
             IRIS_CLASSES[i // 50] for i, row in enumerate(values)]
    (folder / 'iris.data').write_text('\n'.join(lines) + '\n\n')
    return values


def idx(array, code=8):
    """Return an array of bytes in the IDX format, gzipped."""
    header = struct.pack('>HBB', 0, code, array.ndim)
    header += struct.pack(f'>{array.ndim}i', *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def mnist(folder, train=12, test=5, seed=0):
    """Write the four files of MNIST; return their arrays by name."""
    rng = numpy.random.RandomState(seed)
    arrays = {}
    for name, count in (('train', train), ('t10k', test)):
        arrays[f'{name}-images-idx3-ubyte.gz'] = rng.randint(
            0, 256, (count, 28, 28)).astype('uint8')
        arrays[f'{name}-labels-idx1-ubyte.gz'] = rng.randint(
            0, 10, count).astype('uint8')
    for name, array in arrays.items():
        (folder / name).write_bytes(idx(array))
    return arrays
