"""The global generators: numpy.random, random and PyTorch's.

A forked worker has copies of its consumer's generators, and a spawned one has
new generators.  No two workers may draw the same numbers from numpy.random and
random, so each worker gets its own states.  A function that is called with
seeds draws from all three generators with those seeds.  Afterwards their
former states are restored.
"""
from __future__ import annotations

import functools
import logging
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy

from fuel.epochs.stage import Stage, stage_of
from fuel.utils.forks import Step, at_fork
from fuel.utils.rng_state import generator_in
from fuel.workers.remote_stream import RemoteStream

Result = TypeVar('Result')

log = logging.getLogger(__name__)


class Generators(NamedTuple):
    """States of the global generators from which a worker starts.

    `number`: number of workers started before.  The first worker draws the
        numbers that its consumer would draw; each other one draws different
        numbers.
    `numpy`, `python`: states of the consumer's generators.
    """

    number: int
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def here(cls, number: int) -> Generators:
        """Return the generators for a worker of this process, without
        drawing."""
        state: Any = numpy.random.get_state(legacy=False)
        return cls(number, state, random.getstate())

    def install(self) -> None:
        """Set the global generators of this process, a worker, to these
        states.

        Each generator's state depends on the consumer's state of that
        generator alone.  So a seed for one of them determines its draws.
        """
        if self.number:
            random.seed(_seed(self.python, self.number))
        else:
            random.setstate(self.python)
        # The stubs of numpy.random lack some of its members.
        module: Any = numpy.random
        name = self.numpy['bit_generator']
        state: Any = self.numpy
        present: Any = module.get_state(legacy=False)
        # A bit generator that is not NumPy's own can only be used if this
        # process inherited it.
        kind = getattr(module, name, numpy.random.MT19937)
        if self.number or kind.__name__ != name != present['bit_generator']:
            state = kind(_seed(self.numpy, self.number)).state
        if state['bit_generator'] != present['bit_generator']:
            module.set_bit_generator(kind())
        module.set_state(state)


class GeneratorSource:
    """Numbers the workers of a stage, so that each has its own generators.

    A worker that replaces another one gets new generators, too.
    """

    def __init__(self) -> None:
        self._started = 0

    def next(self) -> Generators:
        """Return the generators of the next worker."""
        self._started += 1
        return Generators.here(self._started - 1)


@contextmanager
def warn_if_drawn() -> Iterator[None]:
    """Warn, once in a process, if the block draws from numpy.random or
    random."""
    before = _present()
    yield
    if before != _present():
        _warn()


@contextmanager
def refuse_if_drawn(stream: object, is_alone: Callable[[], bool],
                    ) -> Iterator[None]:
    """Raise ValueError if the block draws from numpy.random or random, or sets
    their seeds.

    `is_alone`: function that returns whether no other thread could have drawn
        from them meanwhile.
    """
    before = _present()
    yield
    if before != _present() and is_alone():
        raise ValueError(
            f'a stage of {type(stream).__name__} draws from numpy.random or '
            'random, or sets their seed: the threads would share them with '
            'your program, so what both draw would depend on which one comes '
            'first. Give it seed=, if it takes one, derive it from '
            'SeededTransformer, or use MultiProcessing')


class SetsGenerators:
    """Base of stages that set the global generators while they call a
    function.  Other threads of this process may draw from the generators
    meanwhile."""


def sets_generators(stage: Stage) -> bool:
    """Return whether a stage, or one that it reads, sets the global generators
    of this process."""
    if isinstance(stage.stream, RemoteStream):
        return False
    return isinstance(stage.stream, SetsGenerators) or any(
        sets_generators(stage_of(child)) for child in stage.inputs)


def refuse_global(stages: Iterable[Stage]) -> None:
    """Raise ValueError for a stage whose generator, or whose scheme's
    generator, is a global one."""
    # The functions of both modules are methods of their global generators.
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
    # Needed only when workers start.
    import hashlib
    digest = hashlib.sha256(b'worker %d' % number)
    digest.update(_as_bytes(state))
    return int.from_bytes(digest.digest(), 'little')


def _as_bytes(state: object) -> bytes:
    """Return bytes that are the same for equal states in every process."""
    if isinstance(state, dict):
        return b','.join(_as_bytes((name, state[name]))
                         for name in sorted(state))
    if isinstance(state, tuple):
        return b'(%b)' % b','.join(map(_as_bytes, state))
    if isinstance(state, numpy.ndarray):
        return _as_bytes(tuple(state.tolist()))
    return repr(state).encode()


class _Present(NamedTuple):
    """Present states of the global generators, to be restored later.

    `bit_generator`: NumPy's global bit generator; None if it cannot be
        exchanged.
    `torch`: state of PyTorch's generator on the CPU; None if PyTorch is not
        loaded.
    """

    python: tuple[Any, ...]
    numpy: dict[str, Any]
    bit_generator: Any
    torch: Any

    @classmethod
    def take(cls) -> _Present:
        """Return the present states of the global generators."""
        module: Any = numpy.random
        state: Any = module.get_state(legacy=False)
        torch = _generator_of_torch()
        return cls(
            random.getstate(), state,
            module.get_bit_generator() if _can_exchange() else None,
            None if torch is None else torch.get_state())

    def put_back(self) -> None:
        """Set the global generators to these states."""
        random.setstate(self.python)
        if self.torch is not None:
            _generator_of_torch().set_state(self.torch)
        module: Any = numpy.random
        if self.bit_generator is not None:
            module.set_bit_generator(self.bit_generator)
            # The bit generator does not contain the second normal number that
            # NumPy keeps.
            if self.bit_generator is not _ours() and not (
                    self.numpy['has_gauss']):
                return
        module.set_state(self.numpy)


def call_with_seeds(seeds: Seeds, function: Callable[..., Result],
                    *args: object) -> Result:
    """Seed the global generators, call a function, and restore their states.

    Only one thread at a time calls a function in this way; others wait.
    """
    with _turn:
        before = _Present.take()
        try:
            seeds.set()
            result = function(*args)
        finally:
            before.put_back()
        if before.torch is None:
            _refuse_if_torch_came()
        return result


class Seeds(NamedTuple):
    """A seed for each of the global generators.

    `python`: seed of any size for :mod:`random`.
    `numpy`: seed of 32 bits for :mod:`numpy.random`.
    `torch`: seed of 64 bits for PyTorch.
    """

    python: int
    numpy: int
    torch: int

    @classmethod
    def of(cls, entropy: list[int]) -> Seeds:
        """Return the seeds that a list of integers determines."""
        words = numpy.random.SeedSequence(entropy).generate_state(
            4, numpy.uint64)
        first, second, third, fourth = words.tolist()
        return cls(first << 64 | second, third >> 32, fourth)

    def set(self) -> None:
        """Seed the global generators."""
        random.seed(self.python)
        module: Any = numpy.random
        if _can_exchange():
            # Without this exchange, it would take as long to restore the state
            # of the former bit generator as to do everything else.
            module.set_bit_generator(_ours())
        module.seed(self.numpy)
        torch = _generator_of_torch()
        if torch is not None:
            torch.manual_seed(self.torch)


@functools.cache
def _can_exchange() -> bool:
    # NumPy has this function since 1.24.
    return 'set_bit_generator' in vars(numpy.random)


@functools.cache
def _ours() -> Any:
    """Return the bit generator that functions with seeds draw from."""
    return numpy.random.MT19937(0)


def _generator_of_torch() -> Any:
    """Return PyTorch's generator on the CPU; None if PyTorch is not loaded."""
    module: Any = sys.modules.get('torch.random')
    return None if module is None else module.default_generator


def _refuse_if_torch_came() -> None:
    """Raise RuntimeError if the function imported PyTorch and drew from its
    generator, which had no seed."""
    generator = _generator_of_torch()
    if generator is None:
        return
    untouched = type(generator)().manual_seed(generator.initial_seed())
    if not generator.get_state().equal(untouched.get_state()):
        raise RuntimeError(
            'a function that is called with a seed has imported torch and '
            'drawn from its generator, which had got no seed: import torch '
            'before the first batch, best where the function is defined')


# All threads of the process share the global generators, so only one function
# at a time may use them.
_turn = threading.RLock()


def _begin_in_child() -> None:
    """Replace the lock, which a thread of the parent may have held."""
    global _turn
    _turn = threading.RLock()


at_fork(Step.OWNERSHIP, in_child=_begin_in_child)
