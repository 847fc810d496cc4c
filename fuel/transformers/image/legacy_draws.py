"""Random numbers in the order and number in which Fuel 0.2.0 drew them."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.kernels import draws


def draw_integers(rng: Any, slack: int,
                  count: int | None = None) -> Any:
    """Draw integers from 0 to `slack`, as the old stages did."""
    if type(rng) is numpy.random.RandomState and count is not None:
        return draws.draw_integers(rng._bit_generator, slack, count)
    if isinstance(rng, numpy.random.Generator):
        return rng.integers(0, slack + 1, count)
    if _takes_shapes(rng):
        return rng.randint(0, slack + 1, count)
    if count is None:
        return rng.randrange(slack + 1)
    return numpy.array([rng.randrange(slack + 1) for _ in range(count)], int)


def draw_uniform(rng: Any, most: float, count: int) -> Any:
    """Draw numbers from ``-most`` to `most`; see :func:`draw_integers`."""
    if isinstance(rng, numpy.random.Generator) or _takes_shapes(rng):
        return rng.uniform(-most, most, count)
    return numpy.array([rng.uniform(-most, most) for _ in range(count)])


def _takes_shapes(rng: object) -> bool:
    """Return whether a generator has NumPy's old methods; Python's has not."""
    return hasattr(rng, 'get_state')
