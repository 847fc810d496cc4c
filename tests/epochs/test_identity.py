"""Ids of orders and of data, in states and in descriptions."""
import itertools
import json
import pickle
import random
from pathlib import Path

import h5py
import numpy
import pytest
from support import processes
from support.random_orders import Build, Tangled, build

from fuel.datasets import (
    CSVDataset, H5PYDataset, IndexableDataset, IterableDataset, Windows)
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    ComputedShuffledScheme, ConcatenatedScheme, SequentialScheme,
    ShuffledExampleScheme, ShuffledScheme, WeightedScheme)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Filter, Mapping, Mix, MultiProcessing)
from fuel.transformers.shuffling import ShuffleBuffer

COUNT = 60
IDS = 'order_id', 'data_id'
pytestmark = pytest.mark.filterwarnings('ignore:the state was saved with')


def stream_of(scheme=None, **sources):
    """Return a stream of some data."""
    return DataStream(
        IndexableDataset(sources or {'x': numpy.arange(COUNT)}),
        iteration_scheme=scheme or ShuffledScheme(COUNT, 7, seed=3))


def ids_of(stream):
    """Return the ids in a state of a stream."""
    return tuple(stream.state_dict()[name] for name in IDS)


def order_of(scheme):
    """Return the id of the order of a scheme."""
    return ids_of(stream_of(scheme))[0]


def resumed(stream, state, **kwargs):
    """Return a stream that has loaded a state, as JSON gives it."""
    stream.load_state_dict(json.loads(json.dumps(state)), **kwargs)
    return stream


def test_ids_take_forty_bytes_and_are_described():
    """`describe` has the same ids as a state, in any place of an epoch."""
    stream = stream_of()
    for _ in range(2):
        for _ in stream:
            graph, ids = stream.describe(), ids_of(stream)
            assert 40 == len(''.join(ids))
            assert (graph.order_id, graph.data_id) == ids
            assert f'order {ids[0]}, data {ids[1]}</title>' in graph.svg()


def test_id_of_order_belongs_to_an_epoch():
    """It is the same from before the epoch to its end, and then another."""
    stream, found = stream_of(), []
    for _ in range(3):
        found.append(ids_of(stream)[0])
        for _ in stream:
            assert found[-1] == ids_of(stream)[0]
    assert 3 == len({*found})
    assert 1 == len({ids_of(stream_of(SequentialScheme(COUNT, 7)))[0]
                     for _ in range(2)})


class Renewed(ShuffledScheme):
    """A scheme whose algorithm was changed."""

    order_version = 2


def test_id_of_order_tells_schemes_apart():
    """Seeds, sizes, weights and classes of schemes count, also of parts."""
    weights = numpy.arange(1., COUNT + 1)
    schemes = [
        ShuffledScheme(COUNT, 7, seed=3), ShuffledScheme(COUNT, 7, seed=4),
        ShuffledScheme(COUNT, 8, seed=3), ShuffledScheme(COUNT - 1, 7, seed=3),
        SequentialScheme(COUNT, 7), ComputedShuffledScheme(COUNT, 7, seed=3),
        ComputedShuffledScheme(COUNT, 7, seed=4),
        WeightedScheme(weights, 7, seed=3),
        WeightedScheme(weights[::-1].copy(), 7, seed=3),
        Renewed(COUNT, 7, seed=3),
        *[ConcatenatedScheme([SequentialScheme(COUNT, 7), ShuffledScheme(
            count, size, seed=seed)]) for count, size, seed in [
                (COUNT, 5, 3), (COUNT, 6, 3), (COUNT, 5, 4), (9, 5, 3)]]]
    assert len(schemes) == len({*map(order_of, schemes)})
    assert order_of(schemes[0]) == order_of(ShuffledScheme(
        COUNT, 7, rng=numpy.random.RandomState(3)))


def test_id_of_order_tells_stages_apart_that_change_the_order():
    """Other stages do not count."""
    def mixed(*weights, seed=3):
        return Mix([stream_of(), stream_of()], weights, seed=seed)

    def examples(size, seed, batch):
        return Batch(ShuffleBuffer(stream_of(ShuffledExampleScheme(
            COUNT, seed=3)), size, seed=seed), batch_size=batch)

    streams = [mixed(1, 2), mixed(2, 1), mixed(1, 2, seed=4),
               examples(9, 3, 4), examples(8, 3, 4), examples(9, 4, 4),
               examples(9, 3, 5)]
    assert len(streams) == len({ids_of(one)[0] for one in streams})
    for one in (mixed(1, 2), examples(9, 3, 4)):
        ids = ids_of(one)
        assert ids == ids_of(Mapping(one, as_it_is))
        next(iter(one))
        assert ids == ids_of(one)


def as_it_is(data):
    """Return data as they are."""
    return data


def is_even(data):
    """Return whether a number is even."""
    return not data[0] % 2


def test_workers_do_not_change_ids():
    """The order of an epoch that others make has the same id."""
    ids = ids_of(stream_of())
    stream = MultiProcessing(stream_of(), num_workers=1)
    try:
        assert ids == ids_of(stream)
        next(iter(stream))
        assert ids == ids_of(stream)
    finally:
        stream.close()




def random_ids(numbers=range(20)):
    """Return the ids of random pipelines: before an epoch, after some items,
    and after a resume there."""
    found = []
    for number in numbers:
        for builder in (Build, Tangled):
            stream = build(number, builder)
            count = random.Random(number).randrange(4)
            try:
                before = ids_of(stream)
                epoch = stream.get_epoch_iterator()
                list(itertools.islice(epoch, count))
                state = json.loads(json.dumps(stream.state_dict()))
            except (TypeError, ValueError):
                # Its items do not fit together, or it has no position.
                continue
            other = build(number, builder)
            other.load_state_dict(state)
            loaded = ids_of(other)
            next(other.get_epoch_iterator(), None)
            after = other.state_dict()
            found.append([
                before, [state[name] for name in IDS], loaded,
                [after[name] for name in IDS],
                [state['epoch'], after['epoch']], builder.__name__])
    return found


@pytest.mark.filterwarnings('ignore:the streams merged', 'ignore:an epoch')
def test_random_pipelines_keep_their_ids():
    """The ids are those of the epoch: in another process, at each position,
    after a resume, for each rank."""
    found = json.loads(json.dumps(random_ids()))
    assert len(found) > 25
    running = 0
    for before, saved, loaded, after, epochs, builder in found:
        assert before[1] == saved[1] == loaded[1] == after[1]
        assert saved[0] == loaded[0]
        if ['running', 'running'] == epochs:
            assert saved[0] == after[0]
            # Streams that share a generator draw from each other.
            assert 'Tangled' == builder or before[0] == saved[0]
            running += 1
    assert running > 15
    status, output, errors = processes.run_python(
        '-W', 'ignore', '-c', 'import json, sys; sys.path[:0] = sys.argv[1:]\n'
        'from epochs.test_identity import random_ids\n'
        'print(json.dumps(random_ids()))',
        str(Path(__file__).resolve().parents[1]))
    assert 0 == status, errors.decode()
    assert found == json.loads(output)


@pytest.mark.filterwarnings('ignore:an epoch')
def test_ranks_have_the_same_ids():
    """For any number of ranks, also after a state was loaded."""
    def make():
        examples = stream_of(ShuffledExampleScheme(COUNT, seed=3))
        batches = stream_of(SequentialScheme(COUNT, 7))
        return [stream_of(), Filter(examples, is_even),
                Mix([stream_of(), batches], [2, 1], seed=3)]
    for number in range(3):
        ids = ids_of(make()[number])
        for count in (2, 3):
            for rank in range(count):
                stream = make()[number].shard(rank, count)
                assert ids == ids_of(stream)
                next(iter(stream))
                assert ids == ids_of(stream)
                other = make()[number]
                if number == 1:
                    # Its state belongs to a rank.
                    other = other.shard(rank, count)
                next(iter(resumed(other, stream.state_dict())))
                assert ids == ids_of(other)


def test_pickled_streams_keep_their_ids():
    """An iterator too, in its epoch."""
    stream = stream_of()
    ids = ids_of(stream)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    stream, epoch = pickle.loads(pickle.dumps((stream, epoch)))
    assert ids == ids_of(stream)


def test_one_error_names_all_differences_and_one_warning_what_follows():
    """The error names what is accepted already, too."""
    def build(count):
        return DataStream(IndexableDataset({'x': numpy.arange(count)}),
                          batch_size=7, shuffle=True, seed=1)

    saver = build(COUNT)
    next(iter(saver))
    state, grown = saver.state_dict(), build(COUNT + 5)
    for accept in (), ('data',), ('order',):
        with pytest.raises(StateMismatchError) as error:
            grown.load_state_dict(state, accept=accept)
        assert f'accept={("data", "order")} to load_state_dict' in str(
            error.value)
        for kind, text in (('data', 'data set num_examples was 60, but'),
                           ('order', 'scheme ')):
            assert (text in str(error.value)) == (kind not in accept)
    with pytest.warns(UserWarning, match='twice or not at all') as warned:
        grown.load_state_dict(state, accept=('data', 'order'))
    assert [__file__] == [one.filename for one in warned]
    assert len(list(grown)) == 9
    with pytest.raises(StateMismatchError, match=r'num_examples .*types or '
                       r"shapes .*accept=\('data',\)"):
        resumed(stream_of(x=numpy.zeros(COUNT + 1)), stream_of().state_dict())


# --- the data ----------------------------------------------------------------

def test_id_of_data_tells_data_apart():
    """Names, types, shapes and sizes count, and not the values."""
    arrays = [numpy.zeros(COUNT), numpy.zeros(COUNT, 'f4'),
              numpy.zeros((COUNT, 2)), numpy.zeros(COUNT + 1)]
    found = [ids_of(stream_of(x=array))[1] for array in arrays]
    found.append(ids_of(stream_of(y=arrays[0]))[1])
    assert len(found) == len({*found})
    assert found[0] == ids_of(stream_of(x=numpy.ones(COUNT)))[1]
    assert found[0] == ids_of(stream_of(x=numpy.zeros(COUNT, '>f8')))[1]


def test_other_types_are_refused_unless_accepted():
    """The error names the data set; later states have a record."""
    state = stream_of().state_dict()
    one = Mix([stream_of(), stream_of()], [1, 1])
    both = one.state_dict()
    with pytest.raises(StateMismatchError, match=(
            r"types or shapes of data set 0 \(IndexableDataset\).*"
            r"accept=\('data',\)")):
        resumed(stream_of(x=numpy.zeros(COUNT)), state)
    with pytest.raises(StateMismatchError, match='of data set 1 [^1]*$'):
        resumed(Mix([stream_of(), stream_of(x=numpy.zeros(COUNT))], [1, 1]),
                both)
    stream = resumed(stream_of(x=numpy.zeros(COUNT)), state, accept=('data',))
    expected = [['data', 0, state['data_id']]]
    for _ in range(2):
        assert expected == stream.state_dict()['accepted']
        next(iter(stream))
        assert expected == stream.state_dict()['accepted']
        copied = pickle.loads(pickle.dumps(stream))
        assert expected == copied.state_dict()['accepted']
        stream = resumed(
            stream_of(x=numpy.zeros(COUNT)), stream.state_dict())
    list(stream)
    state = stream.state_dict()
    stream = resumed(stream_of(), state, accept=['data'])
    assert [*expected, ['data', state['past'].count('all'), state['data_id']]
            ] == stream.state_dict()['accepted']


def test_other_sizes_and_schemes_are_refused_unless_accepted():
    """A fitting state leaves no record."""
    state = stream_of().state_dict()
    grown = {'x': numpy.arange(COUNT + 5)}
    with pytest.raises(StateMismatchError, match=(
            r"data set num_examples was 60.*accept=\('data',\)")):
        resumed(stream_of(**grown), state)
    assert 'accepted' in resumed(
        stream_of(**grown), state, accept=('data',)).state_dict()
    assert 'accepted' not in resumed(
        stream_of(), state, accept=('data', 'order')).state_dict()
    larger = ShuffledScheme(COUNT + 5, 7, seed=3)
    for accept, missing in (((), 'order|data'), (('data',), 'order'),
                            (('order',), 'data')):
        with pytest.raises(StateMismatchError,
                           match=rf"accept=\('({missing})',\)"):
            resumed(stream_of(larger, **grown), state, accept=accept)
    stream = stream_of()
    next(iter(stream))
    saved = stream.state_dict()
    stream = resumed(
        stream_of(larger, **grown), saved, accept=('data', 'order'))
    assert [['data', 0, saved['data_id']], ['order', 0, saved['order_id']]
            ] == stream.state_dict()['accepted']
    assert saved['order_id'] != stream.state_dict()['order_id']
    assert 9 == len(list(stream))


def test_schemes_of_another_class_can_be_accepted():
    """The stream goes on with the same number of the item, in the order of
    its own scheme, and keeps to that in the next epoch."""
    schemes = pickle.dumps([
        SequentialScheme(COUNT, 7), ShuffledScheme(COUNT, 7, seed=3),
        ShuffledScheme(COUNT, 7, rng=random.Random(1)),
        ComputedShuffledScheme(COUNT, 7, seed=3),
        ConcatenatedScheme([SequentialScheme(COUNT, 7)])])
    for one, other in itertools.permutations(range(5), 2):
        saver, expected, stream = [
            stream_of(pickle.loads(schemes)[number])
            for number in (one, other, other)]
        epoch = iter(saver)
        next(epoch), next(epoch)
        resumed(stream, saver.state_dict(), accept='order')
        for skipped in 2, 0:
            assert [item.tolist() for item, in expected][skipped:] == [
                item.tolist() for item, in stream]
        assert 'order' == stream.state_dict()['accepted'][0][0]


def test_stages_cannot_be_accepted():
    """Their left-overs would not fit."""
    state = Mapping(stream_of(), as_it_is).state_dict()
    with pytest.raises(StateMismatchError, match=r'was saved$'):
        resumed(Mapping(stream_of(), random_ids), state,
                accept=('data', 'order'))
    for accept in ('nothing', ('data', 'shapes'), None, 5):
        with pytest.raises(ValueError, match="'data', 'order' or both"):
            stream_of().load_state_dict(state, accept=accept)


def test_another_version_of_an_algorithm_is_refused(monkeypatch):
    """The error names both versions."""
    state = stream_of().state_dict()
    parts = stream_of(ConcatenatedScheme([ShuffledScheme(COUNT, 7)]))
    saved = parts.state_dict()
    monkeypatch.setattr(ShuffledScheme, 'order_version', 3, raising=False)
    with pytest.raises(StateMismatchError, match=(
            r"order_version was None, but here it is 3.*'order'")):
        resumed(stream_of(), state)
    with pytest.raises(StateMismatchError, match='scheme parts'):
        resumed(stream_of(ConcatenatedScheme([ShuffledScheme(COUNT, 7)])),
                saved)
    resumed(stream_of(), state, accept=('order',))


@pytest.mark.filterwarnings('ignore:the streams merged', 'ignore:an epoch')
def test_states_without_ids_are_taken_up():
    """As older versions have saved them."""
    for scheme in (None, ConcatenatedScheme([SequentialScheme(COUNT, 7)])):
        stream = stream_of(scheme)
        epoch = iter(stream)
        next(epoch)
        state = stream.state_dict()
        for name in (*IDS, 'crc'):
            del state[name]
        state['stream'].pop('scheme parts', None)
        other = stream_of(scheme)
        other.load_state_dict(state)
        assert ids_of(other) == ids_of(stream)


@pytest.mark.parametrize('value', [
    None, 1, '', 'x' * 19, 'x' * 21, 'x' * 19 + '\n', ['x'] * 20, 'é' * 20])
@pytest.mark.parametrize('name', IDS)
def test_damaged_ids_are_refused(name, value):
    """Of another type, length or alphabet."""
    state = stream_of().state_dict()
    del state['crc']
    with pytest.raises(StateMismatchError, match=f'field {name!r}'):
        stream_of().load_state_dict({**state, name: value})


@pytest.mark.parametrize('value', [
    None, [], {}, 'data', [['data', 0]], [['other', 0, None]],
    [['data', -1, None]], [['data', True, None]], [['data', 0, 'x']],
    [['data', 2 ** 63, None]], [['data', 0, None]] * 101, [[['data'], 0, None]]
    ])
def test_damaged_records_are_refused(value):
    """Of another form, or too long."""
    state = stream_of().state_dict()
    del state['crc']
    with pytest.raises(StateMismatchError, match="field 'accepted'"):
        stream_of().load_state_dict({**state, 'accepted': value})


def test_few_differences_are_kept():
    """The last hundred."""
    data = numpy.arange(COUNT), numpy.zeros(COUNT)
    stream = stream_of(x=data[0])
    for number in range(1, 103):
        stream = resumed(stream_of(x=data[number % 2]), stream.state_dict(),
                         accept='data')
    assert 100 == len(stream.state_dict()['accepted'])


def converted(path, checksum, values=None):
    """Write a file as a converter does; return its path."""
    with h5py.File(path, 'w') as h5file:
        h5file['x'] = numpy.arange(
            COUNT, dtype='f4') if values is None else values
        h5file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, COUNT)}})
        if checksum is not None:
            h5file.attrs['fuel_convert_inputs'] = checksum
    return str(path)


def inputs(name, checksum):
    """Return the attribute of a converted file."""
    return json.dumps({name: {'size': 3, 'sha256': checksum * 64}})


def of_file(path, cut=False, **kwargs):
    """Return a stream of a file."""
    dataset = H5PYDataset(path, which_sets=('train',), **kwargs)
    return DataStream(Windows(dataset, length=1, runs=None) if cut
                      else dataset,
                      iteration_scheme=ShuffledScheme(COUNT, 7, seed=3))


def test_changed_files_are_refused_where_checksums_are_kept(tmp_path):
    """A path, memory and caches do not count, nor does a missing checksum."""
    first = converted(tmp_path / 'one.hdf5', inputs('raw', 'a'))
    state = of_file(first).state_dict()
    elsewhere = converted(tmp_path / 'two.hdf5', inputs('other', 'a'))
    for same in (of_file(elsewhere), of_file(first, load_in_memory=True),
                 of_file(first, cache_bytes=0),
                 of_file(converted(tmp_path / 'none.hdf5', None))):
        resumed(same, state)
    changed = converted(tmp_path / 'three.hdf5', inputs('raw', 'b'))
    with pytest.raises(StateMismatchError, match=(
            r'the checksums of data set 0 \(H5PYDataset\).*accept=')):
        resumed(of_file(changed), state)
    resumed(of_file(changed), state, accept=('data',))
    for text in ('[', '3', '{"a": 3}', '{"a": {}}', '[' * 5000):
        strange = converted(tmp_path / 'strange.hdf5', text)
        with pytest.raises(StateMismatchError, match='checksums'):
            resumed(of_file(strange), state)


def test_data_sets_without_checksums_do_not_hide_others(tmp_path):
    """A file with a checksum is compared, if it had one when the state was
    saved."""
    files = {name: converted(tmp_path / f'{name}.hdf5',
                             inputs('raw', name) if name in 'ab' else None)
             for name in ('a', 'b', 'none', 'other')}

    def make(*names):
        return Mix([of_file(files[name]) for name in names])

    for saved, same, changed in (
            ('a none', ['a other', 'a b', 'none none'], ['b none', 'b a']),
            ('none b', ['other b', 'a b', 'none none'], ['none a', 'a a']),
            ('none none', ['a b', 'a none'], []),
            ('a b', ['a none', 'none none', 'none a'], ['a a']),
            ('a none none none none b', ['a b b b b b'],
             ['a none none none none a', 'b none none none none b']),
            ('a none none none none none none', ['b' + 6 * ' b'], [])):
        state = make(*saved.split()).state_dict()
        assert 20 == len(state['data_id'])
        for names in same:
            resumed(make(*names.split()), state)
        for names in changed:
            with pytest.raises(StateMismatchError, match='checksums'):
                resumed(make(*names.split()), state)


def test_data_without_sizes_or_types_have_ids(tmp_path):
    """No state is refused for what nobody knows."""
    path = tmp_path / 'rows.csv'
    path.write_text('x,y\n1,2\n3,4\n')

    def make(rows):
        return DataStream(IterableDataset(rows))

    stream = make(iter(range(5)))
    assert '.....' == ids_of(stream)[1][5:10]
    resumed(make(iter(range(9))), stream.state_dict())
    stream = DataStream(CSVDataset(str(path)), batch_size=1)
    state = stream.state_dict()
    next(iter(stream))
    resumed(DataStream(CSVDataset(str(path)), batch_size=1), state)
    resumed(DataStream(CSVDataset(str(path)), batch_size=1),
            stream.state_dict())
    resumed(stream_of(x=list(range(COUNT))), stream_of().state_dict())
