"""Calls of Fuel's Python around an epoch, and to open files: how many, and
how they grow.

Everything is counted in this process alone, on objects that are built after
at least one other like them, so that what is done once for a class is left
out. A call of a function, a step of a generator and a comprehension count
where Python makes a frame of Fuel for them; compiled code does not count.
The modules that a first batch passes, those of the data side that have a
function which is called for it, are counted in a process of their own, where
nothing was read before.

Wanted is a number for each number of stages, or growth in proportion: at 32
stages at most 4 times as many as at 8, and 64 more.
"""
import collections
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
from pathlib import Path

import h5py
import measure
import numpy
import structure

# For this alone: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))
from support.layouts.robots import robomimic

sys.path.pop()

import fuel
from fuel.datasets import (
    CSR, CSVDataset, H5PYDataset, HDF5Dataset, IndexableDataset, JSONLDataset,
    Windows)
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, Mix, MultiProcessing

FOLDER = os.path.dirname(fuel.__file__) + os.sep
STAGES = (0, 1, 8, 32)

# At one stage, what the commit 1035f1d2 needed.
AT_ONE = {'building': 99, 'first batch': 55, 'second state_dict': 43,
          'load_state_dict': 200, 'iter() resumed': 122, 'shard': 159}
WANTED_OF_A_MIXTURE = {
    'shard': 350, 'iter()': 350, 'first batch': 350, 'further': 70,
    'state_dict': 530, 'load_state_dict': 560}
WANTED = {'epoch over HDF5 opened, with its first batch': 105,
          'batch of MultiProcessing, in the consumer': 34}
# Of miniatures: robomimic's has 84 arrays in 12 demonstrations.
WANTED_OF_DATA = {
    'CSVDataset of 1,000 rows and three columns opened': 2500,
    'batch of 500 rows of CSV': 50,
    'JSONLDataset of 1,000 rows and four fields opened': 2500,
    'batch of 500 rows of JSON lines': 100,
    'Windows over robomimic opened': 3760,
    'batch of contiguous HDF5': 0,
    'batch of Windows over robomimic': 0,
    'batch of CSR': 6,
    'modules in a first batch of H5PYDataset': 12,
    'modules in a first batch of Windows over robomimic': 16}


def calls_by_file(work, *arguments):
    """Return what a function returns, and how many calls of Fuel it makes in
    each file.

    Parameters
    ----------
    work : callable
    *arguments
        Of `work`.

    Returns
    -------
    result : object
    calls : collections.Counter
        By paths below the package.

    """
    calls = collections.Counter()

    def look(frame, event, _):
        path = frame.f_code.co_filename
        if event == 'call' and path.startswith(FOLDER):
            calls[path.removeprefix(FOLDER)] += 1

    sys.setprofile(look)
    try:
        result = work(*arguments)
    finally:
        sys.setprofile(None)
    return result, calls


def counted(work, *arguments):
    """Return what a function returns, and how many calls of Fuel it makes.

    Parameters
    ----------
    work : callable
    *arguments
        Of `work`.

    Returns
    -------
    result : object
    calls : int

    """
    result, calls = calls_by_file(work, *arguments)
    return result, calls.total()


def as_it_is(batch):
    """Return a batch."""
    return batch


def mapped(stream, stages):
    """Return a stream with a number of stages."""
    for _ in range(stages):
        stream = Mapping(stream, as_it_is)
    return stream


def batches(stages, shuffle=False):
    """Return a pipeline of batches of ten, with a number of stages."""
    dataset = IndexableDataset({'x': numpy.arange(1000)})
    return mapped(
        DataStream(dataset, batch_size=10, shuffle=True) if shuffle
        else DataStream(dataset, batch_size=10), stages)


def of_a_pipeline(stages):
    """Return how many calls each step needs, of a pipeline with a number of
    stages."""
    calls = {}
    stream, calls['building'] = counted(batches, stages)
    epoch, calls['iter()'] = counted(iter, stream)
    _, calls['first batch'] = counted(next, epoch)
    _, calls['item'] = counted(next, epoch)
    stream.state_dict()
    next(epoch)
    state, calls['second state_dict'] = counted(stream.state_dict)
    other = batches(stages)
    _, calls['load_state_dict'] = counted(other.load_state_dict, state)
    _, calls['iter() resumed'] = counted(iter, other)
    _, calls['shard'] = counted(stream.shard, 1, 2)
    return calls


def mixture():
    """Return a mixture of two pipelines of three stages."""
    return Mix({'a': batches(3, shuffle=True), 'b': batches(3, shuffle=True)},
               weights={'a': 2, 'b': 1})


def of_a_mixture():
    """Return how many calls each step needs, of a rank's mixture."""
    calls = {}
    stream, calls['shard'] = counted(mixture().shard, 1, 2)
    epoch, calls['iter()'] = counted(iter, stream)
    _, calls['first batch'] = counted(next, epoch)
    _, calls['further'] = counted(next, epoch)
    state, calls['state_dict'] = counted(stream.state_dict)
    other = mixture().shard(1, 2)
    _, calls['load_state_dict'] = counted(other.load_state_dict, state)
    return calls


def of_hdf5(path):
    """Return how many calls an epoch over a file needs to give a batch."""
    with H5PYDataset(path, which_sets=('train',)) as dataset:
        stream = DataStream(
            dataset, iteration_scheme=ShuffledScheme(1000, 10))
        list(stream)
        return counted(lambda: next(stream.get_epoch_iterator()))[1]


def write_file(path):
    """Write a file that is read by `of_hdf5`."""
    with h5py.File(path, 'w') as file:
        for source in ('x', 'y'):
            file[source] = numpy.arange(1000)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': dict.fromkeys(('x', 'y'), (0, 1000))})


def of_workers():
    """Return how many calls the consumer of workers needs for a batch."""
    with MultiProcessing(batches(1)) as stream:
        epoch = iter(stream)
        next(epoch)
        return int(statistics.median(
            counted(next, epoch)[1] for _ in range(30)))


def shuffled(dataset, batch_size):
    """Return shuffled batches of a data set."""
    return DataStream(dataset, iteration_scheme=ShuffledScheme(
        dataset.num_examples, batch_size))


def of_batches(dataset, batch_size):
    """Return how many calls a batch needs, behind the first one of a second
    epoch."""
    stream = shuffled(dataset, batch_size)
    list(stream.get_epoch_iterator())
    epoch = stream.get_epoch_iterator()
    next(epoch)
    return statistics.median(counted(next, epoch)[1] for _ in range(5))


def windows(files):
    """Return windows over demonstrations."""
    return Windows(fuel.load(files), 2)


def numbers(path):
    """Return a data set of a file that `write_file` has written."""
    return H5PYDataset(path, which_sets=('train',))


def write_sparse(path):
    """Write sparse rows, and return a data set of them."""
    with h5py.File(path, 'w') as file:
        group = file.create_group('X')
        group['data'] = numpy.arange(3000.0)
        group['indices'] = numpy.tile(numpy.arange(3), 1000)
        group['indptr'] = numpy.arange(0, 3001, 3)
        group.attrs['shape'] = 1000, 5
    return HDF5Dataset(path, {'x': CSR('X')})


def write_table(path):
    """Write a table of integers, floating numbers and text."""
    rng = numpy.random.default_rng(0)
    with open(path, 'w', encoding='utf-8') as file:
        print('number,value,text', file=file)
        for number, value in enumerate(rng.random(1000)):
            print(f'{number},{value},text {number}', file=file)


def write_lines(path):
    """Write lines of JSON: an integer, a number, a list and text."""
    rng = numpy.random.default_rng(0)
    with open(path, 'w', encoding='utf-8') as file:
        for number, value in enumerate(rng.random(1000)):
            print(json.dumps({'number': number, 'value': value, 'pair': [
                number, 0], 'text': f'text {number}'}), file=file)


def of_a_large_batch(dataset):
    """Return how many calls 500 rows need, behind a first batch."""
    rows = list(range(500))
    dataset.get_data(None, rows)
    return counted(dataset.get_data, None, rows)[1]


def modules_of_first_batch(make, files):
    """Return how many modules of the data side a first batch passes."""
    stream = shuffled(make(files), 4)
    _, calls = calls_by_file(lambda: next(stream.get_epoch_iterator()))
    return sum(path.startswith(tuple(structure.DATA)) for path in calls)


def in_a_fresh_process(work, *arguments):
    """Return what a function returns in a process of its own."""
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        return pool.apply(work, arguments)


def of_data(folder):
    """Return how many calls data sets need, and how many modules.

    Parameters
    ----------
    folder : str
        Where files are written.

    Returns
    -------
    dict
        Of the names of `WANTED_OF_DATA`.

    """
    folder = Path(folder)
    demos = robomimic(folder, numpy.random.default_rng(0)).files
    table, path = folder / 'table.csv', str(folder / 'two.hdf5')
    lines = folder / 'lines.jsonl'
    write_table(table)
    write_lines(lines)
    write_file(path)
    CSVDataset(table)
    cells, opened = counted(CSVDataset, table)
    JSONLDataset(lines)
    records, lines_opened = counted(JSONLDataset, lines)
    windows(demos)
    _, windows_opened = counted(windows, demos)
    # Those in one piece; the images of the miniature are compressed.
    in_one_piece = Windows(fuel.load(demos), 2, sources=('actions', 'states'))
    return dict(zip(WANTED_OF_DATA, (
        opened, of_a_large_batch(cells), lines_opened,
        of_a_large_batch(records), windows_opened,
        of_batches(numbers(path), 10),
        of_batches(in_one_piece, 4),
        of_batches(write_sparse(folder / 'sparse.h5'), 10),
        in_a_fresh_process(modules_of_first_batch, numbers, path),
        in_a_fresh_process(modules_of_first_batch, windows, demos)),
        strict=True))


def count_all():
    """Return how many calls each step needs, of each kind of pipeline.

    Returns
    -------
    dict
        Of the names of steps: of pipelines, to the counts by the number of
        their stages; of mixtures and other things, to the count.

    """
    pipelines = collections.defaultdict(dict)
    for stages in STAGES:
        of_a_pipeline(stages)
        for step, calls in of_a_pipeline(stages).items():
            pipelines[step][stages] = calls
    of_a_mixture()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'numbers.hdf5')
        write_file(path)
        of_hdf5(path)
        names = tuple(WANTED)
        return {'pipelines': dict(pipelines), 'mixture': of_a_mixture(),
                names[0]: of_hdf5(path), names[1]: of_workers(),
                'data': of_data(folder)}


def wanted_of_a_pipeline(step, stages, counts):
    """Return how many calls a step may need, None for any number.

    Parameters
    ----------
    step : str
    stages : int
    counts : dict
        How many it needs, by the number of stages.

    Returns
    -------
    int or None

    """
    if step == 'item':
        return 4 * stages + 4
    if step == 'iter()':
        return 64 + 28 * stages
    if stages == 1:
        return AT_ONE[step]
    return 4 * counts[8] + 64 if stages == 32 else None


def table(counts):
    """Return the rows of a table of all counts."""
    rows = []
    for step, measured in counts['pipelines'].items():
        for stages, calls in measured.items():
            rows.append((f'{step}, {stages} stages', calls,
                         wanted_of_a_pipeline(step, stages, measured)))
    rows += [(f'Mix of two: {step}', calls, WANTED_OF_A_MIXTURE[step])
             for step, calls in counts['mixture'].items()]
    rows += [(step, counts[step], most) for step, most in WANTED.items()]
    rows += [(step, counts['data'][step], most)
             for step, most in WANTED_OF_DATA.items()]
    return [(step, calls, '' if most is None else f'at most {most}',
             '' if most is None else 'yes' if calls <= most else 'no')
            for step, calls, most in rows]


if __name__ == '__main__':
    parser = measure.parser(__doc__)
    parser.add_argument('--json', action='store_true',
                        help='print the counts alone, as JSON')
    found = count_all()
    if parser.parse_args().json:
        print(json.dumps(found))
    else:
        measure.print_table(table(found), (
            'calls of Fuel', 'counted', 'wanted', 'met'))
        print('Each object was built after at least one other like it.')
        measure.print_versions('h5py')
