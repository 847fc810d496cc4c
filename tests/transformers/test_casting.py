"""Cast and ForceFloatX."""
import pickle

import numpy
import pytest

from fuel import config
from fuel.datasets import IndexableDataset
from fuel.interop.number_arrays import refusal
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ForceFloatX, Mapping, ScaleAndShift


def batches_of(data):
    """Return a stream with all data in one batch."""
    return DataStream(
        IndexableDataset({'x': data}),
        iteration_scheme=SequentialScheme(len(data), len(data)))


def cast(data, dtype):
    """Return what the stage makes of a batch."""
    return next(Cast(batches_of(data), dtype).get_epoch_iterator())[0]


@pytest.mark.parametrize('data', [
    [1, 2], [1., 2.], ['1', '2'], numpy.array([1, 2], '>i2'),
    numpy.array([1, 2], object)])
def test_cast_makes_arrays_of_anything(data):
    """numpy.asarray does the same."""
    result = cast(data, 'float32')
    assert numpy.dtype('=f4') == result.dtype
    assert [1, 2] == result.tolist()


def test_cast_of_large_integers_in_lists_is_exact():
    """They are not rounded to floats on the way."""
    assert [2 ** 60 + 1, 0] == cast([2 ** 60 + 1, 0.5], 'int64').tolist()


def test_cast_examples():
    """An example becomes an array."""
    stream = DataStream(IndexableDataset([1, 2]),
                        iteration_scheme=SequentialExampleScheme(2))
    example, = next(Cast(stream, 'float32').get_epoch_iterator())
    assert isinstance(example, numpy.ndarray)
    assert ((), 'float32', 1) == (example.shape, example.dtype, example)


def test_cast_to_the_same_type_does_not_copy():
    """The batch is the user's own already."""
    seen = []
    stream = Mapping(batches_of(numpy.arange(3)),
                     lambda data: (seen.append(data[0]), data)[1])
    result, = next(Cast(stream, 'int64').get_epoch_iterator())
    assert seen[0] is result


def test_cast_of_a_read_only_array_is_writable():
    """Every array that is handed out is."""
    stream = Mapping(batches_of(numpy.arange(3)),
                     lambda data: (numpy.broadcast_to(data[0], (2, 3)),))
    result, = next(Cast(stream, 'int64').get_epoch_iterator())
    result += 1
    assert [[1, 2, 3]] * 2 == result.tolist()


def test_cast_of_a_ragged_batch_casts_each_example():
    """Arrays of length one stay arrays, too."""
    rows = numpy.empty(2, object)
    rows[:] = [numpy.array([1]), numpy.array([2])]
    for data in (rows, [[1], [2, 3]]):
        result = cast(data, 'float32')
        assert object == result.dtype
        assert (2,) == result.shape
        assert {('float32', 1)} == {
            (row.dtype.name, row.ndim) for row in result}


def test_cast_to_float_x_is_settled_when_the_stage_is_built():
    """A later assignment does not change the type in the middle."""
    config.floatX = 'float32'
    stream = Cast(batches_of([1]), 'floatX')
    config.floatX = 'float64'
    assert 'float32' == stream.dtype
    restored = pickle.loads(pickle.dumps(stream))
    assert 'float32' == next(restored.get_epoch_iterator())[0].dtype
    assert 'float64' == Cast(batches_of([1]), 'floatX').dtype


def test_cast_to_an_unknown_type_raises_when_built():
    """The error does not wait for the first batch."""
    with pytest.raises(TypeError, match="dtype must be .*got 'flaot32'"):
        Cast(batches_of([1]), 'flaot32')


def test_cast_keeps_axis_labels():
    """They are the stream's."""
    stream = batches_of([1])
    stream.axis_labels = {'x': ('batch',)}
    assert {'x': ('batch',)} == Cast(stream, 'int8').axis_labels
    assert {'x': ('batch',)} == ForceFloatX(stream).axis_labels
    assert {'x': ('batch',)} == ScaleAndShift(stream, 1, 0).axis_labels
    assert {} == Cast(stream, 'int8', axis_labels={}).axis_labels


def test_force_float_x_casts_floating_arrays_alone():
    """Integers, lists and scalars stay as they are."""
    config.floatX = 'float32'
    dataset = IndexableDataset({
        'double': numpy.ones(2), 'single': numpy.ones(2, 'f'),
        'half': numpy.ones(2, 'e'), 'integer': numpy.ones(2, int),
        'list': [1., 2.]})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))
    double, single, half, integer, values = next(
        ForceFloatX(stream).get_epoch_iterator())
    assert {'float32'} == {
        array.dtype.name for array in (double, single, half)}
    assert 'int64' == integer.dtype
    assert [1., 2.] == values


def test_force_float_x_of_ragged_batch():
    """The examples are floating arrays."""
    config.floatX = 'float32'
    rows = numpy.empty(2, object)
    rows[:] = [numpy.ones(1), numpy.ones(2, int)]
    result, = next(ForceFloatX(batches_of(rows)).get_epoch_iterator())
    assert ['float32', 'int64'] == [row.dtype.name for row in result]


@pytest.mark.parametrize('cls', [
    ForceFloatX, lambda stream: Cast(stream, 'float32')],
    ids=['ForceFloatX', 'Cast'])
def test_scalars_after_scaling_are_those_of_two_steps(cls):
    """The computation in one step has the values and type of two."""
    class Scale(ScaleAndShift):
        """A subclass, which is always asked for the values in between."""

    config.floatX = 'float32'
    dataset = IndexableDataset({'n': numpy.arange(3),
                                'x': numpy.ones((3, 2), 'u1')})
    expected, got = [
        next(cls(stage(DataStream(
            dataset, iteration_scheme=SequentialExampleScheme(3)), 0.1, 0.3)
            ).get_epoch_iterator()) for stage in (Scale, ScaleAndShift)]
    for two_steps, one in zip(expected, got, strict=True):
        assert type(two_steps) is type(one)
        assert two_steps.dtype == one.dtype
        assert two_steps.tolist() == one.tolist()


def test_force_float_x_after_scaling_equals_two_steps():
    """It is fused in the same way as Cast."""
    config.floatX = 'float32'
    data = numpy.arange(100, dtype='uint8')
    stage = ScaleAndShift(batches_of(data), 1 / 3, 0.1)
    result, = next(ForceFloatX(stage).get_epoch_iterator())
    numpy.testing.assert_array_equal(
        (data * (1 / 3) + 0.1).astype('f'), result)
    # Data that do not become float64 are not cast.
    whole = ForceFloatX(ScaleAndShift(batches_of(data), 2, 1))
    assert 'int64' == next(whole.get_epoch_iterator())[0].dtype


PIXELS = numpy.arange(24, dtype='uint8').reshape(6, 2, 2)
REQUESTS = [[4, 1, 1], [5]]


def shuffled(dataset, **attributes):
    """Return batches of some examples, in some order."""
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(
        sum(REQUESTS, []), 3))
    vars(stream).update(attributes)
    return stream


@pytest.mark.parametrize('dtype', ['float32', 'float64', 'int64', 'uint8'])
def test_cast_of_a_data_set_in_memory_casts_its_rows(dtype):
    """Only the given sources are cast, by any way of reading."""
    dataset = IndexableDataset(
        {'x': PIXELS, 'y': PIXELS[::-1], 'z': PIXELS[:, 0]})
    stage = Cast(shuffled(dataset), dtype, which_sources=('x', 'y'))
    batches = list(stage.get_epoch_iterator())
    assert len(batches) == 2
    for (x, y, z), request in zip(batches, REQUESTS, strict=True):
        assert (dtype, dtype, 'uint8') == (x.dtype, y.dtype, z.dtype)
        numpy.testing.assert_array_equal(x, PIXELS[request])
        numpy.testing.assert_array_equal(y, PIXELS[::-1][request])
        numpy.testing.assert_array_equal(z, PIXELS[request, 0])
        x[:] = 0
    assert PIXELS.any()


def test_cast_goes_by_the_names_of_the_stream():
    """They may be those of other sources of the data set."""
    dataset = IndexableDataset({'x': PIXELS, 'y': PIXELS})
    stream = shuffled(dataset, _sources=('y', 'x'))
    first, second = next(Cast(
        stream, 'float32', which_sources=('y',)).get_epoch_iterator())
    assert ('float32', 'uint8') == (first.dtype, second.dtype)


def test_data_set_of_the_users_sees_its_own_type():
    """Its get_data computes with what the data are, before the cast."""
    class Inverted(IndexableDataset):
        def get_data(self, state=None, request=None):
            x, = super().get_data(state, request)
            return (~x,)

    x, = next(Cast(shuffled(Inverted(PIXELS)),
                   'float32').get_epoch_iterator())
    numpy.testing.assert_array_equal(x, 255 - PIXELS[REQUESTS[0]])
    own = IndexableDataset(PIXELS)
    own.get_data = Inverted(PIXELS).get_data
    x, = next(Cast(shuffled(own), 'float32').get_epoch_iterator())
    numpy.testing.assert_array_equal(x, 255 - PIXELS[REQUESTS[0]])


@pytest.mark.parametrize('kind', ['datetime64[D]', 'timedelta64[s]'])
@pytest.mark.parametrize('dtype', ['float16', 'float32', 'float64'])
def test_missing_time_is_nan(kind, dtype):
    """It is NaN in batches of any shape, lists and single examples, without a
    warning."""
    times = numpy.array([3, 'NaT', 5], kind)
    for batch in times, times[:, None], [*times]:
        stream = Cast(DataStream(IndexableDataset({'x': batch}),
                                 batch_size=3), dtype)
        found, = next(iter(stream))
        assert (dtype, numpy.shape(batch)) == (found.dtype, found.shape)
        numpy.testing.assert_array_equal(
            found.ravel(), numpy.array([3, numpy.nan, 5], dtype))
    examples = Cast(DataStream(IndexableDataset({'x': times}),
                               iteration_scheme=SequentialExampleScheme(3)),
                    dtype)
    numpy.testing.assert_array_equal(
        [x for x, in examples], [3, numpy.nan, 5])


@pytest.mark.parametrize('dtype', ['int64', 'uint8', bool])
def test_missing_time_is_not_cast_to_an_integer(dtype):
    """NumPy makes the smallest integer of it; a float can be NaN."""
    times = numpy.array(['2024-01-02', 'NaT'], 'datetime64[D]')
    with pytest.raises(ValueError, match=(
            "'x': NaT, a time that is missing, is not a valid .*: cast to "
            "float64")):
        cast(times, dtype)
    assert [19724] == cast(times[:1], 'int64').tolist()
    assert numpy.isnan(cast(times, 'float64')[1])
    assert 'cast it to int64' in str(refusal(times[:1], 'x', 'tensor'))
    assert 'cast it to float64' in str(refusal(times, 'x', 'tensor'))
