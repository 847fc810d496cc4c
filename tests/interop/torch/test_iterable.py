"""Streams of Fuel in the data loaders of PyTorch."""
import gc
import json
import os
import pickle
import re
import signal
import warnings

import numpy
import pytest
import torch
from support.torch_pipelines import (
    examples,
    ordered,
    plain_epochs,
    scaled,
    shuffled,
)
from torch.distributed import checkpoint
from torch.utils.data import ChainDataset, DataLoader, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import NotAStreamError, StateMismatchError
from fuel.interop.torch import as_iterable
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, Filter

SEVEN = plain_epochs(shuffled, 6)
WORKERS = [(0, False), (1, False), (1, True), (3, False), (3, True)]


@pytest.fixture(autouse=True)
def quiet_loaders():
    """Let a loader have more workers than this machine has cores."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'This DataLoader will create')
        yield


def load(iterable, num_workers=0, persistent=False, cls=DataLoader,
         **options):
    """Return a loader."""
    return cls(iterable, batch_size=None, num_workers=num_workers,
               persistent_workers=persistent, **options)


def read(iterator, most=None):
    """Return the numbers in each of the next batches."""
    found = []
    while most is None or len(found) < most:
        try:
            found.append(next(iterator)[0].tolist())
        except StopIteration:
            break
    return found


def failure(loader, delivered=None):
    """Return the error that ends an epoch of a loader.

    Without its traceback, which would keep the workers of the loader.
    """
    try:
        for batch, in loader:
            delivered.append(batch.tolist())
    except Exception as error:  # noqa: BLE001 (it is looked at)
        return error.with_traceback(None)
    pytest.fail('the epoch ended without an error')


def read_epochs(loader, count):
    """Return the numbers of each batch of some epochs."""
    return [read(iter(loader)) for _ in range(count)]


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('cls', [DataLoader, StatefulDataLoader])
@pytest.mark.parametrize('options', [{}, {'batch_size': 3}], ids=repr)
def test_batches_of_batches_are_refused(num_workers, cls, options):
    """A loader makes such batches by default, and by mistake."""
    iterable = as_iterable(shuffled())
    error = failure(cls(iterable, num_workers=num_workers, **options), [])
    assert type(error) is ValueError
    assert 'DataLoader(as_iterable(stream), batch_size=None)' in str(error)
    assert SEVEN[0] == read(iter(load(iterable)))


@pytest.mark.parametrize('num_workers', [0, 2])
def test_batches_are_collated_by_nobody_unless_asked(num_workers):
    """The error names the remedy, whatever wraps the stream."""
    def first(parts):
        return parts[0]
    for iterable in (as_iterable(shuffled()),
                     ChainDataset([as_iterable(shuffled())])):
        error = failure(DataLoader(iterable, batch_size=2, collate_fn=first,
                                   num_workers=num_workers), [])
        assert type(error) is ValueError
        assert 'joins_batches=True' in str(error)
    assert 'as_iterable(DataStream, joins_batches=True)' == repr(
        as_iterable(shuffled(), joins_batches=True))


def test_examples_and_joined_batches_are_collated():
    """Both are allowed."""
    assert [3, 3, 3, 2] == [len(data) for data, in DataLoader(
        as_iterable(examples()), batch_size=3)]
    joined = DataLoader(as_iterable(shuffled(), joins_batches=True),
                        batch_size=2, collate_fn=lambda parts: torch.cat(
                            [part[0] for part in parts]))
    assert [sum(SEVEN[0][place:place + 2], []) for place in (0, 2, 4, 6)] == [
        data.tolist() for data in joined]


def test_data_set_in_the_place_of_a_stream():
    """The error is raised at once."""
    with pytest.raises(NotAStreamError, match=(
            'as_iterable reads a stream, and IndexableDataset is a data set.*'
            r'DataStream\(IndexableDataset')):
        as_iterable(IndexableDataset([1, 2]))


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
@pytest.mark.parametrize('cls', [DataLoader, StatefulDataLoader])
def test_every_epoch_is_that_of_the_stream(num_workers, persistent, cls):
    """Batches and order are equal, whoever makes them, and each comes once."""
    loader = load(as_iterable(shuffled()), num_workers, persistent, cls)
    assert SEVEN[:3] == read_epochs(loader, 3)
    assert 7 == len(loader)


@pytest.mark.parametrize('build', [scaled, examples, ordered])
def test_other_pipelines_come_in_order_too(build):
    """Pipelines have stages, single examples or several sources."""
    stream = build()
    loader = load(as_iterable(build()), 2)
    for _ in range(2):
        for expected, found in zip(
                stream.get_epoch_iterator(), loader, strict=True):
            assert len(expected) == len(found)
            for one, other in zip(expected, found, strict=True):
                assert numpy.array_equal(one, other)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_abandoned_epoch_is_followed_by_the_next(num_workers):
    """The epoch iterators of a stream do the same."""
    loader = load(as_iterable(shuffled()), num_workers)
    first = iter(loader)
    assert SEVEN[0][:2] == read(first, 2)
    del first
    assert SEVEN[1:3] == read_epochs(loader, 2)


def test_two_passes_at_once_are_two_epochs():
    """Two iterators of one loader do not mix."""
    loader = load(as_iterable(shuffled()), 2)
    one, other = iter(loader), iter(loader)
    assert SEVEN[0][:3] == read(one, 3)
    assert SEVEN[1] == read(other)
    assert SEVEN[0][3:] == read(one)
    assert SEVEN[2:3] == read_epochs(loader, 1)


def test_iterator_dropped_before_its_first_item_is_not_an_epoch():
    """Trainers make one to see whether a loader can be iterated over."""
    iterable = as_iterable(shuffled())
    iter(iterable)
    assert SEVEN[:2] == read_epochs(iterable, 2)
    one, other = iter(iterable), iter(iterable)
    assert sorted(SEVEN[2:4]) == sorted([read(one), read(other)])


def test_loaders_of_one_data_set_continue_each_other():
    """They do with workers or without, in any order."""
    iterable = as_iterable(shuffled())
    for epoch, num_workers in enumerate([0, 2, 0, 3, 1]):
        assert SEVEN[epoch] == read(iter(load(iterable, num_workers)))


def test_equal_seeds_of_loaders_do_not_repeat_an_epoch():
    """The order is the stream's, whatever the loaders draw."""
    iterable = as_iterable(shuffled())
    for epoch in range(3):
        torch.manual_seed(3)
        assert SEVEN[epoch] == read(iter(load(iterable, 2)))


@pytest.mark.parametrize('method, num_workers', [
    ('forkserver', 1), pytest.param('spawn', 2, marks=pytest.mark.full)])
def test_workers_that_are_not_forked_agree_too(method, num_workers):
    """The workers receive the pipeline by pickle."""
    loader = load(as_iterable(shuffled()), num_workers,
                  multiprocessing_context=method)
    assert SEVEN[:2] == read_epochs(loader, 2)


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
@pytest.mark.parametrize('step', [0, 1, 4, 7, 8])
def test_torchdata_resumes_exactly(num_workers, persistent, step):
    """It resumes at any step of the second epoch, before its end and after."""
    def build():
        return load(as_iterable(shuffled()), num_workers, persistent,
                    StatefulDataLoader)
    loader = build()
    list(loader)
    first = read(iter(loader), step)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    del loader
    restored = build()
    restored.load_state_dict(state)
    if step < 8:
        assert SEVEN[1] == first + read(iter(restored))
        assert SEVEN[2] == read(iter(restored))
    else:
        assert SEVEN[2:4] == read_epochs(restored, 2)


@pytest.mark.parametrize('saved, loaded', [(0, 2), (2, 0), (2, 3)])
@pytest.mark.parametrize('step', [0, 5])
def test_state_of_a_loader_goes_on_with_other_workers(saved, loaded, step):
    """The data set finds the stream's position in the state."""
    loader = load(as_iterable(shuffled()), saved, cls=StatefulDataLoader)
    list(loader)
    assert SEVEN[1][:step] == read(iter(loader), step)
    iterable = as_iterable(shuffled())
    iterable.load_state_dict(loader.state_dict())
    restored = load(iterable, loaded)
    assert SEVEN[1][step:] == read(iter(restored))
    assert SEVEN[2] == read(iter(restored))


def test_state_between_snapshots_is_exact():
    """The loader of torchdata saves the workers' states only now and then."""
    loader = load(as_iterable(shuffled()), 2, cls=StatefulDataLoader,
                  snapshot_every_n_steps=3)
    epoch = iter(loader)
    read(epoch, 5)
    state = loader.state_dict()
    iterable = as_iterable(shuffled())
    iterable.load_state_dict(state)
    assert SEVEN[0][5:] == read(iter(load(iterable, 3)))


@pytest.mark.parametrize('num_workers', [0, 1, 3])
@pytest.mark.parametrize('step', [1, 5, 7])
def test_state_after_batches_is_that_of_the_stream(num_workers, step):
    """Prefetched batches do not count; any number of workers resumes."""
    iterable = as_iterable(shuffled())
    loader = load(iterable, num_workers, prefetch_factor=(
        4 if num_workers else None))
    list(loader)
    epoch = iter(loader)
    assert SEVEN[1][:step] == read(epoch, step)
    state = json.loads(json.dumps(iterable.state_after(step)))
    plain = shuffled()
    plain.load_state_dict(state)
    assert SEVEN[1][step:] == [
        batch.tolist() for batch, in plain.get_epoch_iterator()]
    restored = as_iterable(shuffled())
    restored.load_state_dict(state)
    assert SEVEN[1][step:] == read(iter(load(restored, 2)))
    assert SEVEN[2] == read(iter(load(restored)))
    # Nothing of this disturbs the loader.
    assert SEVEN[1][step:] == read(epoch)
    over = as_iterable(shuffled())
    over.load_state_dict(iterable.state_after())
    assert SEVEN[2] == read(iter(load(over)))
    assert SEVEN[2] == read(iter(loader))


@pytest.mark.parametrize('num_workers', [0, 1])
@pytest.mark.parametrize('delivered', [3, None])
@pytest.mark.filterwarnings('ignore:torch.distributed is disabled')
def test_distributed_checkpoint_loads_into_the_present_state(
        tmp_path, num_workers, delivered):
    """The keys of a state are those of the template, at any position."""
    iterable = as_iterable(shuffled())
    epoch = iter(load(iterable, num_workers))
    first = read(epoch, delivered)
    state = {'batches': iterable.state_after(delivered)}
    checkpoint.save(state, checkpoint_id=tmp_path, no_dist=True)
    restored = as_iterable(shuffled())
    template = {'batches': restored.state_dict()}
    assert list(state['batches']) == list(template['batches'])
    checkpoint.load(template, checkpoint_id=tmp_path, no_dist=True)
    restored.load_state_dict(template['batches'])
    assert (SEVEN[0][len(first):] or SEVEN[1]) == read(iter(load(restored)))


def test_state_of_a_worker_is_refused_by_a_stream():
    """The text says which state fits."""
    loader = load(as_iterable(shuffled()), 2, cls=StatefulDataLoader)
    read(iter(loader), 3)
    state = loader.state_dict()['_snapshot']['_worker_snapshots']
    with pytest.raises(StateMismatchError, match='of worker 1 of 2: save st'):
        shuffled().load_state_dict(state['worker_1']['dataset_state'])


def test_state_of_the_stream_is_taken_up_by_workers():
    """Fuel's own state was saved without any loader."""
    stream = shuffled()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    iterable = as_iterable(shuffled())
    iterable.load_state_dict(stream.state_dict())
    loader = load(iterable, 3)
    assert SEVEN[0][1:] == read(iter(loader))
    assert SEVEN[1] == read(iter(loader))


def test_state_may_be_restored_again_and_again():
    """States may be restored in the middle of an epoch, and after others."""
    iterable = as_iterable(shuffled())
    loader = load(iterable, 2)
    epoch = iter(loader)
    read(epoch, 2)
    state = iterable.state_after(2)
    for _ in range(2):
        iterable.load_state_dict(state)
        assert SEVEN[0][2:] == read(iter(loader))
        assert SEVEN[1] == read(iter(loader))


def test_pickle_continues_with_the_next_epoch():
    """A copy is independent of the original."""
    iterable = as_iterable(shuffled(), as_dict=True)
    read_dict = [batch['data'].tolist() for batch in load(iterable, 2)]
    assert SEVEN[0] == read_dict
    copy = pickle.loads(pickle.dumps(iterable))
    for one in (iterable, copy):
        for epoch in (1, 2):
            assert SEVEN[epoch] == [
                batch['data'].tolist() for batch in load(one, 2)]
    assert 'as_iterable(DataStream, as_dict=True)' == repr(copy)


def test_folder_of_the_register_is_removed():
    """The data set removes it, not its workers."""
    iterable = as_iterable(shuffled())
    folder = iterable._register.folder
    list(load(iterable, 2))
    assert os.path.exists(folder)
    del iterable
    gc.collect()
    assert not os.path.exists(folder)


def test_batches_are_tensors_over_the_memory_of_the_stream():
    """Nothing is copied, and writing reaches no other batch."""
    addresses = []

    class Recording(IndexableDataset):
        def get_data(self, state=None, request=None):
            data = super().get_data(state, request)
            addresses.append(data[0].ctypes.data)
            return data
    stream = DataStream(Recording(numpy.arange(12.)),
                        iteration_scheme=SequentialScheme(12, 4))
    found = list(load(as_iterable(stream)))
    assert addresses == [batch.data_ptr() for batch, in found]
    found[0][0][:] = 9
    assert [0., 1., 2., 3.] == next(iter(load(as_iterable(stream))))[
        0].tolist()


def test_sources_may_stay_as_they_are():
    """Strings go along as lists."""
    stream = DataStream(IndexableDataset({
        'name': list('abcde'), 'number': numpy.arange(5)}),
        iteration_scheme=SequentialScheme(5, 2))
    iterable = as_iterable(stream, which_sources=('number',))
    for num_workers in (0, 2):
        names, numbers = next(iter(load(iterable, num_workers)))
        assert ['a', 'b'] == names
        assert torch.equal(torch.arange(2), numbers)
    assert "as_iterable(DataStream, which_sources=('number',))" == repr(
        iterable)


def test_stream_that_cannot_be_shared_is_read_by_one_worker():
    """Several workers raise an error with the reason before any batch."""
    def build():
        return as_iterable(Filter(
            examples(), lambda example: example[0] % 2 == 0))
    expected = [number for number, in build().stream.get_epoch_iterator()]
    assert expected == [int(number) for number, in load(build(), 1)]
    error = failure(load(build(), 2))
    assert isinstance(error, ValueError)
    assert re.search(r'Filter.*num_workers=1', str(error))


def test_stream_without_a_position_is_refused_in_workers():
    """No epoch is repeated silently; without workers the stream is read."""
    class Unknown(IterableDataset):
        def open(self):
            return iter([(1,), (2,)])
    stream = DataStream(Unknown([1, 2]))
    assert [1, 2] == [int(number) for number, in load(as_iterable(stream))]
    error = failure(load(as_iterable(stream), 1))
    assert isinstance(error, TypeError)
    assert 'get_position' in str(error)


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('column, text', [
    ([numpy.zeros(1), numpy.zeros(2)], r"'data'.*several shapes"),
    (['a', 'b'], "'data'.*strings"),
    (numpy.array([object(), 1]), "'data'.*Python objects"),
    (numpy.array(['a', 'b']), "'data'.*strings"),
    (numpy.array(['2026-01-01', '2026-01-02'], 'datetime64[D]'),
     "'data'.*cast it to int64")])
def test_data_that_no_tensor_holds_are_refused(num_workers, column, text):
    """The source is named, and what to do."""
    stream = DataStream(IndexableDataset(column),
                        iteration_scheme=SequentialScheme(2, 2))
    error = failure(load(as_iterable(stream), num_workers))
    assert isinstance(error, TypeError)
    assert re.search(text, str(error))


def test_worker_that_is_killed_ends_the_epoch_with_an_error():
    """A state after the delivered batches loses and repeats nothing."""
    class Suicidal(IndexableDataset):
        def get_data(self, state=None, request=None):
            if request[0] == 9 and get_worker_info() is not None:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().get_data(state, request)

    def build(cls):
        return as_iterable(DataStream(cls(numpy.arange(20)),
                                      iteration_scheme=SequentialScheme(
                                          20, 3)))
    iterable = build(Suicidal)
    delivered = []
    error = failure(load(iterable, 2, prefetch_factor=1), delivered)
    assert isinstance(error, RuntimeError)
    assert 'worker' in str(error)
    assert 1 <= len(delivered) <= 3
    restored = build(Suicidal)
    restored.load_state_dict(iterable.state_after(len(delivered)))
    rest = read(iter(load(restored)))
    assert list(range(20)) == sum(delivered + rest, [])
    # The next epoch begins anew, as after any epoch that was left.
    assert [0, 1, 2] == next(iter(load(iterable)))[0].tolist()


def test_error_of_the_pipeline_is_raised_in_its_turn():
    """The batches before and after it are delivered."""
    class Failing(IndexableDataset):
        def get_data(self, state=None, request=None):
            if 7 in request:
                raise ArithmeticError('no seven')
            return super().get_data(state, request)
    stream = DataStream(Failing(numpy.arange(20)),
                        iteration_scheme=SequentialScheme(20, 3))
    epoch = iter(load(as_iterable(stream), 2))
    assert [[0, 1, 2], [3, 4, 5]] == read(epoch, 2)
    with pytest.raises(ArithmeticError, match='no seven'):
        next(epoch)
    assert [[9, 10, 11], [12, 13, 14], [15, 16, 17], [18, 19]] == read(epoch)


def test_state_of_one_of_several_workers_is_refused_elsewhere():
    """The text says what takes it, which is the state of the loader."""
    def build(num_workers):
        return load(as_iterable(shuffled()), num_workers,
                    cls=StatefulDataLoader)
    loader = build(2)
    read(iter(loader), 3)
    state = loader.state_dict()
    one = state['_snapshot']['_worker_snapshots']['worker_1']['dataset_state']
    with pytest.raises(StateMismatchError, match='by worker 1 of 2, but thi'):
        as_iterable(shuffled()).load_state_dict(one)
    other = build(3)
    other.load_state_dict(state)
    error = failure(other)
    assert isinstance(error, StateMismatchError)
    assert 'as many workers as then' in str(error)


@pytest.mark.parametrize('change, text', [
    (lambda state: state.pop('taken'), 'has not the fields'),
    (lambda state: state.update(taken=-1), 'has not the fields'),
    (lambda state: state.update(fuel=2), 'has not the fields'),
    (lambda state: state.update(stream='{'), 'not valid JSON'),
    (lambda state: state.update(stream='{"format": 1}'), 'format 1'),
    (lambda state: state.update(stream=state['stream'].replace(
        '"position": 1', '"position": 2')), "'crc'")])
def test_damaged_state_is_refused(change, text):
    """Each field is damaged in turn."""
    iterable = as_iterable(shuffled())
    read(iter(iterable), 1)
    state = iterable.state_dict()
    change(state)
    with pytest.raises(StateMismatchError, match=text):
        as_iterable(shuffled()).load_state_dict(state)


def test_state_of_another_pipeline_is_refused():
    """Loading the state raises the error, not a worker."""
    with pytest.raises(StateMismatchError, match='another pipeline'):
        as_iterable(shuffled(21)).load_state_dict(shuffled().state_dict())
    loader = StatefulDataLoader(range(4))
    next(iter(loader))
    with pytest.raises(StateMismatchError, match=(
            'does not contain the state of as_iterable')):
        as_iterable(shuffled()).load_state_dict(loader.state_dict())


def test_state_beside_workers_is_refused_where_it_would_be_wrong():
    """The text names both ways that are exact."""
    iterable = as_iterable(shuffled())
    for count in (1, None):
        with pytest.raises(ValueError, match='no epoch has begun'):
            iterable.state_after(count)
    read(iter(load(iterable, 1)), 1)
    with pytest.raises(RuntimeError, match=r'state_after\(count\)'):
        iterable.state_dict()
    here = as_iterable(shuffled())
    read(iter(load(here)), 2)
    with pytest.raises(ValueError, match=(
            r'has read 2 batches .* is not at hand: save state_after\(2\)')):
        here.state_after(1)
    with pytest.raises(ValueError, match=(
            r'its end, so the state after 7 .*: save state_after\(\)')):
        over = as_iterable(shuffled())
        assert 7 == len(list(load(over)))
        over.state_after(7)
    with pytest.raises(ValueError, match='got -1'):
        here.state_after(-1)


@pytest.mark.parametrize('build', [
    shuffled, lambda: Filter(shuffled(), bool),
    lambda: shuffled().shard(0, 1)], ids=['plain', 'in order', 'sharded'])
def test_state_after_more_than_the_pass_has_is_refused(build):
    """A count of all epochs, or one that a resume continues, is refused."""
    iterable = as_iterable(build())
    loader = load(iterable, 1)
    for _ in range(2):
        assert 7 == len(list(loader))
        with pytest.raises(ValueError, match='8 batches .* which has 7'):
            iterable.state_after(8)
    state = iterable.state_after(5)
    resumed = as_iterable(build())
    resumed.load_state_dict(state)
    assert 2 == len(list(load(resumed, 1)))
    with pytest.raises(ValueError, match='3 batches .* which has 2'):
        resumed.state_after(3)
    assert json.loads(resumed.state_after(2)['stream'])['position'] == 7


def test_sources_that_are_not_there_are_refused():
    """The error suggests a similar name."""
    with pytest.raises(ValueError, match="'rows'"):
        as_iterable(ordered(), which_sources=('row',))
    with pytest.raises(ValueError, match='tuple of names'):
        as_iterable(ordered(), which_sources='rows')


def test_stages_above_the_iterable_are_those_of_the_stream():
    """Types are what the stages make of them."""
    stream = Cast(ordered(), 'float16', which_sources=('rows',))
    rows, numbers = next(iter(load(as_iterable(stream), 1)))
    assert torch.float16 == rows.dtype
    assert torch.int64 == numbers.dtype
