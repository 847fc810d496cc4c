"""Calls of Fuel's Python around an epoch: how many, and how they grow.

Everything is counted in this process alone, on objects that are built after
at least one other like them, so that what is done once for a class is left
out. A call of a function, a step of a generator and a comprehension count
where Python makes a frame of Fuel for them; compiled code does not count.

Wanted is a number for each number of stages, or growth in proportion: at 32
stages at most 4 times as many as at 8, and 64 more.
"""
import collections
import json
import os
import statistics
import sys
import tempfile

import h5py
import measure
import numpy

import fuel
from fuel.datasets import H5PYDataset, IndexableDataset
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
    calls = 0

    def look(frame, event, _):
        nonlocal calls
        if event == 'call' and frame.f_code.co_filename.startswith(FOLDER):
            calls += 1

    sys.setprofile(look)
    try:
        result = work(*arguments)
    finally:
        sys.setprofile(None)
    return result, calls


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
                names[0]: of_hdf5(path), names[1]: of_workers()}


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
