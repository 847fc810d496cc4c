"""Streams, data sets, schemes and iterators show what they are."""
import itertools
import json
import pickle
import re
from xml.etree import ElementTree

import h5py
import numpy
import pytest
from support import pipelines

import fuel
from fuel.config_parser import Configuration
from fuel.datasets import (
    Dataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
)
from fuel.datasets.vocabulary import build_vocabulary
from fuel.describe import SourceType
from fuel.describe.examples import pixels
from fuel.describe.pipeline import short
from fuel.schemes import IterationScheme, ShuffledScheme
from fuel.streams import AbstractDataStream, DataStream, ServerDataStream
from fuel.testing import check_stage
from fuel.transformers import (
    Cast,
    Mapping,
    Merge,
    MultiProcessing,
    ScaleAndShift,
    Transformer,
)

SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The folder of the files that the pipelines read."""
    folder = tmp_path_factory.mktemp('pipelines')
    pipelines.write_files(folder)
    return folder


@pytest.mark.pipelines
def test_declarations_of_all_stages_are_true(pipeline, files):
    """Of what data keep and of their types, which are known before anything
    is read; of rows, which ranks read alone."""
    check_stage(lambda _: pipelines.build(pipeline, files),
                over=[pipelines.batches],
                promises=['rows', 'kept', 'known types'])


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_description_reads_nothing(name, files, monkeypatch):
    """One line a stage, however far an epoch has come; nothing is opened,
    read or drawn for it."""
    stream = pipelines.build(name, files)
    stream.close()
    before = json.dumps(stream.state_dict())
    with monkeypatch.context() as patch:
        for module in ('io.open', 'builtins.open', 'h5py.File', 'os.open'):
            patch.setattr(module, _refuse)
        text, html, dot = repr(stream), stream._repr_html_(), str(
            stream.describe())
    assert before == json.dumps(stream.state_dict())
    stages = re.findall(r'stage\d+ \[', dot)
    assert len(stages) == len(text.splitlines())
    # A user's function follows the class of its stage.
    assert text.splitlines()[0].startswith(type(stream).__name__)
    assert text.splitlines()[0].split(':')[0] in html
    for line in text.splitlines():
        assert 'object at 0x' not in line
    pickle.dumps(stream)


def _refuse(*args, **kwargs):
    raise AssertionError('a description opens no file')


def images(**kwargs):
    """Return a data set of small images."""
    return IndexableDataset(
        {'features': numpy.arange(600, dtype='uint8').reshape(50, 1, 3, 4),
         'targets': numpy.zeros((50, 1), 'uint8')},
        axis_labels={'features': ('batch', 'channel', 'height', 'width'),
                     'targets': ('batch', 'index')}, **kwargs)


def test_text_of_a_pipeline():
    """It shows class, sources with type, shape and axes, sizes, and where it
    runs."""
    stream = MultiProcessing(Cast(
        DataStream(images(), batch_size=20, shuffle=True), 'float32',
        which_sources='features'), num_workers=2)
    features = '(20, 1, 3, 4) [batch, channel, height, width]'
    targets = 'targets uint8 (20, 1) [batch, index]; 3 batches of 20'
    assert (
        f'MultiProcessing: features float32 {features}, {targets}; in 2 '
        'workers\n'
        f'  Cast: features float32 {features}, {targets}; in 2 workers\n'
        f'    DataStream: features uint8 {features}, {targets}; '
        'ShuffledScheme(examples=50, batch_size=20, rng=<RandomState>); in 2 '
        'workers\n'
        '      IndexableDataset: features uint8 (1, 3, 4) [channel, height, '
        'width], targets uint8 (1,) [index]; 50 examples') == repr(stream)
    assert 'MultiProcessing(Cast(DataStream(IndexableDataset)))' == short(
        stream)


def test_merged_streams_are_a_tree():
    """Each stream stands below the stage that reads it."""
    stream = Merge([DataStream(images(), batch_size=20) for _ in range(2)],
                   tuple('abcd'))
    lines = repr(stream).splitlines()
    assert ['Merge', '  DataStream', '    IndexableDataset', '  DataStream',
            '    IndexableDataset'] == [line.split(':')[0] for line in lines]


def test_client_does_not_connect():
    """A description leaves out all that only the server knows."""
    stream = ServerDataStream(('x', 'y'), port=1, timeout=0)
    assert ('ServerDataStream: x, y; items; from server localhost:1'
            == repr(stream))
    assert 'server localhost:1' in stream._repr_html_()
    assert not vars(stream).get('_made')


def test_data_set_in_one_line(tmp_path):
    """The line has file, split, examples, sources and layout."""
    path = tmp_path / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.zeros((5, 3))
        file.create_dataset('y', data=numpy.zeros((5, 2), '>i4'),
                            chunks=(2, 2), compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 5), 'y': (0, 5)}})
    dataset = H5PYDataset(path, ('train',))
    dataset.close(None)
    line = ('<H5PYDataset: x float64 (3,), y int32 (2,); 5 examples; '
            f'{path}; splits train; x contiguous, y chunks of 2, gzip>')
    assert line == repr(dataset)
    path.unlink()
    assert line == repr(dataset) == repr(pickle.loads(pickle.dumps(dataset)))


def test_scheme_and_iterator_in_one_line():
    """A scheme shows its arguments, an iterator where it stands."""
    assert ('ShuffledScheme(examples=[3, 1, 2, ... 4 in all], batch_size=2, '
            'rng=<RandomState>)' == repr(ShuffledScheme([3, 1, 2, 0], 2)))
    stream = DataStream(images(), batch_size=20)
    iterator = iter(stream)
    next(iterator)
    where = 'DataStream(IndexableDataset)>'
    assert f'<DataIterator: 1 of 3 batches read; {where}' == repr(iterator)
    list(iterator)
    assert (f'<DataIterator: 3 of 3 batches read, at its end; {where}'
            == repr(iterator))
    unknown = iter(DataStream(IterableDataset(iter('ab'))))
    assert ('<DataIterator: 0 examples read; DataStream(IterableDataset)>'
            == repr(unknown))


def test_vocabulary_hides_its_words(tmp_path):
    """It may have a million of them."""
    (tmp_path / 'text').write_text('secret words\nwords\n')
    text = repr(build_vocabulary([tmp_path / 'text']))
    assert 'secret' not in text
    assert '3 in the files' in text


def test_configuration_in_one_line(tmp_path, monkeypatch):
    """Assigned and environment settings are shown; the file is not read."""
    (tmp_path / 'rc').write_text('data_path: [')
    monkeypatch.setenv('FUEL_CONFIG', str(tmp_path / 'rc'))
    monkeypatch.setenv('FUEL_FLOATX', 'float32')
    settings = Configuration(load_on_first_use=True)
    settings.add_config('floatX', str, 'float64', 'FUEL_FLOATX')
    settings.add_config('data_path', str)
    settings.add_config('seed', int, 1)
    settings.seed = 5
    assert ("<Configuration: floatX='float32' (FUEL_FLOATX), seed=5 "
            '(assigned), 1 settings from the file or by default>'
            == repr(settings))
    assert 'Configuration' in repr(fuel.config)
    assert '<Configuration' in repr(object.__new__(Configuration))


class Lazy:
    """A user's class that skips the constructors of its bases."""

    def __init__(self):
        pass


class Raising:
    """One whose every answer is an error."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise RuntimeError(name)

    @property
    def sources(self):
        """Raise."""
        raise KeyError('sources')


@pytest.mark.parametrize('user', [Lazy, Raising])
@pytest.mark.parametrize('base', [
    AbstractDataStream, Cast, DataStream, Dataset, H5PYDataset,
    IndexableDataset, IterableDataset, IterationScheme, Mapping, Merge,
    MultiProcessing, ScaleAndShift, ServerDataStream, ShuffledScheme,
    Transformer], ids=lambda base: base.__name__)
def test_description_never_raises(base, user):
    """Even if a user's class skipped the constructors."""
    # An abstract base needs this method; no description calls it.
    needed = dict.fromkeys(getattr(base, 'must_override', ())[:1])
    subject = type('Mine', (user, base), needed)()
    assert 'Mine' in repr(subject)
    if hasattr(type(subject), '_repr_html_'):
        assert 'Mine' in subject._repr_html_()
    if hasattr(type(subject), 'preview'):
        assert 'Mine' in str(subject.preview())
        assert 'Mine' in subject.preview()._repr_html_()
    if isinstance(subject, AbstractDataStream):
        assert 'Mine' in str(subject.describe())
        stream = object.__new__(Cast)
        stream.data_stream = subject
        assert 'Mine' in repr(stream)


def test_stream_that_reads_itself_is_described():
    """Its description ends."""
    stream = object.__new__(Cast)
    stream.data_stream = stream
    assert 'Cast' in repr(stream)
    assert 'Cast' in short(stream)


class Doubled(Cast):
    """A user's stage, derived from one of Fuel's."""

    def transform_any_source(self, source_data, source_name):
        """Return something of another type."""
        return str(source_data)


class Honest(Doubled):
    """One that says what it makes."""

    def type_after(self, known, source_name):
        """Return nothing but the type."""
        return SourceType(numpy.dtype('U'))


def test_users_stage_is_not_taken_for_its_base():
    """Its types are not known unless it says so."""
    stream = DataStream(images(), batch_size=20)
    assert repr(Doubled(stream, 'f4')).startswith(
        'Doubled: features [batch, channel, height, width], targets [')
    assert repr(Honest(stream, 'f4')).startswith(
        'Honest: features <U0 [batch,')

    class Own(IndexableDataset):
        def get_data(self, state=None, request=None):
            return 'other', 'things'

    assert 'uint8' not in repr(Own({'x': numpy.zeros(3, 'uint8')}))


def test_strip_of_images():
    """Of what is in memory, as PNG files, an even spread of examples."""
    dataset = images()
    for html in (dataset._repr_html_(),
                 DataStream(dataset, batch_size=20)._repr_html_()):
        assert 8 == html.count('data:image/png;base64,')
        assert 'alt="features 0"' in html
        assert 'alt="features 7"' in html

    class Own(IndexableDataset):
        def get_data(self, state=None, request=None):
            raise AssertionError('asked for data')

    own = Own({'features': numpy.zeros((5, 3, 4), 'uint8')}, axis_labels={
        'features': ('batch', 'height', 'width')})
    assert 'image/png' not in own._repr_html_()
    plain = IndexableDataset({'x': numpy.zeros((5, 3))})
    assert 'image/png' not in plain._repr_html_()


@pytest.mark.parametrize('shape, dtype', [
    ((4, 3, 5, 6), 'uint8'), ((4, 5, 6), 'float32'), ((4, 1, 5, 6), 'bool')],
    ids=['colour', 'float', 'bool'])
def test_strip_of_other_images(shape, dtype):
    """Images of three channels, of none and of floats are drawn."""
    labels = ('batch', 'channel', 'height', 'width')
    dataset = IndexableDataset(
        {'x': numpy.random.RandomState(0).uniform(0, 1, shape).astype(dtype)},
        axis_labels={'x': labels if len(shape) == 4
                     else ('batch', 'height', 'width')})
    assert 4 == dataset._repr_html_().count('data:image/png')


def test_names_are_escaped():
    """Names of sources come from files."""
    dataset = IndexableDataset({'<script>"': numpy.zeros((3, 2))})
    stream = DataStream(dataset, batch_size=2)
    assert '<script>' not in stream._repr_html_() + dataset._repr_html_()
    assert r'\"' in str(stream.describe())


def test_drawing_is_made_here(monkeypatch, tmp_path):
    """A box for each stage, below those that it reads, without Graphviz,
    whose text stays."""
    monkeypatch.setenv('PATH', '')
    stream = MultiProcessing(Merge(
        [DataStream(images(), batch_size=20) for _ in range(3)],
        tuple('abcdef')), num_workers=1)
    graph = stream.describe()
    boxes = boxes_of(graph.svg())
    assert 8 == len(boxes) == graph.source.count(' [label=')
    assert ['MultiProcessing', 'Merge', *['DataStream', 'IndexableDataset'] * 3
            ] == [name for name, _ in boxes]
    tops = [box[1] for _, box in boxes]
    assert tops[0] > tops[1] > tops[2] > tops[3]
    assert tops[2::2] == [tops[2]] * 3
    for level in (2, 3):
        same = [box for _, box in boxes[level::2]]
        for (left, _, width, _), (following, *_) in itertools.pairwise(same):
            assert left + width < following
    middles = [left + width / 2 for _, (left, _, width, _) in boxes]
    assert middles[0] == pytest.approx(middles[4], abs=.2)
    graph.save(tmp_path / 'pipeline.svg')
    assert graph._repr_svg_() == (tmp_path / 'pipeline.svg').read_text()
    graph.save(tmp_path / 'pipeline.dot')
    assert graph.source == (tmp_path / 'pipeline.dot').read_text()
    short_form = f'<PipelineGraph of {short(stream)}>'
    assert short_form == repr(graph)


def boxes_of(svg):
    """Return name and rectangle of each box of a drawing."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f'{SVG}g'):
        rim = group.find(f'{SVG}rect')
        found.append((group.find(f'{SVG}text').text, [
            float(rim.get(name)) for name in ('x', 'y', 'width', 'height')]))
    return found


def test_drawing_of_a_long_pipeline_is_made_at_once():
    """Wide stages on narrow ones, a hundred of them; long lines are cut."""
    stream = DataStream(IndexableDataset(
        {f'source {number}': numpy.zeros(3) for number in range(40)}))
    for number in range(90):
        stream = Cast(stream, 'float32', which_sources=(
            f'source {number % 40}',), axis_labels={
                'source 0': ('batch', 'very long name ' * (number % 7))})
    boxes = boxes_of(stream.describe().svg())
    assert 92 == len(boxes)
    assert all(box[2] < 500 for _, box in boxes)
    assert 'and 28 more' in stream.describe().svg()


def test_what_steers_a_terminal_is_escaped():
    """In texts and drawings: names come from files."""
    dataset = IndexableDataset({'\x1b[2J\u202e<b>': numpy.zeros((3, 2))})
    stream = DataStream(dataset, batch_size=2)
    graph = stream.describe()
    ElementTree.fromstring(graph.svg())
    for text in (repr(stream), repr(dataset), graph.source, graph.svg(),
                 stream._repr_html_()):
        assert '\x1b' not in text
        assert '\u202e' not in text
        assert r'\x1b[2J' in text.replace('\\\\', '\\')


def test_pixels_that_are_not_numbers_are_drawn_as_the_darkest():
    """Of the others, the lowest is black and the highest is white."""
    image = numpy.array([[numpy.nan, 1], [3, -numpy.inf]])
    assert [[0, 0], [255, 0]] == pixels(image).tolist()


@pytest.mark.parametrize(('name', 'source'), [
    ('Mix', 'y'), ('ToBytes', 'y'), ('MinimumImageDimensions', 'number'),
    ('RandomResizedCrop', 'number')])
def test_types_are_shown_that_a_stage_leaves(name, source, files):
    """Although the class makes data of other sources, or of several."""
    stream = pipelines.build(name, files)
    assert f'{source} int64 (4,)' in repr(stream).splitlines()[0]
