"""Features of users' classes are not taken for something else."""
from unittest import mock

import numpy
import pytest

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Mix, Transformer, Unpack


def batches(scheme=None):
    """Return a stream of four batches."""
    return DataStream(IndexableDataset(numpy.arange(8)),
                      iteration_scheme=scheme or SequentialScheme(8, 2))


def lists(stream):
    """Return the data of a stream as lists."""
    return [data.tolist() for data, in stream]


class Same(Transformer):
    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_batch(self, batch):
        return batch


class AsksItsBase(Same):
    def __len__(self):
        return super().__len__()


class CountsItsEpoch(Same):
    def __len__(self):
        return len(list(self.get_epoch_iterator()))


@pytest.mark.parametrize('stage', [AsksItsBase, CountsItsEpoch])
def test_length_may_ask_the_stream_itself(stage):
    """Its epoch iterators do not ask it in turn."""
    assert 4 == len(list(stage(batches()).get_epoch_iterator()))
    assert 4 == len(stage(batches())) == len(Same(stage(batches())))


def test_length_that_raises_hinders_no_epoch():
    """A list asks an iterator how long it is."""

    class Unknown(Same):
        def __len__(self):
            raise NotImplementedError

    assert 4 == len(list(Unknown(batches()).get_epoch_iterator()))


class Abstract(Same):
    """A stage of single rows, whose classes say what to do with them."""

    must_override = ('cook',)
    epoch_attributes = ('child_epoch_iterator', 'rows', 'before')

    def get_epoch_iterator(self, **kwargs):
        self.rows, self.before = [], None
        return super().get_epoch_iterator(**kwargs)

    def _fill(self):
        self.before = self.child_epoch_iterator.get_position()
        self.rows = list(next(self.child_epoch_iterator)[0])

    def get_data(self, request=None):
        if not self.rows:
            self._fill()
        return self.cook(self.rows.pop(0)),

    def get_leftover(self):
        return len(self.rows) or None

    def get_child_position(self):
        return self.before if self.rows else None

    def set_leftover(self, leftover):
        self._fill()
        self.rows = self.rows[-leftover:]


class Doubled(Abstract):
    def cook(self, row):
        return 2 * int(row)


@pytest.mark.parametrize('count', range(1, 8))
def test_abstract_class_of_a_user_keeps_left_overs(count):
    """Its `must_override` is not that of Fuel."""
    epoch = Doubled(batches()).get_epoch_iterator()
    for _ in range(count):
        next(epoch)
        state = epoch.state_dict()
    restored = Doubled(batches())
    restored.load_state_dict(state)
    assert list(epoch) == list(restored.get_epoch_iterator())


def test_position_of_a_foreign_iterator_is_not_told():
    """The class may have a `start_epoch` of its own, too."""

    class Foreign(Same):
        def start_epoch(self):
            super().start_epoch()

        def get_epoch_iterator(self):
            return iter(list(self.data_stream.get_epoch_iterator()))

    stage = Foreign(batches())
    next(stage.get_epoch_iterator())
    with pytest.raises(TypeError, match='makes no DataIterator'):
        stage.state_dict()


class Requests:
    """A stream that only has what every stream has, and a scheme."""

    sources = ('data',)
    produces_examples = False
    axis_labels = None

    def __init__(self):
        self.iteration_scheme = SequentialScheme(8, 2)

    def get_epoch_iterator(self, as_dict=False):
        return iter([(numpy.array(request),) for request
                     in self.iteration_scheme.get_request_iterator()])


def test_foreign_stream_with_a_scheme_is_shared():
    """The scheme of the stream is shared."""
    assert [[2, 3], [6, 7]] == lists(
        Same(Requests()).shard(1, 2).get_epoch_iterator())


def test_share_of_a_stage_that_knows_its_kind_only_in_an_epoch():
    """Nothing else than what it draws is asked of it before."""

    class Late(Same):
        @property
        def one_to_one(self):
            return self.child_epoch_iterator is not None

    assert [[2, 3], [6, 7]] == lists(Late(batches()).shard(1, 2))


def test_method_may_be_replaced_by_one_that_names_no_module():
    """The replacement is called."""
    with mock.patch.object(Transformer, 'get_data', str.upper), \
            pytest.raises(TypeError, match='upper'):
        next(Same(batches()).get_epoch_iterator())


class Versioned(ShuffledScheme):
    """A scheme that had no version before."""

    version = 2

    def state_dict(self):
        return {**super().state_dict(), 'version': self.version}

    def load_state_dict(self, state):
        state = dict(state)
        self.version = state.pop('version', 1)
        super().load_state_dict(state)


def test_scheme_of_a_user_takes_up_what_an_older_one_saved():
    """The scheme itself decides how to read the older state."""
    state = batches(Versioned(8, 2)).state_dict()
    del state['crc'], state['scheme']['version']
    stream = batches(Versioned(8, 2))
    stream.load_state_dict(state)
    assert 1 == stream.iteration_scheme.version


class Lines(IterableDataset):
    def open(self):
        return [0]

    def get_data(self, state=None, request=None):
        if state[0] == 6:
            raise StopIteration
        state[0] += 1
        return state[0],

    def get_position(self, state):
        return {'line': state[0]}

    def open_at(self, position):
        return [position.get('line', position.get('row'))]


def test_data_set_of_a_user_takes_up_what_an_older_one_saved():
    """The data set itself decides how to read the older state."""
    epoch = DataStream(Lines(range(6))).get_epoch_iterator()
    next(epoch)
    state = epoch.state_dict()
    del state['crc']
    state['dataset'] = {'row': state['dataset'].pop('line')}
    stream = DataStream(Lines(range(6)))
    stream.load_state_dict(state)
    assert list(epoch) == list(stream.get_epoch_iterator())


def test_older_states_of_the_same_format_fit():
    """A scheme took no `drop_last`, and a module had another name."""
    def build():
        return Batch(Mix([Unpack(batches()), Unpack(batches())]),
                     iteration_scheme=ConstantScheme(3))

    state = build().state_dict()
    del state['crc'], state['stream']['scheme drop_last']
    state['children'][0]['stream']['scheme weights_of'] = (
        'fuel.transformers.mixture_weights.MixtureWeights.at')
    build().load_state_dict(state)
