"""Batches are made where their reader finds them."""
import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping
from fuel.transport.slots import SlotPool
from fuel.workers.batch_maker import BatchMaker
from fuel.workers.producer import encode_batch

ROWS = numpy.random.RandomState(3).rand(40, 64, 64).astype('float32')


def in_memory(path):
    """Return a data set of an array."""
    return IndexableDataset({'rows': ROWS})


def in_file(path, **options):
    """Return a data set in an HDF5 file."""
    with h5py.File(path, 'w') as file:
        file.create_dataset('rows', data=ROWS, **options)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'all': {'rows': (0, 40)}})
    return H5PYDataset(path, ('all',))


def in_chunks(path):
    """Return a data set in a compressed HDF5 file."""
    return in_file(path, chunks=(4, 64, 64), compression='gzip')


def make_batches(stream):
    """Yield what a maker has in the slots of each batch but the first.

    Yields
    ------
    Made
    numpy.ndarray
        The bytes of its array in the slot.
    """
    pool = SlotPool(1 << 22)
    maker = BatchMaker(stream, encode_batch)
    maker.next()
    for _ in range(2):
        slot = pool.acquire(maker.sizes[0])
        made = maker.next(slot)
        if made.extents is None:
            # The first that lies in a slot is copied there.
            made = maker.place(made, slot)
        (offset, size), = made.extents
        yield made, slot.bytes[offset:offset + size].copy()
        pool.put_back(slot, made.placement)


@pytest.mark.parametrize('build', [in_memory, in_file, in_chunks])
def test_rows_of_a_data_set_are_read_into_the_slot(build, tmp_path):
    """Nothing is copied there, from the second batch on."""
    dataset = build(str(tmp_path / 'rows.hdf5'))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(40, 8))
    found = list(make_batches(stream))
    for number, (_, memory) in enumerate(found, 1):
        assert_array_equal(ROWS[8 * number:8 * number + 8].ravel(),
                           memory.view('float32'))
    made, _ = found[-1]
    assert 1 == len(made.placement.references)


@pytest.mark.parametrize('stage, given', [
    (lambda stream: Cast(stream, 'float64'), 1),
    (lambda stream: Mapping(stream, lambda data: (data[0] * 2,)), 0)],
    ids=['cast', 'function'])
def test_rows_below_a_stage_leave_the_slot_to_it(stage, given):
    """The stage makes the arrays that are sent."""
    stream = stage(DataStream(
        in_memory(None), iteration_scheme=SequentialScheme(40, 8)))
    found = list(make_batches(stream))
    for made, _ in found[1:]:
        assert given == len(made.placement.references)


class StatelessStream:
    """A stream of one batch that says nothing of its state."""

    sources = ('x',)
    produces_examples = False

    def get_epoch_iterator(self):
        """Return an iterator of one batch."""
        return iter([(numpy.zeros(2),)])

    def state_dict(self):
        """Return nothing."""


def test_end_is_known_without_a_state():
    """An iterator of the user's own may have none."""
    maker = BatchMaker(StatelessStream(), encode_batch)
    assert [False, True] == [maker.next().is_end for _ in range(2)]
