"""Splits of examples at random, with or without equal shares of classes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.config_parser import config
from fuel.datasets.dataset import Dataset, _read_whole
from fuel.utils.checks import not_negative

__all__ = ['random_split']


def random_split(examples: int | Dataset,
                 shares: Mapping[str, float | None], *,
                 seed: int | None = None,
                 stratify: str | ArrayLike | None = None
                 ) -> dict[str, NDArray[numpy.intp]]:
    """Split examples at random into several sets.

    Parameters
    ----------
    examples : int or Dataset
        How many there are, or the data set that has them.
    shares : dict of str to float
        For each split its share of the examples, from 0 to 1. One may be
        None: the rest. Without it they must add up to 1.
    seed : int, optional
        Equal seeds give equal splits. Defaults to ``config.default_seed``.
    stratify : str or array, optional
        The class of each example, or the source of the data set that has
        it: each split gets its share of every class, to the nearest example.
        Defaults to None: of all examples together.

    Returns
    -------
    dict of str to numpy.ndarray
        Ascending numbers of the examples of each split, for a scheme, or for
        the argument `subset` of :class:`~fuel.datasets.H5PYDataset`.

    Raises
    ------
    ValueError
        If the shares do not add up, a split would be empty, or there is not
        one class for each example.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> dataset = IndexableDataset({'x': list(range(10)),
    ...                             'targets': [0] * 6 + [1] * 4})
    >>> splits = random_split(dataset, {'train': None, 'test': .5},
    ...                       seed=1, stratify='targets')
    >>> dataset[splits['test']][1]
    [0, 0, 0, 1, 1]
    >>> scheme = ShuffledScheme(splits['train'], 2)
    """
    count = len(examples) if isinstance(examples, Dataset) else (
        not_negative('examples', examples))
    _check_shares(shares)
    rng = numpy.random.RandomState(
        config.default_seed if seed is None else seed)
    groups: list[Any] = [numpy.arange(count)]
    if stratify is not None:
        groups = _groups(_classes(examples, stratify), count)
    parts: dict[str, list[Any]] = {name: [] for name in shares}
    for group in groups:
        order = group[rng.permutation(len(group))]
        for name, rows in _cut(order, shares).items():
            parts[name].append(rows)
    found = {name: numpy.sort(numpy.concatenate(rows))
             for name, rows in parts.items()} if groups else {}
    for name in shares:
        if not len(found.get(name, ())):
            raise ValueError(
                f'the split {name!r} would be empty: its share of {count} '
                f'examples is {shares[name]}')
    return found


def _check_shares(shares: Mapping[str, float | None]) -> None:
    known = [share for share in shares.values() if share is not None]
    rests = len(shares) - len(known)
    total = sum(known)
    if (not all(0 < share <= 1 for share in known) or rests > 1
            or (total >= 1 if rests else abs(total - 1) > 1e-9)):
        raise ValueError(
            'shares must be from 0 to 1 and add up to 1, or one must be None '
            f'for the rest, got {dict(shares)}')


def _cut(order: NDArray[Any], shares: Mapping[str, float | None]
         ) -> dict[str, NDArray[Any]]:
    """Return the part of an order that each split gets."""
    last = next((name for name, share in shares.items() if share is None),
                list(shares)[-1])
    found, start = {}, 0
    for name, share in shares.items():
        if name == last or share is None:
            continue
        stop = min(start + round(len(order) * share), len(order))
        found[name], start = order[start:stop], stop
    found[last] = order[start:]
    return found


def _classes(examples: int | Dataset, stratify: str | ArrayLike) -> Any:
    if not isinstance(stratify, str):
        return numpy.asarray(stratify)
    if not isinstance(examples, Dataset):
        raise ValueError(f'stratify={stratify!r} is the name of a source, so '
                         'the data set must be given')
    sources = list(examples.sources)
    if stratify not in sources:
        raise ValueError(f'stratify: there is no source {stratify!r}; the '
                         f'sources are {tuple(sources)}')
    return _read_whole(examples, stratify)


def _groups(classes: Any, count: int) -> list[NDArray[numpy.intp]]:
    """Return the examples of each class, the classes in sorted order."""
    if classes.ndim == 2 and classes.shape[1] == 1:
        classes = classes[:, 0]
    if classes.shape != (count,):
        raise ValueError(
            f'stratify must have one class for each of the {count} examples, '
            f'got an array of shape {classes.shape}')
    _, number = numpy.unique(classes, return_inverse=True)
    order = numpy.argsort(number, kind='stable')
    return numpy.split(order, numpy.cumsum(numpy.bincount(number))[:-1])


def held_out(count: int, hold_out: Sequence[tuple[str, float]] | None,
             seed: int, classes: ArrayLike | None = None
             ) -> dict[str, NDArray[numpy.intp]]:
    """Return the splits of a converter: 'train', and those held out."""
    shares: dict[str, float | None] = dict(hold_out or ())
    wanted = ', '.join(f'{name}={share}' for name, share in hold_out or ())
    if not shares:
        return {'train': numpy.arange(count)}
    if 'train' in shares or len(shares) < len(hold_out or ()):
        raise ValueError(f'cannot hold out {wanted}: the splits need names '
                         'of their own, other than train')
    try:
        found = random_split(
            count, {**shares, 'train': None}, seed=seed, stratify=classes)
    except ValueError as error:
        raise ValueError(f'cannot hold out {wanted} of {count} examples: '
                         f'{error}') from error
    return {'train': found.pop('train'), **found}
