"""Saved states that are damaged, or of another pipeline, are refused."""
import copy
import functools
import json
import random
from inspect import Signature

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuel.datasets import H5PYDataset, IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.transformers import Batch, Cache, Mapping, MultiProcessing, Unpack
from fuel.transformers.bucketing import BucketBatch
from fuel.transformers.image import RandomHorizontalFlip
from fuel.transformers.noise import SaltAndPepper
from fuel.transformers.sequences import Window
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.utils.signatures import signature_of


def double(data):
    """Return numbers, doubled."""
    return tuple(2 * part for part in data)


def halve(data):
    """Return numbers, halved."""
    return tuple(part / 2 for part in data)


def numbers(scheme, count=12):
    """Return a stream over numbers."""
    return DataStream(IndexableDataset(numpy.arange(count)),
                      iteration_scheme=scheme)


STREAMS = {
    'shuffled': lambda: numbers(ShuffledScheme(12, 4)),
    'generator': lambda: numbers(ShuffledScheme(
        12, 4, rng=numpy.random.default_rng(3))),
    'python generator': lambda: numbers(ShuffledScheme(
        12, 4, rng=random.Random(3))),
    'concatenated': lambda: numbers(ConcatenatedScheme(
        [ShuffledScheme(6, 4), SequentialScheme([9, 11], 1)])),
    'mapping': lambda: Mapping(numbers(SequentialScheme(12, 4)), double),
    'iterable': lambda: DataStream(IterableDataset(list(range(9)))),
    'batch': lambda: Batch(numbers(ShuffledExampleScheme(12)),
                           ConstantScheme(5)),
    'unpack': lambda: Unpack(numbers(ShuffledScheme(12, 4))),
    'cache': lambda: Cache(numbers(SequentialScheme(12, 4)),
                           ConstantScheme(3)),
    'noise': lambda: SaltAndPepper(
        numbers(SequentialScheme(12, 4)), .5, 0, 1),
    'shuffle buffer': lambda: ShuffleBuffer(STREAMS['iterable'](), 4),
    'buckets': lambda: BucketBatch(sentences(), 8, pool_size=4),
    'window': lambda: Window(1, 2, 2, True, sentences()),
}
# Those that keep something between two batches, or a place in the data.
KEEPING = ['batch', 'buckets', 'cache', 'iterable', 'noise',
           'shuffle buffer', 'unpack', 'window']


def sentences():
    """Return a stream over sequences of 1 to 5 numbers."""
    return DataStream(IterableDataset(
        [list(range(1 + n % 5)) for n in range(9)]))


def paths(value, path=()):
    """Yield the path of every part of a state, containers included."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, list):
        for place in range(min(3, len(value))):
            yield from paths(value[place], (*path, place))


def mutated(state, path, change):
    """Return a copy of a state with one part changed, added or removed."""
    state = copy.deepcopy(state)
    if not path:
        return state if change == 'remove' else change
    parent = functools.reduce(lambda part, key: part[key], path[:-1], state)
    if change == 'remove':
        del parent[path[-1]]
    else:
        parent[path[-1]] = change
    return state


def rest(stream):
    """Return what a stream still has to give, and its next epoch."""
    return [[numpy.asarray(part).tolist() for part in data]
            for _ in range(2) for data in stream.get_epoch_iterator()]


CHANGES = st.one_of(
    st.just('remove'), st.none(), st.booleans(), st.integers(),
    st.sampled_from([-1, 0, 1, 2, 3, 625, 10 ** 9, 2 ** 32, 2 ** 64]),
    st.floats(), st.text(max_size=3), st.just([]), st.just({}),
    st.just([{}]), st.just({'kind': 'random.Random'}))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_state_with_one_change_is_refused_or_a_position(data):
    """No other error comes, neither when it is loaded nor afterwards."""
    build = STREAMS[data.draw(st.sampled_from(sorted(STREAMS)))]
    stream = build()
    epoch = stream.get_epoch_iterator()
    for _ in range(data.draw(st.integers(0, 4))):
        next(epoch, None)
    state = json.loads(json.dumps(stream.state_dict()))
    path = data.draw(st.sampled_from(sorted(paths(state), key=repr)))
    changed = mutated(state, path, data.draw(CHANGES))
    sealed_again = data.draw(st.booleans())
    if sealed_again and isinstance(changed, dict):
        changed.pop('crc', None)
    other = build()
    untouched = rest(build())
    error = refusal(lambda: other.load_state_dict(changed))
    if error:
        names = {key for key in path if isinstance(key, str)} or {'state'}
        assert any(name in error for name in names | {'crc'})
        # The stream is as it was.
        assert untouched == rest(other)
    else:
        error = refusal(lambda: rest(other))
        assert not error or 'leftover' in error


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_kept_things_with_one_change_are_refused_or_possible(data):
    """A state with one change of kept data or of the data set's position,
    sealed again, is loaded or refused. The error names the change or the kept
    data."""
    build = STREAMS[data.draw(st.sampled_from(KEEPING))]
    stream = build()
    epoch = stream.get_epoch_iterator()
    for _ in range(data.draw(st.integers(0, 4))):
        next(epoch, None)
    state = json.loads(json.dumps(stream.state_dict()))
    path = data.draw(st.sampled_from(sorted(
        [path for path in paths(state) if 'stream' not in path
         and ({*path} & {'leftover', 'dataset'})], key=repr)))
    changed = mutated(state, path, data.draw(CHANGES))
    changed.pop('crc')
    other = build()
    error = refusal(lambda: (other.load_state_dict(changed), rest(other)))
    assert not error or any(
        name in error for name in ('leftover', *path)
        if isinstance(name, str))


def refusal(function):
    """Return the text of a StateMismatchError; empty if there is none."""
    try:
        function()
    except StateMismatchError as error:
        return str(error)
    return ''


@pytest.mark.parametrize('name', STREAMS)
def test_state_with_another_byte_is_refused_by_its_checksum(name):
    """The checksum fails also where the damaged position exists."""
    stream = STREAMS[name]()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    state = stream.state_dict()
    damaged = {**state, 'position': state['position'] + 1,
               'requested': state['requested'] + 1}
    with pytest.raises(StateMismatchError, match="'crc'"):
        STREAMS[name]().load_state_dict(damaged)


@pytest.mark.parametrize('field, value', [
    ('epoch', 'banana'), ('requested', 10 ** 9), ('requested', 2.5),
    ('requested', True), ('requested', -1), ('position', None),
    ('scheme', {}), ('scheme', None), ('leftover', {'used': 1}),
    ('failed', [2, 1]), ('failed', 'no'), ('children', [{}]),
    ('rng', {'kind': 'random.Random'}), ('dataset', 3), ('unknown', 1)])
def test_state_with_an_impossible_value_names_the_field(field, value):
    """The checksum, which a careful forger renews, is not needed."""
    stream = STREAMS['shuffled']()
    next(stream.get_epoch_iterator())
    state = {**stream.state_dict(), field: value}
    del state['crc']
    other = STREAMS['shuffled']()
    with pytest.raises(StateMismatchError, match=field):
        other.load_state_dict(state)
        list(other.get_epoch_iterator())


@pytest.mark.parametrize('key, value', [
    ('pos', 625), ('pos', 10 ** 6), ('pos', -1), ('has_gauss', 2),
    ('gauss', float('nan')), ('key', 'AAAA'), ('key', '?' * 3328),
    ('key', [1] * 624), ('key', 'A' * 3327 + '=')])
def test_state_of_a_generator_outside_of_its_bounds_is_refused(key, value):
    """NumPy would read memory that is not the generator's."""
    stream = STREAMS['shuffled']()
    state = stream.state_dict()
    del state['crc']
    generator = state['scheme']['rng']['state']
    (generator['state'] if key in {'pos', 'key'} else generator)[key] = value
    with pytest.raises(StateMismatchError, match=f'scheme.*{key}'):
        STREAMS['shuffled']().load_state_dict(state)


def test_state_is_the_callers_own():
    """Neither the stream nor its state changes with the other."""
    stream = STREAMS['batch']()
    epoch = stream.get_epoch_iterator()
    next(epoch)
    state = stream.state_dict()
    text = json.dumps(state)
    other = STREAMS['batch']()
    other.load_state_dict(state)
    state['children'][0]['scheme']['rng']['state']['state']['pos'] = 7
    state['position'] = 'banana'
    assert text == json.dumps(other.state_dict())
    given_back = other.state_dict()
    given_back['leftover'] = given_back['children'] = None
    assert rest(other) == rest_of(text)


def rest_of(text):
    """Return what the stream restored from a text still has to give."""
    stream = STREAMS['batch']()
    stream.load_state_dict(json.loads(text))
    return rest(stream)


class Crop(Mapping):
    """A stage with arguments."""

    def __init__(self, stream, size, mean=None):
        super().__init__(stream, double)
        self.size = size
        self.mean = mean


@pytest.mark.parametrize('saved, loaded, text', [
    (lambda: numbers(SequentialScheme([0, 1, 2], 1)),
     lambda: numbers(SequentialScheme([0, 2, 1], 1)), 'examples'),
    (lambda: numbers(SequentialScheme(list(range(99)), 1), 99),
     lambda: numbers(SequentialScheme(list(range(99))[::-1], 1), 99),
     'examples'),
    (lambda: Mapping(STREAMS['shuffled'](), double),
     lambda: Mapping(STREAMS['shuffled'](), halve), 'mapping'),
    (lambda: Crop(STREAMS['shuffled'](), (3, 3)),
     lambda: Crop(STREAMS['shuffled'](), (3, 4)), 'size'),
    (lambda: Crop(STREAMS['shuffled'](), 3, numpy.zeros(99)),
     lambda: Crop(STREAMS['shuffled'](), 3, numpy.ones(99)), 'mean'),
])
def test_state_of_a_pipeline_with_other_arguments_is_refused(
        saved, loaded, text):
    """Arguments that decide values or their order must be the same."""
    state = saved().state_dict()
    saved().load_state_dict(json.loads(json.dumps(state)))
    with pytest.raises(StateMismatchError, match=text):
        loaded().load_state_dict(state)


# Names of arguments of Fuel's own classes that decide no value there.
NAMES_OF_FREE_ARGUMENTS = [
    'subset', 'path', 'device', 'rank', 'timeout', 'prefetch', 'files',
    'copies', 'kwargs']


def stage_with(name, value, declared=()):
    """Return a user's stage with an argument of a name, which it keeps."""
    class Stage(Mapping):
        unsaved_arguments = declared

    def construct(self, data_stream, value):
        Mapping.__init__(self, data_stream, double)
        setattr(self, name, value)
    parameters = list(signature_of(construct).parameters.values())
    construct.__signature__ = Signature([
        *parameters[:-1], parameters[-1].replace(name=name)])
    Stage.__init__ = construct
    return Stage(STREAMS['shuffled'](), value)


@pytest.mark.parametrize('name', NAMES_OF_FREE_ARGUMENTS)
@pytest.mark.parametrize('saved, loaded', [(1, 2), (None, 2), (1, None)])
def test_state_of_a_users_stage_fits_whatever_its_arguments_are_called(
        name, saved, loaded):
    """Only what its class declares need not fit."""
    state = stage_with(name, saved).state_dict()
    stage_with(name, saved).load_state_dict(state)
    with pytest.raises(StateMismatchError, match=(
            f'{name} was {saved}, but here it is {loaded} .* unsaved_arg')):
        stage_with(name, loaded).load_state_dict(state)
    state = stage_with(name, saved, (name,)).state_dict()
    stage_with(name, loaded, (name,)).load_state_dict(state)


@pytest.mark.parametrize('name, saved, loaded', [
    ('window_shape', 3, None), ('storage_options', {}, None),
    ('drop_last', None, False), ('flat_targets', None, False),
    ('files', None, 2), ('missing', None, []),
    ('parameters', 'Mean', {'class': 'Mean'})])
def test_argument_of_a_users_stage_is_not_one_that_fuel_takes_elsewhere(
        name, saved, loaded):
    """Older states say such arguments of Fuel's own parts otherwise."""
    state = stage_with(name, saved).state_dict()
    with pytest.raises(StateMismatchError, match=f': {name} was '):
        stage_with(name, loaded).load_state_dict(state)


def test_argument_that_an_old_pickle_lacks_is_that_of_the_class():
    """A state fits the same scheme, built now."""
    old = ShuffledScheme(12, 5)
    del old.drop_last
    state = numbers(old).state_dict()
    numbers(ShuffledScheme(12, 5)).load_state_dict(state)
    with pytest.raises(StateMismatchError, match='drop_last was False'):
        numbers(ShuffledScheme(12, 5, drop_last=True)).load_state_dict(state)


class Share(SequentialScheme):
    """A scheme of a user's."""

    def __init__(self, rank):
        super().__init__(range(rank, 12, 2), 2)
        self.rank = rank


def test_state_of_a_users_scheme_fits_whatever_its_arguments_are_called():
    """The arguments of a scheme are compared as those of a stage."""
    state = numbers(Share(0)).state_dict()
    numbers(Share(0)).load_state_dict(state)
    with pytest.raises(StateMismatchError, match='scheme rank was 0, but he'):
        numbers(Share(1)).load_state_dict(state)


@pytest.mark.parametrize('arguments', [
    {'folder': 'b'}, {'load_in_memory': True}, {'driver': 'core'},
    {'cache_bytes': 0}, {'sort_indices': False}, {'num_threads': 2},
    {'max_store': 2}, {'max_store': 2, 'num_workers': 2}, {'timeout': 9.}],
    ids=lambda arguments: '-'.join(arguments))
def test_state_fits_wherever_data_lie_and_however_fast_they_come(
        tmp_path, arguments):
    """Arguments that change no value are not part of a state."""
    for folder in 'ab':
        (tmp_path / folder).mkdir()
        with h5py.File(tmp_path / folder / 'images.hdf5', 'w') as file:
            file['x'] = numpy.arange(12 * 4).reshape(12, 1, 2, 2)
            for axis, label in enumerate(
                    ('batch', 'channel', 'height', 'width')):
                file['x'].dims[axis].label = label
            file.attrs['split'] = H5PYDataset.create_split_array(
                {'train': {'x': (0, 12)}})

    def build(folder='a', num_threads=1, **kwargs):
        workers = {name: kwargs.pop(name) for name in (
            'max_store', 'num_workers', 'timeout') if name in kwargs}
        stream = RandomHorizontalFlip(DataStream(
            H5PYDataset(tmp_path / folder / 'images.hdf5', ('train',),
                        **kwargs),
            iteration_scheme=ShuffledScheme(12, 2)), seed=3,
            num_threads=num_threads)
        return MultiProcessing(
            stream, start_method='fork', **workers) if workers else stream

    for saved, loaded in ({}, arguments), (arguments, {}):
        with build(**saved) as stream:
            epoch = stream.get_epoch_iterator()
            next(epoch)
            state = json.loads(json.dumps(stream.state_dict()))
            expected = [batch.tolist() for batch, in epoch]
        with build(**loaded) as other:
            other.load_state_dict(state)
            assert expected == [
                batch.tolist() for batch, in other.get_epoch_iterator()]
