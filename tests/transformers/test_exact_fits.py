"""Fitted means, deviations and covariances against exact fractions."""
import math
import tracemalloc
from fractions import Fraction

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.streams import DataStream
from fuel.transformers import moments
from fuel.transformers.imputation import fit_impute
from fuel.transformers.standardization import (
    Standardization,
    fit_standardization,
)
from fuel.transformers.whitening import Whitening, fit_whitening

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def stream_of(x, size=4):
    """Return a stream of batches, or of examples with size None."""
    return DataStream(IndexableDataset({'x': x}), **(
        {'batch_size': size} if size else {'shuffle': True}))


def fractions_of(column):
    """Return the numbers of an array, exactly."""
    return [Fraction(*value.as_integer_ratio()) if isinstance(value, float)
            else Fraction(int(value)) for value in column.tolist()]


def exact_mean(numbers):
    """Return the mean of fractions."""
    return sum(numbers) / len(numbers)


def exact_covariance(one, other):
    """Return the covariance of two lists of fractions."""
    means = exact_mean(one), exact_mean(other)
    return exact_mean([(a - means[0]) * (b - means[1])
                       for a, b in zip(one, other, strict=True)])


def exact_root(square):
    """Return the square root of a fraction, rounded once."""
    return float(Fraction(
        math.isqrt(square.numerator * square.denominator << 600),
        square.denominator << 300)) if square else 0.


def check_column(column, mean, deviation):
    """Compare a mean and a deviation with those of fractions."""
    numbers = fractions_of(column)
    assert float(exact_mean(numbers)) == mean
    expected = exact_root(exact_covariance(numbers, numbers))
    # A relative difference, but of the numbers that have fewer digits.
    assert abs(expected - deviation) <= max(
        1e-15 * expected, 0 if expected > 1e-300 else math.ulp(expected))
    assert (len(set(numbers)) == 1) <= (deviation == 0)


@st.composite
def columns(draw):
    """Draw a column of numbers in one of many types and manners."""
    kind = draw(st.sampled_from(['any', 'near', 'constant', 'integers']))
    count = draw(st.integers(1, 30))
    if kind == 'integers':
        dtype = numpy.dtype(draw(st.sampled_from(
            ['?', 'i1', 'u1', '>i2', 'u2', 'i4', 'u4', 'i8', 'u8', '>u8'])))
        low, high = (0, 1) if dtype.kind == 'b' else (
            int(numpy.iinfo(dtype).min), int(numpy.iinfo(dtype).max))
        first = draw(st.integers(low, high))
        return numpy.array([draw(st.integers(
            max(low, first - 9), min(high, first + 9)) | st.integers(
                low, high)) for _ in range(count)], dtype)
    dtype = numpy.dtype(draw(st.sampled_from(['f2', 'f4', 'f8', '>f8'])))
    offset = draw(st.sampled_from([0, 1e8, -1e12, 1e-9]))
    scale = 10. ** draw(st.integers(-20, 9))
    numbers = {
        'any': FLOATS, 'constant': st.just(draw(FLOATS)),
        'near': st.floats(-1, 1).map(
            lambda number: offset + scale * number)}[kind]
    found = numpy.array([draw(numbers) for _ in range(count)])
    largest = float(numpy.finfo(dtype).max)
    return numpy.clip(found, -largest, largest).astype(dtype)


def check_standardization(column, size):
    """Fit to a column in batches of a size, and compare."""
    parameters = fit_standardization(stream_of(column[:, None], size))
    check_column(column, *parameters.mean, *parameters.deviation)
    by_source = fit_standardization(stream_of(column, size), over='source')
    assert parameters.mean == by_source.mean
    assert parameters.deviation == by_source.deviation


@given(columns(), st.sampled_from([None, 1, 2, 7, 100]))
def test_standardization_of_any_numbers_is_that_of_fractions(column, size):
    """The mean is rounded once and the deviation to 1e-15, whatever the
    numbers, their type and the batches."""
    check_standardization(column, size)


@pytest.mark.full
@pytest.mark.timeout(900)
@given(columns(), st.sampled_from([None, 1, 2, 7, 100]))
@settings(max_examples=3000)
def test_standardization_of_many_columns_is_that_of_fractions(column, size):
    """The test is the long form of the one above."""
    check_standardization(column, size)


@pytest.mark.parametrize('value', [.1, 1 / 3, 123456.789, -1e300, 5e-324])
@pytest.mark.parametrize('size', [None, 1, 7, 300])
def test_standardization_of_a_constant_column_has_deviation_zero(value, size):
    """The constant becomes exactly 0, and another value is not blown up."""
    parameters = fit_standardization(stream_of(
        numpy.full((300, 1), value), size))
    assert ((value,), (0.,)) == (parameters.mean, parameters.deviation)
    x = numpy.array([[value], [0.]])
    found, = next(iter(Standardization(stream_of(x), parameters, 'float64')))
    assert [[0.], [-value]] == found.tolist()


@pytest.mark.parametrize('over, axes', [
    ('element', (0,)), ('channel', (0, 2, 3)), ('source', (0, 1, 2, 3))])
def test_standardization_of_images_around_a_large_offset_is_exact(over, axes):
    """It is exact over elements, channels, or all, with an outlier at the
    beginning."""
    x = 1e8 + numpy.random.RandomState(0).normal(size=(9, 2, 3, 2))
    x[0, 0] = 1e-3
    parameters = fit_standardization(stream_of(x, 2), over=over)
    kept = [axis for axis in range(4) if axis not in axes]
    found = numpy.transpose(x, (*axes, *kept)).reshape(
        -1, len(parameters.mean))
    for column, mean, deviation in zip(
            found.T, parameters.mean, parameters.deviation, strict=True):
        check_column(column, mean, deviation)
    assert parameters.shape == tuple(
        x.shape[axis] if axis in kept else 1 for axis in (1, 2, 3))


def test_standardization_does_not_depend_on_order_and_batches():
    """Results are equal bit for bit."""
    x = numpy.random.RandomState(0).normal(size=(50, 3)) * [1e9, 1, 1e-9]
    expected = fit_standardization(stream_of(x, 50))
    for rows, size in ((x, 1), (x, 7), (x[::-1], 3)):
        assert expected == fit_standardization(stream_of(rows, size))


def test_standardization_of_batches_of_various_sizes_is_exact():
    """Batches without rows, of a stream that is read once, do not matter."""
    x = numpy.random.RandomState(0).normal(1e8, size=(40, 2))
    batches = numpy.split(x, [0, 1, 1, 3, 20])
    stream = DataStream(IterableDataset({'x': iter(batches)}))
    stream.produces_examples = False
    parameters = fit_standardization(stream)
    assert 40 == parameters.num_examples
    for column, mean, deviation in zip(
            x.T, parameters.mean, parameters.deviation, strict=True):
        check_column(column, mean, deviation)


@pytest.mark.skipif(numpy.dtype('longdouble').itemsize == 8,
                    reason='long doubles are doubles here')
def test_standardization_of_long_doubles_that_overflow_is_an_error():
    """They are not counted as infinite numbers."""
    x = numpy.array([numpy.finfo(numpy.longdouble).max])
    with pytest.raises(ValueError, match='numbers that float64 holds'):
        fit_standardization(stream_of(x))
    x = numpy.array([1, 2, 3], numpy.longdouble)
    assert (2.,) == fit_standardization(stream_of(x)).mean


def test_standardization_of_no_elements_is_an_error():
    """Examples of the shape (0,) have no common mean."""
    x = numpy.empty((3, 0))
    assert () == fit_standardization(stream_of(x)).mean
    with pytest.raises(ValueError, match='no examples of'):
        fit_standardization(stream_of(x), over='source')


def test_moments_pass_carries_on(monkeypatch):
    """Sums of more numbers than their limbs hold at a time stay exact."""
    monkeypatch.setattr(moments, 'MOST_ROWS', 5)
    column = numpy.array([-1.7e308, 1e-3, 2. ** 62, -1.] * 9 + [3.])
    for size in (2, 11):
        parameters = fit_standardization(stream_of(column, size))
        check_column(column, *parameters.mean, *parameters.deviation)


def test_moments_of_columns_in_several_blocks_are_exact(monkeypatch):
    """Each column has the limbs of its block, at its own place."""
    monkeypatch.setattr(moments, 'COLUMNS', 2)
    x = numpy.random.RandomState(0).normal(size=(9, 5)) * [
        1, 1e-300, 1e300, 0, 1e9]
    for size in (2, 9):
        parameters = fit_standardization(stream_of(x, size))
        for column, mean, deviation in zip(
                x.T, parameters.mean, parameters.deviation, strict=True):
            check_column(column, mean, deviation)


def test_moments_take_no_room_for_outliers_of_other_columns():
    """One column from 5e-324 to 1e300 among 20,000 takes no 32 MB."""
    x = numpy.random.RandomState(0).normal(size=(4, 20000))
    x[:2, 7] = 5e-324, 1e300
    tracemalloc.start()
    try:
        found = moments.Moments(20000)
        found.add(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 ** 24
    check_column(x[:, 7], found.means()[7], found.deviations()[7])


def test_imputed_mean_is_that_of_fractions():
    """The mean is of the present values, and of integers beyond 2 ** 53."""
    x = numpy.array([[1e16], [numpy.nan], [1.], [-1e16], [numpy.nan]])
    assert (float(Fraction(1, 3)),) == fit_impute(stream_of(x, 2)).fill
    x = numpy.array([[2 ** 60], [2 ** 60 + 3], [-2 ** 61]])
    assert (1.,) == fit_impute(stream_of(x, 2)).fill
    x = numpy.full((300, 1), .1)
    x[1::3] = numpy.nan
    assert (.1,) == fit_impute(stream_of(x, 7)).fill


@pytest.mark.parametrize('strategy', ['mean', 'median', 'most-frequent'])
def test_values_to_impute_are_learnt_beside_batches_without_examples(
        strategy):
    """Empty batches of any shape and type, at any place, do not matter."""
    x = numpy.array([[1., numpy.nan], [1., 5.], [4., 5.]])
    expected = fit_impute(stream_of(x, 3), strategy=strategy)
    for empty in (x[:0], [], numpy.empty((0, 7), 'U3')):
        batches = [empty, x[:2], empty, x[2:], empty]
        stream = DataStream(IterableDataset({'x': iter(batches)}))
        stream.produces_examples = False
        assert expected == fit_impute(stream, strategy=strategy)


def test_values_to_impute_of_examples_without_elements_are_none():
    """Examples of the shape (0,) have no place for one."""
    parameters = fit_impute(stream_of(numpy.empty((3, 0)), 2))
    assert ((), (0,), 3) == (
        parameters.fill, parameters.shape, parameters.num_examples)


def check_whitening(x, size, kind):
    """Whiten the exact covariance of rows with what was fitted to them."""
    parameters = fit_whitening(stream_of(x, size), kind=kind, epsilon=0)
    columns = [*map(fractions_of, x.T)]
    assert [float(exact_mean(column)) for column in columns] == (
        parameters.mean.tolist())
    covariance = numpy.array([[exact_covariance(one, other)
                               for other in columns] for one in columns])
    matrix = numpy.vectorize(Fraction, otypes=[object])(parameters.matrix)
    white = (matrix.T @ covariance @ matrix).astype(float)
    # Correlated columns cost digits, but neither their scales nor their
    # offsets do.
    roots = [exact_root(variance) for variance in covariance.diagonal()]
    correlation = covariance.astype(float) / numpy.outer(roots, roots)
    numpy.testing.assert_allclose(
        white, numpy.eye(len(white)),
        atol=1e-10 + 1e-12 * numpy.linalg.cond(correlation))


@st.composite
def correlated_rows(draw):
    """Draw rows of columns with different scales and offsets."""
    width = draw(st.integers(1, 4))
    rng = numpy.random.default_rng(draw(st.integers(0, 2 ** 32)))
    x = rng.normal(size=(draw(st.integers(10, 30)), width))
    # Correlations of at most 0.9, for a covariance with an inverse.
    x += .5 * x.mean(axis=1, keepdims=True)
    scales = [10. ** draw(st.integers(-6, 6)) for _ in range(width)]
    offsets = [draw(st.sampled_from([0, 1, -1e4, 1e8])) * scale
               for scale in scales]
    if draw(st.booleans()):
        # An outlier, in the place that all else is measured from.
        x[0] *= 100
    return x * scales + offsets


@given(correlated_rows(), st.sampled_from([None, 1, 7, 100]),
       st.sampled_from(['pca', 'zca']))
def test_whitening_makes_the_exact_covariance_the_identity(x, size, kind):
    """The scales and offsets of the columns do not matter."""
    check_whitening(x, size, kind)


@pytest.mark.full
@pytest.mark.timeout(900)
@given(correlated_rows(), st.sampled_from([None, 1, 7, 100]),
       st.sampled_from(['pca', 'zca']))
@settings(max_examples=2000)
def test_whitening_makes_many_exact_covariances_the_identity(x, size, kind):
    """The test is the long form of the one above."""
    check_whitening(x, size, kind)


@pytest.mark.parametrize('dtype, offset', [('i8', -2 ** 62), ('u8', 2 ** 63)])
def test_whitening_of_large_integers_is_exact(dtype, offset):
    """Their differences are taken before they become floating numbers."""
    x = numpy.random.RandomState(0).randint(0, 50, (20, 2)).astype(dtype)
    for size in (3, 20):
        check_whitening(x + numpy.array(offset, dtype), size, 'zca')


@pytest.mark.parametrize('scale', [1, 1e-9], ids=['one', 'two'])
def test_whitening_of_a_constant_column_makes_it_zero(scale):
    """It does so without epsilon, in columns of one scale and of several."""
    x = numpy.random.RandomState(0).normal(size=(60, 3)) * [1, 0, scale]
    x[:, 1] = .1
    for kind in ('pca', 'zca'):
        parameters = fit_whitening(stream_of(x, 7), kind=kind, epsilon=0)
        assert .1 == parameters.mean[1]
        assert not parameters.matrix[1].any()
        white = numpy.concatenate([rows for rows, in Whitening(
            stream_of(x, 7), parameters, 'float64')])
        variances = white.var(axis=0).round(9).tolist()
        assert [0., 1., 1.] == sorted(variances)


def test_whitening_of_fewer_rows_than_columns_makes_a_constant_one_zero():
    """Rounding mixes nothing into it where others have no variance either."""
    for seed in range(20):
        x = numpy.random.RandomState(seed).normal(size=(4, 6))
        x[:, 2] = .1
        parameters = fit_whitening(stream_of(x), epsilon=0)
        assert not parameters.matrix[2].any()
        assert not parameters.matrix[:, 2].any()


def test_whitening_of_numbers_whose_squares_overflow_is_an_error():
    """It says what to do."""
    with pytest.raises(ValueError, match='scale it before'):
        fit_whitening(stream_of(numpy.array([[1e200], [-1e200]])))
