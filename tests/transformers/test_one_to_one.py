"""Stages answer for themselves: what they skip, which examples they hold."""
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import (
    ConstantScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Filter,
    Mapping,
    MultiProcessing,
    Rename,
    ScaleAndShift,
    Transformer,
    Unpack,
)
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.transformers.noise import GaussianNoise
from fuel.transformers.sequences import BucketBatch, Window
from fuel.transformers.shuffling import ShuffleBuffer


def batches(count=24, size=4):
    """Return a stream of shuffled batches."""
    return DataStream(
        IndexableDataset({'x': numpy.arange(count, dtype=float)}),
        iteration_scheme=ShuffledScheme(count, size))


def images():
    """Return a stream of batches of images."""
    return DataStream(
        IndexableDataset({'x': numpy.zeros((8, 1, 4, 4))}),
        iteration_scheme=SequentialScheme(8, 2))


def one_by_one():
    """Return a stream of examples."""
    return DataStream(IndexableDataset({'x': numpy.arange(8)}),
                      iteration_scheme=SequentialExampleScheme(8))


def in_order():
    """Return a stream over a data set that is read in order."""
    return DataStream(IterableDataset([[1, 2], [3]]))


class Counted(Transformer):
    """A user's stage that adds the number of the item, and can skip."""

    epoch_attributes = (*Transformer.epoch_attributes, 'number')
    one_to_one = True

    def get_epoch_iterator(self, **kwargs):
        """Return an iterator that counts from 0."""
        self.number = 0
        return super().get_epoch_iterator(**kwargs)

    def get_data(self, request=None):
        """Return the next batch with its number added."""
        data, = next(self.child_epoch_iterator)
        self.number += 1
        return (data + 100 * self.number,)

    def skip(self, count):
        """Count what is left out, too."""
        self.number += count
        super().skip(count)

    def get_leftover(self):
        """Return the number of the last item."""
        return {'number': self.number}

    def set_leftover(self, leftover):
        """Go on behind it."""
        self.number = leftover['number']


class Uncounted(Counted):
    """A subclass that says nothing of its own `get_data`."""

    def get_data(self, request=None):
        """Return the next batch."""
        return super().get_data(request)


@pytest.mark.parametrize('build, is_one_to_one', [
    (batches, True),
    (in_order, False),
    (lambda: Rename(batches(), {'x': 'y'}), True),
    (lambda: GaussianNoise(batches(), 1), True),
    (lambda: Counted(batches(), False), True),
    (lambda: RandomFixedSizeCrop(images(), (2, 2)), False),
    (lambda: Unpack(batches()), False),
    (lambda: Filter(batches(), lambda data: True), False),
    (lambda: Cache(batches(), iteration_scheme=ConstantScheme(3)), False),
    (lambda: Batch(one_by_one(), iteration_scheme=ConstantScheme(3)), False),
    (lambda: ShuffleBuffer(one_by_one(), 3), False),
    (lambda: BucketBatch(in_order(), 3), False),
    (lambda: Window(0, 1, 1, False, in_order()), False),
])
def test_one_to_one_says_whether_items_are_made_of_one(build, is_one_to_one):
    """Several workers may share the one kind, and not the other."""
    stream = build()
    assert is_one_to_one == stream.one_to_one
    if is_one_to_one:
        MultiProcessing(stream, num_workers=2)
    else:
        with pytest.raises(ValueError, match='several workers cannot share'):
            MultiProcessing(stream, num_workers=2)


def test_batch_that_workers_cannot_share_names_what_makes_batches():
    """The data stream makes batches that each worker makes by itself."""
    with pytest.raises(ValueError, match='Batch does not make one item of '
                       'each .*: let the data stream make batches'):
        MultiProcessing(Batch(one_by_one(), batch_size=3), num_workers=2)


def test_users_stage_without_an_answer_cannot_be_shared():
    """Its `get_data` is not the one that the inherited answer is about."""
    with pytest.raises(ValueError, match='Uncounted'):
        MultiProcessing(Uncounted(batches(), False), num_workers=2)
    changed = ScaleAndShift(batches(), 1, 0)
    changed.get_data = lambda request=None: next(
        changed.child_epoch_iterator)
    with pytest.raises(ValueError, match='ScaleAndShift'):
        MultiProcessing(changed, num_workers=2)


def test_users_stage_that_skips_is_shared_by_workers():
    """Each worker counts the items that the others make."""
    expected = list(Counted(batches(), False).get_epoch_iterator())
    with MultiProcessing(Counted(batches(), False), num_workers=2,
                         start_method='fork') as workers:
        for _ in range(2):
            found = list(workers.get_epoch_iterator())
            for (a,), (b,) in zip(expected, found, strict=True):
                assert_array_equal(a % 100 >= 0, b % 100 >= 0)
                assert_array_equal(a // 100, b // 100)


def fail_at_once(data):
    """Raise an error for the first data."""
    raise ArithmeticError


@pytest.mark.parametrize('build, named', [
    (lambda: Counted(DataStream(
        IndexableDataset({'x': numpy.arange(3.)}),
        iteration_scheme=SequentialExampleScheme(3)), True), 'example 0'),
    (lambda: Batch(DataStream(IterableDataset([5, 6, 7])),
                   iteration_scheme=ConstantScheme(2)),
     'among the examples [0, 1]'),
    (lambda: Unpack(batches()), None),
    (lambda: Batch(Filter(one_by_one(), lambda data: data[0] != 1),
                   iteration_scheme=ConstantScheme(2)), None),
])
def test_errors_name_the_examples_where_a_stage_knows(build, named):
    """No example is named where a stage does not know."""
    with pytest.raises(ArithmeticError) as caught:
        list(Mapping(build(), fail_at_once).get_epoch_iterator())
    notes = [note for note in caught.value.__notes__ if 'data set' in note]
    assert ([f'{named} of the data set'] if named else []) == notes


def test_users_stage_says_which_examples_it_holds():
    """An override is asked with the requests of the items."""
    class Pairs(Transformer):
        def get_data(self, request=None):
            self.last = request
            return next(self.child_epoch_iterator)

        def source_examples(self, requests):
            from fuel.epochs.pipeline import SourceExamples
            assert [1] == list(requests)
            return SourceExamples([7, 8], True)

    stream = Pairs(batches(4, 2), False)
    seconds = iter([False, True])

    def fail_at_second(data):
        if next(seconds):
            raise ArithmeticError
        return data

    with pytest.raises(ArithmeticError) as caught:
        list(Mapping(stream, fail_at_second).get_epoch_iterator())
    assert 'among the examples [7, 8] of the data set' in (
        caught.value.__notes__)
