"""Pipelines whose processes are killed: over data in memory, over sparse rows
and over windows of episodes, both out of recognised files."""
import h5py
import numpy
from scipy import sparse

import fuel
from fuel.datasets import Windows
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from support import process_pipelines
from support.layouts.cells import put_csr, put_frame

# Of each: six batches of more bytes than a message holds.
KINDS = ['memory', 'cells', 'windows']
NUM_BATCHES = 6
SOURCES = {'memory': ('x', 'y'), 'cells': ('obs/depth', 'X'),
           'windows': ('obs/image', 'actions')}


def write(kind, folder):
    """Write the file of a kind of pipeline; return its path, '' without."""
    rng = numpy.random.default_rng(1)
    path = folder / f'{kind}.h5'
    if kind == 'cells':
        with h5py.File(path, 'w') as file:
            file.attrs['encoding-type'] = 'anndata'
            put_csr(file, 'X', sparse.csr_matrix(
                rng.random((40, 3000)) * (rng.random((40, 3000)) < .6)))
            put_frame(file, 'var', [f'g{n}' for n in range(3000)])
            put_frame(file, 'obs', [f'c{n}' for n in range(40)], ['depth'])
            file['obs/depth'] = rng.normal(size=40)
    elif kind == 'windows':
        with h5py.File(path, 'w') as file:
            for number in range(7):
                demo = file.create_group(f'data/demo_{number}')
                demo.attrs['num_samples'] = count = 4 + 2 * number
                demo['actions'] = rng.normal(size=(count, 7))
                demo['obs/image'] = rng.integers(
                    0, 256, (count, 64, 64, 3), 'u1')
    else:
        return ''
    return str(path)


def build(path):
    """Return the pipeline over a file, or over data in memory."""
    if not path:
        return process_pipelines.build()
    dataset = fuel.load(path)
    if len(dataset.runs) > 2:
        dataset = Windows(dataset, 4, sources=SOURCES['windows'])
    else:
        dataset.sources = SOURCES['cells']
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        len(dataset), -(-len(dataset) // NUM_BATCHES)))
