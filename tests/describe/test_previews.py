"""Previews of the examples of data sets and streams."""
import base64
import io
import json
import os
import random
import re
from itertools import islice
from xml.etree import ElementTree

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image, ImageDraw, ImageFont
from support import pipelines

from fuel.datasets import (
    CSVDataset,
    Dataset,
    H5PYDataset,
    IndexableDataset,
    IterableDataset,
)
from fuel.describe import samples
from fuel.describe.examples import as_image
from fuel.describe.pipeline import described
from fuel.describe.panels import PLOT_HEIGHT, Panel, picture_of
from fuel.schemes import ConcatenatedScheme, SequentialScheme
from fuel.streams import DataStream, ServerDataStream
from fuel.testing.data import freeze, freeze_all
from fuel.transformers import Mapping, MultiProcessing
from fuel.workers.team import Team

HOSTILE = '<script>"\x1b[2J\u202e&'


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The folder of the files that the pipelines read."""
    folder = tmp_path_factory.mktemp('pipelines')
    pipelines.write_files(folder)
    return folder


def all_kinds(count=200, **kwargs):
    """Return images, sorted classes, curves, numbers and texts."""
    rng = numpy.random.default_rng(1)
    return IndexableDataset({
        'image': rng.integers(0, 255, (count, 3, 9, 8)).astype('uint8'),
        'targets': numpy.repeat(numpy.arange(4), count // 4)[:, None],
        'curve': rng.normal(size=(count, 30)),
        'length': rng.normal(size=count),
        'text': [f'text {number}' for number in range(count)]}, **kwargs)


def global_states():
    """Return where the global generators stand."""
    state = numpy.random.get_state(legacy=False)
    return random.getstate(), json.dumps(
        state, default=lambda array: array.tolist())


@pytest.mark.pipelines
def test_preview_disturbs_nothing(pipeline, files):
    """No epoch, order, state or generator, whatever the stages are; before
    an epoch it shows what that begins with."""
    expected_stream, stream = (
        pipelines.build(pipeline, files) for _ in range(2))
    with expected_stream, stream:
        before = global_states()
        start = stream.preview(3)
        assert before == global_states()
        assert start.error is None
        for _ in range(2):
            expected, found = freeze_all(islice(expected_stream, 40)), []
            for item in islice(stream, 40):
                found.append(freeze(item))
                if len(found) == 2:
                    saved = json.dumps(stream.state_dict())
                    stream.preview(3)
                    for stage in described(stream):
                        if isinstance(stage.subject, Dataset):
                            assert stage.subject.preview(3).error is None
                    assert saved == json.dumps(stream.state_dict())
            assert expected == found
        assert [panel.name for panel in start.panels] == list(stream.sources)
        assert start._repr_html_() and str(start)


def test_first_batch_is_shown():
    """It is that of the next epoch: the trainer gets it."""
    stream = DataStream(all_kinds(), batch_size=20, shuffle=True)
    for _ in range(2):
        shown = stream.preview(5)
        batch = next(iter(stream))
        for panel, part in zip(shown.panels[:4], batch, strict=False):
            assert_array_equal(part[:5], panel.examples)
    assert shown.title == (
        'DataStream(IndexableDataset): the first 5 of 20 examples of the '
        'first batch')


def test_text_of_a_preview():
    """A table of what has a row, a line for everything else."""
    text = str(all_kinds().preview())
    lines = text.splitlines()
    assert 'IndexableDataset: 40 of 200 examples' == lines[0]
    assert ['targets', 'length', 'text'] == lines[1].split()
    assert '0' == lines[2].split()[0]
    assert '199' == lines[9].split()[0]
    assert lines[9].endswith('text 199')
    assert 'image: images of uint8 (3, 9, 8): 0 to 254' in lines
    assert 'targets: 0 (10), 1 (10), 2 (10), 3 (10)' in lines
    assert re.search(r'^curve: float64 \(30,\): -\d', text, re.MULTILINE)
    assert text == repr(all_kinds().preview())
    assert max(map(len, lines)) < 80


def test_html_of_a_preview():
    """It has a table, images under the names of their classes, and
    drawings."""
    dataset = all_kinds()
    dataset.class_names = ('cat', 'dog', HOSTILE, 'emu')
    html = dataset.preview()._repr_html_()
    assert 40 == html.count('data:image/png;base64,')
    found = re.findall(r'base64,([^"]*)">', html)
    with Image.open(io.BytesIO(base64.b64decode(found[-1]))) as image:
        assert_array_equal(dataset[199][0].transpose(1, 2, 0), image)
    assert 10 == html.count('<br>dog</span>')
    drawings = re.findall(r'<svg.*?</svg>', html)
    assert 3 == len(drawings)
    targets, curve, length = map(ElementTree.fromstring, drawings)
    kinds = [[tag.tag.rpartition('}')[2] for tag in drawing]
             for drawing in (targets, curve, length)]
    assert [['rect'] * 4 + ['text'] * 4, ['polyline'] * 40, ['rect'] * 40
            ] == kinds
    assert '<td' in html and 'text 199' in html


def test_hostile_texts_are_escaped():
    """Names, classes, data and errors, in text, HTML and drawings."""
    def fail(batch):
        raise ValueError(HOSTILE)

    dataset = IndexableDataset({
        HOSTILE: [HOSTILE] * 3, 'targets': numpy.arange(3)})
    dataset.class_names = (HOSTILE,) * 3
    stream = DataStream(dataset, batch_size=2)
    for shown in (dataset.preview(), stream.preview(),
                  Mapping(stream, fail).preview()):
        text, html = str(shown), shown._repr_html_()
        assert '<script>' not in html
        assert r'\x1b[2J\u202e' in html
        assert not any(steers in text + html for steers in '\x1b\u202e')
        assert r'\x1b[2J\u202e' in text
        if shown.error is None:
            shown.picture()


def test_failure_is_shown():
    """With its notes, and does not raise; only a picture of nothing does."""
    def fail(batch):
        raise ValueError('no such thing\nhere')

    stream = Mapping(DataStream(all_kinds(), batch_size=2), fail)
    shown = stream.preview()
    for text in (str(shown), shown._repr_html_()):
        assert 'ValueError: no such thing\nhere\n' in text
        assert 'in stage Mapping' in text
    assert isinstance(shown.error, ValueError)
    with pytest.raises(ValueError, match='no such thing'):
        shown.picture()


def test_examples_that_can_be_read_are_shown():
    """Beside the error of the first that cannot."""
    class Damaged(IndexableDataset):
        def get_data(self, state=None, request=None):
            if 0 in numpy.ravel(request):
                raise OSError('damaged')
            return super().get_data(state, request)

    shown = Damaged({'x': numpy.arange(10)}).preview(count=4)
    assert 'OSError: damaged' in str(shown)
    assert [3, 6, 9] == shown.numbers == [
        int(example) for example in shown.panels[0].examples]

    class Ends(Dataset):
        provides_sources = ('x',)
        example_iteration_scheme = None

        def open(self):
            return iter([1, 2])

        def get_data(self, state=None, request=None):
            if state.__length_hint__() == 0:
                raise OSError('cut off')
            return (next(state),)

    for shown in (Ends().preview(), DataStream(Ends()).preview()):
        assert 'OSError: cut off' in str(shown)
        assert [1, 2] == [int(one) for one in shown.panels[0].examples]


def test_nothing_is_used_up():
    """A preview reads neither data that come only once nor a server."""
    dataset = IterableDataset(iter(range(3)))
    stream = DataStream(dataset)
    for shown in (dataset.preview(), stream.preview()):
        assert 'only once' in str(shown)
    assert [0, 1, 2] == [example for example, in stream]
    numbers = IndexableDataset(numpy.arange(4))
    for scheme in (
            SequentialScheme(iter(range(4)), 2), ConcatenatedScheme([
                SequentialScheme(2, 2),
                SequentialScheme((one for one in (2, 3)), 2)])):
        stream = DataStream(numbers, iteration_scheme=scheme)
        assert 'only once' in str(stream.preview())
        assert [[0, 1], [2, 3]] == [part.tolist() for part, in stream]
    client = ServerDataStream(('x',), port=1, timeout=0)
    assert 'server localhost:1' in str(client.preview().error)
    assert 'data:' not in client.preview()._repr_html_()


def test_workers_are_not_started(monkeypatch):
    """The reader's process makes the batch, also for stages above."""
    def here(batch):
        return (numpy.full(2, os.getpid()),)

    monkeypatch.setattr(Team, '__init__', None)
    stream = Mapping(MultiProcessing(
        Mapping(DataStream(IndexableDataset(numpy.arange(4)), batch_size=2),
                here), num_workers=2), lambda batch: batch)
    shown = stream.preview()
    assert shown.error is None
    assert [os.getpid()] * 2 == [
        int(one) for one in shown.panels[0].examples]


class Counted(IndexableDataset):
    """A data set that counts what is read of it."""

    def get_data(self, state=None, request=None):
        """Return examples, and remember their numbers."""
        self.__dict__.setdefault('read', []).extend(
            numpy.ravel(request).tolist())
        return super().get_data(state, request)

    takes_requests = True


def test_no_more_is_read_than_shown(tmp_path):
    """Of remote files only a few are read, of large examples fewer."""
    dataset = Counted(numpy.arange(1000.))
    shown = dataset.preview(count=5)
    assert [0, 249, 499, 749, 999] == dataset.read == shown.numbers
    with pytest.raises(ValueError, match='count must be'):
        dataset.preview(count=0)

    class Remote(Counted):
        def details(self):
            return ['s3://bucket/x.hdf5']

    remote = Remote(numpy.arange(1000.))
    assert 8 == len(remote.preview().numbers) == len(remote.read)
    assert not samples.is_quick(remote, may_open=True) or (
        remote.has_rows_at_hand())


def test_large_examples_are_fewer(monkeypatch):
    """Fewer examples are shown also of data that are read in order."""
    monkeypatch.setattr(samples, 'MOST_BYTES', 3000)
    dataset = IterableDataset(list(numpy.zeros((50, 100))))
    for shown in (dataset.preview(), DataStream(dataset).preview()):
        assert 4 == len(shown.panels[0].examples)
        assert 'the first 4 examples' in shown.title


def test_nothing_is_asked_again_and_again():
    """A preview asks bad data a few times, and an unreachable server once."""
    class Bad(IndexableDataset):
        asked = 0

        def get_data(self, state=None, request=None):
            self.asked += 1
            raise OSError('no answer')

    class Remote(Bad):
        def details(self):
            return ['https://host/x.hdf5', 'splits train']

    bad, remote = Bad(numpy.arange(99)), Remote(numpy.arange(99))
    assert 'OSError: no answer' in str(bad.preview())
    assert 1 + samples.MOST_ERRORS == bad.asked
    assert 'OSError: no answer' in str(remote.preview())
    assert 1 == remote.asked


def test_fresh_data_set_shows_its_examples(tmp_path):
    """Without a stream; a stream opens no file to show itself, and neither
    does one of a file that is gone raise."""
    path = tmp_path / 'a.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(640, dtype='u1').reshape(10, 8, 8)
        file['targets'] = numpy.repeat([0, 1], 5)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 10), 'targets': (0, 10)}})
    dataset = H5PYDataset(path, ('train',))
    stream = DataStream(dataset, batch_size=2)
    dataset.close(None)
    assert 'image/png' not in stream._repr_html_()
    assert 8 == dataset._repr_html_().count('image/png')
    assert 8 == stream._repr_html_().count('image/png')
    dataset.close(None)
    path.unlink()
    assert 'FileNotFoundError' in dataset._repr_html_()
    table = tmp_path / 'a.csv'
    table.write_text('length,kind\n' + '1.5,cat\n' * 3)
    html = CSVDataset(table)._repr_html_()
    assert 'cat' in html and '1.5' in html
    assert IterableDataset([1, 2])._repr_html_().count('<tr>') == 2


@pytest.mark.parametrize('numbers, counts', [
    (numpy.repeat([3, 5], [4, 1]), [('three', 4), ('5', 1)]),
    (numpy.zeros(5, 'uint8'), [('0', 5)]),
    (numpy.array([True, False]), [('0', 1), ('1', 1)]),
    (numpy.repeat([.5, 2], 3), [('0.5', 3), ('2', 3)]),
    (numpy.array([.5, 2, 1]), []), (numpy.array(['a', 'b']), []),
    (numpy.array(['b', 'a', 'b']), [('a', 1), ('b', 2)]),
    ([{'a': 1}] * 2, [("{'a': 1}", 2)])])
def test_classes_and_sorted_numbers_are_counted(numbers, counts):
    """The counts replace a flat line."""
    names = ('no', 'no', 'no', 'three') if numbers[0] == 3 else ()
    panel = Panel('x', list(map(numpy.asarray, numbers)), class_names=names)
    assert counts == [(name.replace('False', '0').replace('True', '1'), count)
                      for name, count in panel.counts]
    picture = picture_of(panel)
    assert (picture.height > PLOT_HEIGHT) == bool(counts)


def test_many_numbers_come_together():
    """In bars of equal width."""
    panel = Panel('x', list(numpy.arange(100)))
    assert [5] * 20 == [count for _, count in panel.counts]
    assert '0' == panel.counts[0][0]
    assert not panel.classes
    drawn = numpy.asarray(picture_of(Panel('x', [
        numpy.asarray(number) for number in [1] * 3 + [2] * 9]))
        )[:PLOT_HEIGHT, :, 0] == 40
    heights = drawn.sum(axis=0)
    assert 2.7 < heights.max() / heights[heights > 0].min() < 3.1


class Odd:
    """An object that cannot be shown."""

    def __repr__(self):
        raise RuntimeError('no text')

    def __array__(self, dtype=None, copy=None):
        raise KeyError('no array')


@pytest.mark.parametrize('part', [
    [Odd()] * 3, [{'a': 1}] * 3, [[1], [2, 3], [[4], 5]], [b'abc'] * 3,
    [None] * 3, [b'\xff\xfe'] * 3, numpy.array(['2020-01-01'], 'M8[D]'),
    numpy.full(3, numpy.nan), numpy.array([1, numpy.inf, 2]),
    [numpy.zeros((0, 3))] * 3, [numpy.zeros((3, 0, 8))] * 2,
    numpy.array([1 + 2j] * 3), ['x' * 10 ** 6] * 2,
    numpy.array([[numpy.nan, numpy.inf] * 5] * 3)])
def test_nothing_is_too_odd(part):
    """Objects, texts, bytes, dates, nothing at all, and numbers that are none
    are shown."""
    with numpy.errstate(invalid='raise', divide='raise', over='raise'):
        for shown in (IndexableDataset({'odd': part}).preview(),
                      DataStream(IterableDataset(list(part))).preview()):
            assert shown.error is None
            assert len(str(shown)) < 1000
            assert len(shown._repr_html_()) < 10000
            shown.picture()


def test_encoded_images_are_decoded(monkeypatch):
    """Bytes of files too; one that claims to be enormous is none."""
    file = io.BytesIO()
    Image.new('RGB', (40, 20), 'red').save(file, 'PNG')
    dataset = IterableDataset({'image': [file.getvalue()] * 3})
    shown = DataStream(dataset).preview()
    assert [(40, 20)] * 3 == [image.size for image in shown.panels[0].images]
    # Another program would decode it.
    script = io.BytesIO()
    Image.new('RGB', (40, 20), 'red').save(script, 'EPS')
    assert as_image(numpy.frombuffer(script.getvalue(), 'uint8')) is None
    monkeypatch.setattr('fuel.describe.examples.MAX_PIXELS', 10)
    assert [] == DataStream(dataset).preview().panels[0].images


def test_channels_have_curves_of_their_own():
    """Of matrices with few rows or columns, whichever comes first."""
    waves = numpy.arange(60.).reshape(20, 3)
    for example, count in ((waves, 3), (waves.T, 3), (waves.ravel(), 1),
                           (numpy.zeros((9, 3, 4)), 1)):
        lines = Panel('x', [example] * 2).plot.lines
        assert 2 * count == len(lines)
    assert [0, 1] == [y for _, y in Panel('x', [waves[:, :1]]).plot.lines[0]
                      ][::19]


def test_drawing_of_what_the_table_shows_is_left_out():
    """A few different numbers are in its rows; classes are counted."""
    dataset = IndexableDataset({
        'length': numpy.array([.5, 2, 1]), 'kind': numpy.array([0, 1, 1])})
    html = dataset.preview()._repr_html_()
    assert 1 == html.count('<svg')
    assert 2 == IndexableDataset({
        'length': numpy.sin(numpy.arange(9.)), 'kind': numpy.arange(9) // 5,
        }).preview()._repr_html_().count('<svg')


def test_many_sources_are_cut_off():
    """They are in text and HTML; the picture has all."""
    dataset = IndexableDataset(
        {f'column{number}': numpy.arange(3.) for number in range(30)})
    shown = dataset.preview()
    assert 'and 22 more: column8, ' in str(shown)
    assert 'and 22 more: column8, ' in shown._repr_html_()
    assert shown.picture().height > 30 * PLOT_HEIGHT
    assert max(map(len, str(shown).splitlines()[:5])) < 90


def test_long_and_foreign_names_are_drawn(monkeypatch):
    """The font of old versions of Pillow, which lacks letters, draws them."""
    dataset = all_kinds()
    dataset.class_names = ('cat', '\u732b' * 50, 'a\nb', 'd')
    expected = dataset.preview().picture()
    assert {'cat', '\u732b' * 9 + '...', r'a\nb', 'd'} == set(
        dataset.preview().panels[0].captions)
    monkeypatch.setattr(ImageDraw.ImageDraw, 'font',
                        # Of all versions, under another name since 10.1.
                        getattr(ImageFont, 'load_default_imagefont',
                                ImageFont.load_default)())
    assert expected.size == dataset.preview().picture().size


def test_picture_is_saved(tmp_path):
    """The suffix of the path decides the format."""
    shown = all_kinds().preview()
    shown.save(tmp_path / 'a.png')
    with Image.open(tmp_path / 'a.png') as image:
        assert image.size == shown.picture().size
    with pytest.raises(ValueError, match=r'such as \.png'):
        shown.save(tmp_path / 'a.nothing')
