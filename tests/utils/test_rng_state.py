"""The states of random generators as plain data."""
import json
import random

import numpy
import pytest

from fuel.utils import rng_state

GENERATORS = {
    'RandomState': numpy.random.RandomState,
    'Random': random.Random,
    'default': numpy.random.default_rng,
    **{cls.__name__: lambda seed, cls=cls: numpy.random.Generator(cls(seed))
       for cls in (numpy.random.MT19937, numpy.random.PCG64DXSM,
                   numpy.random.Philox, numpy.random.SFC64)},
}


def draw(rng):
    """Return what a generator draws next: words, halves of words, normal."""
    if isinstance(rng, random.Random):
        return [rng.getrandbits(32), rng.random(), rng.gauss(0, 1)]
    integers = getattr(rng, 'integers', getattr(rng, 'randint', None))
    return [integers(0, 7, 3, 'uint8').tolist(), rng.random(3).tolist(),
            rng.standard_normal(), rng.standard_normal(3).tolist()]


@pytest.mark.parametrize('name', GENERATORS)
@pytest.mark.parametrize('count', [0, 1, 200])
def test_generator_goes_on_from_its_state(name, count):
    """It does after JSON, and whatever was drawn before."""
    rng, other = GENERATORS[name](1), GENERATORS[name](2)
    for _ in range(count):
        draw(rng)
    state = json.loads(json.dumps(rng_state.get_state(rng)))
    expected = [draw(rng) for _ in range(300)]
    rng_state.check_generator_state(other, state)
    rng_state.set_state(other, state)
    assert expected == [draw(other) for _ in range(300)]


def parts(value, path=()):
    """Yield where the parts of some plain data are."""
    yield path
    items = (value.items() if isinstance(value, dict)
             else enumerate(value) if isinstance(value, list) else ())
    for key, part in items:
        yield from parts(part, (*path, key))


@pytest.mark.parametrize('name', GENERATORS)
@pytest.mark.parametrize('damage', [
    None, True, -1, 2 ** 129, float('inf'), 'A' * 11, [], {}, [1] * 624])
def test_state_with_a_damaged_part_is_refused(name, damage):
    """The error is a ValueError, and the generator stays as it was."""
    rng = GENERATORS[name](1)
    sound = rng_state.get_state(rng)
    for path in parts(sound):
        state = {'whole': json.loads(json.dumps(sound))}
        owner, *keys = 'whole', *path
        inner = state
        for key in (owner, *keys)[:-1]:
            inner = inner[key]
        last = (owner, *keys)[-1]
        if (type(inner[last]) is type(damage) and inner[last] == damage) \
                or (damage is None and inner[last] is None):
            continue
        inner[last] = damage
        with pytest.raises(ValueError, match='generator'):
            rng_state.set_state(rng, state['whole'])
    assert sound == rng_state.get_state(rng)


def test_words_of_another_length_are_refused():
    """They are compared before they are decoded."""
    rng = numpy.random.RandomState(1)
    state = rng_state.get_state(rng)
    state['state']['state']['key'] += 'AAAA'
    with pytest.raises(ValueError, match="'key' of the generator is damaged"):
        rng_state.set_state(rng, state)


def test_state_of_a_random_state_is_short():
    """Its 624 words take four thirds of their bytes."""
    state = rng_state.get_state(numpy.random.RandomState(1))
    assert len(json.dumps(state)) < 3600
