"""Shares of ranks, refusals and warnings."""
import logging
import sys
import types

import numpy
import pytest
from support import sharded_pipelines as pipelines

from fuel.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    ConstantScheme, IterationScheme, SequentialScheme, Shard, ShardedScheme,
    ShuffledExampleScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cache, Cast, Filter, Mapping, MarkPadding, Merge, MultiProcessing,
    SeededTransformer, Transformer, Unpack)
from fuel.transformers.image import RandomFixedSizeCrop
from fuel.transformers.noise import GaussianNoise
from fuel.transformers.sequences import BucketBatch
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.utils.ranks import FoundRank, find_rank

LAUNCHERS = {
    'RANK', 'WORLD_SIZE', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE',
    'PMI_RANK', 'PMI_SIZE', 'MV2_COMM_WORLD_RANK', 'MV2_COMM_WORLD_SIZE',
    'SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_STEP_NUM_TASKS'}


def batches(count=12, size=3):
    """Return a stream of batches in order."""
    return DataStream(pipelines.dataset(count),
                      iteration_scheme=SequentialScheme(count, size))


def numbers(stream):
    """Return the examples of each batch, by number."""
    return [numpy.asarray(batch[1]).tolist() for batch in stream]


def is_even(example):
    """Tell whether an example is kept."""
    return example[1] % 2 == 0


class TestArguments:
    """Mistakes are refused where they are made."""

    @pytest.mark.parametrize('arguments, error, text', [
        ((4, 4), ValueError, 'rank must be from 0 to 3.*got 4'),
        ((-1, 4), ValueError, 'rank must not be negative'),
        ((0, 0), ValueError, 'num_shards must be a positive integer'),
        ((0.5, 4), TypeError, 'rank must be an integer, got 0.5'),
        ((0, None), TypeError, 'num_shards is missing'),
        ((0, 4, 'row'), ValueError, "by must be one of .*got 'row'"),
        ((0, 4, 'batch', 'cut'), ValueError, "uneven must be .*got 'cut'"),
        ((0, 4, 'example'), ValueError, 'batches of 3 examples over num_sh'),
    ])
    def test_wrong_share_is_refused(self, arguments, error, text):
        """A scheme and a stream refuse it."""
        with pytest.raises(error, match=text):
            batches().iteration_scheme.shard(*arguments)
        with pytest.raises(error, match=text):
            batches().shard(*arguments)

    @pytest.mark.parametrize('shard', [3, 'all', (1,), (0, 2, 'batch', 'x', 1)
                                       ])
    def test_shard_of_another_form_is_refused(self, shard):
        """The text says which there are."""
        with pytest.raises(TypeError, match=r'shard must be \(rank, num'):
            DataStream(pipelines.dataset(4), batch_size=2, shard=shard)

    def test_order_is_shared_once(self):
        """A share of a share would leave the other ranks out."""
        stream = batches().shard(0, 2)
        with pytest.raises(ValueError, match='sharded already'):
            stream.shard(0, 2)
        with pytest.raises(ValueError, match='sharded already'):
            stream.iteration_scheme.shard(0, 2)

    def test_batch_sizes_are_not_shared(self):
        """Batch sizes do not say which examples there are."""
        with pytest.raises(TypeError, match='how many examples to take'):
            ConstantScheme(3).shard(0, 2)

    def test_examples_are_not_split(self):
        """Only batches are split."""
        for stream in (DataStream(pipelines.dataset(4), shuffle=True),
                       Unpack(batches()),
                       DataStream(IterableDataset([1, 2]))):
            with pytest.raises(ValueError, match="by='example' splits batch"):
                stream.shard(0, 2, by='example')

    def test_stage_with_rng_is_refused(self):
        """A stage with rng= is refused: its draws depend on other ranks."""
        stage = RandomFixedSizeCrop(DataStream(
            IndexableDataset(numpy.zeros((4, 3, 5, 5))), batch_size=2),
            (2, 2))
        with pytest.raises(ValueError, match='RandomFixedSizeCrop.*seed='):
            stage.shard(0, 2)
        sharded = DataStream(IndexableDataset(numpy.zeros((4, 3, 5, 5))),
                             batch_size=2, shard=(0, 2))
        with pytest.raises(ValueError, match='RandomFixedSizeCrop.*seed='):
            RandomFixedSizeCrop(sharded, (2, 2)).get_epoch_iterator()

    def test_data_in_order_are_not_padded(self):
        """Their start cannot be read again."""
        with pytest.raises(ValueError, match='IterableDataset.*in order'):
            DataStream(IterableDataset([1, 2])).shard(0, 2, uneven='pad')

    def test_stage_that_depends_on_data_is_not_split(self):
        """Ranks would split other batches."""
        stage = BucketBatch(DataStream(
            pipelines.dataset(9), shuffle=True), 3, length_source='y')
        with pytest.raises(ValueError, match='items of BucketBatch depend'):
            stage.shard(0, 2, by='example')

    def test_merge_of_streams_without_numbers_is_refused(self):
        """Ranks would put other examples together."""
        stream = Merge([Filter(DataStream(
            pipelines.dataset(9), shuffle=True), is_even), DataStream(
                pipelines.dataset(9), shuffle=True)], tuple('abcd'))
        with pytest.raises(ValueError, match='are made of streams that'):
            stream.shard(0, 2)


class TestLaunchers:
    """The rank may come from the environment."""

    @pytest.fixture(autouse=True)
    def _clear(self, monkeypatch):
        for name in LAUNCHERS:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.delitem(sys.modules, 'jax', raising=False)

    @pytest.mark.parametrize('variables, expected', [
        ({}, (0, 1)),
        ({'RANK': '1', 'WORLD_SIZE': '3'}, (1, 3)),
        ({'OMPI_COMM_WORLD_RANK': '2', 'OMPI_COMM_WORLD_SIZE': '4'}, (2, 4)),
        ({'PMI_RANK': '2', 'PMI_SIZE': '3'}, (2, 3)),
        ({'SLURM_PROCID': '1', 'SLURM_NTASKS': '2'}, (1, 2)),
        ({'SLURM_PROCID': '1', 'SLURM_NTASKS': '8',
          'SLURM_STEP_NUM_TASKS': '2'}, (1, 2)),
        ({'SLURM_PROCID': '1', 'SLURM_NTASKS': '2', 'RANK': '0',
          'WORLD_SIZE': '4', 'PMI_RANK': '2', 'PMI_SIZE': '3'}, (0, 4)),
        ({'SLURM_PROCID': '1', 'SLURM_NTASKS': '2', 'PMI_RANK': '2',
          'PMI_SIZE': '3'}, (2, 3)),
    ])
    @pytest.mark.filterwarnings('ignore:.* cannot be shared evenly')
    def test_first_launcher_that_knows_is_asked(
            self, monkeypatch, caplog, variables, expected):
        """The order is torchrun, MPI, SLURM; the choice is logged."""
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with caplog.at_level(logging.INFO, 'fuel'):
            stream = DataStream(pipelines.dataset(12), batch_size=2,
                                shard='auto')
        assert expected == stream.iteration_scheme.sharding[:2]
        text = f'rank {expected[0]} of {expected[1]}'
        assert text in caplog.text
        assert expected == batches().shard(
            'auto').iteration_scheme.sharding[:2]

    def test_jax_is_asked_if_it_is_imported(self, monkeypatch):
        """JAX knows its rank where no launcher has set variables."""
        monkeypatch.setitem(sys.modules, 'jax', types.SimpleNamespace(
            process_index=lambda: 1, process_count=lambda: 5))
        assert (1, 5) == batches().shard('auto').iteration_scheme.sharding[:2]
        monkeypatch.setenv('RANK', '0')
        monkeypatch.setenv('WORLD_SIZE', '2')
        assert (0, 2) == batches().shard('auto').iteration_scheme.sharding[:2]

    def test_jax_is_not_started_where_that_does_harm(self, monkeypatch):
        """JAX is not started before a fork, or before a program uses it."""
        started = []
        monkeypatch.setitem(sys.modules, 'jax', types.SimpleNamespace(
            process_index=lambda: started.append(True) or 1,
            process_count=lambda: 5))
        monkeypatch.delitem(sys.modules, 'jax._src.xla_bridge', raising=False)
        assert not find_rank(starts_jax=False).is_known
        assert [] == started
        monkeypatch.setitem(
            sys.modules, 'jax._src.xla_bridge', types.SimpleNamespace(
                backends_are_initialized=lambda: True))
        assert (1, 5) == find_rank(starts_jax=False)[:2]

    @pytest.mark.parametrize('build', [
        lambda: batches().shard('auto'),
        lambda: DataStream(pipelines.dataset(12), batch_size=2, shard='auto'),
        lambda: Cast(batches(), 'float32').shard('auto')])
    def test_epoch_of_another_rank_than_was_found_is_refused(
            self, monkeypatch, build):
        """The stream may have been built before a trainer set the rank."""
        stream = build()
        assert len(list(stream)) in (4, 6)
        monkeypatch.setenv('RANK', '1')
        monkeypatch.setenv('WORLD_SIZE', '2')
        with pytest.raises(ValueError, match=(
                'taken as rank 0 of 1, but now this is rank 1 of 2, as '
                'torchrun .* says: take the share in each process after')):
            list(stream)
        stream = build()
        assert len(list(stream)) in (2, 3)
        # A missing environment variable does not contradict the rank.
        monkeypatch.delenv('RANK')
        assert len(list(stream)) in (2, 3)

    @pytest.mark.parametrize('rank, count', [('1', '2'), ('0', '3')])
    def test_found_share_is_refused_in_a_world_of_another_rank_or_size(
            self, monkeypatch, rank, count):
        """The same rank of another number of ranks has other items."""
        monkeypatch.setenv('RANK', '0')
        monkeypatch.setenv('WORLD_SIZE', '2')
        stream = batches().shard('auto')
        assert [[0, 1, 2], [6, 7, 8]] == numbers(stream)
        monkeypatch.setenv('RANK', rank)
        monkeypatch.setenv('WORLD_SIZE', count)
        with pytest.raises(ValueError, match=(
                f'taken as rank 0 of 2, but now this is rank {rank} of '
                f'{count}, as torchrun')):
            list(stream)

    def test_process_group_of_pytorch_is_asked_first(self, monkeypatch):
        """Trainers initialise one whose rank no variable may tell."""
        monkeypatch.setenv('RANK', '0')
        monkeypatch.setenv('WORLD_SIZE', '2')
        monkeypatch.setitem(
            sys.modules, 'torch.distributed', types.SimpleNamespace(
                is_available=lambda: True, is_initialized=lambda: True,
                get_rank=lambda: 2, get_world_size=lambda: 3))
        assert FoundRank(2, 3, 'torch.distributed') == find_rank()

    @pytest.mark.parametrize('rank, count, text', [
        ('one', '2', 'variable RANK must be an integer'),
        ('2', '2', 'rank 2 of 2, which is outside')])
    def test_wrong_variables_are_named(self, monkeypatch, rank, count, text):
        """The error shows the value."""
        monkeypatch.setenv('RANK', rank)
        monkeypatch.setenv('WORLD_SIZE', count)
        with pytest.raises(ValueError, match=text):
            batches().shard('auto')


def set_torchrun(monkeypatch, rank, count):
    """Set the variables that torchrun sets."""
    monkeypatch.setenv('RANK', str(rank))
    monkeypatch.setenv('WORLD_SIZE', str(count))


def set_process_group(monkeypatch, rank, count):
    """Initialise a process group, as a trainer does."""
    monkeypatch.setitem(
        sys.modules, 'torch.distributed', types.SimpleNamespace(
            is_available=lambda: True, is_initialized=lambda: True,
            get_rank=lambda: rank, get_world_size=lambda: count))


def set_jax(monkeypatch, rank, count):
    """Simulate JAX in several processes that SLURM started."""
    monkeypatch.setenv('SLURM_PROCID', str(rank))
    monkeypatch.setenv('SLURM_NTASKS', str(count))
    monkeypatch.setitem(sys.modules, 'jax', types.SimpleNamespace(
        process_index=lambda: rank, process_count=lambda: count))
    monkeypatch.setitem(
        sys.modules, 'jax._src.xla_bridge', types.SimpleNamespace(
            backends_are_initialized=lambda: True))


def six_batches(**kwargs):
    """Return a stream that four ranks cannot share evenly."""
    return DataStream(pipelines.dataset(12), batch_size=2, **kwargs)


class TestUnevenEpoch:
    """Ranks that wait for each other need as many batches."""

    @pytest.mark.parametrize('launch', [
        set_torchrun, set_process_group, set_jax])
    @pytest.mark.parametrize('build', [
        lambda: six_batches().shard('auto'),
        lambda: six_batches().shard(1, 4),
        lambda: Cast(six_batches(), 'float32').shard('auto'),
        lambda: six_batches(shard='auto'),
        lambda: six_batches(shard=(1, 4))])
    def test_user_is_warned_with_the_remedy(self, monkeypatch, launch, build):
        """The warning points once to the line that shares the stream."""
        launch(monkeypatch, 1, 4)
        with pytest.warns(UserWarning, match=(
                "6 batches cannot be shared evenly by 4 ranks.*uneven='drop'"
                ".*the last 2, 'pad'.*'uneven'")) as caught:
            build()
        assert [__file__] == [warning.filename for warning in caught]

    @pytest.mark.parametrize('build', [
        lambda: six_batches().shard('auto', uneven='uneven'),
        lambda: six_batches().shard('auto', uneven='drop'),
        lambda: DataStream(pipelines.dataset(15), batch_size=5).shard(
            'auto', by='example'),
        lambda: six_batches().shard(0, 5),
        lambda: six_batches().shard(0, 3),
        lambda: six_batches(shard=(1, 4, 'batch', 'uneven')),
        lambda: DataStream(pipelines.dataset(16), batch_size=2,
                           shard='auto')])
    def test_nobody_is_warned_of_what_was_chosen_or_fits(
            self, monkeypatch, build):
        """A warning would be an error here."""
        set_process_group(monkeypatch, 1, 4)
        build()

    def test_ranks_of_which_nothing_says_that_they_wait(self, monkeypatch):
        """A job of SLURM may convert files, each process for itself."""
        monkeypatch.setenv('SLURM_PROCID', '1')
        monkeypatch.setenv('SLURM_NTASKS', '4')
        assert 2 == len(six_batches().shard('auto'))


class Store(dict):
    """A store of a process group, in this process."""

    def compare_set(self, key, expected, desired):
        """Set a value if there is none, and return what there is."""
        assert expected == ''
        return self.setdefault(key, desired).encode()


@pytest.fixture
def rank(monkeypatch):
    """Return a function that shares a pipeline as a rank does, which is a
    process of a group of four: of several pipelines, one after another."""
    from fuel.sharding import shard_pipeline
    store = Store()
    monkeypatch.setitem(sys.modules, 'torch.distributed',
                        types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True,
        get_world_size=lambda: 4, distributed_c10d=types.SimpleNamespace(
            _get_default_store=lambda: store)))

    def share(*shares):
        # A process has a count of its own.
        shard_pipeline.counts.clear()
        for shard in shares:
            batches().shard(*shard)

    return share


def test_ranks_that_disagree_are_told_where_there_is_a_group(rank):
    """Each rank is a process with the counts of its own."""
    rank((0, 4))
    rank((1, 4))
    with pytest.raises(ValueError, match='disagree.*num_shards=3.*_shards=4'):
        rank((1, 3))
    with pytest.raises(ValueError, match="by='example'.*by='batch'"):
        rank((0, 3, 'example'))


def test_ranks_that_share_a_pipeline_twice_are_compared_each_time(rank):
    """The second share of a rank need not be that of the first."""
    rank((0, 4), (0, 3), (0, 2, 'example'))
    rank((1, 4), (1, 3), (1, 2, 'example'))
    with pytest.raises(ValueError, match='disagree.*num_shards=4.*_shards=3'):
        rank((1, 4), (1, 4))
    with pytest.raises(ValueError, match="by='batch'.*by='example'"):
        rank((1, 4), (1, 3), (1, 2, 'batch'))


class Seen(IndexableDataset):
    """Remembers which examples were read."""

    def get_data(self, state=None, request=None):
        """Read examples."""
        vars(self).setdefault('seen', []).extend(
            numpy.atleast_1d(request).tolist())
        return super().get_data(state, request)


READING = {
    'DataStream': lambda data: DataStream(
        data, iteration_scheme=ShuffledScheme(24, 4)),
    'Batch': lambda data: Batch(DataStream(
        data, iteration_scheme=ShuffledExampleScheme(24)), ConstantScheme(4)),
    'Cache': lambda data: Cache(DataStream(
        data, iteration_scheme=ShuffledScheme(24, 6)), ConstantScheme(4)),
    'Unpack': lambda data: Unpack(DataStream(
        data, iteration_scheme=ShuffledScheme(24, 4))),
    'ShuffleBuffer': lambda data: ShuffleBuffer(DataStream(
        data, iteration_scheme=ShuffledExampleScheme(24)), 5),
    'Filter': lambda data: Filter(DataStream(
        data, iteration_scheme=ShuffledExampleScheme(24)),
        lambda example: example[0] % 2 == 0),
}


@pytest.mark.parametrize('name, by', [
    *[(name, 'batch') for name in READING],
    *[(name, 'example') for name in ('DataStream', 'Batch', 'Cache')]])
def test_rank_reads_only_its_own_rows(name, by):
    """All examples are read, each by one rank, as evenly as can be."""
    found = []
    for rank in range(2):
        data = Seen(numpy.arange(24))
        list(READING[name](data).shard(rank, 2, by))
        assert 12 == len(data.seen)
        found += data.seen
    assert sorted(found) == list(range(24))


def test_stream_with_share_is_that_of_its_scheme():
    """Each way to give the share gives the same stream."""
    one = DataStream(pipelines.dataset(12), batch_size=3, shard=(1, 2))
    two = DataStream(pipelines.dataset(12),
                     iteration_scheme=SequentialScheme(12, 3).shard(1, 2))
    assert numbers(one) == numbers(two) == numbers(batches().shard(1, 2))
    assert numbers(one) == numbers(batches().shard(Shard(1, 2)))
    assert isinstance(one.iteration_scheme, ShardedScheme)
    assert 3 == one.iteration_scheme.batch_size


@pytest.mark.parametrize('by', ['batch', 'example'])
@pytest.mark.parametrize('uneven', ['uneven', 'drop', 'pad'])
@pytest.mark.parametrize('count', [1, 11, 12, 13, 14])
def test_length_is_that_of_the_rank(count, uneven, by):
    """Each policy for uneven epochs has the right length."""
    for rank in range(3):
        stream = batches(count).shard(rank, 3, by, uneven)
        assert len(stream) == len(list(stream))


def test_length_of_batches_of_a_shares_examples_is_what_is_left():
    """A rank's examples are known, and it counts its batches alone."""
    stream = Batch(DataStream(
        pipelines.dataset(28),
        iteration_scheme=ShuffledExampleScheme(28).shard(0, 3)),
        ConstantScheme(2))
    iterator = stream.get_epoch_iterator()
    left = [len(iterator)] + [len(iterator) for _ in iterator]
    assert left == [5, 4, 3, 2, 1, 0]


def test_next_epochs_go_on_from_the_same_generator():
    """Two streams that are sharded do not share one."""
    def build():
        return DataStream(pipelines.dataset(12),
                          iteration_scheme=ShuffledScheme(12, 3))
    stream = build()
    plain = [numbers(stream) for _ in range(2)]
    whole = build()
    parts = [whole.shard(rank, 2) for rank in range(2)]
    for epoch in plain:
        assert [epoch[rank::2] for rank in range(2)] == [
            numbers(part) for part in parts]


def test_ranks_of_one_stage_do_not_share_generators():
    """The stages below are copied; a stream read twice is copied once."""
    for plain in (Cache(pipelines.batches(12, 4), ConstantScheme(3)),
                  Merge([pipelines.batches(12, 4)] * 2, tuple('wxyz'))):
        parts = [plain.shard(rank, 2) for rank in range(2)]
        for _ in range(2):
            order = pipelines.items(plain)
            assert [order[rank::2] for rank in range(2)] == [
                pipelines.items(part) for part in parts]


class Own(IterationScheme):
    """A scheme of a user's, whose requests are a generator's."""

    requests_examples = False

    def get_request_iterator(self):
        """Return an iterator over lists."""
        return iter([[0, 1], [2, 3], [4, 5], [6, 7], [8]])

    def state_dict(self):
        """Return what there is."""
        return {}

    def load_state_dict(self, state):
        """Take it up."""


class Foreign:
    """A scheme that derives from nothing."""

    requests_examples = False

    def get_request_iterator(self):
        """Return an iterator over lists."""
        return iter([[0, 1], [2, 3], [4, 5], [6, 7], [8]])


@pytest.mark.parametrize('scheme', [Own, Foreign])
@pytest.mark.parametrize('uneven, expected', [
    ('uneven', [[[0, 1], [6, 7]], [[2, 3], [8]], [[4, 5]]]),
    ('drop', [[[0, 1]], [[2, 3]], [[4, 5]]]),
    ('pad', [[[0, 1], [6, 7]], [[2, 3], [8]], [[4, 5], [0, 1]]])])
def test_scheme_of_a_user_is_shared(scheme, uneven, expected):
    """A user's scheme may make its requests in any way."""
    assert expected == [numbers(DataStream(
        pipelines.dataset(9), iteration_scheme=scheme()).shard(
            rank, 3, uneven=uneven)) for rank in range(3)]


class OwnBatches(Own):
    """A scheme that says how large its batches are."""

    batch_size = 2


@pytest.mark.parametrize('uneven, expected', [
    ('uneven', [[[0], [2], [4], [6]], [[1], [3], [5], [7], [8]]]),
    ('drop', [[[0], [2], [4], [6]], [[1], [3], [5], [7]]]),
    ('pad', [[[0], [2], [4], [6], [8]], [[1], [3], [5], [7], [0]]])])
def test_batches_of_a_users_scheme_are_split(uneven, expected):
    """None of its requests is known by its number."""
    assert expected == [numbers(DataStream(
        pipelines.dataset(9), iteration_scheme=OwnBatches()).shard(
            rank, 2, by='example', uneven=uneven)) for rank in range(2)]


class OwnExamples(IterationScheme):
    """A scheme of a user's, which does not say how many requests it has."""

    requests_examples = True

    def get_request_iterator(self):
        """Return an iterator over numbers."""
        return iter(range(9, -1, -1))


@pytest.mark.parametrize('stage', [
    lambda stream: Batch(stream, ConstantScheme(3)),
    lambda stream: ShuffleBuffer(stream, 3, seed=1)],
    ids=['batch', 'shuffle buffer'])
def test_stage_shares_the_requests_of_a_users_scheme(stage):
    """No item of it is known without those before it."""
    def build():
        return stage(DataStream(
            pipelines.dataset(10), iteration_scheme=OwnExamples()))
    parts = [numpy.concatenate([numpy.ravel(item[1]) for item in build(
        ).shard(rank, 2)]).tolist() for rank in range(2)]
    assert [5, 5] == list(map(len, parts))
    assert list(range(10)) == sorted(parts[0] + parts[1])


def test_scheme_of_a_user_goes_on_on_another_number_of_ranks():
    """Its requests are taken again, and left out."""
    def build():
        return DataStream(pipelines.dataset(9), iteration_scheme=Own())
    stream = build().shard(0, 2)
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    rest = []
    for rank in range(3):
        other = build().shard(rank, 3, uneven='pad')
        other.load_state_dict(state)
        rest.append(numbers(other))
    assert [[[4, 5]], [[6, 7]], [[8]]] == rest


class TestDependingOnData:
    """Stages whose order depends on the data share what they read."""

    def build(self):
        """Return a filter that keeps half of the examples."""
        return Batch(Filter(DataStream(
            pipelines.dataset(24),
            iteration_scheme=ShuffledExampleScheme(24)), is_even),
            ConstantScheme(2))

    def test_ranks_get_each_example_once(self):
        """Each rank makes batches of its own."""
        found = [number for rank in range(3)
                 for batch in numbers(self.build().shard(rank, 3))
                 for number in batch]
        assert sorted(found) == list(range(0, 24, 2))

    def test_each_rank_takes_up_its_own_state(self):
        """The state is taken up at each step."""
        for rank in range(3):
            expected = numbers(self.build().shard(rank, 3))
            for step in range(len(expected)):
                stream = self.build().shard(rank, 3)
                epoch = stream.get_epoch_iterator()
                for _ in range(step):
                    next(epoch)
                other = self.build().shard(rank, 3)
                other.load_state_dict(stream.state_dict())
                assert expected[step:] == numbers(other)

    @pytest.mark.parametrize('shard', [(1, 3), (0, 2), None])
    def test_state_of_another_rank_is_refused_by_name(self, shard):
        """A state of another world size is refused."""
        stream = self.build().shard(0, 3)
        next(stream.get_epoch_iterator())
        other = self.build()
        if shard:
            other = other.shard(*shard)
        with pytest.raises(StateMismatchError,
                           match='order of stage Batch depends on the data.*'
                           'saved by rank 0 of 3'):
            other.load_state_dict(stream.state_dict())

    def test_state_of_a_batch_of_what_is_unpacked_is_that_of_a_rank(self):
        """The rank makes batches of its examples; Cache those of all."""
        def batches():
            return DataStream(pipelines.dataset(24), batch_size=4)

        def build():
            return Batch(Unpack(batches()), batch_size=3)

        whole = numbers(build())
        stream = build().shard(0, 2)
        assert whole[::2] != numbers(stream)
        next(stream.get_epoch_iterator())
        with pytest.raises(StateMismatchError, match=(
                'order of stage Batch depends on the data, or on which of '
                'them its rank reads, so its state belongs to one rank')):
            build().shard(0, 3).load_state_dict(stream.state_dict())
        for rank in range(2):
            assert whole[rank::2] == numbers(Cache(
                batches(), ConstantScheme(3)).shard(rank, 2))

    def test_noise_differs_between_ranks(self):
        """Their items have numbers of their own."""
        def build():
            return GaussianNoise(Filter(DataStream(IndexableDataset(
                numpy.zeros((8, 4))), shuffle=True), bool_of), 1.)
        first, second = (
            [row.tolist() for row, in build().shard(rank, 2)]
            for rank in range(2))
        assert 4 == len(first) == len(second)
        assert not [row for row in first if row in second]


def bool_of(example):
    """Keep everything."""
    return True


@pytest.mark.parametrize('workers', [1, 2])
@pytest.mark.parametrize('by', ['batch', 'example'])
def test_workers_make_the_share_of_a_rank(workers, by):
    """The states of the workers are those of the whole order."""
    def build():
        return MultiProcessing(GaussianNoise(
            pipelines.batches(24, 4), .5, which_sources=('x',)),
            num_workers=workers)
    with build() as stream:
        plain = pipelines.rows(stream)
    seen = []
    for rank in range(3):
        with build().shard(rank, 3, by) as stream:
            seen += pipelines.rows(stream, 1)
            state = stream.state_dict()
    for rank in range(2):
        with build().shard(rank, 2, by) as stream:
            stream.load_state_dict(state)
            seen += pipelines.rows(stream)
    assert sorted(sum(plain, [])) == sorted(sum(seen, []))


def test_worker_of_a_split_batch_knows_its_rows():
    """A stage behind it does not, and says so."""
    stream = MultiProcessing(pipelines.halves(pipelines.batches(24, 4)))
    with GaussianNoise(stream, .5, which_sources=('x',)).shard(
            0, 2, 'example') as noisy, pytest.raises(
                NotImplementedError, match='cannot know which rows'):
        next(noisy.get_epoch_iterator())


class Mask(SeededTransformer):
    """A random stage of a user's, which draws for what it sees."""

    def transform_batch(self, batch):
        """Return a batch of random numbers."""
        return (*batch[:-1], self.generator().random(len(batch[0])))


def test_stage_that_draws_for_what_it_sees_is_not_split():
    """The error names the method `draw_rows`, which says what to draw by."""
    stream = Mask(batches(), False).shard(0, 2, 'example')
    with pytest.raises(NotImplementedError, match='Mask.*draw_rows'):
        next(stream.get_epoch_iterator())
    whole = numbers(Mask(batches(), False))
    assert whole[1::2] == numbers(Mask(batches(), False).shard(1, 2))


def test_ragged_noise_does_not_depend_on_ranks():
    """Each row has a generator of its own."""
    def build():
        rows = numpy.empty(8, object)
        for place in range(8):
            rows[place] = numpy.zeros(place % 3 + 1)
        return GaussianNoise(DataStream(IndexableDataset(rows),
                                        batch_size=4), 1.)
    whole = [[row.tolist() for row in batch] for batch, in build()]
    parts = [[[row.tolist() for row in batch]
              for batch, in build().shard(rank, 2, 'example')]
             for rank in range(2)]
    assert whole == [one + other for one, other in zip(*parts, strict=True)]


class Failing(Transformer):
    """Fails on some batches."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_batch(self, batch):
        """Return the batch, unless it begins with 6."""
        if batch[1][0] == 6:
            raise ValueError('6 cannot be read')
        return batch


def test_failed_batch_moves_no_other_and_no_draw():
    """The rank that meets it goes on with its next."""
    def build():
        return GaussianNoise(Failing(batches(24, 2)), 1.,
                             which_sources=('x',))
    seen, errors = {}, 0
    for ranks in (1, 3):
        seen[ranks] = []
        for rank in range(ranks):
            epoch = build().shard(rank, ranks).get_epoch_iterator()
            for _ in range(12):
                try:
                    seen[ranks] += pipelines.items(epoch, 1)
                except ValueError:
                    errors += 1
    assert 2 == errors
    assert 11 == len(seen[1])
    assert sorted(seen[1]) == sorted(seen[3])


class TestMarks:
    """Padding is marked where that is asked for."""

    @pytest.mark.parametrize('build', [
        lambda: batches(10, 3),
        lambda: Batch(DataStream(
            pipelines.dataset(10), shuffle=True), ConstantScheme(3)),
        lambda: Cache(batches(10, 5), ConstantScheme(3))])
    @pytest.mark.parametrize('by', ['batch', 'example'])
    def test_examples_that_are_not_marked_come_once(self, build, by):
        """Ranks may share batches or examples."""
        found, marked = [], 0
        for rank in range(3):
            for batch in MarkPadding(build().shard(rank, 3, by, 'pad')):
                assert (len(batch[1]),) == batch[2].shape
                found += batch[1][~batch[2]].tolist()
                marked += int(batch[2].sum())
        assert sorted(found) == list(range(10))
        # A round of three batches lacks two, a batch of three two examples.
        assert marked == (6 if by == 'batch' else 2)

    def test_marks_are_shared_with_the_pipeline(self):
        """The stage may come before the share is taken."""
        marked = MarkPadding(Unpack(batches(4, 2)), 'again')
        assert ('x', 'y', 'again') == marked.sources
        assert [[(0, False), (3, False)], [(1, False), (0, True)],
                [(2, False), (1, True)]] == [
            [(int(y), again) for _, y, again in marked.shard(
                rank, 3, uneven='pad')] for rank in range(3)]

    def test_marks_behind_other_processes_are_refused(self):
        """The stage cannot see what other processes repeat."""
        with pytest.raises(ValueError, match='before that stage'):
            MarkPadding(MultiProcessing(batches()))
        with pytest.raises(ValueError, match='must be a new name'):
            MarkPadding(batches(), 'x')


def test_hdf5_file_is_shared(tmp_path):
    """Contiguous and compressed data and single examples are shared."""
    import h5py
    with h5py.File(tmp_path / 'data.hdf5', 'w') as file:
        file['x'] = numpy.arange(40.).reshape(20, 2)
        file.create_dataset('z', data=numpy.arange(20), chunks=(3,),
                            compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 20), 'z': (0, 20)}})
    for sources in (('x',), ('z',), ('x', 'z')):
        with H5PYDataset(tmp_path / 'data.hdf5', ('train',),
                         sources=sources) as data:
            for scheme in (ShuffledScheme(20, 3), ShuffledExampleScheme(20)):
                stream = DataStream(data, iteration_scheme=scheme)
                order = pipelines.items(stream.shard(0, 1))
                for by in ('batch', 'example')[:1]:
                    assert [order[rank::3] for rank in range(3)] == [
                        pipelines.items(stream.shard(rank, 3, by))
                        for rank in range(3)]


def test_mapping_on_batches_is_shared_below():
    """A mapping may change the rows of a batch, so later rows are unknown."""
    def build():
        return Unpack(Mapping(batches(), tuple))
    found = [int(y) for rank in range(2) for _, y in build().shard(rank, 2)]
    assert sorted(found) == list(range(12))
    stream = build().shard(0, 2)
    next(stream.get_epoch_iterator())
    with pytest.raises(StateMismatchError, match='stage Unpack depends'):
        build().shard(0, 3).load_state_dict(stream.state_dict())
