"""The commonest mistakes are reported where they are made, with a remedy."""
import warnings

import numpy
import pytest

import fuel
from fuel.datasets import (
    CSVDataset,
    Dataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
)
from fuel.datasets.text import TextFile
from fuel.exceptions import NotAStreamError
from fuel.schemes import (
    ComputedShuffledScheme,
    ConstantScheme,
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    WeightedScheme,
)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cast,
    FilterSources,
    Flatten,
    Mapping,
    Merge,
    ScaleAndShift,
    Transformer,
    Unpack,
)
from fuel.transformers.image import CenterCrop
from fuel.transformers.label_encoding import (
    LabelEncoding,
    fit_label_encoding,
)
from fuel.transformers.sequences import NGrams, Window
from fuel.transformers.standardization import (
    Standardization,
    fit_standardization,
)


class Flowers(IndexableDataset):
    """A user's data set."""


class Doubler(Transformer):
    """A user's stage."""

    def __init__(self, data_stream):
        super().__init__(data_stream, False)


def flowers():
    """Return a data set of two sources."""
    return Flowers({'x': numpy.arange(10).reshape(5, 2),
                    'y': numpy.arange(5)})


@pytest.mark.parametrize('stage', [
    Flatten, Doubler, Unpack, lambda data: Cast(data, 'f4'),
    lambda data: ScaleAndShift(data, 2, 0),
    lambda data: Merge((data,), ('x', 'y')),
    lambda data: Mapping(data, len)], ids=[
        'Flatten', 'Doubler', 'Unpack', 'Cast', 'ScaleAndShift', 'Merge',
        'Mapping'])
def test_data_set_in_the_place_of_a_stream(stage, request):
    """The constructor of the stage raises an error that names stage and data
    set."""
    name = request.node.callspec.id
    with pytest.raises(NotAStreamError, match=(
            fr'{name} reads a stream, and Flowers is a data set.*'
            r'DataStream\(Flowers\(\.\.\.\), batch_size=')) as caught:
        stage(flowers())
    assert isinstance(caught.value, TypeError)


def test_data_set_has_no_attributes_of_a_stream():
    """Scripts may ask; the texts of other attributes stay."""
    assert not hasattr(flowers(), 'produces_examples')
    assert not hasattr(flowers(), 'get_epoch_iterator')
    with pytest.raises(AttributeError, match='colour'):
        _ = flowers().colour

    class Own(Dataset):
        provides_sources = ('x',)

    with pytest.raises(AttributeError, match='does not provide an example'):
        _ = Own().example_iteration_scheme


def test_no_scheme_is_reported_when_an_epoch_begins():
    """A missing scheme is an error of the epoch only, also below stages."""
    stream = DataStream(flowers())
    for broken in (stream, Flatten(stream)):
        with pytest.raises(ValueError, match=(
                r'DataStream\(Flowers\) has no iteration scheme.*'
                'batch_size=128')):
            broken.get_epoch_iterator()
    assert 3 == stream.get_data([3])[1][0]
    stream.iteration_scheme = SequentialScheme(5, 5)
    stream._produces_examples = None
    assert 1 == len(list(stream))


class Own(Flowers):
    """One that reads in order after all."""

    def get_data(self, state=None, request=None):
        """Return nothing."""
        raise StopIteration


class Asking(Transformer):
    """A user's stage that makes the requests itself."""

    def get_data(self, request=None):
        """Return what the request asks for."""
        return self.data_stream.get_data(request)


def test_scripts_that_need_no_scheme_go_on():
    """They have a `get_data` of their own, in a data set or in a stage."""
    assert [] == list(DataStream(Own({'x': [1]})))
    stage = Asking(DataStream(flowers()),
                   iteration_scheme=SequentialScheme(5, 3))
    assert [3, 2] == [len(y) for _, y in stage]


class Ones(IterationScheme):
    """A user's scheme, which may know what it does."""

    requests_examples = True

    def get_request_iterator(self):
        """Return requests that are none."""
        return iter([None, None])


def test_scheme_over_an_iterable_is_reported_when_an_epoch_begins():
    """The error has the code to write instead; a user's scheme may differ."""
    stream = DataStream(IterableDataset([1, 2]),
                        iteration_scheme=ConstantScheme(2))
    with pytest.raises(ValueError, match=(
            r'ConstantScheme\(batch_size=2\), but IterableDataset is read in '
            r'order.*Batch\(DataStream')):
        stream.get_epoch_iterator()
    assert [(1,), (2,)] == list(DataStream(
        IterableDataset([1, 2]), iteration_scheme=Ones()))


def bare(data):
    """Return an array."""
    return 2 * data[0]


def short(data):
    """Return too few."""
    return (data[0],)


@pytest.mark.parametrize('function, kwargs, text', [
    (bare, {}, r'function bare of Mapping returned an array of shape \(5, 2'),
    (short, {}, r"a tuple of 1, where a tuple of 2 .* \('x', 'y'\)"),
    (bare, {'add_sources': ('z',)}, r"array .* sources \('z',\)")],
    ids=['array', 'short', 'added'])
def test_mapping_that_returns_something_else_warns_once(
        function, kwargs, text):
    """It warns at the first batch; the data pass, as in 0.2.0."""
    stage = Mapping(DataStream(flowers(), batch_size=5), function, **kwargs)
    with pytest.warns(UserWarning, match=text) as caught:
        list(stage)
    assert 1 == len(caught)
    assert (__file__, function.__code__.co_firstlineno) == (
        caught[0].filename, caught[0].lineno)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        list(stage)


@pytest.mark.parametrize('function, kwargs', [
    (lambda data: data, {}), (list, {}), (iter, {}),
    (lambda data: (data[0],), {'add_sources': ('z',)}),
    (lambda data: data, {'mapping_accepts': dict})])
def test_mapping_that_returns_what_is_expected_does_not_warn(
        function, kwargs):
    """Tuples, lists and iterators are expected."""
    stage = Mapping(DataStream(flowers(), batch_size=5), function, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        list(stage)


def test_hidden_sources_do_not_warn():
    """A stream whose sources were shortened returns more than it names."""
    stream = DataStream(flowers(), batch_size=5)
    stream.sources = ('x',)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        list(Mapping(stream, lambda data: data))


def test_apply_names_the_typo_and_not_what_python_misses():
    """A stage that is built already is not a class."""
    stream = DataStream(flowers(), batch_size=5)
    with pytest.raises(TypeError, match=(
            "Cast takes no argument 'dtyp': did you mean 'dtype'")):
        stream.apply(Cast, dtyp='f4')
    with pytest.raises(TypeError, match=r'apply takes the class.*apply\(Cast'):
        stream.apply(Cast(stream, 'f4'))
    assert 1 == stream.apply(lambda one, extra: extra, extra=1)


@pytest.mark.parametrize('function', [
    lambda batch: (batch[0] / 255, batch[1]), lambda x, y: (x, y),
    lambda batch: [part / 255 for part in batch], numpy.log,
    lambda batch: batch.astype('f4')])
def test_apply_says_where_a_function_of_batches_belongs(function):
    """Its own error says what it did not find."""
    stream = DataStream(flowers(), batch_size=5)
    with pytest.raises((TypeError, AttributeError)) as caught:
        stream.apply(function)
    assert 'takes each batch is that of a stage, stream.apply(Mapping' in (
        caught.value.__notes__[-1])
    with pytest.raises(TypeError) as caught:
        DataStream(flowers(), shuffle=True).apply(lambda x, y: x)
    assert 'takes each example' in caught.value.__notes__[-1]


def test_apply_adds_nothing_to_the_errors_of_a_stage():
    """The errors of a stage say themselves what is wrong."""
    with pytest.raises(TypeError) as caught:
        DataStream(flowers(), batch_size=5).apply(Cast)
    assert not hasattr(caught.value, '__notes__')


@pytest.mark.parametrize('text', [
    numpy.array(['a', 'b']), numpy.array(['a', 'b'], object), ['a', 'b']],
    ids=['array', 'objects', 'list'])
@pytest.mark.parametrize('numbers', [(.5, 0), (2, 1)], ids=repr)
def test_text_is_not_scaled(text, numbers):
    """The source is named, and how the others are chosen."""
    stream = DataStream(IndexableDataset({
        'size': numpy.arange(2.), 'kind': text}), batch_size=2)
    with pytest.raises(TypeError, match=(
            "ScaleAndShift computes with numbers, but source 'kind' has the "
            'dtype .*which_sources=')):
        list(stream.apply(ScaleAndShift, *numbers))
    assert 1 == len(list(stream.apply(
        ScaleAndShift, *numbers, which_sources='size')))


def test_typo_on_config_warns():
    """Any attribute may be assigned; what looks like a setting is one that
    was not hit."""
    with pytest.warns(UserWarning, match=(
            "config.defualt_seed is not a setting.*did you mean "
            "'default_seed'")):
        fuel.config.defualt_seed = 5
    del fuel.config.defualt_seed
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fuel.config.my_option = 1
        fuel.config._data_path = 1
    del fuel.config.my_option, fuel.config._data_path
    with pytest.raises(AttributeError, match="did you mean 'floatX'"):
        _ = fuel.config.floatx


@pytest.mark.parametrize('content', [(0, 5), [(0, 5)], 5], ids=repr)
def test_tuples_in_a_split_array(content):
    """The text shows the missing level with the user's split."""
    with pytest.raises(ValueError, match=(
            r"split 'train' must map names of sources to \(start, stop\).*"
            "write {'train': {'features': ")):
        H5PYDataset.create_split_array({'train': content})


@pytest.mark.parametrize('build, text', [
    (lambda stream: stream.apply(Standardization),
     r'parameters = fit_standardization\(stream\)'),
    (lambda stream: stream.apply(LabelEncoding),
     r'parameters = fit_label_encoding\(stream\)'),
    (lambda stream: Batch(stream, 32), r'Batch\(stream, batch_size=32\)'),
    (lambda stream: Window(stream, 1, 2, 2, True),
     r'stream comes last .*stream\.apply\(Window, offset='),
    (lambda stream: NGrams(stream, 2),
     r'stream comes last .*stream\.apply\(NGrams, ngram_order='),
    (lambda stream: TextFile(['a.txt']), r'build_vocabulary\(files\)')])
def test_stage_without_its_argument_says_where_it_comes_from(build, text):
    """The order of the arguments does not matter."""
    stream = DataStream(IterableDataset({'x': [[1, 2, 3]]}))
    with pytest.raises(TypeError, match=text):
        build(stream)


def fitted_to(values, **kwargs):
    """Fit to a source beside another one."""
    dataset = IndexableDataset({'x': values, 'y': numpy.ones(len(values))})
    return fit_standardization(DataStream(dataset, batch_size=2), **kwargs)


@pytest.mark.parametrize('values, text', [
    (['a', 'b'], "has <U1, first 'a' in example 0 of the epoch"),
    (numpy.array([[1, 2], [3, 4], [5, 'NA']], object),
     "has object, first 'NA' in example 2 of the epoch, at 1"),
    (numpy.array([1, 2, numpy.inf]),
     'not finite, first inf in example 2 of the epoch: '),
    (numpy.array([[0, 1], [2, 3], [numpy.nan, 5]]),
     'not finite, first nan in example 2 of the epoch, at 0'),
    (numpy.full((1, 2, 2), numpy.nan),
     r'in example 0 of the epoch, at \(0, 0')])
def test_fit_names_the_first_element_that_does_not_fit(values, text):
    """Users of a table with a thousand rows look for that element."""
    with pytest.raises(ValueError, match=text):
        fitted_to(values)


def test_fit_takes_which_sources_as_stages_do():
    """It takes one of them."""
    for name in ('y', ('y',)):
        assert 'y' == fitted_to(['a', 'b'], which_sources=name).source
    for wrong in ({'which_sources': ('x', 'y')},
                  {'which_sources': 'y', 'source': 'y'}):
        with pytest.raises(ValueError, match='name it with source='):
            fitted_to(['a', 'b'], **wrong)
    labels = fit_label_encoding(DataStream(IndexableDataset(
        {'kind': ['b', 'a']}), batch_size=2), which_sources='kind')
    assert ('kind', ('a', 'b')) == (labels.source, labels.class_names)


def test_image_stage_names_the_sources_with_its_axes():
    """If `which_sources` is missing, the error names it."""
    dataset = IndexableDataset(
        {'features': numpy.zeros((4, 3, 8, 8)),
         'targets': numpy.zeros((4, 1))},
        axis_labels={'features': ('batch', 'channel', 'height', 'width'),
                     'targets': ('batch', 'index')})
    stream = DataStream(dataset, batch_size=2)
    with pytest.raises(ValueError, match=(
            r"of source 'targets'.*which_sources=\('features',\)\n")):
        next(iter(stream.apply(CenterCrop, (4, 4))))
    with pytest.raises(ValueError, match='axis_labels\n'):
        next(iter(stream.apply(FilterSources, ('targets',))
                  .apply(CenterCrop, (4, 4))))


@pytest.mark.parametrize('kinds', [
    ['rose', 'lily'], numpy.array(['rose', 'lily'], object)])
def test_cast_of_text_names_the_other_sources(kinds):
    """The error also names the stage that makes numbers of classes."""
    stream = DataStream(IndexableDataset(
        {'features': numpy.ones(2), 'targets': kinds}), batch_size=2)
    with pytest.raises(ValueError, match=(
            r"'targets' holds text, such as 'rose'.*"
            r"which_sources=\('features',\), or .*LabelEncoding")):
        next(iter(stream.apply(Cast, 'float32')))


def test_load_asks_for_the_file_that_is_here(tmp_path, monkeypatch):
    """Converted files of one's own are opened by their path."""
    monkeypatch.chdir(tmp_path)
    fuel.config.data_path = [str(tmp_path / 'data')]
    (tmp_path / 'pictures.hdf5').write_bytes(b'')
    with pytest.raises(FileNotFoundError, match=(
            r"did you mean fuel\.load\('pictures\.hdf5'\)\?")):
        fuel.load('pictures')


def test_csv_with_another_delimiter_is_recognized(tmp_path):
    """One column of all is warned of, and names in it are not found."""
    path = tmp_path / 'a.csv'
    path.write_text('x;y\n1;2\n3;4\n')
    with pytest.warns(UserWarning, match="did you mean delimiter=';'"):
        assert ('x;y',) == CSVDataset(path).sources
    with pytest.raises(ValueError, match="no column 'x'.*delimiter=';'"):
        CSVDataset(path, columns={'features': ['x', 'y']})
    assert ('x', 'y') == CSVDataset(path, delimiter=';').sources
    path.write_text('"x;y"\n"1;2"\n"3;4"\n')
    assert ('x;y',) == CSVDataset(path, delimiter=';').sources
    path.write_text('text\none; two\nthree\n')
    assert 2 == len(CSVDataset(path))
    with pytest.raises(TypeError, match=r"subset.*splits=\{'part': rows\}"):
        CSVDataset(path, subset=slice(0, 1))


@pytest.mark.parametrize('scheme', [SequentialScheme, ShuffledScheme,
                                    ComputedShuffledScheme])
def test_swapped_numbers_of_a_scheme(scheme):
    """A batch of all examples, though only some are visited, is not an order
    that anybody wants."""
    dataset = IndexableDataset(numpy.arange(40))
    with pytest.raises(ValueError, match=(
            fr'{scheme.__name__} visits 8 examples, and IndexableDataset has '
            fr'40, .*{scheme.__name__}\(dataset\.num_examples, 8\).*swapped')):
        DataStream(dataset, iteration_scheme=scheme(8, 40))
    with pytest.warns(UserWarning, match='in batches of 30') as caught:
        stream = DataStream(dataset, iteration_scheme=scheme(8, 30))
    assert __file__ == caught[0].filename
    assert [8] == [len(batch) for batch, in stream]


def test_schemes_of_all_or_of_chosen_examples_are_as_they_were():
    """Fuel 0.2.0 took a batch larger than the data."""
    dataset = IndexableDataset(numpy.arange(40))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for scheme in (SequentialScheme(40, 100), SequentialScheme(8, 8),
                       SequentialScheme([3, 4], 40), ShuffledScheme(8, 41),
                       WeightedScheme([1] * 8, 4, num_examples=100)):
            assert len(list(DataStream(dataset, iteration_scheme=scheme))) > 0


def test_scheme_of_more_examples_than_there_are():
    """A warning before the epoch, and its error, say so."""
    with pytest.warns(UserWarning, match=(
            'visits 50 examples, and IndexableDataset has 40: so each epoch')):
        stream = DataStream(IndexableDataset(numpy.arange(40)),
                            iteration_scheme=SequentialScheme(50, 20))
    epoch = stream.get_epoch_iterator()
    assert 20 == len(next(epoch)[0])
    with pytest.raises((IndexError, ValueError)):
        list(epoch)


@pytest.mark.parametrize('build, text', [
    (lambda data: DataStream(data, batch_size=2, shuffle=3),
     r'shuffle of DataStream must be True or False, got 3 \(int\)'),
    (lambda data: DataStream(data, batch_size=2, shuffle='yes'),
     r"shuffle of DataStream must be True or False, got 'yes' \(str\)"),
    (lambda data: DataStream(data, batch_size=2, drop_last=8), 'drop_last of'),
    (lambda data: ShuffledScheme(5, 2, drop_last='no'),
     'drop_last of ShuffledScheme'),
    (lambda data: DataStream(data, batch_size=5).apply(
        Mapping, len, pure='no'), 'pure of Mapping')])
def test_value_other_than_true_or_false_is_refused(build, text):
    """One check of all arguments that are True or False."""
    with pytest.raises(TypeError, match=text):
        build(flowers())


def test_truth_values_of_other_libraries_and_of_old_scripts():
    """Zero and one are equal to them; 0.2.0 took any object."""
    for one in (numpy.True_, 1):
        assert 2 == len(DataStream(flowers(), batch_size=2, drop_last=one))
    assert [[0, 1]] == list(ShuffledScheme(
        2, 2, sorted_indices='yes').get_request_iterator())


def test_seed_of_a_stream_is_that_of_its_order():
    """It is given with shuffle, for batches and for examples; alone it is an
    error."""
    def order(**kwargs):
        return [y.tolist() for _, y in DataStream(
            flowers(), shuffle=True, **kwargs)]

    for size in (None, 2):
        scheme = (ShuffledScheme(5, 2, seed=3) if size else
                  ShuffledExampleScheme(5, seed=3))
        assert order(batch_size=size, seed=3) == [
            y.tolist() for _, y in DataStream(
                flowers(), iteration_scheme=scheme)]
        assert order(batch_size=size) == order(
            batch_size=size, seed=fuel.config.default_seed)
    assert order(seed=3) != order(seed=4)
    for kwargs in ({}, {'batch_size': 2},
                   {'iteration_scheme': SequentialScheme(5, 2)}):
        with pytest.raises(ValueError, match='seed=3 is that of shuffle=True'):
            DataStream(flowers(), seed=3, **kwargs)
    with pytest.raises(TypeError, match='seed must be'):
        DataStream(flowers(), shuffle=True, seed='3')


def test_state_of_a_stream_with_a_seed_is_taken_up():
    """The generator's state is saved, the seed is not."""
    def build(seed):
        return DataStream(flowers(), batch_size=2, shuffle=True, seed=seed)

    stream = build(3)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    resumed = build(4)
    resumed.load_state_dict(stream.state_dict())
    assert [y.tolist() for _, y in epoch] == [y.tolist() for _, y in resumed]


def forgets(data):
    """Change the data, and forget to return them."""
    data['x' if isinstance(data, dict) else 0][:] = 0


@pytest.mark.parametrize('kwargs', [
    {}, {'add_sources': ('z',)}, {'mapping_accepts': dict}], ids=repr)
@pytest.mark.parametrize('batch_size', [None, 2])
def test_mapping_that_returns_none_is_named(kwargs, batch_size):
    """The error has its function, each time."""
    stream = (DataStream(flowers(), batch_size=batch_size) if batch_size
              else flowers().get_example_stream())
    epoch = Mapping(stream, forgets, **kwargs).get_epoch_iterator()
    for _ in range(2):
        with pytest.raises(TypeError, match=(
                'the function forgets of Mapping returned None, where a .* is '
                r'expected.*end it with return(.|\n)*in stage Mapping')):
            next(epoch)


def pictures(**kwargs):
    """Return a stream of pictures with labels, and a mapping over it."""
    labels = ('batch', 'channel', 'height', 'width')
    dataset = IndexableDataset(
        {'image': numpy.zeros((4, 3, 8, 8), 'uint8'),
         'kind': numpy.arange(4)},
        axis_labels={'image': labels, 'kind': ('batch',)})
    return Mapping(DataStream(dataset, batch_size=2),
                   lambda data: data, **kwargs)


def test_mapping_that_keeps_the_axes_says_so(caplog):
    """Stages above check them then."""
    for kept in ('kept', pictures().data_stream.axis_labels):
        stage = pictures(axis_labels=kept)
        assert stage.axis_labels == stage.data_stream.axis_labels
        list(stage.apply(CenterCrop, (4, 4), which_sources='image'))
    assert {} == (Mapping(DataStream(flowers(), batch_size=2), len,
                          axis_labels='kept').axis_labels or {})
    assert [] == caplog.records
    with pytest.raises(TypeError, match="must be a dict.* got 'kept'"):
        DataStream(flowers(), axis_labels='kept')


def test_missing_labels_name_the_mapping_that_dropped_them(caplog):
    """The warning comes once, however many stages miss them."""
    stage = pictures()
    for _ in range(2):
        list(stage.apply(CenterCrop, (6, 6), which_sources='image')
             .apply(CenterCrop, (4, 4), which_sources='image'))
    record, = caplog.records
    assert 'Mapping(DataStream(IndexableDataset))' in record.getMessage()
    assert "Mapping(..., axis_labels='kept')" in record.getMessage()
