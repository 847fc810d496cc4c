"""Toy data sets: points on spirals and on a Swiss roll."""
from __future__ import annotations

from typing import Unpack

import numpy
from numpy.typing import NDArray

from fuel import config
from fuel.datasets.base import IndexableDataset
from fuel.datasets.options import IndexableOptions

__all__ = ['Spiral', 'SwissRoll']


class Spiral(IndexableDataset):
    """Points on spirals in the plane.

    Sources, in this order: `features`, float32 of shape ``(examples, 2)``, the
    points, which lie within the unit circle if there is no noise and one
    cycle; `position`, float64 of shape ``(examples,)``, how far along its arm
    a point is, from 0 to `cycles`; `label`, integers of shape ``(examples,)``,
    the arm.

    Parameters
    ----------
    num_examples : int, optional
        Number of points. Defaults to 1000.
    classes : int, optional
        Number of spiral arms. Defaults to 1.
    cycles : float, optional
        Number of turns that an arm takes. Defaults to 1.
    noise : float, optional
        Standard deviation of normal noise added to the points. Defaults to
        0.
    seed : int, optional
        Defaults to ``config.default_seed``.
    start, stop, sources, axis_labels
        For :class:`~fuel.datasets.base.IndexableDataset`.

    Raises
    ------
    ValueError
        If there is no point, no arm, or the noise is negative.

    Examples
    --------
    >>> features, position, label = Spiral(100, classes=3).get_data(
    ...     request=slice(0, 10))
    >>> features.shape, position.shape, sorted(set(label.tolist()))
    ((10, 2), (10,), [0, 1, 2])
    """

    def __init__(self, num_examples: int = 1000, classes: int = 1,
                 cycles: float = 1.0, noise: float = 0.0,
                 seed: int | None = None,
                 **kwargs: Unpack[IndexableOptions]) -> None:
        _check(noise, num_examples=num_examples, classes=classes)
        rng = _generator(seed)
        position = rng.uniform(0, cycles, num_examples)
        label = rng.randint(0, classes, num_examples)
        # The order of the operations determines the last bits of the points,
        # so it must not change.
        radius = (2 * position + 1) / 3
        angle = 2 * numpy.pi * position + label * 2 * numpy.pi / classes
        features = _points(
            rng, noise, radius * numpy.sin(angle), radius * numpy.cos(angle))
        super().__init__({'features': features, 'position': position,
                          'label': label}, **kwargs)


class SwissRoll(IndexableDataset):
    """Points on a Swiss roll: a plane rolled up in three dimensions.

    Sources, in this order: `features`, float32 of shape ``(examples, 3)``, the
    coordinates x, y and z of the points, which lie within ``[-1, 1]`` if there
    is no noise; `position`, float32 of shape ``(examples, 2)``, the place of a
    point on the plane: how far along the roll it is, from 0 to 1, and its z.

    Parameters
    ----------
    num_examples : int, optional
        Number of points. Defaults to 1000.
    noise : float, optional
        Standard deviation of normal noise added to the points. Defaults to
        0.
    seed : int, optional
        Defaults to ``config.default_seed``.
    start, stop, sources, axis_labels
        For :class:`~fuel.datasets.base.IndexableDataset`.

    Raises
    ------
    ValueError
        If there is no point, or the noise is negative.

    Examples
    --------
    >>> features, position = SwissRoll(100).get_data(request=[4, 2])
    >>> features.shape, position.shape
    ((2, 3), (2, 2))
    """

    def __init__(self, num_examples: int = 1000, noise: float = 0.0,
                 seed: int | None = None,
                 **kwargs: Unpack[IndexableOptions]) -> None:
        _check(noise, num_examples=num_examples)
        rng = _generator(seed)
        along = rng.uniform(0, 1, num_examples)
        height = rng.uniform(-1, 1, num_examples)
        radius = (1 + 2 * along) / 3
        angle = 1.5 * numpy.pi * (1 + 2 * along)
        features = _points(rng, noise, radius * numpy.cos(angle),
                           radius * numpy.sin(angle), height)
        position = numpy.stack([along, height], axis=1)
        super().__init__({'features': features,
                          'position': position.astype(numpy.float32)},
                         **kwargs)


def _points(rng: numpy.random.RandomState, noise: float,
            *coordinates: NDArray[numpy.float64]) -> NDArray[numpy.float32]:
    points = numpy.stack(coordinates, axis=1).astype(numpy.float32)
    points += noise * rng.normal(size=points.shape)
    return points


def _generator(seed: int | None) -> numpy.random.RandomState:
    return numpy.random.RandomState(
        config.default_seed if seed is None else seed)


def _check(noise: float, **counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f'{name} must be at least 1, got {count!r}')
    if not noise >= 0:
        raise ValueError(
            f'noise is a standard deviation, at least 0, got {noise!r}')
