"""Values in the place of missing ones, fitted on the training data."""
import json

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from numpy.testing import assert_allclose, assert_array_equal

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import FilterSources, MultiProcessing, Padding
from fuel.transformers.imputation import (
    Impute, ImputeParameters, fit_impute)
from fuel.transformers.standardization import fit_standardization
from fuel.transformers.whitening import fit_whitening

NAN = numpy.nan
NUMBERS = st.floats(-1e6, 1e6) | st.just(NAN)


def stream_of(x, size=4, **others):
    """Return a stream of batches, or of examples with size None."""
    return DataStream(IndexableDataset({'x': x, **others}), **(
        {'batch_size': size} if size else {'shuffle': True}))


@given(st_numpy.arrays(
    numpy.float64, st.tuples(st.integers(1, 20), st.integers(1, 3)),
    elements=NUMBERS), st.integers(1, 6) | st.none())
def test_mean_and_median_are_those_of_numpy(x, size):
    """NumPy computes them of all data at once, whatever the batches."""
    for strategy, oracle in (('mean', numpy.nanmean),
                             ('median', numpy.nanmedian)):
        if numpy.isnan(x).all(axis=0).any():
            with pytest.raises(ValueError, match='has no value at'):
                fit_impute(stream_of(x, size), strategy=strategy)
            continue
        parameters = fit_impute(stream_of(x, size), strategy=strategy)
        assert_allclose(oracle(x, axis=0), parameters.fill, atol=1e-9)
        assert (x.shape[1:], len(x), int(numpy.isnan(x).sum())) == (
            parameters.shape, parameters.num_examples,
            parameters.num_missing)
        for data in (stream_of(x, 3), stream_of(x, None)):
            found = [part for part, in Impute(data, parameters)]
            found = numpy.concatenate(found).reshape(x.shape) if (
                not data.produces_examples) else numpy.array(found)
            expected = numpy.where(numpy.isnan(x), parameters.fill, x)
            if data.produces_examples:
                found, expected = numpy.sort(found, 0), numpy.sort(expected, 0)
            assert_array_equal(expected, found)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1,
                max_size=30), st.integers(1, 5) | st.none(),
       st.sampled_from(['int64', 'uint8', 'bool']))
def test_integers_have_a_mask(rows, size, dtype):
    """A value is left out and replaced where its mask is false."""
    x = numpy.array([abs(value) for value, _ in rows]).astype(dtype)
    there = numpy.array([is_there for _, is_there in rows])
    data = stream_of(x, size, x_mask=there)
    if not there.any():
        with pytest.raises(ValueError, match='has no value in any'):
            fit_impute(data, 'x', 'most-frequent', mask='x_mask')
        return
    parameters = fit_impute(data, 'x', 'most-frequent', mask='x_mask')
    values, counts = numpy.unique(x[there], return_counts=True)
    assert [values[counts.argmax()]] == [*parameters.fill]
    filled, mask = zip(*Impute(
        stream_of(x, 3, x_mask=there.astype('float32')), parameters),
        strict=True)
    filled = numpy.concatenate(filled)
    assert filled.dtype == dtype
    assert_array_equal(numpy.where(there, x, parameters.fill[0]), filled)
    assert_array_equal(there, numpy.concatenate(mask))
    if dtype != 'bool':
        mean, = fit_impute(data, 'x', mask='x_mask').fill
        assert_allclose(x[there].mean(), mean)


@given(st.lists(st.sampled_from(['', None, 'a', 'bb', 'ccc']), min_size=1,
                max_size=12), st.integers(1, 5) | st.none(), st.booleans())
def test_text_takes_what_is_most_frequent(texts, size, as_bytes):
    """Empty text and None are missing."""
    if as_bytes:
        texts = [text and text.encode() for text in texts]
    there = [text for text in texts if text]
    x = numpy.empty(len(texts), object)
    x[:] = texts
    if not there:
        with pytest.raises(ValueError, match='has no value'):
            fit_impute(stream_of(x, size), strategy='most-frequent')
        return
    parameters = fit_impute(stream_of(x, size), strategy='most-frequent')
    fill = min(there, key=lambda text: (-there.count(text), text))
    assert [fill.decode() if as_bytes else fill] == [*parameters.fill]
    assert texts.count('') + texts.count(None) + texts.count(b'') == (
        parameters.num_missing)
    expected = [text or fill for text in texts]
    # A batch of nothing but gaps does not tell text from bytes.
    data = Impute(stream_of(x, len(x)), parameters)
    assert expected == next(iter(data))[0].tolist()
    if None not in texts and not as_bytes:
        for given_ in (numpy.array(texts), texts):
            assert expected == next(iter(Impute(
                stream_of(given_, len(x)), parameters)))[0].tolist()
            examples = [text for text, in Impute(
                stream_of(given_, None), parameters)]
            assert sorted(expected) == sorted(examples)


def test_values_of_ones_own_are_not_learnt():
    """Nothing is read for them."""
    class Unread(IndexableDataset):
        def get_data(self, state=None, request=None):
            raise AssertionError('it was read')

    stream = DataStream(Unread({'x': numpy.array([1., NAN])}), batch_size=2)
    parameters = fit_impute(stream, value=-1)
    assert ((-1,), (), 'constant') == (
        parameters.fill, parameters.shape, parameters.strategy)
    x = numpy.array([[1, NAN], [NAN, 4]], 'float32')
    batch, = next(iter(Impute(stream_of(x), parameters)))
    assert ('float32', [[1, -1], [-1, 4]]) == (batch.dtype, batch.tolist())
    batch, = next(iter(Impute(stream_of(x), parameters, dtype='int16')))
    assert ('int16', [[1, -1], [-1, 4]]) == (batch.dtype, batch.tolist())


def test_test_data_get_what_was_learnt_of_the_training_data(tmp_path):
    """A JSON file holds the very numbers; workers fill them, too."""
    parameters = fit_impute(stream_of(numpy.array([.1, NAN, .2])))
    path = tmp_path / 'fill.json'
    parameters.save(path)
    assert parameters == ImputeParameters.load(path)
    assert 'imputation' == json.loads(path.read_text())['fuel']
    test = Impute(stream_of(numpy.array([NAN, 9.])), str(path))
    assert [parameters.fill[0], 9.] == next(iter(test))[0].tolist()
    assert [parameters.fill[0], 9.] == next(iter(
        MultiProcessing(test)))[0].tolist()


@pytest.mark.parametrize('changes', [
    {'fuel': 'standardization'}, {'fill': [1.5, 2.]}, {'fill': [[1.5]]},
    {'fill': [float('nan')]}, {'shape': [2]}, {'mask': ...}])
def test_other_files_are_refused(tmp_path, changes):
    """The error has their name."""
    path = tmp_path / 'fill.json'
    fit_impute(stream_of(numpy.array([[1.], [2.]]))).save(path)
    found = {key: value for key, value in {
        **json.loads(path.read_text()), **changes}.items()
        if value is not ...}
    path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=r'fill.json does not hold'):
        Impute(stream_of(numpy.array([[1.]])), path)


INTEGERS = numpy.array([1, 2])


@pytest.mark.parametrize('make, text', [
    (lambda: fit_impute(stream_of(numpy.array([[1., NAN], [2, NAN]]))),
     r'no value at \[1\] in any of 2'),
    (lambda: fit_impute(stream_of(numpy.array([1., numpy.inf]))), 'infinite'),
    (lambda: fit_impute(stream_of(['a', 'b'])), "use strategy='most-frequent"),
    (lambda: fit_impute(stream_of(INTEGERS), strategy='mode'),
     'strategy must be one of'),
    (lambda: fit_impute(stream_of(INTEGERS), 'y'), "asks for 'y'"),
    (lambda: fit_impute(stream_of(INTEGERS), mask='y'), "asks for 'y'"),
    (lambda: fit_impute(stream_of(numpy.zeros((0, 2)))), 'no examples'),
    (lambda: fit_impute(Padding(stream_of([[1.], [2.], [3., 4.]], 2),
                                mask_sources=())), 'one shape'),
    (lambda: next(iter(Impute(
        stream_of(INTEGERS, x_mask=INTEGERS > 1), fit_impute(
            stream_of(INTEGERS, x_mask=INTEGERS), value=.5,
            mask='x_mask')))),
     "int64, which cannot hold .*dtype='float64'"),
    (lambda: next(iter(Impute(
        stream_of(numpy.array([1, numpy.nan], 'float16')),
        fit_impute(stream_of(numpy.array([1.])), value=1e6)))),
     "float16, which cannot hold .*dtype='float64'"),
    (lambda: next(iter(Impute(
        stream_of(numpy.ones((2, 3))), fit_impute(
            stream_of(numpy.ones((2, 2))))))), r'shape \(2,\).*\(2, 3\)'),
    (lambda: Impute(stream_of(INTEGERS), fit_impute(stream_of(
        INTEGERS, m=INTEGERS), value=0, mask='m')), "asks for 'm'")])
def test_what_cannot_be_filled_is_told(make, text):
    """The error names the source and the remedy."""
    with pytest.raises(ValueError, match=text):
        make()


def test_means_of_far_numbers_keep_their_digits():
    """No sum of all is taken."""
    x = numpy.array([1e15 + number % 3 for number in range(3000)])
    assert [1e15 + 1] == [*fit_impute(stream_of(x, 7)).fill]


def test_dates_are_refused():
    """Fitting refuses them, and so does filling with a given value."""
    dates = numpy.array(['2024-02-29', 'NaT'], 'datetime64[D]')
    for strategy in ('median', 'most-frequent'):
        with pytest.raises(ValueError, match=(
                r"'x' has datetime64\[D\].*NaT to NaN, with a function")):
            fit_impute(stream_of(dates), strategy=strategy)
    parameters = fit_impute(stream_of(dates), value=0)
    with pytest.raises(ValueError, match=r"'x' has datetime64\[D\]"):
        next(iter(Impute(stream_of(dates), parameters)))


@pytest.mark.parametrize('dtype', ['float16', 'float32'])
def test_means_of_narrow_numbers_are_added_in_double(dtype):
    """The sum of one large batch may exceed the range of its type."""
    x = numpy.full(20000, 100.1, dtype)
    assert fit_impute(stream_of(x, len(x))).fill == (float(x[0]),)


def masked(ranks=(4, 0), there=(True, False)):
    """Return a stream whose source has 0 where its mask is false."""
    return DataStream(IndexableDataset({
        'rank': numpy.array(ranks), 'rank_mask': numpy.array(there)}),
        batch_size=1)


@pytest.mark.parametrize('strategy', ['mean', 'median', 'most-frequent'])
def test_mask_of_a_source_is_found_by_its_name(strategy):
    """Nothing is learnt of the numbers that stand for missing values."""
    parameters = fit_impute(masked(), 'rank', strategy)
    assert (('rank_mask', 1), 4) == (
        (parameters.mask, parameters.num_missing), parameters.fill[0])
    assert [4, 4] == [
        rank for rank, _ in Impute(masked(), parameters, dtype=float)]
    given = fit_impute(masked(), 'rank', value=7)
    assert [4, 7] == [rank for rank, _ in Impute(masked(), given)]


@pytest.mark.parametrize('fit', [fit_standardization, fit_whitening])
def test_fits_refuse_a_source_with_values_that_are_missing(fit):
    """The mask alone tells that values are missing, until they are filled."""
    rows = [[4, 1], [0, 2], [1, 1]]
    gaps = masked(rows, [True, False, True])
    with pytest.raises(ValueError, match=(
            r"'rank' has values that are missing, first False in example 1 of "
            r"the epoch of 'rank_mask': put .* with Impute and fit_impute")):
        fit(gaps, source='rank')
    filled = Impute(
        gaps, fit_impute(gaps, 'rank'), dtype=float)
    assert (2.5, 1) == pytest.approx(fit(filled, source='rank').mean)
    whole = masked(rows, [True] * 3)
    unmasked = FilterSources(gaps, ('rank',))
    assert (5 / 3, 4 / 3) == pytest.approx(fit(whole, source='rank').mean)
    assert (5 / 3, 4 / 3) == pytest.approx(fit(unmasked, source='rank').mean)


@pytest.mark.parametrize('x', [
    numpy.array([[2 ** 63 + 5, 3], [0, 0]], 'uint64'),
    numpy.array([[2 ** 53 + 1, -1], [0, 0]])], ids=str)
def test_large_and_small_integers_side_by_side_are_filled_exactly(x):
    """NumPy makes float64 of them, which does not hold the large ones."""
    hidden = numpy.ma.masked_array(x, [[False] * 2, [True] * 2])
    stream = stream_of(hidden)
    filled, = next(iter(Impute(stream, fit_impute(
        stream, strategy='most-frequent'))))
    assert x.dtype == filled.dtype
    assert x[[0, 0]].tolist() == filled.tolist()


def test_integers_out_of_range_are_refused():
    """Python's integers know no range, and NumPy's do."""
    stream = stream_of(numpy.ma.masked_array([1, 2], [False, True]))
    with pytest.raises(ValueError, match='cannot hold the values'):
        next(iter(Impute(stream, fit_impute(stream, value=2 ** 70))))


@pytest.mark.parametrize('size', [1, 3, None])
def test_most_frequent_of_numbers_among_text(size):
    """Numbers come before text where both are equally frequent."""
    x = numpy.array(['a', 1, None, 'a', 2, 1], object)
    stream = stream_of(x, size)
    parameters = fit_impute(stream, strategy='most-frequent')
    assert ((1,), 1) == (parameters.fill, parameters.num_missing)


def test_most_frequent_infinity_is_refused():
    """The source is named, as where a mean is infinite."""
    with pytest.raises(ValueError, match="source 'x' has no value.*infinite"):
        fit_impute(stream_of(numpy.array([numpy.inf, 1, numpy.inf])),
                   strategy='most-frequent')
