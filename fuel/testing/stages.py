"""Check what a stage promises to the streams upstream and downstream."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain, zip_longest
from threading import Barrier, BrokenBarrierError
from typing import Any, NamedTuple, TypeAlias

import numpy

from fuel.datasets import IndexableDataset
from fuel.describe.source_types import SourceType, types_of
from fuel.epochs.pipeline import can_seek_rows
from fuel.epochs.stage import stage_of
from fuel.schemes import ShuffledExampleScheme, ShuffledScheme
from fuel.schemes.shard import Shard
from fuel.sharding.shard_pipeline import shard_pipeline
from fuel.streams import DataStream
from fuel.testing.data import freeze
from fuel.testing.promises import (
    Promises,
    expect,
    expect_builder,
    expect_made,
    keep,
)
from fuel.testing.replay import ReplayProcess
from fuel.testing.streams import check_parts, check_stream
from fuel.transformers.base import as_tuple
from fuel.typing import StreamLike
from fuel.utils.overrides import declares
from fuel.utils.masked import is_masked, mask_of, without_hidden
from fuel.utils.sparse import count_rows, is_sparse, iterate_rows, row_of

Builder: TypeAlias = Callable[[], StreamLike]
StageBuilder: TypeAlias = Callable[[Any], StreamLike]

#: Number of examples in the streams that stages are tried on.
NUM_EXAMPLES = 11


def batches() -> DataStream:
    """Return a stream of shuffled batches of matrices and numbers."""
    return DataStream(arrays(), iteration_scheme=ShuffledScheme(
        NUM_EXAMPLES, 4))


def examples() -> DataStream:
    """Return a stream of shuffled examples, a matrix and a number each."""
    return DataStream(arrays(), iteration_scheme=ShuffledExampleScheme(
        NUM_EXAMPLES))


def arrays() -> IndexableDataset:
    """Return a data set of a matrix and a number for each example."""
    return IndexableDataset({
        'features': numpy.arange(NUM_EXAMPLES * 6.).reshape(-1, 3, 2),
        'targets': numpy.arange(NUM_EXAMPLES)},
        axis_labels={'features': ('batch', 'height', 'width'),
                     'targets': ('batch',)})


def check_stage(build: StageBuilder, *,
                over: Sequence[Builder] | None = None,
                promises: Iterable[str] | None = None,
                draws: bool = False,
                another_process: ReplayProcess | bool = True) -> None:
    """Check that a stage keeps what Fuel promises of every stage.

    The stage is itself a stream, whose promises are checked too, see
    :func:`~fuel.testing.check_stream`.

    Parameters
    ----------
    build : callable
        Takes a stream and returns a new stage that reads it, as the stage's
        class does.  Stages that it makes over equal streams are equal.
    over : list of callable, optional
        Functions that make the streams that the stage is tried on.  Defaults
        to a stream of batches and a stream of examples, both of the sources
        ``'features'`` (float64, 3 x 2) and ``'targets'`` (int64).  A default
        stream is left out if the stage raises :class:`NotImplementedError`
        for it.
    promises : iterable of str, optional
        Keys of :data:`STAGE_PROMISES`.  Defaults to all.
    draws : bool, optional
        Whether the stage draws random numbers while an epoch runs, from one
        generator for all epochs.  Defaults to False.
    another_process : bool or ReplayProcess, optional
        See :func:`~fuel.testing.check_stream`.

    Raises
    ------
    BrokenPromiseError
        If a promise is broken; the text names it.
    ValueError
        If the stage takes neither batches nor examples.

    Examples
    --------
    >>> from fuel.transformers import Transformer
    >>> class Counted(Transformer):
    ...     count = 0
    ...     def __init__(self, data_stream):
    ...         super().__init__(data_stream, data_stream.produces_examples)
    ...     def transform_batch(self, batch):
    ...         self.count += 1
    ...         return (*batch[:-1], batch[-1] + self.count)
    >>> check_stage(Counted, promises=['refused requests'])
    >>> check_stage(Counted, another_process=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fuel.testing.promises.BrokenPromiseError: stream: ... interleaved ...
    """
    expect_builder(build, 'stage')
    found = [stream for stream in (over or (batches, examples))
             if over or takes(build, stream)]
    if not found:
        raise ValueError(
            'the stage takes neither the batches nor the examples that it '
            'is tried on by default: pass streams as over=[...]')
    for stream in found:
        keep(STAGE_PROMISES, promises,
             StageCase(build, stream, draws, another_process))


def stage_over(build: StageBuilder, over: Builder) -> StreamLike:
    """Return a new stage over a new stream."""
    return build(over())


class StageCase:
    """A function that makes the stage to check, over a stream to try it on."""

    def __init__(self, build: StageBuilder, over: Builder, draws: bool,
                 another_process: ReplayProcess | bool) -> None:
        self.build = partial(stage_over, build, over)
        self.over = over
        self.draws = draws
        self.another_process = another_process


def takes(build: StageBuilder, over: Builder) -> bool:
    """Return whether a stage accepts the stream that `over` makes."""
    stage = build(over())
    expect_made(stage, 'stage', 'get_epoch_iterator')
    try:
        next(stage.get_epoch_iterator(), None)
    except NotImplementedError:
        return False
    return True


def check_requests(case: StageCase) -> None:
    """A stage without an iteration scheme refuses requests."""
    stage: Any = case.build()
    if stage.iteration_scheme is None:
        stage.get_epoch_iterator()
        try:
            data = stage.get_data(3)
        except ValueError:
            return
        expect(False, f'get_data(3) returned {freeze(data)}: get_data() of a '
               'stage without a scheme raises ValueError for a request.')


def check_closing(case: StageCase) -> None:
    """Closing and resetting a stage reaches the stream that it reads."""
    for method in ('close', 'reset', 'next_epoch'):
        stage: Any = case.build()
        called: list[object] = []
        for child in stage_of(stage).inputs:
            setattr(child, method, partial(called.append, child))
        getattr(stage, method)()
        expect(called, f'{method}() of the stage did not call that of its '
               'data_stream.')


def check_one_to_one(case: StageCase) -> None:
    """A stage that is one-to-one gives one item for each that it reads."""
    stage: Any = case.build()
    if stage.one_to_one:
        count = sum(1 for _ in stage.get_epoch_iterator())
        below = sum(1 for _ in case.over().get_epoch_iterator())
        expect(count == below, f'{count} items came of {below}.')


def check_purity(case: StageCase) -> None:
    """A stage that is declared pure makes an item from one item alone."""
    if not declares(case.build(), 'pure'):
        return
    expected = [freeze(item) for item
                in case.build().get_epoch_iterator()]
    stage: Any = case.build()
    transform = (stage.transform_example if stage.produces_examples
                 else stage.transform_batch)

    def items() -> list[Any]:
        # Make new items each time: a stage may change items in place.
        return list(case.over().get_epoch_iterator())

    for ordered in reversed, list:
        found = [as_tuple(transform(item)) for item in ordered(items())]
        expect([freeze(item) for item in ordered(found)] == expected,
               'the stage is declared pure, but gives other items in another '
               'order: leave out pure.')
    turns = Barrier(2)

    def in_turns(items: list[Any]) -> list[Any]:
        sys.settrace(partial(_take_turns, turns))
        try:
            return [as_tuple(transform(item)) for item in items]
        finally:
            sys.settrace(None)
            turns.abort()

    with ThreadPoolExecutor(2) as threads:
        forth, back = threads.map(in_turns, (items(), items()[::-1]))
    expect(all([freeze(item) for item in found] == expected
               for found in (forth, back[::-1])),
           'the stage is declared pure, but gives other items in two threads '
           'at the same time: leave out pure.')


def _take_turns(turns: Barrier, *event: object) -> Any:
    """Wait before each line until another thread has reached a line too."""
    with suppress(BrokenBarrierError):
        # The other thread may wait for a lock that this thread holds.
        turns.wait(0.5)
    return partial(_take_turns, turns)


def check_rows(case: StageCase) -> None:
    """A stage that declares keeps_rows makes each row of one row alone."""
    stage: Any = case.build()
    if not (stage_of(stage).keeps_rows and can_seek_rows(stage)):
        # Ranks do not read single rows of such a stage.
        return
    other: Any = case.build()
    below = [count_rows(data[0]) for data in
             stage_of(other).inputs[0].get_epoch_iterator()]
    whole = list(map(_rows, case.build().get_epoch_iterator()))
    expect(below == list(map(len, whole)),
           f'Batches of {below} rows became batches of '
           f'{list(map(len, whole))}: leave out keeps_rows.')
    # With two ranks, each rank reads several rows; with many ranks, one row.
    for ranks in 2, max(below, default=1):
        shares = [map(_rows, shard_pipeline(case.build(), Shard(
            rank, ranks, 'example', 'uneven')).get_epoch_iterator())
            for rank in range(ranks)]
        for place, (rows, parts) in enumerate(zip(
                whole, zip_longest(*shares, fillvalue=()), strict=True)):
            found = list(chain.from_iterable(parts))
            row = next((row for row, (one, other) in enumerate(zip_longest(
                rows, found, fillvalue=())) if not _are_close(one, other)),
                None)
            expect(row is None,
                   f'Row {row} of item {place} is another one where {ranks} '
                   'ranks share the rows of each batch: leave out '
                   'keeps_rows.')


def _rows(batch: Any) -> list[Any]:
    """Return the rows of a batch, each as a tuple with all sources."""
    return [tuple([row_of(part, row) for part in batch])
            for row in range(count_rows(batch[0]))]


def _are_close(one: Any, other: Any) -> bool:
    """Return whether two rows are equal up to rounding.

    Libraries may add numbers in another order for another number of rows.
    """
    if freeze(one) == freeze(other):
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(
            map(_are_close, one, other))
    if is_sparse(one):
        return False
    if is_masked(one) and is_masked(other):
        return numpy.array_equal(mask_of(one), mask_of(other)) and _are_close(
            without_hidden(one), without_hidden(other))
    array, found = numpy.asarray(one), numpy.asarray(other)
    if (array.dtype, array.shape) != (found.dtype, found.shape) or (
            array.dtype.kind not in 'fc'):
        return False
    rounding = float(numpy.finfo(array.dtype).eps) ** .5
    return numpy.allclose(
        array, found, rounding, rounding * numpy.abs(array).max(initial=0),
        equal_nan=True)


class _Kind(NamedTuple):
    """Type, shape and number of axes of an example of one source."""

    dtype: Any
    shape: tuple[int, ...]
    axes: int


def _kinds(stream: Any) -> dict[str, set[_Kind]]:
    """Return the kinds of the examples of each source in an epoch."""
    found: dict[str, set[_Kind]] = {}
    for data in stream.get_epoch_iterator():
        for source, part in zip(stream.sources, data, strict=True):
            examples = ([part] if stream.produces_examples
                        else iterate_rows(part))
            for example in examples:
                array: Any = example if is_sparse(example) else (
                    numpy.asarray(example))
                found.setdefault(source, set()).add(
                    _Kind(array.dtype, array.shape, len(array.shape)))
    return found


def _fits(known: SourceType, part: Any, is_batch: bool) -> bool:
    """Return whether data have the type and shape that a stage declares."""
    if is_sparse(part) != known.is_sparse:
        return False
    array = part if known.is_sparse else numpy.asarray(part)
    shape = known.shape
    if shape is not None and known.is_sparse and not is_batch:
        shape = (1, *shape)
    if array.dtype == object and shape is not None and len(shape) > 1:
        # Examples of several shapes.
        return (shape[0] is None or len(array) <= shape[0]) and all(
            _fits(known.example(), example, False) for example in array)
    # If the declared type is object, an example may have any type.
    if (known.dtype is not None and object not in (known.dtype, array.dtype)
            and array.dtype != known.dtype):
        return False
    if shape is None:
        return True
    if is_batch and shape:
        # The last batch may have fewer rows.
        shape = (None if shape[0] is None or shape[0] >= array.shape[0]
                 else shape[0], *shape[1:])
    return len(shape) == len(array.shape) and all(
        length in (None, there) for length, there
        in zip(shape, array.shape, strict=True))


def check_kept(case: StageCase) -> None:
    """Data keep the types, shapes and axes that a stage declares kept."""
    stage: Any = case.build()
    keeps = stage_of(stage).keeps
    if not keeps:
        return
    before: dict[str, set[_Kind]] = {}
    other: Any = case.build()
    for child in stage_of(other).inputs:
        for source, kinds in _kinds(child).items():
            before.setdefault(source, set()).update(kinds)
    after = _kinds(stage)
    for name in keeps.intersection(_Kind._fields):
        for source in before.keys() & after.keys():
            had, new = [
                sorted({getattr(kind, name) for kind in kinds[source]},
                       key=repr) for kinds in (before, after)]
            expect(set(new) <= set(had),
                   f'Source {source!r} came with {name} {new} of {had}: leave '
                   f'{name!r} out of keeps.')


def check_known_types(case: StageCase) -> None:
    """Each item has the types that known_types() of a stage declares."""
    stage: Any = case.build()
    types = types_of(stage)
    sources = tuple(stage.sources)
    expect(types.keys() <= set(sources),
           f'known_types() names {sorted(types.keys() - set(sources))}, and '
           f'the sources are {sources}.')
    for place, data in enumerate(stage.get_epoch_iterator()):
        for source, part in zip(sources, data, strict=True):
            known = types.get(source)
            expect(known is None or _fits(
                known, part, not stage.produces_examples),
                   f'known_types() says {known} of source {source!r}, and '
                   f'item {place} is {freeze(part)}.')


def check_stage_stream(case: StageCase) -> None:
    """A stage keeps the promises of every stream."""
    check_stream(case.build, draws=case.draws,
                 another_process=case.another_process)


#: A dict from names to the checks of a stage.
STAGE_PROMISES: Promises[StageCase] = {
    'parts': check_parts,
    'refused requests': check_requests,
    'closing': check_closing,
    'one-to-one': check_one_to_one,
    'pure': check_purity,
    'rows': check_rows,
    'kept': check_kept,
    'known types': check_known_types,
    'stream': check_stage_stream,
}
