"""Whitening: fitted in one pass, saved with where it comes from, applied."""
import dataclasses

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fuel
from fuel import config
from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Flatten, Mapping
from fuel.transformers.whitening import (
    Whitening,
    WhiteningParameters,
    fit_whitening,
)

RNG = numpy.random.RandomState(0)
# Correlated, far from zero, of different variances.
ROWS = RNG.normal(size=(400, 6)) @ RNG.normal(size=(6, 6)) + 1000


def stream_of(rows, scheme=SequentialScheme, *args, **labels):
    """Return a stream of rows."""
    return DataStream(
        IndexableDataset({'x': rows, 'y': numpy.arange(len(rows))},
                         axis_labels=labels or None),
        iteration_scheme=scheme(len(rows), *(args or (
            () if scheme is SequentialExampleScheme else (37,)))))


def whitened(parameters, rows, **kwargs):
    """Return all rows, whitened."""
    return numpy.concatenate([x for x, _ in Whitening(
        stream_of(rows), parameters, **kwargs).get_epoch_iterator()])


@pytest.mark.parametrize('kind', ['pca', 'zca'])
def test_whitening_makes_the_covariance_the_identity(kind):
    """Mean 0, variance 1, no correlation."""
    parameters = fit_whitening(stream_of(ROWS), kind=kind, epsilon=0)
    white = whitened(parameters, ROWS)
    assert_allclose(numpy.zeros(6), white.mean(axis=0), atol=1e-8)
    assert_allclose(numpy.eye(6), numpy.cov(white.T, bias=True), atol=1e-7)


def test_whitening_equals_the_textbook():
    """One pass over batches gives what all rows at once give."""
    parameters = fit_whitening(stream_of(ROWS), epsilon=.5)
    assert_allclose(ROWS.mean(axis=0), parameters.mean)
    variances, axes = numpy.linalg.eigh(numpy.cov(ROWS.T, bias=True))
    expected = axes / numpy.sqrt(variances + .5) @ axes.T
    assert_allclose(expected, parameters.matrix, rtol=1e-6, atol=1e-9)
    assert_allclose(parameters.matrix, parameters.matrix.T, atol=1e-12)


def test_whitening_pca_keeps_components_of_largest_variance():
    """The first explain most; fewer are the first of all."""
    every = fit_whitening(stream_of(ROWS), kind='pca')
    few = fit_whitening(stream_of(ROWS), kind='pca', num_components=2)
    assert_array_equal(every.matrix[:, :2], few.matrix)
    norms = numpy.linalg.norm(every.matrix, axis=0)
    assert (numpy.diff(norms) >= 0).all()
    assert (400, 2) == whitened(few, ROWS).shape


def test_whitening_of_examples_equals_that_of_batches():
    """A stream of single examples will do, to fit and to apply."""
    by_batch = fit_whitening(stream_of(ROWS))
    by_example = fit_whitening(stream_of(ROWS, SequentialExampleScheme))
    assert_allclose(by_batch.matrix, by_example.matrix, rtol=1e-6)
    white = [x for x, _ in Whitening(stream_of(
        ROWS, SequentialExampleScheme), by_batch).get_epoch_iterator()]
    assert_allclose(whitened(by_batch, ROWS), white, atol=1e-9)


def test_whitening_keeps_shapes_labels_and_types():
    """ZCA keeps the shape, PCA gives components; floatX is the type."""
    images = (ROWS.reshape(400, 1, 2, 3) % 256).astype('uint8')
    labels = {'x': ('batch', 'channel', 'height', 'width')}
    stream = stream_of(images, SequentialScheme, 50, **labels)
    config.floatX = 'float32'
    for kind, shape, axes in [('zca', (50, 1, 2, 3), labels['x']),
                              ('pca', (50, 6), ('batch', 'component'))]:
        stage = Whitening(stream, fit_whitening(stream, kind=kind))
        x, y = next(stage.get_epoch_iterator())
        assert (shape, 'float32') == (x.shape, x.dtype)
        assert axes == stage.axis_labels['x']
        assert_array_equal(numpy.arange(50), y)
        assert 8 == len(stage)


def test_whitening_dead_pixels_are_not_blown_up():
    """A feature that never varies becomes zero, with epsilon or without."""
    rows = numpy.concatenate([ROWS[:, :2], numpy.full((400, 1), 7.)], axis=1)
    for epsilon in (0, 1e-5):
        white = whitened(fit_whitening(
            stream_of(rows), epsilon=epsilon), rows)
        assert numpy.isfinite(white).all()
        assert abs(white[:, 2]).max() < 1e-2


def test_whitening_parameters_round_trip_with_provenance(tmp_path):
    """The file says where it comes from, and is the same each time."""
    stream = Flatten(stream_of(ROWS.reshape(400, 2, 3)), which_sources=('x',))
    parameters = fit_whitening(stream, kind='pca', epsilon=.25)
    assert {'source': 'x', 'examples': 400, 'dtype': 'float64',
            'epsilon': .25, 'fuel': fuel.__version__,
            'stages': ['Flatten', 'DataStream', 'IndexableDataset'],
            } == parameters.provenance
    for name in ('a.npz', 'b.npz'):
        parameters.save(tmp_path / name)
    assert (tmp_path / 'a.npz').read_bytes() == (
        tmp_path / 'b.npz').read_bytes()
    loaded = WhiteningParameters.load(tmp_path / 'a.npz')
    assert parameters.provenance == loaded.provenance
    assert ((6,), 'pca') == (loaded.shape, loaded.kind)
    assert_array_equal(whitened(parameters, ROWS),
                       whitened(str(tmp_path / 'a.npz'), ROWS))


def test_whitening_files_of_other_content_are_refused(tmp_path):
    """Pickles are not loaded; the text names the file."""
    with pytest.raises(FileNotFoundError, match='missing'):
        WhiteningParameters.load('missing.npz')
    with pytest.raises(ValueError, match=r'must|saved as .npz'):
        fit_whitening(stream_of(ROWS)).save(tmp_path / 'a.txt')
    numpy.savez(tmp_path / 'b.npz', about=numpy.array(['{}'], object))
    (tmp_path / 'c.npz').write_bytes(b'no archive')
    numpy.savez(tmp_path / 'd.npz', about='{"format": 9}', mean=1, matrix=1)
    for name in ('b.npz', 'c.npz', 'd.npz'):
        with pytest.raises(ValueError, match=(
                rf'{name} (does not hold|holds) whitening')):
            WhiteningParameters.load(tmp_path / name)


@pytest.mark.parametrize('change, text', [
    ({'kind': 'ica'}, "the kind 'ica'"),
    ({'mean': numpy.zeros(5)}, r'a mean of float64 and shape \(5,\)'),
    ({'matrix': numpy.zeros((6, 5))}, r'a matrix .* shape \(6, 5\)'),
    ({'matrix': numpy.zeros(6)}, r'a matrix .* shape \(6,\)'),
    ({'mean': numpy.zeros(6, 'U1')}, 'a mean of <U1'),
    ({'shape': (7,)}, r'for examples of shape \(7,\)'),
    ({'provenance': {}}, 'the provenance {}'),
])
def test_whitening_parameters_that_do_not_fit_are_refused(
        tmp_path, change, text):
    """Loading them raises the error, not a request for data."""
    path = tmp_path / 'a.npz'
    dataclasses.replace(fit_whitening(stream_of(ROWS)), **change).save(path)
    with pytest.raises(ValueError, match=f'damaged whitening.*{text}'):
        WhiteningParameters.load(path)


@pytest.mark.parametrize('call, text', [
    (lambda: fit_whitening(stream_of(ROWS), kind='ica'), "got 'ica'"),
    (lambda: fit_whitening(stream_of(ROWS), epsilon=-1), 'not be negative'),
    (lambda: fit_whitening(stream_of(ROWS), 'z'), ".source. asks for 'z'"),
    (lambda: fit_whitening(stream_of(ROWS), num_components=7),
     'from 1 to 6, got 7'),
    (lambda: fit_whitening(stream_of(ROWS[:0], SequentialScheme, 1)),
     'no examples'),
    (lambda: fit_whitening(stream_of(numpy.where(ROWS > 1000, numpy.inf, 0))),
     'not finite, first inf in example 0 of the epoch, at 0: leave'),
    (lambda: fit_whitening(stream_of(['a', 'b'])), 'must have numbers'),
    (lambda: whitened(fit_whitening(stream_of(ROWS)), ROWS[:, :5]),
     r'fitted to examples of the shape \(6,\), but these have .*\(5,\)'),
])
def test_whitening_bad_arguments_raise(call, text):
    """Each says what is wrong."""
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize('kind', ['pca', 'zca'])
def test_whitening_of_batches_without_examples(kind):
    """A filter leaves such batches, to fit to and to whiten."""
    images = ROWS.reshape(-1, 3, 2)
    stream = Mapping(stream_of(images), lambda data: tuple(
        [part[:0 if data[1][0] % 2 else None] for part in data]))
    parameters = fit_whitening(stream, 'x', kind)
    found = [x for x, _ in Whitening(
        stream, parameters, which_sources='x').get_epoch_iterator()]
    assert 0 in map(len, found)
    chosen = numpy.concatenate([x for x, _ in stream.get_epoch_iterator()])
    expected = fit_whitening(stream_of(chosen), 'x', kind)
    assert_allclose(expected.matrix, parameters.matrix)
    assert_allclose(whitened(expected, chosen, which_sources='x'),
                    numpy.concatenate(found))
