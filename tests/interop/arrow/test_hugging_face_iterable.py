"""Hugging Face streams are read in their order and resumed exactly."""
import itertools
import json
import pickle
import subprocess
import sys

import numpy
import pyarrow
import pytest

from fuel.datasets import IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.interop.arrow import ArrowDataset, HuggingFaceIterable
from fuel.interop.arrow import hugging_face as hugging_face_module
from fuel.streams import DataStream
from fuel.transformers import Batch
from fuel.transformers.image import ImagesFromBytes

# It warns of buffers, and pickles what it makes.
pytestmark = pytest.mark.filterwarnings('ignore')


def examples_of(shards):
    """Yield seven examples of each shard."""
    for shard in shards:
        for number in range(7):
            yield {'x': shard * 10 + number, 'name': f'{shard}/{number}'}


@pytest.fixture
def rows(hugging_face):
    """Return a stream of a table, in four shards."""
    return lambda: hugging_face.Dataset.from_dict(
        {'x': list(range(19)), 'name': [f'{row}' for row in range(19)]}
    ).to_iterable_dataset(num_shards=4)


@pytest.fixture
def generated(hugging_face):
    """Return a stream of a generator, whose columns are not known."""
    return lambda: hugging_face.IterableDataset.from_generator(
        examples_of, gen_kwargs={'shards': [0, 1, 2]})


@pytest.fixture
def others(hugging_face):
    """Return a second stream of a table, in two shards."""
    return lambda: hugging_face.Dataset.from_dict(
        {'x': list(range(100, 108)), 'name': ['other'] * 8}
    ).to_iterable_dataset(num_shards=2)


def stream_of(made):
    """Return a stream of examples."""
    return DataStream(HuggingFaceIterable(made))


def resume(open_stream, state):
    """Return the rest of an epoch, of a stream made anew."""
    stream = open_stream()
    stream.load_state_dict(json.loads(state))
    return plain(stream.get_epoch_iterator())


def plain(examples):
    """Return examples as lists of plain values."""
    return [[numpy.asarray(part).tolist() for part in example]
            for example in examples]


PIPELINES = {
    'plain': lambda made, *_: made,
    'map': lambda made, *_: made.map(lambda row: {'double': row['x'] * 2}),
    'map of batches': lambda made, *_: made.map(
        lambda batch: {'x': [x for x in batch['x'] for _ in range(2)]},
        batched=True, batch_size=5, remove_columns=['name']),
    'filter': lambda made, *_: made.filter(lambda row: row['x'] % 3),
    'filter of a map': lambda made, *_: made.map(
        lambda row: {'y': 1}).filter(lambda row: row['x'] % 2),
    'skip and take': lambda made, *_: made.skip(2).take(9),
    'repeat': lambda made, *_: made.repeat(2),
    'columns': lambda made, *_: made.rename_column(
        'x', 'y').remove_columns(['name']),
    'shards shuffled': lambda made, *_: made.shuffle(seed=3, buffer_size=1),
    'one after the other': lambda made, others, library: (
        library.concatenate_datasets([made, others])),
    'in turns': lambda made, others, library: (
        library.interleave_datasets([made, others])),
    'at random': lambda made, others, library: library.interleave_datasets(
        [made, others], probabilities=[.3, .7], seed=3,
        stopping_strategy='all_exhausted'),
    'rank': lambda made, _, library: library.distributed.split_dataset_by_node(
        made, 1, 2),
    'rank of shards': lambda made, _, library: (
        library.distributed.split_dataset_by_node(
            made.shuffle(seed=3, buffer_size=1), 1, 2, strategy='shards'))}


@pytest.mark.parametrize('kind', ['rows', 'generated'])
@pytest.mark.parametrize('name', PIPELINES)
def test_epochs_are_theirs_and_go_on_from_their_states(
        request, monkeypatch, hugging_face, others, kind, name):
    """Epochs are resumed in the first one and in a later, shuffled one."""
    monkeypatch.setattr(hugging_face_module, 'BLOCK', 3)
    make = request.getfixturevalue(kind)

    def build():
        return PIPELINES[name](make(), others(), hugging_face)

    def open_stream():
        return stream_of(build())

    stream = open_stream()
    for number in range(2):
        wanted = build()
        wanted.set_epoch(number)
        wanted = plain(row.values() for row in wanted)
        epoch, got, states = stream.get_epoch_iterator(), [], []
        for example in epoch:
            got.append(example)
            states.append(json.dumps(stream.state_dict()))
        assert wanted == plain(got)
        for place, state in list(enumerate(states))[::3]:
            theirs = json.loads(state)['dataset']['theirs']
            # The state of the block; the first block needs none.
            assert theirs is not None or place < 3
            assert wanted[place + 1:] == resume(open_stream, state)


@pytest.mark.parametrize('name', ['buffer', 'tables', 'old release'])
def test_what_their_state_does_not_hold_is_read_again(
        monkeypatch, generated, name):
    """A buffer's contents are lost in theirs, and so are batches of tables."""
    def open_stream():
        made = generated()
        return stream_of(
            made if name == 'old release' else
            made.shuffle(seed=3, buffer_size=6) if name == 'buffer' else
            made.with_format('arrow').map(
                lambda table: table.append_column(
                    'y', pyarrow.array([1] * len(table))),
                batched=True, batch_size=5))

    if name == 'old release':
        monkeypatch.setattr('importlib.metadata.version', lambda _: '4.8.1')
    stream = open_stream()
    orders = []
    for _ in range(2):
        got, states = [], []
        for example in stream.get_epoch_iterator():
            got.append(example)
            states.append(json.dumps(stream.state_dict()))
        orders.append(plain(got))
        for place, state in list(enumerate(states))[::3]:
            assert json.loads(state)['dataset']['theirs'] is None
            assert orders[-1][place + 1:] == resume(open_stream, state)
    assert sorted(orders[0]) == sorted(orders[1])
    # Two of three shards may be where they were.
    assert name != 'buffer' or orders[0] != orders[1]


def test_state_of_changed_data_is_refused(hugging_face):
    """A state is refused if there are fewer examples than were read."""
    def open_stream():
        return stream_of(hugging_face.IterableDataset.from_generator(
            lambda shards: iter(contents), gen_kwargs={'shards': [0]}
        ).shuffle(seed=3, buffer_size=6))

    contents = list(examples_of([0, 1]))
    stream = open_stream()
    list(itertools.islice(stream.get_epoch_iterator(), 12))
    state = stream.state_dict()
    del contents[11:]
    stream = open_stream()
    stream.load_state_dict(state)
    with pytest.raises(StateMismatchError, match='12 examples.*has 11 now'):
        next(stream.get_epoch_iterator())


PROGRAM = """
import json, sys
import datasets
from fuel.interop.arrow import HuggingFaceIterable
from fuel.streams import DataStream
from fuel.transformers import Batch
from fuel.transformers.shuffling import ShuffleBuffer
made = datasets.load_dataset(
    'parquet', data_files=sys.argv[1:3], split='train', streaming=True)
made = made.map(lambda row: {'y': row['x'] + 1})
stream = Batch(ShuffleBuffer(DataStream(HuggingFaceIterable(
    made.shuffle(seed=3, buffer_size=1))), 5, seed=1), batch_size=3)
if len(sys.argv) > 3:
    stream.load_state_dict(json.loads(sys.argv[3]))
epochs = stream.iterate_epochs()
for _ in range(2):
    for batch, _ in next(epochs):
        print(json.dumps([batch.tolist(), stream.state_dict()]))
"""


def test_run_goes_on_in_a_new_process(hugging_face, tmp_path):
    """Fuel shuffles streamed files and makes batches, for two epochs."""
    paths = []
    for part in range(2):
        paths.append(str(tmp_path / f'{part}.parquet'))
        hugging_face.Dataset.from_dict(
            {'x': list(range(part * 10, part * 10 + 10))}
        ).to_parquet(paths[-1])

    def run(*state):
        done = subprocess.run(
            [sys.executable, '-c', PROGRAM, *paths, *state], check=True,
            capture_output=True, text=True, cwd=tmp_path)
        return [json.loads(line) for line in done.stdout.splitlines()]

    batches = run()
    assert sorted(batches[0][0] + sum(
        (x for x, _ in batches[1:7]), [])) == list(range(20))
    for place in (2, 8):
        rest = run(json.dumps(batches[place][1]))
        # Of a running epoch the rest, and then as many epochs.
        count = len(batches) - place - 1
        assert [x for x, _ in batches[place + 1:]] == [
            x for x, _ in rest[:count]]


def test_order_without_a_seed_is_not_taken_up(rows):
    """A state without a seed is refused, with the remedy."""
    stream = stream_of(rows().shuffle(buffer_size=1))
    next(stream.get_epoch_iterator())
    with pytest.raises(StateMismatchError, match=r'shuffle\(seed=3\)'):
        stream_of(rows().shuffle(buffer_size=1)).load_state_dict(
            stream.state_dict())


def test_ranks_of_theirs_are_apart(hugging_face, rows):
    """Together they read all; none restores another's state."""
    split = hugging_face.distributed.split_dataset_by_node
    streams = [stream_of(split(rows(), rank, 2)) for rank in range(2)]
    epochs = [stream.get_epoch_iterator() for stream in streams]
    first = [plain([next(epoch)]) for epoch in epochs]
    with pytest.raises(StateMismatchError, match='the same rank'):
        streams[0].load_state_dict(streams[1].state_dict())
    found = sum(first, []) + sum(map(plain, epochs), [])
    assert list(range(19)) == sorted(x for x, _ in found)


def test_ranks_of_fuel_share_the_order(rows):
    """A stream of another number of ranks takes their state up."""
    ranks = [stream_of(rows()).shard(rank, 2) for rank in range(2)]
    epochs = [rank.get_epoch_iterator() for rank in ranks]
    assert [0, 2, 1, 3] == [
        int(x) for epoch in epochs for x, _ in itertools.islice(epoch, 2)]
    state = json.dumps(ranks[0].state_dict())
    assert [[x, str(x)] for x in range(4, 19)] == resume(
        lambda: stream_of(rows()), state)
    assert list(range(4, 19)) == sorted(
        int(x) for epoch in epochs for x, _ in epoch)


@pytest.mark.parametrize('change', [
    {'order': 3}, {'read': -1}, {'read': 'x'}, {'epoch': None},
    {'epoch': 1}, {'theirs': 3}, {'theirs': {}}, {'theirs': []},
    {'theirs': {'epoch': 0, 'examples_iterable': {'__reduce__': 'os'}}}])
def test_damaged_states_are_refused(rows, change):
    """They are refused before any field is used."""
    stream = stream_of(rows())
    list(itertools.islice(stream.get_epoch_iterator(), 18))
    state = stream.state_dict()
    del state['crc']
    state['dataset'] = {**state['dataset'], **change}
    with pytest.raises(StateMismatchError):
        stream_of(rows()).load_state_dict(state)


@pytest.mark.parametrize('value', [-1, 2.5, 'x', None, [1], b'x', True])
def test_damaged_numbers_of_theirs_are_refused(rows, value):
    """They are refused at every depth."""
    stream = stream_of(rows().filter(lambda row: row['x']))
    list(itertools.islice(stream.get_epoch_iterator(), 18))
    state = stream.state_dict()
    del state['crc']
    below = state['dataset']['theirs']['examples_iterable']
    while 'examples_iterable' in below:
        below = below['examples_iterable']
    assert 0 <= below['shard_idx']
    below['shard_idx'] = value
    with pytest.raises(StateMismatchError):
        stream_of(rows().filter(lambda row: row['x'])).load_state_dict(state)


def test_two_streams_and_a_loop_read_one_data_set(rows):
    """None disturbs another, though Hugging Face keeps one position for
    all."""
    made = rows()
    dataset = HuggingFaceIterable(made)
    streams = [DataStream(dataset) for _ in range(2)]
    epochs = [stream.get_epoch_iterator() for stream in streams]
    first = plain(itertools.islice(epochs[0], 5))
    loop = iter(made)
    next(loop)
    next(epochs[1])
    state = json.dumps(streams[0].state_dict())
    rest = plain(epochs[0])
    assert list(range(19)) == [x for x, _ in first + rest]
    assert list(range(1, 19)) == [row['x'] for row in loop]
    assert list(range(1, 19)) == [int(x) for x, _ in epochs[1]]
    assert rest == resume(lambda: DataStream(dataset), state)


def test_epoch_that_begins_beside_another_is_the_next(rows):
    """The other epoch may have been left, and may still be held."""
    stream = stream_of(rows().shuffle(seed=3, buffer_size=1))
    held = [stream.get_epoch_iterator() for _ in range(3)]
    found = [plain(epoch) for epoch in reversed(held)][::-1]
    for number, order in enumerate(found):
        made = rows().shuffle(seed=3, buffer_size=1)
        made.set_epoch(number)
        assert plain(row.values() for row in made) == order
    stream = stream_of(rows().shuffle(seed=3, buffer_size=1))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    epoch = stream.get_epoch_iterator()
    assert found[1] == plain(epoch)


def test_pickled_epoch_goes_on(rows):
    """The pickle leaves out Hugging Face's iterator, which cannot be
    pickled."""
    epoch = stream_of(rows()).get_epoch_iterator()
    list(itertools.islice(epoch, 7))
    copied = pickle.loads(pickle.dumps(epoch))
    assert plain(epoch) == plain(copied)


def test_images_and_classes_are_as_in_a_table(pictures):
    """Images are bytes or a path, which a stage decodes."""
    dataset = HuggingFaceIterable(pictures.to_iterable_dataset())
    assert {'label': ('cat', 'dog')} == dataset.categories
    stream = ImagesFromBytes(Batch(DataStream(dataset), batch_size=4),
                             which_sources=('image',))
    (images, labels), = stream.get_epoch_iterator()
    assert [0, 1, 2, 3] == [int(image.mean()) for image in images]
    assert (3, 4, 5) == images[3].shape
    assert [0, 1, 1, 0] == labels.tolist()


def test_values_are_those_of_a_table(hugging_face):
    """Types and masks are those of a table too."""
    table = hugging_face.Dataset.from_dict({
        'age': [20, None], 'words': [[1, 2], [3]],
        'square': [[[1, 2], [3, 4]]] * 2, 'text': ['a', None]},
        hugging_face.Features({
            'age': hugging_face.Value('int8'),
            'words': hugging_face.List(hugging_face.Value('float32')),
            'square': hugging_face.Array2D((2, 2), 'int16'),
            'text': hugging_face.Value('string')}))
    dataset = HuggingFaceIterable(table.to_iterable_dataset(), masks='age')
    wanted = ArrowDataset(table, masks='age')
    assert wanted.sources == dataset.sources
    for one, other in zip(wanted, dataset, strict=True):
        for part, like in zip(one, other, strict=True):
            assert type(part) is type(like)
            assert getattr(part, 'dtype', None) == getattr(
                like, 'dtype', None)
            numpy.testing.assert_array_equal(part, like)
    stream = stream_of(table.to_iterable_dataset())
    epoch = stream.get_epoch_iterator()
    next(epoch)
    with pytest.raises(ValueError, match="'age'.*masks="):
        next(epoch)


@pytest.mark.parametrize('are_known', [True, False])
@pytest.mark.parametrize('batched', [True, False])
def test_failure_loses_no_example(rows, are_known, batched):
    """Earlier examples are delivered, and the next read tries again."""
    def fail(row):
        if 3 in numpy.atleast_1d(row['x']) and not network:
            raise OSError('no route')
        return row

    network = []
    made = rows()
    epoch = stream_of(made.map(
        fail, batched=batched, batch_size=3,
        features=made.features if are_known else None)).get_epoch_iterator()
    assert [0, 1, 2] == [int(next(epoch)[0]) for _ in range(3)]
    for _ in range(2):
        with pytest.raises(OSError, match='no route'):
            next(epoch)
    network.append(1)
    assert list(range(3, 19)) == [int(x) for x, _ in epoch]


def test_columns_of_an_empty_stream_are_not_known(hugging_face):
    """They are an error, unless the features of the stream name them."""
    empty = hugging_face.IterableDataset.from_generator(
        examples_of, gen_kwargs={'shards': []})
    with pytest.raises(ValueError, match='no examples'):
        HuggingFaceIterable(empty)


def test_example_that_lacks_a_column_is_an_error(hugging_face):
    """The error names the columns that it has."""
    def uneven(shards):
        yield {'x': 1, 'y': 2}
        yield {'x': 1}

    made = hugging_face.IterableDataset.from_generator(
        uneven, gen_kwargs={'shards': [1]})
    epoch = stream_of(made).get_epoch_iterator()
    next(epoch)
    with pytest.raises(ValueError, match=r"lacks the column 'y'.*\['x'\]"):
        next(epoch)


def test_errors_name_the_class_to_use(hugging_face, rows):
    """Each class that is given the wrong data names the right one."""
    made = rows()
    for wrong in DataStream, ArrowDataset, IterableDataset:
        with pytest.raises(TypeError, match='into a HuggingFaceIterable'):
            wrong(made)
    with pytest.raises(TypeError, match='into an ArrowDataset'):
        HuggingFaceIterable(hugging_face.Dataset.from_dict({'x': [1]}))
    with pytest.raises(TypeError, match=r"one of them.*data\['train'\]"):
        HuggingFaceIterable(hugging_face.IterableDatasetDict(train=made))
    with pytest.raises(ValueError, match='reads examples in order'):
        HuggingFaceIterable(made).get_data(None, [1])
