"""Standardization and label encoding, fitted on the training data."""
import json
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError, UnknownTokenError
from fuel.schemes import SequentialExampleScheme
from fuel.streams import DataStream
from fuel.transformers.imputation import Impute, ImputeParameters
from fuel.transformers.label_encoding import (
    LabelEncoding,
    LabelEncodingParameters,
    fit_label_encoding,
)
from fuel.transformers.standardization import (
    Standardization,
    StandardizationParameters,
    fit_standardization,
)
from fuel.transformers.whitening import Whitening, WhiteningParameters


def stream_of(x, size=4, **kwargs):
    """Return a stream of batches, or of examples with size None."""
    return DataStream(IndexableDataset({'x': x}), **(
        {'batch_size': size} if size else {'shuffle': True}), **kwargs)


@pytest.mark.parametrize('over, axes', [
    ('element', 0), ('channel', (0, 2, 3)), ('source', (0, 1, 2, 3))])
@pytest.mark.parametrize('size', [4, None])
def test_standardization_is_that_of_numpy(over, axes, size):
    """NumPy computes it of all data at once, whatever the batches."""
    x = numpy.random.RandomState(0).normal(5, 3, (11, 3, 2, 2))
    parameters = fit_standardization(stream_of(x, size), over=over)
    mean = x.mean(axis=axes, keepdims=True)[0]
    deviation = x.std(axis=axes, keepdims=True)[0]
    assert (mean.shape, 11) == (parameters.shape, parameters.num_examples)
    numpy.testing.assert_allclose(mean.ravel(), parameters.mean)
    numpy.testing.assert_allclose(deviation.ravel(), parameters.deviation)
    found = numpy.concatenate([batch for batch, in Standardization(
        stream_of(x), parameters)])
    numpy.testing.assert_allclose((x - mean) / deviation, found)
    example, = next(iter(Standardization(
        stream_of(x, None), parameters, dtype='float32')))
    assert (3, 2, 2) == example.shape
    assert 'float32' == example.dtype


@given(st_numpy.arrays(
    numpy.int64, st.tuples(st.integers(1, 9), st.integers(1, 3)),
    elements=st.integers(-2 ** 40, 2 ** 40)), st.integers(1, 4))
def test_moments_do_not_depend_on_batches(x, size):
    """Large numbers of little variance keep their digits."""
    parameters = fit_standardization(stream_of(x, size))
    numpy.testing.assert_allclose(x.mean(axis=0), parameters.mean)
    numpy.testing.assert_allclose(x.std(axis=0), parameters.deviation,
                                  atol=1e-3)


def test_what_does_not_vary_becomes_zero():
    """There is nothing to divide by."""
    x = numpy.full((5, 2), 7, 'uint8')
    parameters = fit_standardization(stream_of(x))
    for batch, in Standardization(stream_of(x), parameters):
        assert not batch.any()


def test_parameters_are_plain_data(tmp_path):
    """A file of JSON gives back the very numbers."""
    x = numpy.random.RandomState(0).normal(size=(5, 2))
    parameters = fit_standardization(stream_of(x))
    path = tmp_path / 'mean.json'
    parameters.save(path)
    assert parameters == StandardizationParameters.load(path)
    assert 'standardization' == json.loads(path.read_text())['fuel']
    by_path = Standardization(stream_of(x), str(path))
    assert numpy.array_equal(
        next(iter(by_path))[0],
        next(iter(Standardization(stream_of(x), parameters)))[0])


@pytest.mark.parametrize('text', [
    '', '[]', '{}', '{"fuel": "label encoding", "format": 1}',
    '{"fuel": "standardization", "format": 2}',
    ('{"fuel": "standardization", "format": 1, "source": "x", "mean": [1], '
     '"deviation": [1, 2], "shape": [2], "num_examples": 3}'),
    ('{"fuel": "standardization", "format": 1, "source": "x", "mean": [NaN], '
     '"deviation": [1], "shape": [1], "num_examples": 3}')],
    ids=['empty', 'list', 'nothing', 'other', 'version', 'sizes', 'nan'])
def test_other_files_are_refused(tmp_path, text):
    """The error has their name."""
    path = tmp_path / 'mean.json'
    path.write_text(text)
    with pytest.raises(ValueError, match=r'mean.json does not hold'):
        StandardizationParameters.load(path)
    with pytest.raises(FileNotFoundError):
        LabelEncodingParameters.load(tmp_path / 'none')


@pytest.mark.parametrize('x, text', [
    (['a', 'b'], 'must have numbers'),
    (numpy.array([[1.], [numpy.nan]]), 'not finite')], ids=['text', 'nan'])
def test_data_that_have_no_mean(x, text):
    """Are an error of `fit`."""
    with pytest.raises(ValueError, match=text):
        fit_standardization(stream_of(x))


def test_a_source_of_text_is_not_read_to_its_end():
    """The error names the first value that is not a number."""
    read = []

    def cells():
        for number in range(10_000):
            read.append(number)
            yield '1' if number < 300 else 'rose'

    with pytest.raises(ValueError, match="'rose' in example 300 of the"):
        fit_standardization(DataStream(IterableDataset({'x': cells()})))
    assert len(read) < 1000


def test_examples_of_another_shape_are_refused():
    """The error comes with the examples."""
    parameters = fit_standardization(stream_of(numpy.ones((3, 2))))
    with pytest.raises(ValueError, match=r'\(2,\).*\(3, 4\)'):
        next(iter(Standardization(stream_of(numpy.ones((3, 4))),
                                  parameters)))
    with pytest.raises(ValueError, match='over must be one of'):
        fit_standardization(stream_of(numpy.ones((3, 2))), over='batch')


LABELS = ['dog', 'cat', 'dog', 'owl', 'cat']


@pytest.mark.parametrize('labels', [
    LABELS, numpy.array(LABELS), numpy.array(LABELS, object),
    [label.encode() for label in LABELS], numpy.array(LABELS)[:, None]],
    ids=['list', 'array', 'objects', 'bytes', 'column'])
@pytest.mark.parametrize('size', [2, None])
def test_labels_become_numbers(labels, size):
    """They become numbers in the sorted order of their names; shapes stay."""
    parameters = fit_label_encoding(stream_of(labels, size), 'x')
    assert ('cat', 'dog', 'owl') == parameters.class_names
    found = numpy.concatenate([numbers for numbers, in LabelEncoding(
        stream_of(labels, 2), parameters)])
    assert [1, 0, 1, 2, 0] == found.ravel().tolist()
    assert numpy.shape(labels) == found.shape
    assert 'int64' == found.dtype


@pytest.mark.parametrize('targets', [
    [], numpy.ma.masked_array([1, 2], True)], ids=['none', 'masked'])
def test_label_encoding_of_no_classes_is_refused(targets):
    """The source is named."""
    stream = DataStream(IndexableDataset({'targets': targets}), batch_size=2)
    with pytest.raises(ValueError, match="no examples of 'targets'"):
        fit_label_encoding(stream)


def test_label_encoding_is_plain_data(tmp_path):
    """A file of parameters gives the same stage."""
    parameters = fit_label_encoding(stream_of([30, 10, 20]), 'x')
    parameters.save(tmp_path / 'labels.json')
    assert parameters == LabelEncodingParameters.load(
        tmp_path / 'labels.json')
    stage = LabelEncoding(stream_of([30, 10, 20], 3),
                          str(tmp_path / 'labels.json'), dtype='int8')
    numbers, = next(iter(stage))
    assert ([2, 0, 1], 'int8') == (numbers.tolist(), numbers.dtype)


def test_unknown_label():
    """Is an error with a remedy, or has a number that was asked for."""
    parameters = fit_label_encoding(stream_of(['a', 'b']), 'x')
    with pytest.raises(UnknownTokenError, match="'c'.*unknown=-1"):
        next(iter(LabelEncoding(stream_of(['c']), parameters)))
    numbers, = next(iter(LabelEncoding(
        stream_of(['c', 'b']), parameters, unknown=-1)))
    assert [-1, 1] == numbers.tolist()
    with pytest.raises(ValueError, match='classes are text'):
        fit_label_encoding(stream_of([1.5]), 'x')


def as_objects(labels):
    """Return labels as an array that keeps them as they are."""
    array = numpy.empty(len(labels), object)
    array[:] = labels
    return array


@pytest.mark.parametrize('labels, names', [
    (['b', 2, 'a', 10, '2'], (2, 10, '2', 'a', 'b')),
    (['a\0', 'b', 'a', 'a\0\0'], ('a', 'a\0', 'a\0\0', 'b')),
    ([b'a\0', 'a', b'b', 3], (3, 'a', 'a\0', 'b')),
    ([numpy.int64(7), 'x', numpy.str_('y')], (7, 'x', 'y'))],
    ids=['mixed', 'zeros', 'bytes', 'numpy'])
@pytest.mark.parametrize('form', [list, as_objects])
def test_classes_are_the_same_over_examples_and_over_batches(
        labels, names, form):
    """Numbers among text stay numbers, and zeros at the end of text stay."""
    numbers = [names.index(
        label.decode() if isinstance(label, bytes) else label)
        for label in labels]
    for size in (None, 1, 2, len(labels)):
        parameters = fit_label_encoding(stream_of(form(labels), size), 'x')
        assert names == parameters.class_names
        assert {int, str} >= set(map(type, parameters.class_names))
        stage = LabelEncoding(DataStream(
            IndexableDataset({'x': form(labels)}),
            **({'batch_size': size} if size else {
                'iteration_scheme': SequentialExampleScheme(
                    len(labels))})), parameters)
        found = [number for number, in stage]
        assert numbers == numpy.hstack(found).tolist()


@pytest.mark.parametrize('size', [None, 1, 3])
def test_class_of_the_same_text_but_for_a_zero_is_unknown(size):
    """It is not taken for the class without the zero."""
    parameters = fit_label_encoding(stream_of(['a', 'b', 'a'], size), 'x')
    with pytest.raises(UnknownTokenError, match=r"'a\\x00' was not there"):
        list(LabelEncoding(stream_of(['a\0', 'b', 'a'], size), parameters))


def stages_with_parameters():
    """Yield a stage, its parameters, and others that a state does not fit."""
    parameters = StandardizationParameters('x', (1.5,), (2.,), (1,), 3)
    yield Standardization, parameters, (
        replace(parameters, mean=(1.500001,)),
        replace(parameters, deviation=(3.,)))
    filled = ImputeParameters('x', 'mean', (1.,), (1,), None, 3, 0)
    yield Impute, filled, (replace(filled, fill=(2.,)),)
    white = WhiteningParameters(
        'pca', numpy.ones(1), numpy.eye(1), (1,), {'source': 'x'})
    yield Whitening, white, (replace(white, mean=numpy.zeros(1)),)
    names = LabelEncodingParameters('y', ('a', 'b'))
    yield LabelEncoding, names, (replace(names, class_names=('b', 'a')),)


@pytest.mark.parametrize('cls, parameters, others',
                         [*stages_with_parameters()],
                         ids=['standard', 'impute', 'whiten', 'labels'])
def test_state_fits_the_parameters_of_its_stages(cls, parameters, others):
    """Parameters that were fitted to other data do not fit, as before; those
    that another processor, or another number of examples, gave do."""
    def build(fitted):
        return cls(DataStream(IndexableDataset(
            {'x': numpy.ones((3, 1)), 'y': ['a', 'b', 'a']}), batch_size=1),
            fitted)

    stream = build(parameters)
    next(iter(stream))
    state = json.loads(json.dumps(stream.state_dict()))
    for other in others:
        with pytest.raises(StateMismatchError, match='parameters'):
            build(other).load_state_dict(state)
    same = (replace(parameters, provenance={'source': 'x', 'examples': 7})
            if cls is Whitening else parameters if cls is LabelEncoding
            else replace(parameters, num_examples=7))
    if cls is Standardization:
        same = replace(same, mean=(1.5 + 1e-15,))
    older = json.loads(json.dumps(state))
    del older['crc']
    # The class was all that it said of them.
    older['stream']['parameters'] = older['stream']['parameters']['class']
    for one in state, older:
        resumed = build(same)
        resumed.load_state_dict(one)
        assert 2 == len(list(resumed.get_epoch_iterator()))
    older['stream']['parameters'] = 'fuel.Another'
    with pytest.raises(StateMismatchError, match='parameters'):
        build(same).load_state_dict(older)
