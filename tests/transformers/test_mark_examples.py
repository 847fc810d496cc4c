"""The marks of MarkExamples name the rows that the data come from."""
import itertools
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import numpy
import pytest
from support import pipelines

from fuel.datasets import Dataset, IndexableDataset, IterableDataset
from fuel.epochs.pipeline import datasets_of
from fuel.epochs.readers import takes_requests
from fuel.interop.device_stage import DeviceStage
from fuel.interop.paddle import ProviderDataset
from fuel.schemes import (
    ConcatenatedScheme, ConstantScheme, IterationScheme, SequentialScheme,
    ShuffledScheme)
from fuel.server import Server
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import example_ids
from fuel.sharding.order import UnknownOrderError
from fuel.streams import DataStream, ServerDataStream
from fuel.testing import ReplayProcess, check_stream
from fuel.transformers import (
    Batch, Cache, Cast, Chain, Filter, FilterSources, Mapping, MarkExamples,
    Merge, Mix, MultiProcessing, MultiThreading, Rename, Take, Transformer,
    Unpack)
from fuel.transformers.image import CutMix, MixUp
from fuel.transformers.sequences import (
    BucketBatch, Chunk, NGrams, Pack, Window)
from fuel.transformers.shuffling import ShuffleBuffer

N = 14

# The examples of their rows are not known.
OF_THE_ITEM = {
    'Mapping', 'Mapping add_sources', 'SortMapping', 'Mapping dict',
    'SeededMapping', 'sparse Mapping', 'sparse SortMapping',
    'MultiProcessing', 'MultiThreading', 'Expand batches', 'Noisy',
    'Noisy left-overs', 'Running'}
# Many rows are alike.
ALIKE = {'IndexableDataset records', 'Windows HDF5Dataset',
         'sharded TextFile'}
# No source comes as the data set has it: it is scaled, decoded or cut.
CHANGED = {
    'SeededMapping examples', 'SeededMapping by example',
    'ScaleAndShift in float32', 'Cast fused',
    'Padding', 'MixUp', 'CutMix', 'CutMix pairs', 'Pack', 'Pack of Chunk',
    'Pack batches', 'Mix with itself', 'Chain with itself',
    'ImagesFromBytes examples', 'TextFile batches', 'Window', 'NGrams',
    'Chunk', 'Chunk shifted', 'MarkExamples of Pack',
    'MarkExamples of MixUp'}


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return the folder of the files that the pipelines read."""
    folder = tmp_path_factory.mktemp('pipelines')
    pipelines.write_files(folder)
    return folder


@pytest.fixture(scope='module')
def another_process():
    """Return the process in which saved positions are continued."""
    with ReplayProcess() as process:
        yield process


def content(value):
    """Return data of any type as plain values that compare."""
    if hasattr(value, 'toarray'):
        value = value.toarray()
    if isinstance(value, (numpy.ndarray, numpy.void)) and value.dtype.names:
        value = value.tolist()
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return [content(part) for part in value]
    return value if isinstance(value, (bytes, str, dict)) else (
        float(numpy.float32(value)))


def rows_of(part, is_example=False):
    """Return the contents of the rows of a source."""
    if hasattr(part, 'toarray'):
        # Of an example, too, it has rows.
        return content(part)
    return [content(part)] if is_example else content(part)


class Rows:
    """The rows of data sets, as their get_data gives them."""

    def __init__(self, stream):
        self.datasets = datasets_of(stream)
        self.known = {}

    def __call__(self, number, row):
        """Return the content of each source of a row."""
        if (number, row) not in self.known:
            self.known[number, row] = self._read(self.datasets[number], row)
        return self.known[number, row]

    def _read(self, dataset, row):
        state = dataset.open()
        if takes_requests(dataset) is not False and not isinstance(
                dataset, ProviderDataset):
            return [rows_of(part)[0]
                    for part in dataset.get_data(state, [row])]
        for _ in range(row + 1):
            found = dataset.get_data(state)
        return list(map(content, found))

    def identifying(self):
        """Return the places of the sources that tell rows apart."""
        columns = zip(*self.known.values(), strict=False)
        return {place for place, column in enumerate(columns)
                if len(set(map(str, column))) >= min(4, len(self.known))}


def fitting(marked, rows):
    """Return pairs of sources, of a marked stream and of the data sets, that
    agree for all rows."""
    is_example, found = marked.produces_examples, None
    for *data, marks in marked.get_epoch_iterator():
        assert marks.dtype == numpy.int64
        parts = [rows_of(part, is_example) for part in data]
        listed = marks.reshape(-1, 2).tolist()
        assert [len(listed)] * len(parts) == list(map(len, parts))
        for place, mark in enumerate(listed):
            agree = {(ours, theirs) for ours, part in enumerate(parts)
                     for theirs, value in enumerate(rows(*mark))
                     if part[place] == value}
            found = agree if found is None else found & agree
    return found


def as_marked(stream):
    """Return a stream with marks, if it has none."""
    return stream if 'example' in stream.sources else MarkExamples(stream)


@pytest.mark.parametrize('name', sorted(
    pipelines.PIPELINES.keys() - OF_THE_ITEM - CHANGED))
def test_marks_are_where_the_data_come_from(name, files):
    """The data set's own row has what the marked row has."""
    stream = pipelines.build(name, files)
    rows = Rows(stream)
    found = fitting(as_marked(stream), rows)
    assert found
    if name not in ALIKE:
        assert rows.identifying() & {theirs for _, theirs in found}


@pytest.mark.parametrize('name', sorted(CHANGED))
def test_changed_data_have_marks(name, files):
    """There is a mark for each row, of rows that the data sets have."""
    stream = as_marked(pipelines.build(name, files))
    place = stream.sources.index('example')
    found = {tuple(mark) for item in stream
             for mark in item[place].reshape(-1, 2).tolist()} - {(-1, -1)}
    assert found
    read = Rows(stream)
    assert all(read(*mark) for mark in found)


@pytest.mark.parametrize('name', sorted(OF_THE_ITEM))
def test_rows_that_are_not_known_are_refused(name, files):
    """The error names the stage that hides them."""
    stream = pipelines.build(name, files)
    with pytest.raises(UnknownOrderError, match=(
            r'put MarkExamples before that stage')) as caught:
        next(MarkExamples(stream).get_epoch_iterator())
    names = [type(stream).__name__]
    while hasattr(stream, 'data_stream'):
        stream = stream.data_stream
        names.append(type(stream).__name__)
    assert any(f'an item of {name} ' in str(caught.value) for name in names)


def test_marks_pass_through_workers_threads_and_server(files):
    """They are a source like any other there."""
    expected = [marks.tolist() for *_, marks in marked_batches()]
    for stage in MultiProcessing, MultiThreading:
        with stage(marked_batches()) as stream:
            assert expected == [marks.tolist() for *_, marks in stream]
    with MultiProcessing(MarkExamples(batches()), num_workers=2) as stream:
        assert check_own(MarkExamples(batches())) == [
            marks.tolist() for _, marks in stream]
    with Server(marked_batches(), port=0) as server:
        client = ServerDataStream(('x', 'example'), port=server.port)
        assert expected == [marks.tolist() for *_, marks in client]
        with pytest.raises(ValueError, match='in the server'):
            MarkExamples(Rename(client, {'example': 'other'}))


# --- data that hold their own number and that of their data set


def numbers(number=0, count=N):
    """Return a data set whose rows are its number and their own."""
    return IndexableDataset({'x': numpy.stack(
        [numpy.full(count, number), numpy.arange(count)], axis=1)})


def batches(number=0, size=4, scheme=ShuffledScheme):
    """Return a stream of batches."""
    return DataStream(numbers(number), iteration_scheme=scheme(N, size))


def examples(number=0):
    """Return a stream of examples."""
    return DataStream(numbers(number), shuffle=True, seed=number)


def lines(number=0):
    """Return a stream of examples that are read in order."""
    return DataStream(IterableDataset({'x': list(numpy.stack(
        [numpy.full(N, number), numpy.arange(N)], axis=1))}))


def marked_batches():
    """Return a stream of marked batches."""
    return MarkExamples(Batch(ShuffleBuffer(examples(), 5), batch_size=3))


def is_kept(data):
    """Return whether Filter keeps an example."""
    return data[0][1] % 3 > 0


class Pairs(IterationScheme):
    """A scheme of a user's, whose requests are known when they are made."""

    requests_examples = False

    def get_request_iterator(self):
        """Return an iterator over pairs of rows."""
        return iter([[n, N - 1 - n] for n in range(N // 2)])


STREAMS = {
    'batches': batches,
    'examples': examples,
    'lines': lines,
    'a scheme of a user': lambda: DataStream(
        numbers(), iteration_scheme=Pairs()),
    'ConcatenatedScheme': lambda: DataStream(
        numbers(), iteration_scheme=ConcatenatedScheme([
            ShuffledScheme(9, 4), SequentialScheme([9, 13], 2)])),
    'Cast': lambda: Cast(batches(), 'float64'),
    'Batch': lambda: Batch(examples(), batch_size=4),
    'Batch of Filter': lambda: Batch(Filter(lines(), is_kept), batch_size=4),
    'Batch of Unpack': lambda: Batch(Unpack(batches()), batch_size=5),
    'Unpack': lambda: Unpack(batches()),
    'Unpack of Cache': lambda: Unpack(Cache(batches(), ConstantScheme(3))),
    'Cache': lambda: Cache(batches(), ConstantScheme(3)),
    'Cache of Batch': lambda: Cache(
        Batch(ShuffleBuffer(lines(), 6), batch_size=4), ConstantScheme(6)),
    'Filter': lambda: Filter(examples(), is_kept),
    'Take': lambda: Take(batches(), 3),
    'Take of Filter': lambda: Take(Filter(examples(), is_kept), 5),
    'ShuffleBuffer': lambda: ShuffleBuffer(examples(), 4),
    'ShuffleBuffer of lines': lambda: ShuffleBuffer(lines(), 4),
    'BucketBatch': lambda: BucketBatch(
        Mapping(examples(), tuple), 6, pool_size=5),
    'BucketBatch of Mix': lambda: BucketBatch(
        Mix((lines(), examples(1)), stop='last'), 8, pool_size=9),
    'Mapping of examples': lambda: Mapping(examples(), tuple),
    'Chain': lambda: Chain((batches(), batches(1))),
    'Chain of lines': lambda: Chain((lines(), lines(1))),
    'Batch of Chain': lambda: Batch(
        Chain((lines(), examples(1))), batch_size=5),
    'Mix': lambda: Mix((batches(), batches(1)), [2, 1], stop='last'),
    'Mix for ever': lambda: Mix(
        (ShuffleBuffer(Unpack(batches()), 3), examples(1)),
        stop='forever', epoch_size=40),
    'Mix of lines': lambda: Mix(
        (lines(), Filter(examples(1), is_kept)), [1, 2], stop='last'),
    'Batch of Mix': lambda: Batch(
        Mix((examples(), examples(1)), stop='last'), batch_size=5),
    'Cache of Mix': lambda: Cache(
        Mix((batches(), batches(1)), stop='last'), ConstantScheme(3)),
}


def check_own(marked):
    """Assert that the marks are what the rows hold; return them."""
    found = []
    for rows, marks in marked.get_epoch_iterator():
        assert numpy.asarray(rows).tolist() == marks.tolist()
        found.append(marks.tolist())
    return found


def flat(marked):
    """Return the marks of all rows."""
    return [mark for item in check_own(marked)
            for mark in numpy.reshape(item, (-1, 2)).tolist()]


@pytest.mark.parametrize('name', STREAMS)
def test_rows_hold_what_their_marks_say(name):
    """In two epochs, and at the end of a pipeline that has other stages."""
    stream = MarkExamples(STREAMS[name]())
    assert check_own(stream)
    check_own(stream)
    below = Rename(stream, {'x': 'z'})
    check_own(below if below.produces_examples else Unpack(below))


def shares():
    """Yield the streams, and how ranks can share them."""
    for name, by, uneven in itertools.product(
            STREAMS, ('batch', 'example'), ('uneven', 'drop', 'pad')):
        with suppress(ValueError):
            STREAMS[name]().shard(0, 2, by, uneven)
            yield name, by, uneven


@pytest.mark.parametrize('name, by, uneven', list(shares()))
def test_each_rank_marks_its_own_rows(name, by, uneven):
    """Rows that are repeated have marks too; it makes no difference if the
    stream is shared before it is marked."""
    for count in (1, 2, 3):
        for rank in range(count):
            share = STREAMS[name]().shard(rank, count, by, uneven)
            own = check_own(MarkExamples(share))
            assert own == check_own(MarkExamples(STREAMS[name]()).shard(
                rank, count, by, uneven))


def test_ranks_share_all_marks():
    """Without padding each mark comes once."""
    for name in ('batches', 'Cache', 'Batch', 'Cache of Mix', 'Filter'):
        whole = flat(MarkExamples(STREAMS[name]()))
        found = [flat(MarkExamples(STREAMS[name]()).shard(
            rank, 3, uneven='uneven')) for rank in range(3)]
        assert sorted(whole) == sorted(sum(found, []))


@pytest.mark.parametrize('name', STREAMS)
def test_marks_are_those_of_the_order(name):
    """An order that is known names the same rows and data sets."""
    stream = STREAMS[name]()
    order = epoch_order(stream)
    try:
        order[0]
    except UnknownOrderError:
        return
    for number, (_, marks) in enumerate(MarkExamples(stream)):
        assert [list(example) for example in example_ids(order[number])] == (
            marks.reshape(-1, 2).tolist())


def sequences(number=0):
    """Return a stream of sequences that repeat the number of their row."""
    return DataStream(IterableDataset({'x': [
        [100 * number + row] * (1 + row * 5 % 4) for row in range(N)]}))


def is_first_kept(data):
    """Return whether Filter keeps a sequence."""
    return data[0][0] % 3 > 0


CUT = {
    'Window': lambda stream: Window(1, 2, 2, True, stream),
    'NGrams': lambda stream: NGrams(2, stream),
    'Chunk': lambda stream: Chunk(stream, 2),
    'Chunk with targets': lambda stream: Chunk(
        stream, 2, stride=1, target_source='next'),
}


@pytest.mark.parametrize('name', CUT)
def test_pieces_have_the_mark_of_what_was_cut(name):
    """All pieces of a sequence have the same one."""
    stream = CUT[name](Chain((sequences(), sequences(3))))
    found = []
    for piece, *_, (number, row) in MarkExamples(stream):
        assert {300 * number + row} == set(piece)
        found.append(number)
    assert {0, 1} == set(found)


PACKED = {
    'examples': lambda: Pack(sequences(), 4),
    'batches': lambda: Pack(
        Batch(Filter(sequences(), is_first_kept), batch_size=4),
        5, batch_size=2, window=2),
    'cut': lambda: Pack(
        sequences(), 3, batch_size=3, too_long='cut', window=3),
    'split': lambda: Batch(
        Pack(ShuffleBuffer(sequences(), 5), 3, too_long='split'),
        batch_size=2),
    'chunks': lambda: Unpack(Cache(Pack(
        Chunk(sequences(), 2), 5, batch_size=4), ConstantScheme(3))),
}


@pytest.mark.parametrize('name', PACKED)
def test_packed_rows_have_a_mark_for_each_segment(name):
    """The number of a segment tells its mark; after the last there are
    none."""
    stream = PACKED[name]()
    marked, most = MarkExamples(stream), 0
    for item in marked:
        rows = zip(*item, strict=True) if (
            not marked.produces_examples) else [item]
        for row, in_row, _, own in rows:
            count = in_row.max()
            most = max(most, count)
            used = in_row > 0
            assert row[used].tolist() == own[in_row[used] - 1, 1].tolist()
            assert (own[:count, 0] == 0).all()
            assert (own[count:] == -1).all()
    assert most > 1
    for rank in range(2):
        assert [marks.tolist() for *_, marks in MarkExamples(
            PACKED[name]().shard(rank, 2))] == [marks.tolist() for *_, marks in
                MarkExamples(PACKED[name]()).shard(rank, 2)]


def check_mixed(stream, partner_share):
    """Assert that the marks of a mixed stream fit its shares of classes."""
    mixed = 0
    for shares, marks, partners in MarkExamples(stream, partner='partner'):
        own, other = marks[:, 1], partners[:, 1]
        expected = numpy.zeros_like(shares)
        share = partner_share(shares, own, other)
        for place in range(len(own)):
            expected[place, own[place]] += 1 - share
            if other[place] >= 0:
                expected[place, other[place]] += share
        assert numpy.allclose(shares, expected, atol=1e-6)
        assert ((partners == -1).all() or (partners[:, 0] == 0).all())
        mixed += (partners >= 0).all()
    return mixed


def share_of_other(shares, own, other):
    """Return how much of a partner the targets of a batch have."""
    return max([0, *[shares[place, other[place]]
                     for place in range(len(own))
                     if other[place] >= 0 and other[place] != own[place]]])


@pytest.mark.parametrize('probability', [0, .5, 1])
def test_mixed_rows_have_their_own_mark_and_their_partner_s(probability):
    """The shares of the targets tell which examples a row is mixed from."""
    pixels = numpy.random.default_rng(3).random((N, 1, 4, 4), numpy.float32)

    def build(**kwargs):
        return DataStream(IndexableDataset(
            {'image': pixels, 'y': numpy.arange(N)}, axis_labels={
                'image': ('batch', 'channel', 'height', 'width'),
                'y': ('batch',)}), batch_size=5, shuffle=True, **kwargs)

    for mixer in MixUp, CutMix:
        stream = mixer(build(), N, target_source='y', seed=1, alpha=.9,
                       probability=probability)
        counts = [check_mixed(FilterSources(part, ('y',)), share_of_other)
                  for part in (stream, stream, stream.shard(0, 2),
                               stream.shard(1, 2))]
        assert bool(sum(counts)) == (probability > 0)
        # A stage below need not know of partners.
        for _, _, marks in MarkExamples(Unpack(stream)):
            assert marks.shape == (2,)


def test_examples_that_are_mixed_twice_have_their_own_mark():
    """The partner is that of the last stage."""
    def build():
        return FilterSources(MixUp(MixUp(DataStream(
            IndexableDataset({'x': numpy.arange(N, dtype='float32'),
                              'y': numpy.arange(N)}), batch_size=N),
            N, target_source='y', seed=1), target_source='y', seed=2), ('y',))

    plain, = MarkExamples(DataStream(IndexableDataset(
        numpy.arange(N)), batch_size=N))
    (_, marks, partners), = MarkExamples(build(), partner='with')
    assert plain[1].tolist() == marks.tolist()
    assert sorted(partners.tolist()) == marks.tolist()


@pytest.mark.parametrize('name', STREAMS)
def test_items_of_workers_have_marks_if_their_order_is_known(name):
    """It is computed beside the workers, also after a resume, and of what a
    rank gets."""
    expected = check_own(MarkExamples(STREAMS[name]()))
    for run in MultiThreading, MultiProcessing:
        with MarkExamples(run(STREAMS[name]())) as marked:
            if epoch_order(STREAMS[name]()).own_kind == 'none':
                with pytest.raises(UnknownOrderError, match='elsewhere'):
                    check_own(marked)
                continue
            assert expected == check_own(marked)
            check_own(marked)
            iterator = marked.get_epoch_iterator()
            next(iterator), next(iterator)
            state = marked.state_dict()
        with MarkExamples(run(STREAMS[name]())) as resumed:
            resumed.load_state_dict(state)
            check_own(resumed)


class OnDevice(DeviceStage):
    """Copies in advance, to the same memory."""

    keeps_rows = True

    def __init__(self, data_stream):
        super().__init__(data_stream, copies=True)

    def transform_any(self, data):
        """Return the data."""
        return data

    def make_copier(self):
        """Return a copier that has nothing to wait for."""
        return SimpleNamespace(start=lambda data: data,
                               finish=lambda data: data)


@pytest.mark.parametrize('name', ['batches', 'Cache of Batch', 'Mix of lines'])
def test_items_copied_in_advance_have_their_own_marks(name):
    """Not those of the item that was read after them."""
    expected = check_own(MarkExamples(STREAMS[name]()))
    assert expected == check_own(MarkExamples(OnDevice(STREAMS[name]())))


@pytest.mark.parametrize('name', ['batches', 'Cache', 'Mix', 'Take'])
def test_shared_items_of_workers_have_marks(name):
    """Each rank has its own."""
    for by, uneven in (('batch', 'pad'), ('example', 'pad'),
                       ('batch', 'drop')):
        for rank in range(2):
            try:
                share = STREAMS[name]().shard(rank, 2, by, uneven)
            except ValueError:
                continue
            with MarkExamples(MultiThreading(share)) as marked:
                assert check_own(marked)
                check_own(marked)


@pytest.mark.parametrize('name', [
    'Cache of Batch', 'Unpack of Cache', 'Mix for ever', 'Batch of Filter',
    'Batch of Mix', 'ShuffleBuffer of lines', 'BucketBatch of Mix',
    'Pack batches', 'Pack split', 'Window'])
def test_marks_go_on_from_each_state_in_another_process(
        name, another_process):
    """All promises of streams are kept, with marks as a source."""
    check_stream(partial(_marked, name), draws=name == 'Mix for ever',
                 another_process=another_process)


def _marked(name):
    if name.startswith('Pack'):
        return MarkExamples(PACKED[name.partition(' ')[2]]())
    return MarkExamples(CUT[name](sequences()) if name in CUT
                        else STREAMS[name]())


def test_merged_streams_are_chosen_by_a_source():
    """The first counts, or the one that has the source `of`."""
    def build():
        return Merge((batches(), Merge(
            (batches(1), batches(2, scheme=SequentialScheme)), ('p', 'q'))),
            ('a', 'b', 'c'))

    for of, place in ((None, 0), ('a', 0), ('b', 1), ('c', 2)):
        for stream in build(), Batch(Unpack(build()), batch_size=3):
            for *parts, marks in MarkExamples(stream, of=of):
                assert parts[place].tolist() == marks.tolist()
    for of, place in (('a', 0), ('b', 1)):
        merged = Merge((batches(), batches(1)), ('a', 'b'))
        for rank in range(3):
            for *parts, marks in MarkExamples(merged, of=of).shard(
                    rank, 3, uneven='pad'):
                assert parts[place].tolist() == marks.tolist()
    renamed = Unpack(Rename(build(), {'a': 'c', 'c': 'a'}))
    for *parts, marks in MarkExamples(renamed, of='a'):
        assert parts[2].tolist() == marks.tolist()


def test_skipped_rows_have_no_marks():
    """If a row cannot be made, the marks of the others are left."""
    def fail(data):
        if (data[0][..., 1] % 5 == 2).any():
            raise ValueError
        return data

    class Failing(Transformer):
        keeps_rows = True

        def __init__(self, data_stream):
            super().__init__(data_stream, data_stream.produces_examples)

        transform_batch = transform_example = staticmethod(fail)

    for size in (4, None):
        for shard in (None, (1, 2)):
            build = partial(
                DataStream, numbers(), batch_size=size, shuffle=True, seed=1,
                on_error='skip', shard=shard)
            above = MarkExamples(Failing(build()))
            assert check_own(above) == check_own(
                Failing(MarkExamples(build())))
            assert above.skipped_examples().count
            check_own(MarkExamples(Batch(Failing(build()), batch_size=3))
                      if size is None else MarkExamples(Cache(
                          Failing(build()), ConstantScheme(3))))


def test_rows_must_be_integers():
    """The error names the data set."""
    class Named(Dataset):
        provides_sources = ('x',)
        example_iteration_scheme = None

        def get_data(self, state=None, request=None):
            return (numpy.zeros(len(request)),)

    class Keys(IterationScheme):
        requests_examples = False

        def get_request_iterator(self):
            return iter([['one', 'two']])

    stream = MarkExamples(DataStream(Named(), iteration_scheme=Keys()))
    with pytest.raises(UnknownOrderError, match=r'data set Named is asked'):
        next(stream.get_epoch_iterator())


def test_other_numbers_of_rows_are_refused():
    """A data set may return other rows than it is asked for."""
    class Doubled(Dataset):
        provides_sources = ('x',)

        def get_data(self, state=None, request=None):
            return (numpy.repeat(request, 2),)

    stream = MarkExamples(DataStream(
        Doubled(), iteration_scheme=SequentialScheme(4, 2)))
    with pytest.raises(UnknownOrderError, match='4 rows, but 2 examples'):
        next(stream.get_epoch_iterator())


def test_items_of_a_users_subclass_are_not_those_of_its_base():
    """It may have left out or moved rows since."""
    class Reversed(Batch):
        def get_data(self, request=None):
            return tuple([part[::-1] for part in super().get_data(request)])

    class Halved(Cache):
        def get_data(self, request=None):
            return tuple([part[::2] for part in super().get_data(request)])

    for stream in (Reversed(examples(), batch_size=4),
                   Halved(batches(), ConstantScheme(6))):
        with pytest.raises(UnknownOrderError, match=type(stream).__name__):
            next(MarkExamples(stream).get_epoch_iterator())


def test_names_are_checked():
    """The new source has a name of its own, `of` is a source."""
    with pytest.raises(ValueError, match='source must be a new name'):
        MarkExamples(batches(), 'x')
    with pytest.raises(ValueError, match='of must be one of the sources'):
        MarkExamples(batches(), of='y')


def test_stages_remember_nothing_unless_they_are_asked():
    """Neither their epochs nor what they keep has any example."""
    def kept(stream):
        iterator = stream.get_epoch_iterator()
        for _ in range(2):
            next(iterator)
        found = []
        while hasattr(iterator, 'epoch'):
            epoch = iterator.epoch
            found += [epoch.is_asked, *[
                each.examples for each in (
                    *epoch.attributes.get('_kept', ()),
                    *[held for name, held in epoch.attributes.items()
                      if name == '_held'])]]
            iterator = epoch.attributes.get('child_epoch_iterator')
        return found

    def build():
        return Cache(Batch(ShuffleBuffer(Unpack(batches()), 6),
                           batch_size=5), ConstantScheme(2))

    assert not any(kept(build()))
    # All that have something to remember do.
    assert all(kept(MarkExamples(build()))[1:])


@pytest.mark.parametrize('saver', [1, 2, 4])
@pytest.mark.parametrize('count', [0, 2, 3])
def test_other_numbers_of_ranks_mark_what_threads_make(saver, count):
    """A state may lie within a round of the ranks that take it up."""
    def make(rank, ranks):
        return MarkExamples(MultiThreading(DataStream(IndexableDataset(
            numpy.arange(29)), batch_size=2))).shard(rank, ranks)

    with make(0, saver) as stream:
        list(itertools.islice(stream, count))
        state = stream.state_dict()
    for rank in range(3):
        with make(rank, 3) as stream:
            stream.load_state_dict(state)
            for _ in range(2):
                for rows, marks in stream:
                    assert rows.tolist() == marks[:, 1].tolist()
