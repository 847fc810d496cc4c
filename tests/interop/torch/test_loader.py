"""A loader over a stream: its lengths, its states and what it gives."""
import copy
import itertools
import json
import pickle
import signal
import warnings
from pathlib import Path

import numpy
import pytest
import torch
from support import processes
from support.torch_pipelines import examples, plain_epochs, shuffled
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import NotAStreamError, StateMismatchError
from fuel.interop.torch import Loader, as_iterable, to_torch
from fuel.interop.torch.loader_pass import Pass
from fuel.schemes import (
    ConstantScheme, SequentialExampleScheme, SequentialScheme)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Cast, Filter, Mapping, Mix, Rename, Unpack)
from fuel.transformers.several import Chain
from fuel.transformers.shuffling import ShuffleBuffer

EPOCHS = plain_epochs(shuffled, 4)
WORKERS = [(0, False), (2, False), (2, True), (3, True)]
PROGRAM = Path(__file__).parents[2] / 'support' / 'loader_program.py'


@pytest.fixture(autouse=True)
def quiet_loaders():
    """Let a loader have more workers than this machine has cores."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'This DataLoader will create')
        yield


def read(loader):
    """Return the numbers in each batch of a pass."""
    return [batch[0].tolist() for batch in loader]


def stream_of(**columns):
    """Return a stream of batches of two rows."""
    return DataStream(IndexableDataset(columns), batch_size=2)


# --- lengths ---------------------------------------------------------------

@pytest.mark.parametrize('num_workers, persistent', WORKERS)
def test_length_is_that_of_a_whole_epoch(num_workers, persistent):
    """It is the same within a pass, after a state and after the end; the
    number of batches left shrinks."""
    loader = Loader(shuffled(), num_workers,
                    persistent_workers=persistent)
    assert (len(loader), loader.batches_left, len(loader.dataset)) == (
        7, 7, 20)
    reading = iter(loader)
    for count in range(1, 8):
        next(reading)
        assert (len(loader), loader.batches_left) == (7, 7 - count)
        assert len(reading) == 7 - count
        other = Loader(shuffled(), num_workers)
        other.load_state_dict(loader.state_dict())
        assert (len(other), other.batches_left) == (7, 7 - count)
    assert next(reading, None) is None
    assert (len(loader), loader.batches_left, len(reading)) == (7, 7, 0)


@pytest.mark.parametrize('rank, uneven, batches', [
    (0, 'pad', 4), (1, 'pad', 4), (0, 'drop', 3), (0, 'uneven', 4),
    (1, 'uneven', 3)])
def test_length_of_the_data_set_is_that_of_all_ranks(rank, uneven, batches):
    """Repeated examples are not counted, as in DistributedSampler."""
    loader = Loader(shuffled(), shard=(rank, 2), uneven=uneven)
    assert (len(loader), len(loader.dataset)) == (batches, 20)
    sharded = Loader(shuffled().shard(rank, 2, uneven=uneven))
    assert (len(sharded), len(sharded.dataset)) == (batches, 20)


@pytest.mark.parametrize('build, count', [
    (examples, 11),
    (lambda: Batch(examples(), batch_size=4), 11),
    (lambda: Cache(shuffled(), iteration_scheme=ConstantScheme(4)), 20),
    (lambda: Unpack(shuffled()), 20),
    (lambda: Chain([shuffled(), shuffled(8, 3)]), 28),
    (lambda: ShuffleBuffer(examples(), buffer_size=3, seed=1), 11),
    (lambda: Cast(shuffled(), 'float32'), 20),
    (lambda: DataStream(IndexableDataset(numpy.arange(20)),
                        iteration_scheme=SequentialScheme([3, 4, 5], 2)), 3)])
def test_length_of_the_data_set_counts_examples(build, count):
    """They are those that the scheme chooses, whatever the stages make of
    them."""
    assert len(Loader(build()).dataset) == count


@pytest.mark.parametrize('build', [
    lambda: Filter(shuffled(), bool),
    lambda: DataStream(IterableDataset(iter('abc')))])
def test_length_of_the_data_set_is_not_known(build):
    """The error is a TypeError, as for any iterable without a length."""
    with pytest.raises(TypeError):
        len(Loader(build()).dataset)


def test_loader_that_is_made_anew_has_as_many_batches():
    """Libraries take ``loader.dataset`` and make a loader of PyTorch."""
    loader = DataLoader(Loader(shuffled()).dataset, batch_size=None)
    assert (len(loader), len(loader.dataset)) == (7, 20)
    assert read(loader) == EPOCHS[0]


def test_program_that_divides_by_the_length_of_the_data_set_is_right():
    """PyTorch's example mnist computes the accuracy in this way."""
    labels = numpy.arange(20, dtype='uint8') % 10
    loader = Loader(stream_of(x=numpy.eye(10)[labels], y=labels))
    correct = sum(
        data.argmax(1).eq(target).sum().item() for data, target in loader)
    assert 100. * correct / len(loader.dataset) == 100


@pytest.mark.parametrize('num_workers', [0, 2])
def test_length_of_an_iterable_in_a_loader_is_warned_of(num_workers):
    """The length counts batches, where programs want that of examples."""
    batches = as_iterable(shuffled())
    loader = DataLoader(batches, batch_size=None, num_workers=num_workers)
    assert len(loader) == len(batches) == 7
    read(loader)
    assert len(loader) == 7
    with pytest.warns(UserWarning, match='number of batches, 7, and not of '
                      'examples: use fuel.interop.torch.Loader'):
        assert len(loader.dataset) == 7


# --- arguments -------------------------------------------------------------

@pytest.mark.parametrize('options', [
    {'batch_size': 4}, {'shuffle': True}, {'sampler': [1, 2]},
    {'batch_sampler': [[1]]}, {'drop_last': True}])
def test_arguments_of_the_stream_are_refused(options):
    """The error says what to write instead."""
    name, = options
    with pytest.raises(TypeError, match=f'leave {name} out, and write'):
        Loader(shuffled(), **options)


def test_stream_leaves_out_a_short_batch():
    """The error has the argument."""
    with pytest.raises(TypeError, match=r'DataStream\(.*, drop_last=True\)'):
        Loader(shuffled(), drop_last=True)


def test_batches_out_of_order_are_refused():
    """A state counts batches in the order of the stream."""
    with pytest.raises(TypeError, match='leave in_order out'):
        Loader(shuffled(), 2, in_order=False)
    assert read(Loader(shuffled(), in_order=True)) == EPOCHS[0]


@pytest.mark.parametrize('options', [
    {'as_dict': True}, {'targets': 'as stored'}, {'which_sources': ['data']},
    {'shard': (0, 2)}, {'by': 'example'}, {'uneven': 'pad'}])
def test_options_that_differ_from_those_of_an_iterable_are_refused(options):
    """Such options are not ignored silently."""
    name, = options
    with pytest.raises(TypeError, match=f'pass {name} to as_iterable'):
        Loader(as_iterable(shuffled(), uneven='drop'), **options)
    same = as_iterable(shuffled(), **{'uneven': 'drop', **options})
    loader = Loader(same, **options)
    assert repr(loader) == repr(Loader(loader.dataset))


def test_data_set_is_not_a_stream():
    """Every bridge refuses a data set in the place of a stream."""
    with pytest.raises(NotAStreamError):
        Loader(IndexableDataset(numpy.arange(3)))


def test_stream_that_workers_cannot_share_is_refused():
    """The constructor of the loader raises an error that names the stage."""
    with pytest.raises(ValueError, match='the stage Batch'):
        Loader(Batch(examples(), batch_size=3), 2)


def test_stream_of_examples_gives_examples():
    """They come one at a time."""
    assert [int(number) for number, in Loader(examples())] == (
        plain_epochs(examples, 1)[0])


def test_loader_is_made_anew_of_its_attributes():
    """Lightning does this in predict; a subclass survives it too."""
    class Mine(Loader):
        pass

    for cls in (Loader, Mine):
        loader = cls(shuffled(), 2, as_dict=True, targets='as stored',
                     uneven='drop', prefetch_factor=3, pin_memory=False)
        attributes = {name: value for name, value in vars(loader).items()
                      if not name.startswith('_')}
        again = cls(**{**attributes, 'sampler': None, 'batch_sampler': None})
        assert vars(again).keys() == vars(loader).keys()
        assert again.dataset is loader.dataset
        assert (again.uneven, again.targets, again.prefetch_factor) == (
            'drop', 'as stored', 3)
    assert repr(Loader(shuffled(), 2, as_dict='nested')) == (
        "Loader(as_iterable(DataStream, as_dict='nested'), num_workers=2)")


# --- integers and names ----------------------------------------------------

@pytest.mark.parametrize('dtype, kept', [
    ('int8', False), ('uint8', False), ('int16', False), ('uint32', False),
    ('>i4', False), ('int64', True), ('uint64', True), ('bool', True),
    ('float16', True)])
@pytest.mark.parametrize('build', [
    lambda stream: Loader(stream), lambda stream: Loader(stream, 1),
    lambda stream: DataLoader(as_iterable(stream), batch_size=None),
    lambda stream: to_torch(stream).get_epoch_iterator(),
    lambda stream: to_torch(stream, dtype='float64').get_epoch_iterator()])
def test_one_integer_an_example_comes_as_int64(dtype, kept, build):
    """Losses take int64; uint64, truth values and tables keep their types."""
    values = numpy.array([0, 1, 1, 0]).astype(dtype)
    for stages in (lambda stream: stream, lambda stream: Mapping(
            stream, lambda data: data)):
        stream = stages(stream_of(one=values, table=values[:, None]))
        batches = list(build(stream))
        found = torch.cat([one for one, _ in batches])
        assert found.tolist() == values.tolist()
        assert found.dtype is (
            torch.from_numpy(values).dtype if kept and dtype != 'float16'
            else found.dtype if kept else torch.int64)
        if dtype != 'float16' and dtype != '>i4':
            assert batches[0][1].dtype is torch.from_numpy(values).dtype


@pytest.mark.parametrize('num_workers', [0, 1])
def test_sources_that_are_not_chosen_stay_as_they_are(num_workers):
    """Arrays do, too, which PyTorch's own loader would make tensors of."""
    for one, other in Loader(
            stream_of(one=numpy.arange(4.), other=numpy.arange(4.)),
            num_workers, which_sources=('one',)):
        assert type(one) is torch.Tensor
        assert type(other) is numpy.ndarray


@pytest.mark.parametrize('build', [
    lambda stream: Loader(stream, targets='as stored'),
    lambda stream: DataLoader(as_iterable(stream, targets='as stored'),
                              batch_size=None),
    lambda stream: to_torch(stream,
                            targets='as stored').get_epoch_iterator(),
    lambda stream: to_torch(stream,
                            dtype={'x': 'int8'}).get_epoch_iterator()])
def test_integers_keep_their_type_if_asked(build):
    """Either `targets` or a type of their own keeps it."""
    assert {x.dtype for x, in build(stream_of(
        x=numpy.arange(4, dtype='int8')))} == {torch.int8}


def test_examples_keep_rows_of_integers():
    """Only single numbers are targets; texts and waves are not."""
    stream = DataStream(IndexableDataset({
        'wave': numpy.zeros((4, 3), 'int16'),
        'label': numpy.arange(4, dtype='uint8')}),
        iteration_scheme=SequentialExampleScheme(4))
    for wave, label in Loader(stream):
        assert (wave.dtype, label.dtype) == (torch.int16, torch.int64)


def test_unknown_targets_are_refused():
    """The error names the two known values."""
    for build in (Loader, as_iterable, to_torch):
        with pytest.raises(ValueError, match="targets must be 'int64'"):
            build(shuffled(), targets='int32')


def test_state_does_not_depend_on_the_type_of_targets():
    """The type of targets belongs to no stage."""
    loader = Loader(shuffled(), targets='as stored')
    next(iter(loader))
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[0][1:]
    stage = to_torch(shuffled(), targets='as stored')
    next(stage.get_epoch_iterator())
    other = to_torch(shuffled())
    other.load_state_dict(stage.state_dict())
    assert read(other.get_epoch_iterator()) == EPOCHS[0][1:]


@pytest.mark.parametrize('read_dicts', [
    lambda stream: Loader(stream, as_dict='nested'),
    lambda stream: Loader(stream, 1, as_dict='nested'),
    lambda stream: DataLoader(
        as_iterable(stream, as_dict='nested'), batch_size=None),
    lambda stream: to_torch(stream).dicts(nested=True)])
def test_names_with_slashes_make_a_tree(read_dicts):
    """Programs such as robomimic index batches by them."""
    stream = stream_of(**{'obs/a': numpy.arange(4), 'obs/b/c': numpy.ones(4),
                          'actions': numpy.zeros(4)})
    for batch in read_dicts(stream):
        assert set(batch) == {'obs', 'actions'}
        assert set(batch['obs']) == {'a', 'b'}
        assert batch['obs']['b']['c'].tolist() == [1, 1]


def test_names_that_make_no_tree_are_refused():
    """The constructor of the loader raises the error."""
    both = {'obs': numpy.arange(4), 'obs/a': numpy.arange(4)}
    with pytest.raises(ValueError, match='both data and a dict'):
        Loader(stream_of(**both), as_dict='nested')
    with pytest.raises(ValueError, match='empty part'):
        Loader(stream_of(**{'obs/': numpy.arange(4)}), as_dict='nested')
    renamed = Rename(stream_of(**both), {'obs': 'all'})
    assert set(next(iter(Loader(renamed, as_dict='nested')))) == {
        'all', 'obs'}


# --- states ----------------------------------------------------------------

LOOPS = {
    'for': lambda loader: (batch for batch in loader),
    'enumerate': lambda loader: (batch for _, batch in enumerate(loader, 5)),
    'islice': lambda loader: itertools.islice(loader, 100),
    'zip': lambda loader: (batch for _, batch in zip(
        itertools.count(), loader, strict=False)),
    'next': lambda loader: iter(loader.__iter__().__next__, None)}


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
@pytest.mark.parametrize('loop', LOOPS)
def test_state_is_that_of_what_the_program_received(
        num_workers, persistent, loop):
    """It is exact at each batch, for any prefetching and another number of
    workers."""
    loader = Loader(shuffled(), num_workers, persistent_workers=persistent,
                    prefetch_factor=8 if loop == 'for' else 2)
    others = itertools.cycle([0, 1])
    for epoch in range(2):
        for count, batch in enumerate(LOOPS[loop](loader), 1):
            assert batch[0].tolist() == EPOCHS[epoch][count - 1]
            state = json.loads(json.dumps(loader.state_dict()))
            if count % 3 == 0 or count == 7:
                other = Loader(shuffled(), next(others))
                other.load_state_dict(state)
                assert other.state_dict() == state
                assert read(other) == EPOCHS[epoch][count:]
                assert read(other) == EPOCHS[epoch + 1]
            if count == 7 and loop == 'next':
                # It sees no end, but an error of its own.
                break
        if loop == 'next':
            return


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
def test_three_positions_around_an_end_differ(num_workers, persistent):
    """They are before any batch, after the last batch, and after the end."""
    loader = Loader(shuffled(), num_workers, persistent_workers=persistent)
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[0]
    reading = iter(loader)
    for _ in range(7):
        next(reading)
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == []
    assert read(other) == EPOCHS[1]
    assert next(reading, None) is None
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[1]


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
def test_iteration_after_a_break_is_the_next_epoch(num_workers, persistent):
    """Its state is that of what was left until it begins."""
    loader = Loader(shuffled(), num_workers, persistent_workers=persistent)
    for _ in loader:
        break
    reading = iter(loader)
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[0][1:]
    assert next(reading)[0].tolist() == EPOCHS[1][0]
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[1][1:]


@pytest.mark.parametrize('num_workers', [0, 2])
def test_two_iterators_have_epochs_of_their_own(num_workers):
    """The state is that of the one that began last."""
    loader = Loader(shuffled(), num_workers)
    first, second = iter(loader), iter(loader)
    found = [[], []]
    for _ in range(3):
        for place, reading in enumerate((first, second)):
            found[place].append(next(reading)[0].tolist())
    next(first)
    assert found == [EPOCHS[0][:3], EPOCHS[1][:3]]
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[1][3:]
    assert read(second) == EPOCHS[1][3:]
    assert read(first) == EPOCHS[0][4:]


def test_workers_that_stay_have_one_pass_at_a_time():
    """PyTorch would give the batches of the second to the first."""
    loader = Loader(shuffled(), 1, persistent_workers=True)
    first = iter(loader)
    next(first)
    assert next(iter(loader))[0].tolist() == EPOCHS[1][0]
    with pytest.raises(RuntimeError, match='one pass at a time'):
        next(first)


def test_workers_end_with_the_iterator():
    """A loop that is left leaves no process behind."""
    others = torch.multiprocessing.active_children()
    loader = Loader(shuffled(), 2)
    for _ in loader:
        workers = [process for process
                   in torch.multiprocessing.active_children()
                   if process not in others]
        assert len(workers) == 2
        break
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()


def test_loaders_with_one_seed_read_epochs_of_their_own():
    """The seed of PyTorch says nothing of the epoch."""
    loader = Loader(shuffled(), 2)
    for epoch in range(3):
        torch.manual_seed(0)
        assert read(loader) == EPOCHS[epoch]


@pytest.mark.parametrize('num_workers', [0, 2])
def test_batch_that_fails_counts_as_one(num_workers):
    """The state after it goes on behind it."""
    def fail(data):
        if 6 in data[0]:
            raise ValueError('it is six')
        return data

    def build():
        return Mapping(DataStream(
            IndexableDataset(numpy.arange(10)), batch_size=2), fail,
)
    loader = Loader(build(), num_workers)
    reading = iter(loader)
    found = [next(reading)[0].tolist() for _ in range(3)]
    with pytest.raises(ValueError, match='it is six'):
        next(reading)
    assert found == [[0, 1], [2, 3], [4, 5]]
    other = Loader(build(), 1)
    other.load_state_dict(loader.state_dict())
    assert read(other) == read(reading) == [[8, 9]]


@pytest.mark.parametrize('goes_on', [False, True])
def test_batch_that_is_interrupted_is_not_lost(goes_on):
    """Ctrl-C interrupts a batch, and the program saves a state."""
    pending = [True]

    def interrupt(data):
        if 6 in data[0] and pending:
            pending.clear()
            raise KeyboardInterrupt
        return data

    def build():
        return Mapping(DataStream(
            IndexableDataset(numpy.arange(10)), batch_size=2), interrupt)
    loader = Loader(build())
    reading = iter(loader)
    for _ in range(3):
        next(reading)
    with pytest.raises(KeyboardInterrupt):
        next(reading)
    rest = [[6, 7], [8, 9]]
    if goes_on:
        # The iterator itself has gone on.
        assert next(reading)[0].tolist() == rest.pop()
        rest.clear()
    other = Loader(build())
    other.load_state_dict(loader.state_dict())
    assert read(other) == rest


@pytest.mark.parametrize('ranks, uneven', [
    (2, 'pad'), (2, 'drop'), (3, 'uneven'), (4, 'drop'), (4, 'pad')])
@pytest.mark.parametrize('used', [0, 1, 9, 13])
def test_rest_of_an_epoch_is_counted_for_another_number_of_ranks(
        ranks, uneven, used):
    """The count is what each rank then reads."""
    def build(**options):
        return Loader(shuffled(28, 2), **options)
    loader = build()
    reading = iter(loader)
    for _ in range(used):
        next(reading)
    for rank in range(ranks):
        other = build(shard=(rank, ranks), uneven=uneven)
        other.load_state_dict(loader.state_dict())
        left = other.batches_left
        again = iter(other)
        assert len(again) == left == len(read(again))


def test_state_where_another_loader_reads_is_refused():
    """The state may be ahead of what the program has."""
    loader = Loader(shuffled())
    next(iter(DataLoader(loader.dataset, batch_size=None)))
    with pytest.raises(RuntimeError, match='another loader reads'):
        loader.state_dict()


def test_foreign_states_are_refused():
    """States of other streams and other objects are refused."""
    loader = Loader(shuffled())
    for state in (3, {}, {'batches': 3}, Loader(shuffled(21)).state_dict()):
        with pytest.raises(StateMismatchError):
            loader.load_state_dict(state)
    assert read(loader) == EPOCHS[0]


def test_state_of_the_stream_is_taken_up_and_given():
    """A loop without a loader may go on, and the reverse."""
    stream = shuffled()
    next(stream.get_epoch_iterator())
    loader = Loader(shuffled(), 2)
    loader.load_state_dict(stream.state_dict())
    assert read(loader) == EPOCHS[0][1:]


def test_copies_and_pickles_read_from_where_the_data_set_stands():
    """The passes of a loader are its own."""
    loader = Loader(shuffled(), 1)
    next(iter(loader))
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert len(other) == 7
        assert read(other) in (EPOCHS[1], EPOCHS[2])
    # Python 3.14 pickles no counter of itertools.
    assert b'itertools' not in pickle.dumps(loader)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_batch_that_ctrl_c_drops_is_counted_once_others_follow(
        num_workers, monkeypatch):
    """The batch was read, and is not given again by the same iterator."""
    def interrupt(*_):
        raise KeyboardInterrupt
    loader = Loader(shuffled(), num_workers)
    reading = iter(loader)
    next(reading)
    with monkeypatch.context() as patched:
        patched.setattr(Pass, 'count', interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(reading)
    assert next(reading)[0].tolist() == EPOCHS[0][2]
    assert loader.batches_left == len(reading) == 4
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == EPOCHS[0][3:]


class Asking:
    """Asks for the state of a loader while its workers start, and fails."""

    def __init__(self):
        self.loader, self.states = None, []

    def __call__(self, worker):
        """Do nothing in a worker."""

    def __reduce__(self):
        self.states.append(self.loader.state_dict())
        raise ValueError('not sent to workers')


@pytest.mark.parametrize('used', [0, 2])
def test_epoch_whose_workers_do_not_start_is_not_left_out(used):
    """The next iteration reads it, and states are of its beginning."""
    asking = Asking()
    loader = asking.loader = Loader(
        shuffled(), 1, multiprocessing_context='spawn', worker_init_fn=asking)
    if used:
        before = Loader(shuffled())
        next(itertools.islice(before, used - 1, None))
        loader.load_state_dict(before.state_dict())
    with pytest.raises(ValueError, match='not sent'):
        next(iter(loader))
    for state in (*asking.states, loader.state_dict()):
        other = Loader(shuffled())
        other.load_state_dict(state)
        assert read(other) == EPOCHS[0][used:]
    assert len(asking.states) == 1
    assert read(Loader(loader.dataset)) == EPOCHS[0][used:]


def test_named_epoch_is_read():
    """Trainers name epochs by `set_epoch`."""
    loader = Loader(shuffled(), 2)
    loader.set_epoch(2)
    assert read(loader) == EPOCHS[2]


@pytest.mark.parametrize('num_workers', [0, 2])
def test_rest_of_an_epoch_that_is_named_is_counted(num_workers):
    """A program loads a state, and says which epoch goes on."""
    loader = Loader(shuffled())
    next(iter(loader))
    other = Loader(shuffled(), num_workers)
    other.load_state_dict(loader.state_dict())
    other.set_epoch(0)
    assert (len(other), other.batches_left) == (7, 6)
    assert read(other) == EPOCHS[0][1:]
    other.set_epoch(1)
    assert other.batches_left == 7


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('epoch', [0, 1, 2])
def test_state_before_an_epoch_that_is_named_begins_it(num_workers, epoch):
    """The named epoch may leave others out, or read one again."""
    loader = Loader(shuffled(), num_workers)
    loader.set_epoch(0)
    read(loader)
    loader.set_epoch(epoch)
    other = Loader(shuffled())
    other.load_state_dict(loader.state_dict())
    assert read(other) == read(loader) == EPOCHS[epoch]


def test_state_is_refused_where_another_loader_goes_on():
    """A loader that has taken up a state refuses too."""
    loader = Loader(shuffled())
    loader.load_state_dict(loader.state_dict())
    next(iter(DataLoader(loader.dataset, batch_size=None)))
    with pytest.raises(RuntimeError, match='another loader reads'):
        loader.state_dict()


KILLS = [(0, 2, 2), (2, 2, 0), (2, 8, 3), (3, 8, 2)]


@pytest.mark.parametrize('stop', [
    pytest.param(stop, marks=() if stop in (1, 7, 20) else pytest.mark.full)
    for stop in range(21)])
def test_loop_goes_on_after_a_kill(tmp_path, stop):
    """The next batch follows, with another number of workers."""
    loops = ['for', 'enumerate', 'islice', 'zip', 'next']
    workers, prefetch, others = KILLS[stop % len(KILLS)]
    settings = {'path': str(tmp_path / 'log'), 'loop': loops[stop % 5]}
    (status, *_), = processes.end_together(processes.start_ranks(
        1, PROGRAM, json.dumps({**settings, 'workers': workers,
                                'prefetch': prefetch, 'stop': stop})))
    assert status == -signal.SIGKILL
    (status, _, errors), = processes.end_together(processes.start_ranks(
        1, PROGRAM, json.dumps({**settings, 'workers': others,
                                'prefetch': prefetch})))
    assert status == 0, errors
    lines = (tmp_path / 'log').read_text().splitlines()
    plain = plain_epochs(lambda: shuffled(100, 5), 2)
    assert list(map(json.loads, lines)) == plain[0] + plain[1]


def test_worker_that_starts_after_a_kill_ends(tmp_path):
    """PyTorch's own check takes the next parent for the process it works
    for."""
    started = processes.start_ranks(1, PROGRAM, json.dumps({
        'path': str(tmp_path / 'log'), 'loop': 'for', 'workers': 2,
        'prefetch': 2, 'stop': 1, 'is_late': True}))
    # The pipes end with the last process that writes to them.
    (status, *_), = processes.end_together(started, timeout=60)
    assert status == -signal.SIGKILL


# --- steps, and arguments of load_state_dict -------------------------------

@pytest.mark.parametrize('num_workers, persistent', WORKERS)
def test_step_is_that_of_the_last_batch(num_workers, persistent):
    """An epoch may have been left, and the program restarted."""
    loader = Loader(shuffled(), num_workers, persistent_workers=persistent)
    assert -1 == loader.current_step()
    steps = []
    for count in None, 3, None:
        steps += [loader.current_step()
                  for _ in itertools.islice(loader, count)]
        if count == 3:
            state = loader.state_dict()
    size = len(EPOCHS[0])
    assert steps == list(range(2 * size + 3))
    assert loader.current_step(2) == 2 * (size + 1) // 2 + 1
    # States name the batches of each epoch, from which steps are counted.
    saved = json.loads(loader.state_dict()['stream'])
    assert 'all 3 all' == saved['past']
    resumed = Loader(shuffled(), num_workers)
    resumed.load_state_dict(state)
    assert resumed.current_step() == size + 2
    next(iter(resumed))
    assert resumed.current_step() == size + 3


@pytest.mark.parametrize('num_workers', [0, 1, 2])
def test_steps_are_left_out_of_a_loaded_state(num_workers):
    """The arguments, or those of the constructor at each restart, say so."""
    loader, size = Loader(shuffled(), num_workers), len(EPOCHS[0])
    read(loader)
    for _ in itertools.islice(loader, 2):
        state = loader.state_dict()
    bad = [size + 3, 2 * size]
    expected = [EPOCHS[1][2:3] + EPOCHS[1][4:], EPOCHS[2][1:]]
    options = {'leave_out': bad}
    loaded = Loader(shuffled(), num_workers)
    loaded.load_state_dict(state, **options)
    given = Loader(shuffled(), num_workers, load_options=options)
    given.load_state_dict(state)
    for loader in loaded, given:
        assert loader.batches_left == len(expected[0])
        assert read(loader) == expected[0]
        saved = loader.state_dict()
        assert read(loader) == expected[1]
        # The steps are before the position, but left out already.
        again = Loader(shuffled(), num_workers, load_options=options)
        again.load_state_dict(saved)
        assert read(again) == expected[1]
        again.load_state_dict(loader.state_dict())
        assert read(again) == EPOCHS[3]
    with pytest.raises(ValueError, match='cannot be left out'):
        Loader(shuffled(), load_options={'leave_out': [1]}).load_state_dict(
            state)


@pytest.mark.parametrize('num_workers', [0, 1, 2])
def test_steps_that_were_left_out_before_a_break_count(num_workers):
    """The next epochs have the steps that they have without a loader."""
    loader = Loader(shuffled(), num_workers)
    loader.load_state_dict(shuffled().state_dict(), leave_out=[1, 2, 4])
    steps = [[loader.current_step() for _ in itertools.islice(loader, 3)]
             for _ in range(2)]
    assert steps == [[0, 3, 5], [6, 7, 8]]
    assert EPOCHS[2] == read(loader)


def test_options_hold_whenever_a_state_is_loaded():
    """An iterator is not used up by the first one."""
    loader = Loader(shuffled(), load_options={'leave_out': iter([1])})
    for _ in range(2):
        loader.load_state_dict(shuffled().state_dict())
        assert EPOCHS[0][:1] + EPOCHS[0][2:] == read(loader)
    with pytest.raises(TypeError, match='must be a list of numbers'):
        Loader(shuffled(), load_options={'leave_out': 1})


@pytest.mark.parametrize('num_workers, persistent', WORKERS)
def test_workers_leave_out_what_another_process_was_asked_to(
        num_workers, persistent):
    """They started before the state was loaded, or it was loaded in workers
    that have ended."""
    start, size = shuffled().state_dict(), len(EPOCHS[0])
    expected = [EPOCHS[0][:1] + EPOCHS[0][2:], EPOCHS[1][1:], EPOCHS[2]]
    options = {'leave_out': [1, size]}
    batches = as_iterable(shuffled())
    ours = Loader(shuffled(), num_workers, persistent_workers=persistent)
    for source, loader in (ours, ours), (batches, DataLoader(
            batches, batch_size=None, num_workers=num_workers,
            persistent_workers=persistent)):
        read(loader)
        source.load_state_dict(start, **options)
        assert expected == [read(loader) for _ in range(3)]
        source.load_state_dict(start)
        assert EPOCHS[:2] == [read(loader) for _ in range(2)]

    def stateful(**options):
        return StatefulDataLoader(
            as_iterable(shuffled(), **options), batch_size=None,
            num_workers=num_workers, persistent_workers=persistent)
    loader, loaded = stateful(), stateful(load_options=options)
    iterator = iter(loader)
    next(iterator)
    loaded.load_state_dict(loader.state_dict())
    assert expected[0][1:] == read(loaded)
    assert expected[1:] == [read(loaded) for _ in range(2)]


@pytest.mark.parametrize('cls', [Loader, StatefulDataLoader])
@pytest.mark.parametrize('num_workers', [0, 2])
def test_other_data_are_accepted_on_request(cls, num_workers):
    """Frameworks load the state themselves, so the constructor takes it."""
    def build(count=20, **options):
        stream = DataStream(IndexableDataset(numpy.arange(count)),
                            iteration_scheme=SequentialScheme(20, 3))
        return Loader(stream, num_workers, **options) if cls is Loader else (
            cls(as_iterable(stream, **options), batch_size=None,
                num_workers=num_workers))

    loader = build()
    iterator = iter(loader)
    next(iterator)
    assert [3, 4, 5] == next(iterator)[0].tolist()
    state = loader.state_dict()
    del iterator
    other = build(21, load_options={'accept': ('data',)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        other.load_state_dict(state)
        assert [6, 7, 8] == next(iter(other))[0].tolist()
    if cls is Loader or not num_workers:
        assert 1 == sum('with other data' in str(one.message)
                        for one in caught)
        saved = other.state_dict()
        again = build(21)
        again.load_state_dict(saved)
        assert 4 == len(list(again))
    if cls is Loader:
        with pytest.raises(StateMismatchError, match='load_options'):
            build(21).load_state_dict(state)
        with pytest.warns(UserWarning, match='with other data'):
            build(21).load_state_dict(state, accept=('data',))


@pytest.mark.parametrize('persistent', [False, True])
def test_mixture_without_end_goes_on_in_the_next_epoch(persistent):
    """An epoch that was left ends with the last batch that came."""
    def mixture():
        return Mix([DataStream(
            IndexableDataset({'x': numpy.arange(first, first + 16)}),
            batch_size=3, shuffle=True, seed=first) for first in (0, 100)],
            seed=7, stop='forever', epoch_size=5)

    def loader(num_workers):
        return Loader(mixture(), num_workers,
                      persistent_workers=persistent and num_workers > 0)

    stream, worker = mixture(), loader(1)
    for _ in range(3):
        assert read(stream) == read(worker)
    here, worker = loader(0), loader(1)
    for count in None, 3, None, None:
        assert read(itertools.islice(here, count)) == read(
            itertools.islice(worker, count))
