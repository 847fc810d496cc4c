"""ScaleAndShift: its numbers and their types."""
import fractions
import pickle
import tracemalloc

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fuel
from fuel.datasets import IndexableDataset
from fuel.describe.source_types import types_of
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift

INTEGERS = '?bhilBHIL'


def batches_of(data, size=None):
    """Return a stream with all data in one batch."""
    return DataStream(
        IndexableDataset({'x': data}),
        iteration_scheme=SequentialScheme(len(data), size or len(data)))


def scaled(data, scale, shift):
    """Return what the stage makes of a batch."""
    return next(ScaleAndShift(
        batches_of(data), scale, shift).get_epoch_iterator())[0]


@pytest.mark.parametrize('one', [
    1, True, numpy.int8(1), numpy.bool_(True), numpy.array(1)])
@pytest.mark.parametrize('dtype', INTEGERS)
def test_integers_with_integers_give_int64(dtype, one):
    """Integers of any type become int64."""
    result = scaled(numpy.array([0, 1], dtype), one, one)
    assert numpy.int64 == result.dtype
    assert [1, 2] == result.tolist()


@pytest.mark.parametrize('half', [
    0.5, numpy.float16(0.5), numpy.float32(0.5), numpy.float64(0.5),
    numpy.array(0.5, 'f'), fractions.Fraction(1, 2),
    numpy.longdouble(0.5)])
@pytest.mark.parametrize('dtype', INTEGERS)
def test_integers_with_a_float_give_float64(dtype, half):
    """Scalars of any kind count as Python's numbers."""
    data = numpy.array([0, 1], dtype)
    for scale, shift, expected in [
            (half, 0, [0, 0.5]), (1, half, [0.5, 1.5])]:
        result = scaled(data, scale, shift)
        assert numpy.float64 == result.dtype
        assert expected == result.tolist()


@pytest.mark.parametrize('half', [
    0.5, numpy.float64(0.5), numpy.array(0.5), numpy.longdouble(0.5)])
@pytest.mark.parametrize('dtype', 'efdgFD')
def test_floating_data_keep_their_type(dtype, half):
    """Neither an integer nor a more precise scalar changes it."""
    data = numpy.array([1, 2], dtype)
    for scale, shift in [(half, 1), (2, half), (2, 1)]:
        result = scaled(data, scale, shift)
        assert numpy.dtype(dtype) == result.dtype
        assert [float(scale) + float(shift), 2 * float(scale) + float(shift)
                ] == result.tolist()


@given(npst.arrays('float32', 5, elements=st.floats(-1e3, 1e3, width=32)),
       st.floats(-10, 10), st.floats(-10, 10))
def test_singles_are_computed_as_singles(data, scale, shift):
    """The values are those that they always were."""
    expected = data * numpy.float32(scale) + numpy.float32(shift)
    numpy.testing.assert_array_equal(expected, scaled(data, scale, shift))


def test_singles_are_scaled_without_a_change_of_numpys_settings(monkeypatch):
    """Setting and resetting NumPy's handling of overflow takes longer than the
    numbers of a small batch."""
    def refuse(**settings):
        raise AssertionError(settings)

    data = numpy.arange(6, dtype='float32').reshape(2, 3)
    monkeypatch.setattr(numpy, 'errstate', refuse)
    for dtype in (None, 'float32'):
        stage = ScaleAndShift(batches_of(data), .5, 1, dtype=dtype)
        result, = next(iter(stage))
        assert (data * numpy.float32(.5) + 1).tolist() == result.tolist()
        assert 'float32' == result.dtype


@pytest.mark.parametrize('data', [
    numpy.arange(12, dtype='>f4').reshape(3, 4),
    numpy.arange(24, dtype='float32').reshape(3, 8)[:, ::2],
    numpy.asfortranarray(numpy.arange(12, dtype='float32').reshape(3, 4)),
    numpy.array([numpy.nan, numpy.inf, -0., 1e-45], 'float32')],
    ids=['swapped', 'strided', 'columns', 'special'])
def test_singles_in_any_memory_have_the_values_of_numpy(data):
    """Memory that the kernel leaves to NumPy gives the same values."""
    expected = data * numpy.float32(-.1) + numpy.float32(2)
    result = ScaleAndShift(batches_of(data), -.1, 2).transform_any_source(
        data, 'x')
    numpy.testing.assert_array_equal(expected, result)
    assert (data.shape, 'float32') == (result.shape, result.dtype)


@pytest.mark.parametrize('scale, shift', [
    (1e38, 0), (1, 3e38), (1e300, 0), (0, -1e39)])
def test_singles_that_overflow_are_an_error(scale, shift):
    """The product, the sum, or a number itself overflows."""
    with pytest.raises(OverflowError, match='does not fit the type'):
        scaled(numpy.full((2, 3), 1e38, 'float32'), scale, shift)


@given(st.sampled_from(INTEGERS).flatmap(lambda dtype: npst.arrays(
    dtype, npst.array_shapes(max_dims=2, max_side=4))),
    st.integers(-2 ** 65, 2 ** 65), st.integers(-2 ** 65, 2 ** 65))
def test_integers_are_exact_or_raise(data, scale, shift):
    """No integer wraps around, on the way or in the end."""
    expected = data.astype(object) * scale + shift
    fits = all(-2 ** 63 <= number < 2 ** 63 for number in expected.flat)
    if fits:
        assert expected.tolist() == scaled(data, scale, shift).tolist()
    else:
        with pytest.raises(OverflowError, match='does not fit int64'):
            scaled(data, scale, shift)


def test_uint8_times_two_does_not_wrap():
    """200 times 2 is 400."""
    result = scaled(numpy.array([200], 'uint8'), 2, 0)
    assert [400] == result.tolist()
    assert numpy.int64 == result.dtype


@pytest.mark.parametrize('dtype, scale, shift', [
    ('e', 2, 0), ('e', 1e5, 0), ('f', 1e300, 0), ('e', 1, 6e4),
    ('d', 1e308, 0)])
def test_floating_result_that_does_not_fit_raises(dtype, scale, shift):
    """Numbers too large for the type of the data do not become inf."""
    with pytest.raises(OverflowError, match='Cast|too large'):
        scaled(numpy.array([4e4], dtype), scale, shift)


def test_infinite_scale_is_allowed():
    """An infinite result of an infinite scale is not an overflow."""
    assert [numpy.inf] == scaled(
        numpy.array([1], 'f'), float('inf'), 0).tolist()


def test_examples_follow_the_same_rules_as_batches():
    """NumPy's scalars had rules of their own."""
    for dtype, scale, expected in [
            ('uint8', 2, 'int64'), ('uint8', 0.5, 'float64'),
            ('float32', 0.5, 'float32'), ('float16', 2, 'float16')]:
        stream = DataStream(IndexableDataset(numpy.array([200], dtype)),
                            iteration_scheme=SequentialExampleScheme(1))
        result = next(
            ScaleAndShift(stream, scale, 0).get_epoch_iterator())[0]
        assert numpy.dtype(expected) == result.dtype
        assert () == result.shape
        assert 200 * scale == result


def test_arrays_broadcast():
    """One number for each feature was always possible."""
    data = numpy.array([[1, 2], [3, 4]], 'uint8')
    result = scaled(data, numpy.array([100, 200]), [1, 2])
    assert [[101, 402], [301, 802]] == result.tolist()
    assert numpy.int64 == result.dtype
    result = scaled(data, numpy.array([0.5, 2]), 1)
    assert [[1.5, 5], [2.5, 9]] == result.tolist()
    singles = numpy.array([0.5, 2], 'f')
    assert numpy.float32 == scaled(data.astype('f'), singles, 1.5).dtype


def test_arrays_of_integers_are_exact_or_raise():
    """Each element counts, not the bounds of all."""
    data = numpy.array([[2 ** 40, 1]])
    scale = numpy.array([1, 2 ** 40])
    assert [[2 ** 40, 2 ** 40]] == scaled(data, scale, 0).tolist()
    with pytest.raises(OverflowError, match='does not fit int64'):
        scaled(data, scale[::-1], 0)


def test_complex_numbers():
    """A complex scalar makes complex numbers, of the data's precision."""
    for dtype, expected in [('f', 'F'), ('d', 'D'), ('B', 'D'), ('F', 'F')]:
        result = scaled(numpy.array([2], dtype), 1j, 1)
        assert [1 + 2j] == result.tolist()
        assert numpy.dtype(expected) == result.dtype


def test_lists_count_as_arrays():
    """So does what numpy.asarray understands."""
    assert [[2, 3]] == scaled([[1, 2]], 1, 1).tolist()


def test_ragged_batch_is_scaled_example_by_example():
    """Lists of sequences of different lengths, too."""
    rows = numpy.empty(2, object)
    rows[:] = [numpy.array([1, 2], 'uint8'), numpy.array([3], 'uint8')]
    for data in (rows, [[1, 2], [3]]):
        result = scaled(data, 0.5, 0)
        assert (2,) == result.shape
        assert object == result.dtype
        assert [[0.5, 1], [1.5]] == [row.tolist() for row in result]
        assert {numpy.dtype('d')} == {row.dtype for row in result}


def test_result_shares_no_memory_with_the_data():
    """It shares none even if nothing changes."""
    seen = []
    from fuel.transformers import Mapping
    stream = Mapping(batches_of(numpy.arange(3.)),
                     lambda data: (seen.append(data[0]), data)[1])
    result = next(ScaleAndShift(stream, 1, 0).get_epoch_iterator())[0]
    assert not numpy.shares_memory(seen[0], result)


@pytest.mark.parametrize('name', ['scale', 'shift'])
def test_scalar_that_is_not_a_number_raises(name):
    """The constructor raises the error."""
    arguments = {'scale': 1, 'shift': 0, name: '2'}
    with pytest.raises(TypeError, match=f"{name} must be a number, got '2'"):
        ScaleAndShift(batches_of([1]), **arguments)


# Cast next to it

@pytest.mark.parametrize('dtype', ['float16', 'float32', 'int16', 'complex'])
@pytest.mark.parametrize('kind', INTEGERS + 'efd')
def test_cast_after_it_equals_two_steps(kind, dtype):
    """The fused conversion has the values of a cast of the float64."""
    data = numpy.arange(50).reshape(10, 5).astype(kind)
    stage = ScaleAndShift(batches_of(data, 4), 1 / 7, -0.3)
    expected = [batch[0].astype(dtype)
                for batch in stage.get_epoch_iterator()]
    result = [batch[0] for batch in Cast(stage, dtype).get_epoch_iterator()]
    for one, other in zip(expected, result, strict=True):
        assert one.dtype == other.dtype
        numpy.testing.assert_array_equal(one, other)


def test_cast_after_it_holds_no_float64_copy():
    """The result is written once, in its own type."""
    data = numpy.zeros((64, 3, 32, 32), 'uint8')
    stream = Cast(ScaleAndShift(batches_of(data), 1 / 255., 0), 'float32')
    epoch = stream.get_epoch_iterator()
    tracemalloc.start()
    try:
        batch = next(epoch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The taken rows, the result, and small change.
    assert peak < data.nbytes + batch[0].nbytes + 2 ** 17


def test_cast_of_examples_after_it_equals_two_steps():
    """Single numbers are arrays without axes, as from Cast alone."""
    stream = DataStream(IndexableDataset(numpy.arange(4, dtype='uint8')),
                        iteration_scheme=SequentialExampleScheme(4))
    stage = ScaleAndShift(stream, 1 / 3, 0.1)
    found = [example for example, in Cast(
        stage, 'float32').get_epoch_iterator()]
    assert [numpy.float32(number / 3 + 0.1) for number in range(4)
            ] == [example.item() for example in found]
    assert {((), 'float32')} == {
        (example.shape, example.dtype.name) for example in found}


def test_cast_of_some_sources_leaves_others_float64():
    """Only the cast source is stored in the other type."""
    dataset = IndexableDataset({'x': numpy.arange(3), 'y': numpy.arange(3)})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(3, 3))
    stage = ScaleAndShift(stream, 0.1, 0)
    x, y = next(Cast(stage, 'float32',
                     which_sources=('x',)).get_epoch_iterator())
    assert ('float32', 'float64') == (x.dtype, y.dtype)
    # A reader of the stage itself still gets float64.
    x, y = next(stage.get_epoch_iterator())
    assert ('float64', 'float64') == (x.dtype, y.dtype)


def test_cast_after_a_subclass_sees_no_other_type():
    """A subclass may go on computing with the float64."""
    class Squared(ScaleAndShift):
        def transform_any_source(self, source_data, source_name):
            result = super().transform_any_source(source_data, source_name)
            assert numpy.float64 == result.dtype
            return result ** 2

    stream = Cast(Squared(batches_of(numpy.arange(3)), 0.1, 0), 'float32')
    numpy.testing.assert_array_equal(
        ((numpy.arange(3) * 0.1) ** 2).astype('f'),
        next(stream.get_epoch_iterator())[0])


def test_cast_that_overflows_after_it_warns_as_alone():
    """Only the cast is at fault, and it raised nothing before."""
    stage = ScaleAndShift(batches_of(numpy.array([1e30])), 1e10, 0)
    with numpy.errstate(over='ignore'):
        batch, = next(Cast(stage, 'float32').get_epoch_iterator())
    assert [numpy.inf] == batch.tolist()


WANTED = ['float16', 'float32', 'float64', 'int32', 'complex64', 'longdouble']


@pytest.mark.parametrize('given', ['uint8', 'int64', '?', 'float32', 'float64',
                                   'float16'])
@pytest.mark.parametrize('wanted', WANTED)
@pytest.mark.parametrize('numbers', [(1 / 255, -.5), (2, 1)], ids=repr)
def test_dtype_is_that_of_a_cast_behind(given, wanted, numbers):
    """Batches and examples are read in the type, or converted to it."""
    data = numpy.array([[0, 1], [1, 0], [1, 1]], given)
    expected = scaled(data, *numbers).astype(wanted)
    stages = [
        ScaleAndShift(batches_of(data), *numbers, dtype=wanted),
        ScaleAndShift(Cast(batches_of(data), given), *numbers, dtype=wanted),
        Cast(ScaleAndShift(batches_of(data), *numbers), wanted)]
    for stage in stages:
        (result,), = stage
        assert numpy.dtype(wanted) == result.dtype
        numpy.testing.assert_array_equal(expected, result)
        assert result.flags.writeable
    assert numpy.dtype(wanted) == types_of(stages[0])['x'].dtype
    examples = ScaleAndShift(DataStream(
        IndexableDataset({'x': data[:, 0]}),
        iteration_scheme=SequentialExampleScheme(3)), *numbers, dtype=wanted)
    for (result,), row in zip(examples, expected, strict=True):
        assert (numpy.dtype(wanted), row[0]) == (result.dtype, result)


def test_dtype_of_a_ragged_batch_and_of_chosen_sources():
    """Each example has it; other sources keep theirs."""
    rows = numpy.empty(2, object)
    rows[:] = [numpy.arange(2), numpy.arange(3)]
    stream = DataStream(IndexableDataset({'x': rows, 'y': numpy.arange(2)}),
                        batch_size=2)
    (x, y), = ScaleAndShift(stream, .5, 0, dtype='float32', which_sources='x')
    assert ['float32'] * 2 == [row.dtype for row in x]
    assert numpy.arange(2).dtype == y.dtype


def test_dtype_is_rounded_to_before_another_type():
    """A cast above does not undo it."""
    data = numpy.array([1, 2, 3], 'uint8')
    (result,), = Cast(ScaleAndShift(
        batches_of(data), .1, 0, dtype='float16'), 'float64')
    numpy.testing.assert_array_equal(
        (data * .1).astype('float16').astype('float64'), result)


def test_dtype_may_be_floatx_or_none():
    """The type is settled in the constructor; other values are refused."""
    fuel.config.floatX = 'float32'
    stage = ScaleAndShift(batches_of(numpy.arange(3)), .5, 0, dtype='floatX')
    assert 'float32' == stage.dtype == pickle.loads(pickle.dumps(stage)).dtype
    assert ScaleAndShift(batches_of([1]), .5, 0).dtype is None
    with pytest.raises(TypeError, match="dtype must be one of NumPy's types"):
        ScaleAndShift(batches_of([1]), .5, 0, dtype='float31')
