"""Arrays of single examples are used again, once nobody holds them."""
import warnings
import weakref

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset
from fuel.kernels.epoch_iterator import EpochIterator, next_in_c
from fuel.kernels.outputs import Placement, placed
from fuel.schemes import SequentialExampleScheme
from fuel.streams import DataStream

ROWS = numpy.arange(60 * 6).reshape(60, 2, 3)


def examples(rows):
    """Return the examples of an epoch over rows in memory."""
    return iter(DataStream(
        IndexableDataset({'x': rows}),
        iteration_scheme=SequentialExampleScheme(len(rows))
    ).get_epoch_iterator())


def drop(example):
    """Do nothing with an example."""


def keep_view(example):
    """Keep a part of it."""
    return example[1:]


def lock(example):
    """Make it read-only, and drop it."""
    example.flags.writeable = False


def reshape(example):
    """Change its shape in place, and drop it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        example.shape = (3, 2)


def retype(example):
    """Change its type in place, and drop it."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        example.dtype = 'uint64'


def overwrite(example):
    """Write into it, and drop it."""
    example[...] = -1


def keep(example):
    """Keep it."""
    return example


def keep_memory(example):
    """Keep what the buffer protocol gives of it."""
    return numpy.asarray(memoryview(example))


@given(st.lists(st.sampled_from((
    drop, keep, keep_view, keep_memory, lock, reshape, retype, overwrite)),
    min_size=3, max_size=60))
def test_an_example_is_the_users_own(uses):
    """Uses of earlier examples do not change the next one."""
    kept = []
    for place, (use, (example,)) in enumerate(
            zip(uses, examples(ROWS), strict=False)):
        assert example.dtype == ROWS.dtype
        assert example.flags.writeable
        assert example.flags.c_contiguous
        assert example.flags.owndata
        numpy.testing.assert_array_equal(example, ROWS[place])
        kept.append((place, use, use(example)))
        del example
    for place, use, data in kept:
        if data is not None:
            numpy.testing.assert_array_equal(
                data, ROWS[place][1:] if use is keep_view else ROWS[place])


def test_a_dropped_array_is_used_again():
    """It is the one before the last, since a loop still holds the last."""
    places = [example.__array_interface__['data'][0]
              for example, in examples(ROWS)]
    assert len(set(places)) == 2


def test_an_array_with_a_weak_reference_ends():
    """The array does not become another example."""
    epoch = examples(ROWS)
    example, = next(epoch)
    seen = weakref.ref(example)
    del example
    for _ in range(2):
        next(epoch)
    assert seen() is None


def test_an_example_in_placed_memory_is_not_kept():
    """The memory is free once the user has dropped the example."""
    epoch = examples(ROWS)
    for row in ROWS[:4]:
        placement = Placement(
            numpy.zeros(64, numpy.uint8), [(0, row.nbytes)], takes_rows=True)
        with placed(placement):
            example, = next(epoch)
        assert not placement.is_free()
        numpy.testing.assert_array_equal(example, row)
        del example
        assert placement.is_free()


def test_rows_of_another_shape_get_arrays_of_their_own():
    """Two sources do not share them."""
    stream = DataStream(
        IndexableDataset({'x': ROWS, 'y': ROWS[:, 0]}),
        iteration_scheme=SequentialExampleScheme(len(ROWS)))
    for place, (x, y) in enumerate(stream.get_epoch_iterator()):
        numpy.testing.assert_array_equal(x, ROWS[place])
        numpy.testing.assert_array_equal(y, ROWS[place, 0])


def test_a_subclass_has_its_own_next():
    """A method that is assigned later counts too."""
    class Doubled(EpochIterator):
        pass

    class Redoubled(next_in_c(Doubled)):
        def __next__(self):
            return 4

    assert next(Redoubled()) == 4
    Doubled.__next__ = lambda self: 2
    assert next(Doubled()) == 2


def test_a_compiled_next_is_not_put_over_another():
    """The class says so when it is made."""
    class Own(EpochIterator):
        def __next__(self):
            return 1

    with pytest.raises(TypeError, match='Own has a __next__ of its own'):
        next_in_c(Own)
