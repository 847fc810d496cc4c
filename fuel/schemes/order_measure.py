"""Measure the randomness of an order of examples."""
from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.schemes.sampling import BlockShuffledScheme
from fuel.typing import SchemeLike
from fuel.utils.checks import positive

LAGS = (1, 10, 100, 1000)


class OrderMeasure(NamedTuple):
    """Randomness of an order of examples.

    Attributes
    ----------
    distance : float
        Average distance of examples from their places in storage, divided by
        the average distance in a true shuffle: 0 for the order of storage,
        about 1 for a true shuffle.
    autocorrelation : dict of int to float
        For each lag, the similarity of the labels of two examples that are
        this number of steps apart: 1 if they are always the same, about 0 if
        they are as similar as those of any two examples.

    """

    distance: float
    autocorrelation: dict[int, float]


def measure_order(scheme: SchemeLike, labels: ArrayLike | None = None, *,
                  lags: Iterable[int] = LAGS) -> OrderMeasure:
    """Measure how random the order is in which a scheme visits examples.

    Parameters
    ----------
    scheme : IterationScheme
        The scheme, which is not changed: its next epoch is measured, and is
        still its next epoch afterwards.
    labels : array_like, optional
        The label of each example of the data set, in the order of storage: a
        class (integer, string), or a continuous quantity (float). An array of
        shape ``(examples, 1)`` is accepted too. Defaults to None: the place of
        each example in storage, as a continuous quantity.
    lags : iterable of int, optional
        Numbers of steps between two examples. Lags that are not smaller than
        the number of examples are left out. Defaults to 1, 10, 100 and 1000.

    Returns
    -------
    OrderMeasure

    Raises
    ------
    ValueError
        If `labels` does not have a label for each example, or a lag is not
        positive.

    Notes
    -----
    For classes, the autocorrelation is how often two examples have the same
    class, scaled so that 0 means as often as any two examples, and 1 means
    always. For quantities it is the correlation.

    Examples
    --------
    >>> import numpy
    >>> from fuel.schemes import SequentialScheme, ShuffledScheme
    >>> labels = numpy.repeat(numpy.arange(10), 1000)
    >>> measure_order(SequentialScheme(10000, 50), labels).distance
    0.0
    >>> shuffled = measure_order(ShuffledScheme(10000, 50), labels)
    >>> round(shuffled.distance, 1)
    1.0
    >>> abs(shuffled.autocorrelation[1]) < .03
    True

    """
    order = _order_of(scheme)
    wanted = [positive('lags', lag) for lag in lags]
    if labels is None:
        values: NDArray[Any] = order.astype(float)
    else:
        values = _checked_labels(labels, order)[order]
    return OrderMeasure(_distance(order), {
        lag: _autocorrelation(values, lag) for lag in wanted
        if lag < len(order)})


def measure_windows(examples: int | Iterable[Any], *, block_size: ArrayLike,
                    windows: Sequence[int], labels: ArrayLike | None = None,
                    lags: Iterable[int] = LAGS) -> dict[int, OrderMeasure]:
    """Measure how random a shuffle by blocks is, for several windows.

    Parameters
    ----------
    examples, block_size
        See :class:`BlockShuffledScheme`.
    windows : sequence of int
        Numbers of blocks that are shuffled together; each is measured.
    labels, lags
        See :func:`measure_order`.

    Returns
    -------
    dict of int to OrderMeasure
        The measure of each window.

    Examples
    --------
    >>> import numpy
    >>> labels = numpy.repeat(numpy.arange(10), 1000)
    >>> for window, measure in measure_windows(
    ...         10000, block_size=100, windows=(1, 4, 16, 100),
    ...         labels=labels).items():
    ...     print(window, round(measure.autocorrelation[1], 1))
    1 1.0
    4 0.2
    16 0.1
    100 0.0

    """
    lags = tuple(lags)
    return {window: measure_order(
        BlockShuffledScheme(examples, 1024, block_size=block_size,
                            window=window), labels, lags=lags)
        for window in windows}


def _order_of(scheme: SchemeLike) -> NDArray[numpy.intp]:
    """Return the examples of the next epoch, one after another."""
    requests = copy.deepcopy(scheme).get_request_iterator()
    if scheme.requests_examples:
        return numpy.fromiter(requests, numpy.intp)
    parts = [numpy.asarray(request, numpy.intp) for request in requests]
    return numpy.concatenate(parts) if parts else numpy.empty(0, numpy.intp)


def _checked_labels(labels: ArrayLike, order: NDArray[numpy.intp]
                    ) -> NDArray[Any]:
    found = numpy.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1 or (len(order) and order.max() >= len(found)):
        raise ValueError(
            'labels must be one for each example of the data set, got an '
            f'array of shape {found.shape}, but the scheme visits example '
            f'{order.max() if len(order) else 0}')
    return found


def _distance(order: NDArray[numpy.intp]) -> float:
    """Return the mean distance by which examples were moved, divided by the
    mean distance in a true shuffle."""
    count = len(order)
    if count < 2:
        return 0.
    # Places among the visited examples, whatever the numbers of these
    # examples.
    places = numpy.argsort(numpy.argsort(order, kind='stable'))
    moved = abs(places - numpy.arange(count)).mean()
    return float(moved / ((count * count - 1) / (3 * count)))


def _autocorrelation(values: NDArray[Any], lag: int) -> float:
    if values.dtype.kind == 'f':
        centred = values - values.mean()
        variance = float((centred ** 2).mean())
        return float((centred[lag:] * centred[:-lag]).mean() / variance
                     ) if variance else 1.
    _, counts = numpy.unique(values, return_counts=True)
    by_chance = float(((counts / len(values)) ** 2).sum())
    same = float((values[lag:] == values[:-lag]).mean())
    return (same - by_chance) / (1 - by_chance) if by_chance < 1 else 1.
