"""Split examples at random, with or without equal shares of each class."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Sized
from numbers import Integral
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.config_parser import config
from fuel.datasets.dataset import Dataset
from fuel.datasets.splits import ExampleSplits
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.source_dataset import SplitDataset
from fuel.datasets.runs import RunDataset
from fuel.schemes.sampling import find_known
from fuel.storage.reader import rows_of_ranges
from fuel.utils.arguments import is_stream
from fuel.utils.checks import not_negative

__all__ = ['random_split']


def random_split(examples: int | Dataset,
                 shares: Mapping[str, float | None], *,
                 seed: int | None = None,
                 stratify: str | ArrayLike | None = None,
                 groups: str | None = None, missing: object = None
                 ) -> dict[str, NDArray[numpy.intp]]:
    """Split examples at random into several sets.

    Parameters
    ----------
    examples : int or Dataset
        Number of examples, or the data set that has them.
    shares : dict of str to float or int
        Maps the name of each split to its share of the examples, from 0 to 1.
        One share may be None: that split gets the rest. Otherwise the shares
        must add up to 1. If all are integers and one is above 1, they are
        numbers of examples: unless one is None, their sum must be the number
        of all examples that are split. If the only number is the integer 1, it
        is a share: all examples.
    seed : int, optional
        Equal seeds give equal splits. Defaults to ``config.default_seed``.
    stratify : str or array, optional
        The class of each example, or the name of the source that has the
        classes. Each split gets its share of every class, to the nearest
        example. If `shares` are numbers of examples, each split gets exactly
        its number: examples that cannot be divided evenly go to the splits
        with the largest remainders, and the number of examples of a class in a
        split differs from the exact share by less than one. Examples without a
        class are in no split, and there is a warning. Classes may be missing
        in a masked array, in a categorical of pandas or Arrow, and in a source
        of ``dataset.categories``. Defaults to None: shares are of all examples
        together.
    groups : {'runs'}, optional
        Keep each run of the data set, such as an episode or a document, in one
        split. All windows of a run stay together. If an earlier split cut a
        run into pieces, the pieces stay together too. Each split gets at least
        one run, and its share of the examples to the nearest run. If `shares`
        are numbers of examples, a warning names each split of whole runs that
        has another number. Defaults to None: examples are split one by one,
        with a warning if the data set has several runs, since neighbours in a
        run are alike. To do this without the warning, pass ``len(dataset)`` as
        `examples`.
    missing : object, optional
        A value of `stratify` that is not a class, such as -1: examples with
        this value are in no split. Defaults to None: in a plain array each
        value is a class.

    Returns
    -------
    dict of str to numpy.ndarray
        The numbers of the examples of each split, in ascending order. They can
        be passed to a scheme. If the examples are all rows of files, the dict
        may be passed as the argument `splits` of :func:`fuel.load`,
        :class:`~fuel.datasets.HDF5Dataset` and other data sets, or one of its
        arrays as the argument `subset` of :class:`~fuel.datasets.H5PYDataset`.
        If the examples are windows, or only the examples of a split, the dict
        is refused as `splits`.

    Raises
    ------
    ValueError
        If the shares or numbers do not add up, if a split would be empty, if
        `stratify` does not have one class for each example, or if
        `groups` is given and there are no runs.

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

    Integers are numbers of examples:

    >>> splits = random_split(dataset, {'train': 7, 'test': 3}, seed=1)
    >>> {name: len(rows) for name, rows in splits.items()}
    {'train': 7, 'test': 3}

    Windows of one run overlap, and stay together:

    >>> from fuel.datasets import Windows
    >>> windows = Windows(dataset, 2, runs={'lengths': [4, 3, 3]})
    >>> random_split(windows, {'train': None, 'test': .4}, seed=1,
    ...              groups='runs')['test']
    array([0, 1, 2])
    """
    splits = ExampleSplits(_split(
        examples, shares, seed, stratify, groups, missing))
    splits.counted = _counted(examples)
    return splits


def _counted(examples: int | Dataset) -> str:
    """Return a name for examples; '' if they are all rows of a data set."""
    if isinstance(examples, RunDataset):
        return f'examples of {type(examples).__name__}'
    if isinstance(examples, SplitDataset) and examples.which_sets and (
            len(examples) < examples.num_stored):
        return f'examples of the splits {tuple(examples.which_sets)}'
    return ''


def _split(examples: int | Dataset, shares: Mapping[str, float | None],
           seed: int | None, stratify: str | ArrayLike | None,
           groups: str | None, missing: object,
           counted: bool = False) -> dict[str, NDArray[numpy.intp]]:
    """Return the numbers of the examples of each split.

    `counted`: whether shares are numbers of examples even if none is above 1.
    """
    if is_stream(examples):
        raise TypeError(
            f'random_split divides the examples of a data set, got the stream '
            f'{type(examples).__name__}: pass the data set that it reads')
    count = len(examples) if isinstance(examples, Dataset) else (
        not_negative('examples', examples))
    counted = counted or are_counts(shares)
    rng = numpy.random.RandomState(
        config.default_seed if seed is None else seed)
    runs = examples.find_uncut_runs() if isinstance(
        examples, Dataset) else None
    if groups is not None:
        if groups != 'runs' or stratify is not None:
            raise ValueError(
                f"groups must be 'runs', without stratify, got {groups!r} "
                f'and stratify={stratify!r:.40}')
        return _split_runs(examples, runs, shares, counted, rng)
    num_runs = 0 if runs is None else _num_runs(runs)
    if 1 < num_runs < count:
        warnings.warn(
            f'the examples of {type(examples).__name__} lie in '
            f'{num_runs} runs, and neighbours in a run are alike: one '
            f"split leaks into another. Pass groups='runs', or "
            f'len(dataset) if this is meant', stacklevel=3)
    classes: list[Any] = [numpy.arange(count)]
    if stratify is not None:
        classes = _by_class(_classes(examples, stratify), count, missing)
    parts: dict[str, list[Any]] = {name: [] for name in shares}
    sizes = [lengths_of_shares(len(of_class), shares) for of_class in classes]
    if counted:
        sizes = apportion([len(of_class) for of_class in classes],
                          fill_counts(shares, classes, count), rng)
    for of_class, lengths in zip(classes, sizes, strict=True):
        order, start = of_class[rng.permutation(len(of_class))], 0
        for name, length in lengths.items():
            parts[name].append(order[start:start + length])
            start += length
    found = {name: numpy.sort(numpy.concatenate(rows))
             for name, rows in parts.items()} if classes else {}
    for name in shares:
        if not len(found.get(name, ())):
            share = f'its share of {count} examples is {shares[name]}'
            if len(classes) > 1:
                share = (
                    f'its share of each of the {len(classes)} classes is '
                    f'{shares[name]}, and that of the largest, of '
                    f'{max(map(len, classes))} of {count} examples, is less '
                    f'than half an example; stratify by fewer classes, such '
                    f'as numbers in bins, numpy.digitize(numbers, bounds)')
            raise ValueError(f'the split {name!r} would be empty: {share}')
    return found


def _num_runs(runs: tuple[IndexArray, IndexArray]) -> int:
    """Return the number of runs that have examples. A run that was cut counts
    once."""
    bounds, numbers = runs
    return len(numpy.unique(numbers[numpy.diff(bounds) > 0]))


def _split_runs(examples: int | Dataset,
                runs: tuple[IndexArray, IndexArray] | None,
                shares: Mapping[str, float | None], counted: bool,
                rng: numpy.random.RandomState,
                ) -> dict[str, NDArray[numpy.intp]]:
    """Return the examples of each split; each split consists of whole runs.

    `runs`: the bounds of stretches of examples, and the number of the run that
        each stretch belongs to.
    """
    if runs is None:
        raise ValueError(
            f"groups='runs' needs a data set with runs, and "
            f'{type(examples).__name__} has none: give it an attribute runs, '
            f'the bounds of the runs, or read it by Windows')
    bounds, numbers = runs
    stretches = numpy.diff(bounds)
    _, first, run_of = numpy.unique(
        numbers, return_index=True, return_inverse=True)
    # Number the runs in the order of their first stretches. This does not
    # change the draw if no split has cut a run.
    run_of = first.argsort().argsort()[run_of]
    lengths = numpy.bincount(run_of, stretches).astype(numpy.intp)
    order = numpy.flatnonzero(lengths)
    order = order[rng.permutation(len(order))]
    if len(order) < len(shares):
        cut = numpy.count_nonzero(stretches)
        raise ValueError(
            f'{len(order)} runs cannot be split into {len(shares)} sets, '
            f'each of whole runs' + (
                f'; a split of rows has cut them into {cut} pieces, which '
                f'are runs of their own only with runs={{...}}'
                if cut > len(order) else ''))
    ends = numpy.cumsum(lengths[order])
    # The split that gets the rest comes last; the others keep their order.
    names = rest_last(shares)
    total = int(ends[-1])
    if counted:
        fill_counts(shares, [range(total)], total)
    found, start, wanted = {}, 0, 0.
    for place, name in enumerate(names):
        stop = len(order)
        share = shares[name]
        if place < len(names) - 1 and share is not None:
            wanted += share * (1. if counted else float(total))
            stop = int(numpy.argmin(abs(ends - wanted))) + 1
            # Each split has a run, and leaves a run for each later split.
            stop = min(max(stop, start + 1),
                       len(order) - (len(names) - place - 1))
        chosen = numpy.zeros(len(lengths), bool)
        chosen[order[start:stop]] = True
        rows = numpy.flatnonzero(chosen[run_of])
        found[name] = rows_of_ranges(bounds[rows], stretches[rows])
        start = stop
    missed = [f'{name!r} has {len(found[name])} in the place of {share}'
              for name, share in shares.items()
              if counted and share not in (None, len(found[name]))]
    if missed:
        warnings.warn(
            f'whole runs do not have the numbers of examples that were asked '
            f'for: {", ".join(missed)}', stacklevel=4)
    return {name: found[name] for name in shares}


def _classes(examples: int | Dataset, stratify: str | ArrayLike) -> Any:
    if not isinstance(stratify, str):
        return stratify
    if not isinstance(examples, Dataset):
        raise ValueError(f'stratify={stratify!r} is the name of a source, so '
                         'the data set must be given')
    sources = list(examples.sources)
    if stratify not in sources:
        raise ValueError(f'stratify: there is no source {stratify!r}; the '
                         f'sources are {tuple(sources)}')
    return examples.read_labels(stratify)


def _by_class(given: Any, count: int,
              missing: object) -> list[NDArray[numpy.intp]]:
    """Return the examples of each class; the classes are in sorted order."""
    classes = numpy.asarray(given)
    if classes.ndim == 2 and classes.shape[1] == 1:
        classes = classes[:, 0]
    if classes.shape != (count,):
        raise ValueError(
            f'stratify must have one class for each of the {count} examples, '
            f'got an array of shape {classes.shape}')
    known = find_known(given, missing)
    examples = numpy.arange(count) if known is None else (
        numpy.flatnonzero(known))
    if not len(examples):
        raise ValueError(
            f'stratify: all {count} examples lack a class')
    _, number = numpy.unique(classes[examples], return_inverse=True)
    order = examples[numpy.argsort(number, kind='stable')]
    return numpy.split(order, numpy.cumsum(numpy.bincount(number))[:-1])


def held_out(count: int, hold_out: Sequence[tuple[str, float]] | None,
             seed: int, classes: ArrayLike | None = None
             ) -> dict[str, NDArray[numpy.intp]]:
    """Return the splits of a converter: 'train' and the splits held out."""
    shares: dict[str, float | None] = dict(hold_out or ())
    wanted = ', '.join(f'{name}={share}' for name, share in hold_out or ())
    if not shares:
        return {'train': numpy.arange(count)}
    if 'train' in shares or len(shares) < len(hold_out or ()):
        raise ValueError(f'cannot hold out {wanted}: the splits need names '
                         'of their own, other than train')
    try:
        found = _split(
            count, {**shares, 'train': None}, seed, classes, None, None,
            all(isinstance(share, int) for share in shares.values()))
    except ValueError as error:
        raise ValueError(f'cannot hold out {wanted} of {count} examples: '
                         f'{error}') from error
    return {'train': found.pop('train'), **found}


def are_counts(shares: Mapping[str, float | None]) -> bool:
    """Return whether shares are numbers of examples; refuse invalid shares."""
    if not isinstance(shares, Mapping):
        raise TypeError(
            f'shares must be a dict from the name of each split to its share, '
            f"as in {{'train': .8, 'test': .2}}, got {shares!r}")
    known = [share for share in shares.values() if share is not None]
    rests = len(shares) - len(known)
    if rests < 2 and known and max(known) > 1 and all(
            isinstance(share, Integral) and not isinstance(share, bool)
            and share > 0 for share in known):
        return True
    total = sum(known)
    if (not all(0 < share <= 1 for share in known) or rests > 1
            or (total >= 1 if rests else abs(total - 1) > 1e-9)):
        raise ValueError(
            'shares must be from 0 to 1 and add up to 1, or one must be None '
            'for the rest; or all must be positive integers, the numbers of '
            f'examples, one of them above 1: got {dict(shares)}' + (
                ', where an integer of 1 is a share, of all examples; for '
                'one example, give the others their numbers too'
                if 1 in known and max(known) == 1 else ''))
    return False


def rest_last(shares: Mapping[str, float | None]) -> list[str]:
    """Return the names of splits; the split that gets the rest comes last."""
    return sorted(shares, key=lambda name: shares[name] is None)


def lengths_of_shares(count: int, shares: Mapping[str, float | None]
                      ) -> dict[str, int]:
    """Return the number of examples that each split gets out of `count`."""
    *names, last = rest_last(shares)
    found, left = {}, count
    for name in names:
        found[name] = min(round(count * (shares[name] or 0)), left)
        left -= found[name]
    return {**found, last: left}


def fill_counts(shares: Mapping[str, float | None],
                classes: Sequence[Sized], count: int) -> dict[str, int]:
    """Return the number of examples of each split; one split may get the rest.

    `count`: number of examples, with and without a class.
    """
    left = sum(map(len, classes))
    counts = {name: int(share) for name in rest_last(shares)
              if (share := shares[name]) is not None}
    total, rest = sum(counts.values()), len(counts) < len(shares)
    if total >= left if rest else total != left:
        raise ValueError(
            f'the numbers of examples, {dict(shares)}, add up to {total}, '
            f'and there are {left} examples to split' + (
                f', since the class of {count - left} is missing'
                if left < count else '') + (
                ': none is left for the rest' if rest else
                ': give them other numbers, or None for the rest to one'))
    return {name: counts.get(name, left - total)
            for name in rest_last(shares)}


def apportion(sizes: Sequence[int], counts: Mapping[str, int],
              rng: numpy.random.RandomState) -> list[dict[str, int]]:
    """Return the number of examples of each class in each split.

    Each number is the exact share, rounded up or down. The numbers of a class
    add up to its size, and the numbers of a split to its count. The shares
    with the largest remainders are rounded up, in random order if remainders
    are equal.

    `sizes`: number of examples of each class.
    `counts`: number of examples of each split.
    """
    totals = numpy.fromiter(counts.values(), 'int64', len(counts))
    found, remainders = numpy.divmod(
        numpy.asarray(sizes, 'int64')[:, None] * totals, totals.sum())
    class_left = (sizes - found.sum(1)).tolist()
    split_left = (totals - found.sum(0)).tolist()
    free = remainders > 0
    extra = numpy.zeros(free.shape, bool)
    if free.any():
        by_size = numpy.lexsort(
            (rng.permutation(remainders.size), -remainders.ravel()))
        for cell in by_size.tolist():
            row, split = divmod(cell, len(counts))
            if class_left[row] and split_left[split] and free[row, split]:
                extra[row, split], free[row, split] = True, False
                class_left[row] -= 1
                split_left[split] -= 1
    for row in numpy.repeat(numpy.arange(len(sizes)), class_left).tolist():
        _round_up(row, extra, free, split_left)
    return [dict(zip(counts, lengths, strict=True))
            for lengths in (found + extra).tolist()]


def _round_up(row: int, extra: NDArray[Any], free: NDArray[Any],
              split_left: list[int]) -> None:
    """Round up the number of examples of one class in one split.

    If all splits in which the number may be rounded up are full, examples of
    other classes move to other splits, along the shortest way to a split that
    is not full. Such a way exists, because the exact shares add up.

    `row`: number of the class.
    `extra`: mask of the numbers that are rounded up, by class and split.
    `free`: mask of the numbers that may still be rounded up.
    `split_left`: number of examples that each split still lacks.
    """
    ways = [[(row, split)] for split in numpy.flatnonzero(free[row]).tolist()]
    seen = {way[-1][1] for way in ways}
    for way in ways:
        split = way[-1][1]
        if split_left[split]:
            split_left[split] -= 1
            for place, (cell_row, cell_split) in enumerate(way):
                if place:
                    # The extra example of this class leaves the split before.
                    before = way[place - 1][1]
                    extra[cell_row, before], free[cell_row, before] = (
                        False, True)
                extra[cell_row, cell_split], free[cell_row, cell_split] = (
                    True, False)
            return
        for other in range(free.shape[1]):
            rows = numpy.flatnonzero(extra[:, split] & free[:, other])
            if len(rows) and other not in seen:
                seen.add(other)
                ways.append([*way, (int(rows[0]), other)])
