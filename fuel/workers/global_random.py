"""The global generators of workers: numpy.random and random.

Workers are copies of their consumer, or know nothing of it.  Neither may
draw what another one draws.
"""
from __future__ import annotations

import functools
import hashlib
import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy

from fuel.epochs.stage import Stage
from fuel.utils.rng_state import generator_in

log = logging.getLogger(__name__)


class Generators(NamedTuple):
    """The global generators that a worker starts with.

    `number`: how many workers were started before.  The first one draws what
        its consumer would, each other one something of its own.
    `numpy`, `python`: the states of the consumer's.
    """

    number: int
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def here(cls, number: int) -> Generators:
        """Return those of a worker of this process; nothing is drawn."""
        state: Any = numpy.random.get_state(legacy=False)
        return cls(number, state, random.getstate())

    def install(self) -> None:
        """Let this process, a worker, draw from them.

        Each follows from its own state alone, so that a seed for one of them
        fixes what that one draws.
        """
        if self.number:
            random.seed(_seed(self.python, self.number))
        else:
            random.setstate(self.python)
        # Its stubs do not know all of it.
        module: Any = numpy.random
        name = self.numpy['bit_generator']
        state: Any = self.numpy
        present: Any = module.get_state(legacy=False)
        # A kind that is not NumPy's own is known where it is inherited only.
        kind = getattr(module, name, numpy.random.MT19937)
        if self.number or kind.__name__ != name != present['bit_generator']:
            state = kind(_seed(self.numpy, self.number)).state
        if state['bit_generator'] != present['bit_generator']:
            module.set_bit_generator(kind())
        module.set_state(state)


class GeneratorSource:
    """Numbers the workers of a stage, so that each has its own generators.

    One that takes the place of another draws something new, too.
    """

    def __init__(self) -> None:
        self._started = 0

    def next(self) -> Generators:
        """Return the generators of the next worker."""
        self._started += 1
        return Generators.here(self._started - 1)


@contextmanager
def warn_if_drawn() -> Iterator[None]:
    """Warn, once in a process, if something is drawn from them."""
    before = _present()
    yield
    if before != _present():
        _warn()


@contextmanager
def refuse_if_drawn(stream: object) -> Iterator[None]:
    """Raise if something is drawn from them, or they are set.

    The threads that share them with this one must not draw meanwhile.
    """
    before = _present()
    yield
    if before != _present():
        raise ValueError(
            f'a stage of {type(stream).__name__} draws from numpy.random or '
            'random, or sets their seed: the threads would share them with '
            'your program, so what both draw would depend on which one comes '
            'first. Give it seed=, if it takes one, derive it from '
            'SeededTransformer, or use MultiProcessing')


def refuse_global(stages: Iterable[Stage]) -> None:
    """Refuse stages whose generator is one of them."""
    # Of which the functions of the modules are methods.
    ours = [getattr(function, '__self__', None) for function in (
        random.getstate, numpy.random.get_state)]
    for stage in stages:
        if any(owned is one for one in ours for owned in (
                stage.generator, generator_in(stage.scheme))):
            raise ValueError(
                f'the generator of {stage.name} is that of numpy.random or '
                'random itself, which threads would share with your '
                'program: give it a generator of its own, or seed=')


def _present() -> bytes:
    return _as_bytes(tuple(Generators.here(0)))


@functools.cache
def _warn() -> None:
    log.warning(
        'a stage that several workers share draws from numpy.random or '
        'random, so its values depend on num_workers, and a saved state does '
        'not have them: give it seed=, if it takes one, or derive it from '
        'SeededTransformer')


def _seed(state: object, number: int) -> int:
    digest = hashlib.sha256(b'worker %d' % number)
    digest.update(_as_bytes(state))
    return int.from_bytes(digest.digest(), 'little')


def _as_bytes(state: object) -> bytes:
    """Return bytes that are the same for equal states, in every run."""
    if isinstance(state, dict):
        return b','.join(_as_bytes((name, state[name]))
                         for name in sorted(state))
    if isinstance(state, tuple):
        return b'(%b)' % b','.join(map(_as_bytes, state))
    if isinstance(state, numpy.ndarray):
        return _as_bytes(tuple(state.tolist()))
    return repr(state).encode()
