"""The examples of data sets that the rows of an item are made of, as integers.

An example is named by the number of its data set and by its row there.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import datasets_of, source_examples
from fuel.epochs.stage import Stage, children_of, stage_of
from fuel.exceptions import UnknownOrderError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import chooses_examples
from fuel.schemes.sharded_requests import as_splittable
from fuel.sharding.made import (
    SEVERAL, DatasetRows, Joined, Made, Merged, Packed)
from fuel.streams.dataset_stream import DataStream
from fuel.transformers.base import Transformer
from fuel.typing import StreamLike
from fuel.utils.overrides import covers, declares, hook_covers_method


#: Names of a row's own example, of the example that is mixed into it, and of
#: the tokens of its step; `counts` are the tokens themselves.
Wanted: TypeAlias = Literal['own', 'partner', 'tokens', 'counts']


class ExampleIds:
    """The examples of the items that a stage reads in an epoch.

    `asker`: name of the stage, for errors.
    `stream`: the stream that it reads.
    `path`: for each of several merges, the place of the stream that counts.
    `is_packed`: whether several examples may be packed into a row.
    """

    def __init__(self, asker: str, stream: StreamLike,
                 path: Sequence[int] = (), is_packed: bool = False) -> None:
        self.asker = asker
        self.datasets = tuple(datasets_of(stream))
        self.path = tuple(path)
        self.is_packed = is_packed

    # The epoch whose requests are the rows, and the number of its data set;
    # None if it is not known yet, () if there is none.
    _source: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items()
                if name != '_source'}

    def of_last(self, iterator: Any, count: int,
                wanted: Sequence[Wanted] = ('own',),
                ) -> list[NDArray[numpy.int64]]:
        """Return the examples of the item that was read last, or what else is
        wanted of its rows, in a table each.

        `count`: number of rows of the item.
        """
        if self._source is None:
            self._source = self._find_source(iterator)
        found = self._requested() if self._source else None
        tables = self._made_of(
            iterator, count, wanted) if found is None else [
                found, *[numpy.full_like(found, -1)] * (len(wanted) - 1)]
        if len(tables[0]) != count:
            raise UnknownOrderError(
                f'{self.asker} reads a batch of {count} rows, but '
                f'{len(tables[0])} examples of data sets were read for it: '
                'let the stage, or the data set, that changes the number of '
                f'rows come after {self.asker}')
        return tables

    def _find_source(self, iterator: Any) -> Any:
        """Return the epoch whose requests are the rows of all items, and the
        number of its data set; () if there is no such epoch."""
        epoch, dataset = request_epoch(iterator) or (None, None)
        return next(((epoch, number) for number, one in enumerate(
            self.datasets) if one is dataset), ())

    def _requested(self) -> NDArray[numpy.int64] | None:
        """Return the examples of the last request; None if it does not name
        the rows by integers, or rows were left out."""
        epoch, number = self._source
        requests = epoch.request_iterator
        if epoch.short or requests is None:
            return None
        rows = requests.last_compact()
        if type(rows) is int:
            table = numpy.empty((1, 2), numpy.int64)
        else:
            if type(rows) is list:
                rows = numpy.array(rows)
            if type(rows) is not numpy.ndarray or rows.ndim != 1 or (
                    rows.dtype.kind not in 'iu'):
                return None
            table = numpy.empty((len(rows), 2), numpy.int64)
        table[:, 0], table[:, 1] = number, rows
        return table

    def _made_of(self, iterator: Any, count: int, wanted: Sequence[Wanted],
                 ) -> list[NDArray[numpy.int64]]:
        """Return the tables of an item; each stage below is asked."""
        found = source_examples(iterator, 1)
        if found is None:
            unknown = _stage_without(iterator)
            if unknown.is_remote:
                raise UnknownOrderError(elsewhere(self.asker, unknown.name))
            self._refuse(unknown.name)
        if not found.in_order:
            if found.indices:
                self._refuse(
                    found.stage or stage_of(iterator.data_stream).name)
            # The item was made of nothing.
            shape = count, *(1,) * self.is_packed, 2
            return [numpy.full(
                shape[:-1] if column == 'tokens' else shape, -1, numpy.int64)
                for column in wanted]
        return [self._table(found.made, column) for column in wanted]

    def _table(self, made: Made, wanted: Wanted) -> NDArray[numpy.int64]:
        """Return the examples of an item, or the tokens of its rows' steps."""
        parts = list(self._parts(made, self.path, wanted)) or [
            numpy.zeros((0, 2)[:1 + (wanted != 'tokens')], numpy.int64)]
        if self.is_packed:
            parts = padded(parts)
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def _parts(self, made: Made, path: tuple[int, ...], wanted: Wanted,
               ) -> Iterator[NDArray[numpy.int64]]:
        """Yield the examples of the parts of an item, or their tokens.

        `path`: for each of several merges, the place of the stream that
            counts.
        """
        if isinstance(made, Merged):
            place = 0
            if made.kind == 'streams':
                place, path = path[0] if path else 0, path[1:]
            elif made.kind == 'mixed' and wanted == 'partner':
                # Of examples that were mixed before, their own count.
                place, wanted = 1, 'own'
            elif made.kind == 'tokens' and wanted == 'tokens':
                place, wanted = 1, 'counts'
            yield from self._parts(made.parts[place], path, wanted)
        elif isinstance(made, Packed):
            yield numpy.concatenate([
                table for part in made.parts
                for table in self._parts(part, path, wanted)])[
                    numpy.newaxis]
        elif isinstance(made, Joined):
            for part in made.parts:
                yield from self._parts(part, path, wanted)
        elif wanted == 'counts':
            yield numpy.array(made.rows, numpy.int64).reshape(-1)
        elif wanted == 'tokens':
            raise UnknownOrderError(
                f'{self.asker} cannot tell to which step the rows '
                f'{made.rows!r:.80} belong: put it directly over '
                'BalancedBatches')
        else:
            rows = self._rows_of(made)
            if wanted == 'partner':
                rows[:] = -1
            yield rows

    def _rows_of(self, made: DatasetRows) -> NDArray[numpy.int64]:
        """Return examples of one data set."""
        try:
            rows = numpy.asarray(
                as_splittable(made.rows) if isinstance(made.rows, SEVERAL)
                else [made.rows])
        except (TypeError, ValueError):
            rows = numpy.array([made.rows], object)
        numbers = [place for place, dataset in enumerate(self.datasets)
                   if dataset is made.dataset]
        if made.dataset is None and len(self.datasets) == 1:
            # A user's stage has named only rows.
            numbers = [0]
        if not numbers:
            raise UnknownOrderError(
                f'{self.asker} cannot tell which data set has the rows '
                f'{made.rows!r:.80}: let source_examples of the stage '
                'return what it gets from source_examples of its input')
        number = numbers[0]
        if len(rows) and (rows.dtype.kind not in 'iu' or rows.ndim > 1):
            raise UnknownOrderError(
                f'{self.asker} names an example by an integer, but the data '
                f'set {type(self.datasets[number]).__name__} is asked for '
                f'{made.rows!r:.80}: read it by a scheme that gives the '
                'numbers of examples')
        table = numpy.empty((len(rows), 2), numpy.int64)
        table[:, 0], table[:, 1] = number, rows
        return table

    def _refuse(self, name: str) -> NoReturn:
        raise UnknownOrderError(unknown_rows(self.asker, name))


def padded(parts: Sequence[NDArray[numpy.int64]],
           ) -> list[NDArray[numpy.int64]]:
    """Return tables of rows that each have a list of examples; lists that are
    shorter than the longest one end with -1, -1."""
    most = max([part.shape[-2] if part.ndim > 2 else 1 for part in parts])
    found = []
    for part in parts:
        rows = part if part.ndim > 2 else part[:, numpy.newaxis]
        found.append(numpy.full((len(rows), most, 2), -1, numpy.int64))
        found[-1][:, :rows.shape[1]] = rows
    return found


def request_epoch(iterator: Any) -> tuple[Epoch, Any] | None:
    """Return the epoch of a data stream whose last request names the rows of
    the last item of an iterator, in order, and its data set; None if there is
    none."""
    while isinstance(iterator, EpochIterator):
        epoch, stage = iterator.epoch, stage_of(iterator.data_stream)
        if stage.is_remote or stage.own_shard is not None or not covers(
                stage.stream, 'source_examples', ('get_data',)):
            return None
        if stage.dataset is not None and not stage.inputs:
            return (epoch, stage.dataset) if _is_asked_for(stage) else None
        if type(stage.stream).source_examples is not (
                Transformer.source_examples) or not (
                    _passes_rows(stage) and stage.one_to_one):
            return None
        iterator = epoch.attributes.get('child_epoch_iterator')
    return None


def _is_asked_for(stage: Stage) -> bool:
    """Return whether the requests of a data stream name its rows."""
    return stage.scheme is not None and chooses_examples(stage.scheme) and (
        type(stage.stream).source_examples is DataStream.source_examples)


def _passes_rows(stage: Stage) -> bool:
    """Return whether the rows of a one-to-one stage's item are those of its
    input's item, in the same order."""
    return stage.keeps_rows or bool(stage.stream.produces_examples)


def unknown_rows(asker: str, name: str) -> str:
    """Return the text of the error that a stage hides the examples of its
    rows."""
    return (
        f'{asker} cannot tell which rows of an item of {name} come from '
        f'which examples, since {name} may change the rows or their number: '
        f'put {asker} before that stage; a class of your own whose '
        'transform_batch keeps them says so by keeps_rows = True')


def elsewhere(asker: str, name: str) -> str:
    """Return the text of the error that a stage has its items from
    elsewhere."""
    return (
        f'{asker} cannot see the examples that {name} makes items of, since '
        f'they are made elsewhere or prefetched: put {asker} before that '
        'stage')


def _stage_without(iterator: Any) -> Stage:
    """Return the lowest stage that does not know the examples of its last
    item."""
    for child in children_of(iterator.epoch):
        if isinstance(child, EpochIterator) and (
                source_examples(child, 1) is None):
            return _stage_without(child)
    return stage_of(iterator.data_stream)


def refuse_server(asker: str, stream: StreamLike) -> None:
    """Raise ValueError if a server makes items."""
    stage = stage_of(stream)
    if stage.is_remote and not stage.inputs:
        raise ValueError(f'{elsewhere(asker, stage.name)}, in the server')
    for child in stage.inputs:
        refuse_server(asker, child)


def require_known_rows(asker: str, stream: StreamLike) -> None:
    """Raise an error if the stages of a stream do not tell the example of
    each row."""
    refuse_server(asker, stream)
    _require_known(asker, stage_of(stream))


def _require_known(asker: str, stage: Stage) -> None:
    for child in stage.inputs:
        _require_known(asker, stage_of(child))
    if not _knows_rows(stage):
        raise UnknownOrderError(unknown_rows(asker, stage.name))


def _knows_rows(stage: Stage) -> bool:
    """Return whether a stage knows the example of each row, if its input
    does."""
    stream = stage.stream
    if stage.is_foreign:
        return False
    if stage.passes_items_on:
        return True
    if stage.dataset is not None and not stage.inputs:
        return covers(stream, 'source_examples', ('get_data',)) and (
            stage.scheme is None or chooses_examples(stage.scheme))
    if getattr(stream, 'packs_examples', False) is True or (
            # Pieces of an example would get the same draws.
            stream.makes_pieces
            and not covers(stream, 'source_examples', ('expand',))):
        return False
    if not stage.one_to_one and not hook_covers_method(
            type(stream), 'get_data', 'source_examples'):
        # A user's class makes other items than the class that it is from.
        return False
    return type(stream).source_examples is not (
        Transformer.source_examples) or bool(
            stream.produces_examples or declares(stream, 'keeps_rows'))
