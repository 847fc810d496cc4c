"""Iteration schemes: the requests, their order and their position."""
import json
import pickle
import random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel import config
from fuel.schemes import (
    BatchScheme,
    BatchSizeScheme,
    ConcatenatedScheme,
    ConstantScheme,
    IndexScheme,
    IterationScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    cross_validation,
)
from fuel.schemes.iteration_scheme import scheme_state
from fuel.schemes.requests import advance


def requests_of(scheme):
    """Return all requests of an epoch."""
    return list(scheme.get_request_iterator())


def chunks(indices, size):
    """Return a list in pieces."""
    return [indices[start:start + size]
            for start in range(0, len(indices), size)]


examples = st.one_of(
    st.integers(0, 40),
    st.lists(st.integers(0, 99), max_size=20),
    st.integers(0, 20).map(lambda n: range(n)[::-1]),
    st.lists(st.integers(0, 99), max_size=20).map(tuple),
    st.lists(st.integers(0, 99), max_size=20).map(
        lambda i: numpy.array(i, int)),
    st.lists(st.text(max_size=2), max_size=9))


def as_list(given_examples):
    """Return the examples that a scheme should visit."""
    if isinstance(given_examples, int):
        return list(range(given_examples))
    if isinstance(given_examples, numpy.ndarray):
        return given_examples.tolist()
    return list(given_examples)


@given(examples, st.integers(1, 50))
def test_sequential_schemes_visit_in_order(given_examples, batch_size):
    """The examples come as given, in lists of up to the batch size."""
    expected = as_list(given_examples)
    assert expected == requests_of(SequentialExampleScheme(given_examples))
    batches = requests_of(SequentialScheme(given_examples, batch_size))
    assert chunks(expected, batch_size) == batches
    assert all(type(batch) is list for batch in batches)


@given(examples, st.integers(1, 50), st.integers(0, 2 ** 32 - 1),
       st.booleans(), st.sampled_from(['RandomState', 'Generator', 'Random']))
def test_shuffled_schemes_order_is_that_of_a_shuffled_list(
        given_examples, batch_size, seed, sorted_indices, kind):
    """The order is what ``rng.shuffle`` makes of a list, epoch by epoch."""
    make = {'RandomState': numpy.random.RandomState,
            'Generator': numpy.random.default_rng,
            'Random': random.Random}[kind]
    rng = make(seed)
    batches = ShuffledScheme(given_examples, batch_size, rng=make(seed),
                             sorted_indices=sorted_indices)
    single = ShuffledExampleScheme(given_examples, rng=make(seed))
    for _ in range(2):
        expected = as_list(given_examples)
        rng.shuffle(expected)
        assert expected == requests_of(single)
        expected = chunks(expected, batch_size)
        if sorted_indices:
            expected = [sorted(batch) for batch in expected]
        assert expected == requests_of(batches)


def test_shuffled_scheme_first_orders_are_the_old_ones():
    """The order under the default seed is public: it never changes."""
    scheme = ShuffledExampleScheme(8)
    assert [7, 2, 1, 6, 0, 4, 3, 5] == requests_of(scheme)
    assert [2, 3, 4, 7, 1, 6, 0, 5] == requests_of(scheme)
    assert [[7, 2, 1, 6], [0, 4, 3, 5]] == requests_of(ShuffledScheme(8, 4))
    assert [[1, 2, 6, 7], [0, 3, 4, 5]] == requests_of(
        ShuffledScheme(8, 4, sorted_indices=True))


def test_shuffled_schemes_default_seed_is_read_when_made():
    """Two schemes agree; `config.default_seed` affects new ones.
    """
    assert requests_of(ShuffledScheme(50, 7)) == requests_of(
        ShuffledScheme(50, 7))
    config.default_seed = 3
    expected = list(range(50))
    numpy.random.RandomState(3).shuffle(expected)
    assert expected == requests_of(ShuffledExampleScheme(50))


def test_shuffled_scheme_draws_when_the_iterator_is_made():
    """The order of an epoch does not depend on those made after it."""
    scheme = ShuffledExampleScheme(20)
    first, second = [scheme.get_request_iterator() for _ in range(2)]
    again = ShuffledExampleScheme(20)
    assert requests_of(again) == list(first)
    assert requests_of(again) == list(second)


@pytest.mark.parametrize('cls', [ShuffledScheme, ShuffledExampleScheme])
def test_shuffled_scheme_options_are_keywords_only(cls):
    """`rng` and `sorted_indices` cannot be taken for something else."""
    arguments = (4, 2) if cls is ShuffledScheme else (4,)
    with pytest.raises(TypeError, match='positional'):
        cls(*arguments, numpy.random.RandomState(1))


def schemes():
    """Return one scheme of each kind."""
    return {
        'SequentialScheme': SequentialScheme(10, 3),
        'SequentialExampleScheme': SequentialExampleScheme(5),
        'ShuffledScheme': ShuffledScheme(10, 3),
        'sorted': ShuffledScheme(10, 3, sorted_indices=True),
        'list': ShuffledScheme([9, 7, 5, 3, 1], 2),
        'Generator': ShuffledScheme(
            10, 3, rng=numpy.random.default_rng(5)),
        'Random': ShuffledExampleScheme(6, rng=random.Random(5)),
        'ShuffledExampleScheme': ShuffledExampleScheme(5),
        'ConstantScheme': ConstantScheme(3, num_examples=10),
        'times': ConstantScheme(3, times=2),
        'empty': SequentialScheme(0, 3),
        'ConcatenatedScheme': ConcatenatedScheme(
            [ShuffledScheme(7, 3), SequentialScheme([9, 8], 2)]),
    }


@pytest.mark.parametrize('name', schemes())
@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_request_iterator_pickles_at_every_step(name, protocol):
    """A pickled request iterator goes on where it stood."""
    total = len(requests_of(schemes()[name]))
    for step in range(total + 1):
        iterator = schemes()[name].get_request_iterator()
        for _ in range(step):
            next(iterator)
        copy = pickle.loads(pickle.dumps(iterator, protocol))
        assert list(iterator) == list(copy)
        assert [] == list(copy)


@pytest.mark.parametrize('name', schemes())
def test_scheme_state_gives_the_same_epochs(name):
    """A scheme put back makes the same iterators; these can be advanced."""
    scheme, other = schemes()[name], schemes()[name]
    requests_of(scheme)
    state = json.loads(json.dumps(scheme_state(scheme)))
    expected = [requests_of(scheme) for _ in range(2)]
    other.load_state_dict(state)
    iterator = other.get_request_iterator()
    assert min(2, len(expected[0])) == advance(iterator, 2)
    assert expected[0][2:] == list(iterator)
    assert expected[1] == requests_of(other)


@pytest.mark.parametrize('name', schemes())
def test_scheme_num_requests_is_the_length_of_an_epoch(name):
    """The number of requests is known before there are any."""
    scheme = schemes()[name]
    assert len(requests_of(scheme)) == scheme.num_requests


class Borrowing:
    """A generator whose numbers come from elsewhere."""

    def shuffle(self, indices):
        """Shuffle a list with the global generator."""
        random.shuffle(indices)


@pytest.mark.parametrize('rng', [
    numpy.random, random, random.SystemRandom(), Borrowing()],
    ids=['numpy.random', 'random', 'SystemRandom', 'own'])
@pytest.mark.parametrize('make', [
    lambda rng: ShuffledScheme(20, 6, rng=rng),
    lambda rng: ShuffledExampleScheme(20, rng=rng)])
def test_shuffled_scheme_takes_whatever_can_shuffle(make, rng):
    """Even a module will do; its order cannot be drawn a second time, so
    it is what the pickle of an iterator holds."""
    scheme = make(rng)
    iterator = scheme.get_request_iterator()
    first = next(iterator)
    copy = pickle.loads(pickle.dumps(iterator))
    rest = list(iterator)
    assert rest == list(copy)
    assert list(range(20)) == sorted(numpy.hstack([first, *rest]))
    with pytest.raises(TypeError, match='pass one of these as rng'):
        scheme_state(scheme)


@pytest.mark.parametrize('module', [numpy.random, random])
def test_shuffled_scheme_with_a_module_follows_its_seed(module):
    """The order is what the module's ``shuffle`` makes of a list."""
    module.seed(3)
    expected = list(range(9))
    module.shuffle(expected)
    module.seed(3)
    assert [expected] == requests_of(ShuffledScheme(9, 9, rng=module))


def test_shuffled_scheme_pickle_is_small():
    """A pickle holds what the order is drawn from, not the order."""
    scheme = ShuffledScheme(10 ** 6, 100)
    iterator = scheme.get_request_iterator()
    for _ in range(10):
        next(iterator)
    pickled = pickle.dumps((scheme, iterator))
    assert len(pickled) < 12000
    _, copy = pickle.loads(pickled)
    assert next(iterator) == next(copy)


def test_request_iterator_has_a_length_hint():
    """``list`` and progress bars may ask how many requests are left."""
    iterator = SequentialScheme(10, 3).get_request_iterator()
    next(iterator)
    assert 3 == iterator.__length_hint__()
    endless = ConstantScheme(3).get_request_iterator()
    assert NotImplemented is endless.__length_hint__()


@pytest.mark.parametrize('arguments, expected', [
    ({'num_examples': 10}, [4, 4, 2]),
    ({'num_examples': 8}, [4, 4]),
    ({'num_examples': 3}, [3]),
    ({'times': 3}, [4, 4, 4]),
    ({'num_examples': 0}, []),
    ({'times': 0}, []),
    ({'num_examples': 10, 'times': 0}, []),
    ({'num_examples': 0, 'times': 3}, []),
], ids=str)
def test_constant_scheme_sizes(arguments, expected):
    """Zero examples, or zero times, give an empty scheme."""
    scheme = ConstantScheme(4, **arguments)
    assert expected == requests_of(scheme)
    assert len(expected) == scheme.num_requests
    assert not scheme.requests_examples


def test_constant_scheme_without_end():
    """Without a limit the sizes never end, and no length is claimed."""
    scheme = ConstantScheme(7)
    iterator = scheme.get_request_iterator()
    assert [7] * 100 == [next(iterator) for _ in range(100)]
    assert scheme.num_requests is None


def test_constant_scheme_both_limits_raises():
    """Only one limit may be given."""
    with pytest.raises(ValueError, match='num_examples or times, not both'):
        ConstantScheme(4, num_examples=10, times=2)


def test_concatenated_scheme_mixed_kinds_raises():
    """Examples and batches do not mix, and something must be there."""
    with pytest.raises(ValueError, match='SequentialExampleScheme'):
        ConcatenatedScheme([SequentialScheme(3, 2),
                            SequentialExampleScheme(3)])
    with pytest.raises(ValueError, match='no scheme at all'):
        ConcatenatedScheme([])


def test_concatenated_scheme_kind_is_that_of_its_parts():
    """`requests_examples` is taken from the parts."""
    assert ConcatenatedScheme(
        schemes=[SequentialExampleScheme(3)]).requests_examples
    assert not ConcatenatedScheme([ConstantScheme(3)]).requests_examples


@pytest.mark.parametrize('make', [
    lambda examples: SequentialScheme(examples, 2),
    lambda examples: ShuffledScheme(examples, 2),
    SequentialExampleScheme, ShuffledExampleScheme])
def test_scheme_over_an_iterator_used_twice_raises(make):
    """A second epoch over an iterator is an error, not empty."""
    scheme = make(iter([3, 1, 2]))
    assert 3 == len(str(requests_of(scheme)).replace(
        '[', '').replace(']', '').split(','))
    with pytest.raises(ValueError, match=r'pass list\(examples\)'):
        requests_of(scheme)


@pytest.mark.parametrize('examples_, batch_size, error, text', [
    (-1, 2, ValueError, 'examples must not be negative, got -1'),
    (1.5, 2, TypeError, r'examples must be .* got 1.5 \(float\)'),
    (True, 2, TypeError, 'examples must be .* got True'),
    (None, 2, TypeError, 'examples must be .* got None'),
    (5, 0, ValueError, 'batch_size must be a positive integer, got 0'),
    (5, -3, ValueError, 'batch_size must be a positive integer, got -3'),
    (5, 2.0, TypeError, r'batch_size .* got 2.0 \(float\)'),
    (5, True, TypeError, 'batch_size .* got True'),
], ids=str)
def test_batch_scheme_bad_arguments_raise(
        examples_, batch_size, error, text):
    """An argument that cannot be meant is refused by name."""
    with pytest.raises(error, match=text):
        SequentialScheme(examples_, batch_size)


def test_batch_scheme_numpy_integers_are_integers():
    """Numbers out of arrays will do."""
    scheme = SequentialScheme(numpy.int64(5), numpy.uint8(2))
    assert [[0, 1], [2, 3], [4]] == requests_of(scheme)


def test_scheme_attributes_that_other_tools_read():
    """`indices`, `batch_size` and `num_examples` are there to be read."""
    scheme = ShuffledScheme([4, 2], 3)
    assert ([4, 2], 3, 2) == (
        scheme.indices, scheme.batch_size, scheme.num_examples)
    assert range(5) == SequentialExampleScheme(5).indices
    assert 4 == ConstantScheme(4, num_examples=9).batch_size
    assert 9 == ConstantScheme(4, num_examples=9).num_examples


@pytest.mark.parametrize('arguments', [
    {'num_examples': 5.0}, {'times': 2.5}, {'num_examples': float('nan')}],
    ids=repr)
def test_constant_scheme_of_no_whole_number_raises(arguments):
    """NaN, the number of examples of a generator, would have no end."""
    name, = arguments
    with pytest.raises(TypeError, match=f'{name} must be an integer, or No'):
        ConstantScheme(2, **arguments)


def test_scheme_kinds():
    """Each base class says what it requests."""
    assert IndexScheme.requests_examples
    assert not BatchScheme.requests_examples
    assert not BatchSizeScheme.requests_examples
    assert issubclass(BatchSizeScheme, IterationScheme)


@pytest.mark.parametrize('cls, arguments', [
    (IterationScheme, ()), (BatchScheme, (4, 2)), (IndexScheme, (3,)),
    (BatchSizeScheme, ())])
def test_abstract_scheme_cannot_be_built(cls, arguments):
    """A class with a misspelt method is abstract; the error names it."""
    class Misspelt(cls):
        def get_request_iteratr(self):
            return iter([])

    class Named(Misspelt):
        def get_request_iterator(self):
            return iter([1])

    with pytest.raises(TypeError, match=(
            f'{cls.__name__} is abstract: derive a class from it that '
            'implements get_request_iterator$')):
        cls(*arguments)
    with pytest.raises(TypeError, match=(
            "Misspelt is abstract.* that by 'get_request_iteratr'")):
        Misspelt(*arguments)
    assert [1] == list(Named(*arguments).get_request_iterator())


@pytest.mark.parametrize('cls, arguments', [
    (SequentialExampleScheme, {}), (ShuffledExampleScheme, {}),
    (SequentialScheme, {'batch_size': 2}),
    (ShuffledScheme, {'batch_size': 2})])
@pytest.mark.parametrize('num_examples, folds', [
    (10, 5), (9, 3), (10, 3), (4, 4), (3, 5)])
def test_cross_validation_folds_partition_the_examples(
        cls, arguments, num_examples, folds):
    """Each example is valid in one fold and for training in the others."""
    def visited(scheme):
        return sorted(numpy.hstack([[], *requests_of(scheme)]).tolist())
    triples = list(cross_validation(
        cls, num_examples, folds, strict=False, **arguments))
    everything = list(range(num_examples))
    assert folds == len(triples)
    assert everything == sorted(
        sum((visited(valid) for _, valid, _ in triples), []))
    for fold, (train, valid, size) in enumerate(triples):
        begin, end = (num_examples * k // folds for k in (fold, fold + 1))
        assert everything[begin:end] == visited(valid)
        assert everything[:begin] + everything[end:] == visited(train)
        assert end - begin == size
        assert visited(train) == visited(train)


def test_cross_validation_strict_raises_at_the_first_fold():
    """It is a generator, so nothing is checked before the first fold."""
    folds = cross_validation(SequentialExampleScheme, 10, 3)
    with pytest.raises(ValueError, match='must be a multiple'):
        next(folds)
    assert all(len(pair) == 2 for pair in cross_validation(
        SequentialExampleScheme, 9, 3))


class EveryOther(BatchScheme):
    """A scheme as users write them."""

    def get_request_iterator(self):
        return iter(chunks(list(self.indices)[::2], self.batch_size))


class Reversed(ShuffledScheme):
    """A scheme that changes what it inherits."""

    def get_request_iterator(self):
        return iter(requests_of(super())[::-1])


class Saved(EveryOther):
    """A scheme with the two hooks."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


@pytest.mark.parametrize('cls', [EveryOther, Reversed])
def test_scheme_state_of_users_scheme_without_hooks_raises(cls):
    """Inherited hooks do not know what an overriding class requests."""
    with pytest.raises(TypeError, match=f'{cls.__name__}.*state_dict'):
        scheme_state(cls(10, 2))


def test_scheme_state_of_users_scheme_with_hooks():
    """With the hooks a user's scheme has a state."""
    assert {} == scheme_state(Saved(10, 2))
