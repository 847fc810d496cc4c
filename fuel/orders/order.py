"""The order of a stream's items, which is known without reading data."""
from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, overload

import numpy
from numpy.typing import NDArray

from fuel.epochs.omitted import Omitted
from fuel.epochs.past import num_epochs
from fuel.epochs.stage import stage_of
from fuel.exceptions import UnknownOrderError
from fuel.orders.digest import digest_of
from fuel.orders.facts import StreamFacts, places_of
from fuel.orders.origins import cuts_of
from fuel.orders.rounds import Rounds
from fuel.orders.steps import PassedSteps, Steps
from fuel.orders.table import (
    ExamplePlace, OrderTable, WindowPlace, as_column, items_title)
from fuel.schemes.shard import Shard, checked_shard
from fuel.sharding.asking import epoch_order
from fuel.sharding.made import example_ids
from fuel.sharding.order import ENDLESS, EpochOrder
from fuel.typing import StreamLike
from fuel.utils.checks import not_negative, positive


class StreamOrder:
    """The order of the items of an epoch: which examples each is made of.

    ``stream.order`` returns it, for the epoch that is running, or that the
    next epoch iterator begins. It is the order of all ranks, also if the
    stream takes a rank's share; :meth:`share` returns the order of a rank.
    Nothing is read, and what the stream delivers does not change.

    It is a sequence of items: ``len(order)`` is their number, ``order[n]``
    the table of the examples of item `n`, ``order[a:b]`` that of several
    items, and a loop goes over all of them.

    Attributes
    ----------
    epoch_number : int or None
        Number of the epoch, from 0 on; None if it is not known, since a state
        of an older version was loaded.
    kind : {'computed', 'drawn', 'replayed', 'none'}
        The way to find an item: by a formula; in a permutation that is drawn
        once; by going through the items before it once; or not at all.
    reason : str
        The reason why the order is not known; '' if it is known.
    num_ranks : int
        Number of ranks that share the order.

    Raises
    ------
    fuel.exceptions.UnknownOrderError
        If the order depends on the data, or on draws that are not known. The
        error names the stage.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list('abcdef')), batch_size=2,
    ...                     shuffle=True, seed=1)
    >>> order = stream.order
    >>> len(order), order[0].row.tolist()
    (3, [2, 1])
    >>> next(stream.get_epoch_iterator())
    (['c', 'b'],)
    >>> order.index(3)
    [ExamplePlace(epoch=0, item=2, row=0, left_out=False)]
    >>> order.epoch(7)[0].row.tolist()
    [2, 4]
    """

    def __init__(self, whole: EpochOrder, facts: StreamFacts,
                 epoch_number: int | None, shard: Shard | None = None,
                 ) -> None:
        self._whole = whole
        self._facts = facts
        self._share = shard
        self._order = whole if shard is None else whole.share(shard)
        self.epoch_number = epoch_number
        self.reason = ''
        try:
            self.kind = self._order.kind
        except UnknownOrderError as error:
            # The number of rows before the position is not known any more.
            self.kind, self.reason = 'none', str(error)
        if self.kind == 'none' and not self.reason:
            self.reason = self._reason()
        self.num_ranks = (shard or facts.shard).num_shards

    @classmethod
    def of_stream(cls, stream: StreamLike, shard: Shard | None = None,
                  ) -> StreamOrder:
        """Return the order of a stream, also if a user's class has another
        attribute `order`.

        Parameters
        ----------
        stream : AbstractDataStream
        shard : Shard, optional
            The share of any rank.  Defaults to that of the stream.

        Returns
        -------
        StreamOrder
        """
        stage = stage_of(stream)
        with stage.lock:
            is_running = stage.pending is None and not (
                stage.epoch is None or stage.is_left())
            past = stage.past_epochs(not is_running)
            return cls(epoch_order(stream), StreamFacts(stream, past, shard),
                       None if past is None else num_epochs(past))

    def __len__(self) -> int:
        return len(self._known)

    @property
    def goes_on(self) -> bool:
        """Whether the next epoch begins where this one is left, in an input
        of a mixture (bool)."""
        return self._whole.goes_on

    @property
    def _known(self) -> EpochOrder:
        """The order, which is known; otherwise UnknownOrderError is
        raised."""
        self._check_known()
        return self._order

    def _check_known(self) -> None:
        """Raise UnknownOrderError, which names the stage, if the order is not
        known."""
        if self.kind == 'none':
            raise UnknownOrderError(
                f'{self.reason}: the examples of each item are known when it '
                'has been read, by fuel.transformers.MarkExamples')

    def _known_to(self, stop: object) -> EpochOrder:
        """Return the order; raise ValueError if it has no end and `stop` is
        None."""
        if stop is None and not self._known.ends:
            # An unknown number is another error.
            len(self)
            raise ValueError(
                'this epoch has no known end, and an answer needs one: pass '
                'stop')
        return self._known

    def _reason(self) -> str:
        """Return the reason why an input's order is not known."""
        waiting = [self._order]
        while waiting:
            one = waiting.pop()
            if one.reason:
                return one.reason
            waiting += one.inputs
        return 'the order is not known'

    @overload
    def __getitem__(self, items: int | slice, /) -> OrderTable: ...

    @overload
    def __getitem__(self, items: Any, /) -> OrderTable: ...

    def __getitem__(self, items: Any) -> OrderTable:
        if isinstance(items, slice):
            return self._table(range(*items.indices(
                len(self._known_to(items.stop)))))
        item = operator.index(items)
        count = self._known.num_items
        if item < 0:
            item += len(self)
        if item < 0 or (count is not None and item >= count):
            raise IndexError(
                f'epoch {self.epoch_number} has {count} items, numbered from '
                f'0; there is no item {items}')
        return self._table(range(item, item + 1))

    def __iter__(self) -> Iterator[OrderTable]:
        order = self._known
        # Of an unknown number of items, the end would not be noticed.
        item = 0 if order.num_items is not None or order.ends else len(order)
        while order.count_to(item + 1) > item:
            yield self[item]
            item += 1

    def __repr__(self) -> str:
        if self.kind == 'none':
            return f'<StreamOrder that is not known: {self.reason}>'
        try:
            count = self._order.num_items
        except UnknownOrderError:
            count = None
        items = ('' if count is None else ', endless' if count >= ENDLESS
                 else f', {count} items')
        rank = '' if self._share is None else (
            f', rank {self._share.rank} of {self._share.num_shards}')
        return (f'<StreamOrder of epoch {self.epoch_number}{rank}{items}, '
                f'{self.kind}>')

    def _table(self, items: range) -> OrderTable:
        """Return the table of some items of the order."""
        order, ranks = self._known, self._facts.shard.num_shards
        ids = [example_ids(order.make(item)) for item in items]
        sizes = list(map(len, ids))
        columns = {'item': numpy.repeat(
            numpy.asarray(items, numpy.int64), sizes)}
        if self._share is not None:
            columns['rank'] = numpy.full(
                sum(sizes), self._share.rank, numpy.int64)
        elif ranks > 1 and self._rounds.deals_items:
            columns['rank'] = numpy.concatenate([
                numpy.empty(0, numpy.int64), *map(
                    self._rounds.ranks_of, items, sizes)])
        return self._with_examples(
            items_title(items, 'item', order.num_items), columns,
            [pair for item in ids for pair in item])

    def _with_examples(self, title: str, columns: dict[str, NDArray[Any]],
                       pairs: list[tuple[int, Any]]) -> OrderTable:
        """Return a table with columns for examples, and further columns."""
        columns['dataset'] = numpy.array(
            [number for number, _ in pairs], numpy.int64)
        columns['row'] = as_column([row for _, row in pairs])
        epoch = '' if self.epoch_number is None else (
            f' in epoch {self.epoch_number}')
        return OrderTable(
            f'{title}{epoch}: {len(pairs)} example{"s" * (len(pairs) != 1)}',
            columns, self._facts.names, self._facts.datasets)

    @functools.cached_property
    def _rounds(self) -> Rounds:
        """The rounds in which all ranks get the items."""
        return Rounds(self._whole, self._facts.shard,
                      self._facts.begin_of(self.epoch_number))

    def share(self, rank: int, num_ranks: int | None = None,
              by: str | None = None, uneven: str | None = None) -> StreamOrder:
        """Return the order of a rank's items.

        Parameters
        ----------
        rank : int
            From 0 to below `num_ranks`.
        num_ranks : int, optional
            Defaults to the number of ranks that share the stream.
        by, uneven : str, optional
            See :meth:`~fuel.streams.AbstractDataStream.shard`. They default
            to those of the stream's share, or to 'batch' and 'uneven'.

        Returns
        -------
        StreamOrder
            Its items are those that an iterator of this rank returns.

        Raises
        ------
        ValueError
            If this is the order of a rank, or the items cannot be shared in
            this way.
        """
        if self._share is not None:
            raise ValueError(
                f'this is the order of rank {self._share.rank} already: take '
                'the share of stream.order')
        given = self._facts.shard
        shard = checked_shard(
            rank, given.num_shards if num_ranks is None else num_ranks,
            by or given.by, uneven or given.uneven)
        return StreamOrder(self._whole, self._facts.of_rank(shard),
                           self.epoch_number, shard)

    def index(self, row: Any, dataset: int | None = None,
              stop: int | None = None) -> list[ExamplePlace]:
        """Return all places of the epoch at which an example comes.

        Parameters
        ----------
        row : object
            Row of a data set, as its `get_data` takes it.
        dataset : int, optional
            Number of the data set in the pipeline. It may be left out if
            there is only one.
        stop : int, optional
            Items from this number on are not searched.  Defaults to the
            number of items; an epoch without an end needs it.

        Returns
        -------
        list of ExamplePlace
            In the order of the items.

        Raises
        ------
        ValueError
            If there are several data sets and `dataset` is None, there is no
            such data set, or `stop` is None and the epoch has no end.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ComputedShuffledScheme
        >>> from fuel.streams import DataStream
        >>> scheme = ComputedShuffledScheme(10 ** 12, 32, seed=1)
        >>> stream = DataStream(IndexableDataset(range(10 ** 12)),
        ...                     iteration_scheme=scheme)
        >>> int(stream.order[5 * 10 ** 9].row[3])
        182477616253
        >>> stream.order.index(182477616253)
        [ExamplePlace(epoch=0, item=5000000000, row=3, left_out=False)]
        """
        order = self._known
        dataset = self._facts.checked_dataset(dataset)
        if order.num_items is not None:
            self._known_to(stop)
        last = ENDLESS if stop is None else not_negative('stop', stop)
        return [ExamplePlace(self.epoch_number, item, offset,
                             self._is_left_out(item, (dataset, row)))
                for item, offset in places_of(order, dataset, row, last)]

    def windows_with(self, row: int, dataset: int | None = None,
                     stop: int | None = None) -> list[WindowPlace]:
        """Return all places of the epoch at which windows hold a row.

        Parameters
        ----------
        row : int
            Row of the data set from which the windows, or the runs, are cut,
            as its `get_data` takes it.
        dataset, stop : int, optional
            See :meth:`index`.

        Returns
        -------
        list of WindowPlace
            In the order of the items.

        Raises
        ------
        ValueError
            If the data set does not consist of windows or runs, or as for
            :meth:`index`.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset, Windows
        >>> from fuel.streams import DataStream
        >>> rows = IndexableDataset({'x': numpy.arange(10)})
        >>> order = DataStream(Windows(rows, 3, stride=2), batch_size=2).order
        >>> order.windows_with(6)  # doctest: +NORMALIZE_WHITESPACE
        [WindowPlace(epoch=0, item=1, row=0, left_out=False, window=2,
                     rows=slice(4, 7, 1)),
         WindowPlace(epoch=0, item=1, row=1, left_out=False, window=3,
                     rows=slice(6, 9, 1))]
        """
        number = self._facts.checked_dataset(dataset)
        row = not_negative('row', row)
        cuts = cuts_of(self._facts.datasets[number]) if (
            self._facts.datasets) else None
        if cuts is None:
            raise ValueError(
                f'the examples of data set {number} '
                f'({self._facts.names[number]}) are not known to be windows '
                'or runs of rows: order.index(row) finds its examples')
        windows = cuts.examples_with(row)
        return sorted([
            WindowPlace(*place, window, slice(first, end, cuts.step))
            for window, first, end in zip(*map(numpy.ndarray.tolist, (
                windows, *cuts.rows_held(windows))), strict=True)
            for place in self.index(window, number, stop)],
            key=lambda place: (place.item, place.row or 0))

    @functools.cached_property
    def _left_out(self) -> list[range]:
        """The rounds that are left out of the epoch."""
        return self._rounds.touched([
            (first, stop) for epoch, first, stop in self._facts.omitted
            if epoch == self.epoch_number])

    def _is_left_out(self, item: int, example: tuple[int, Any]) -> bool:
        """Return whether an item that has an example is left out."""
        if not self._left_out:
            return False
        rounds = self._rounds
        if self._share is None and not rounds.deals_items and (
                self.num_ranks > 1):
            return any(example in found for left_out in self._left_out
                       for number in left_out
                       for found in rounds.examples(number))
        number = item if self._share is not None else rounds.round_of(item)
        return any(number in left_out for left_out in self._left_out)

    def digest(self, start: int = 0, stop: int | None = None) -> int:
        """Return a digest of the order of some examples, of all ranks.

        Equal orders have equal digests, on each rank and for any number of
        ranks, whatever an epoch left out, padded or dropped. Digests add up:
        that of two ranges that follow each other is the sum, modulo 2 ** 64.

        Parameters
        ----------
        start, stop : int, optional
            Number of the first example of the epoch, and of the example after
            the last one.  Default to all examples.

        Returns
        -------
        int
            The sum, modulo 2 ** 64, of a 64-bit hash of each example: of its
            place in the epoch, the number of its data set and its row.

        Raises
        ------
        IndexError
            If the epoch ends before `start` or `stop`.

        Notes
        -----
        It takes time in proportion to the number of examples, and to `start`
        if batches differ in size.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(IndexableDataset(range(100)), batch_size=8,
        ...                     shuffle=True, seed=1)
        >>> digest = stream.order.digest()
        >>> digest == stream.shard(1, 3).order.digest()
        True
        >>> digest == stream.order.epoch(1).digest()
        False
        """
        if self._share is not None:
            raise ValueError(
                'a digest is of the order of all ranks, but this is the order '
                f'of rank {self._share.rank}: take that of stream.order')
        start = not_negative('start', start)
        if stop is not None and not_negative('stop', stop) < start:
            raise ValueError(
                f'stop must not be below start, {start}, got {stop}')
        return digest_of(self._known_to(stop), start, stop)

    def epoch(self, number: int) -> StreamOrder:
        """Return the order of another epoch.

        Parameters
        ----------
        number : int
            From 0 on. Epochs are counted from the first one of the stream;
            a saved state has their number.

        Returns
        -------
        StreamOrder

        Raises
        ------
        fuel.exceptions.UnknownOrderError
            If the order of this epoch is not known. Earlier epochs are known
            if the order is computed, or drawn from a seed.
        """
        number = not_negative('number', number)
        order = self._of_epoch(number)
        return StreamOrder(order, self._facts, number, self._share)

    def _of_epoch(self, number: int) -> EpochOrder:
        """Return the order of an epoch for all ranks."""
        if self._share is None:
            self._check_known()
        if self.epoch_number is None:
            raise UnknownOrderError(
                'the number of the epoch is not known, since the state that '
                'was loaded was saved by an older version of Fuel')
        return self._whole.epoch(
            number - self.epoch_number, number)

    def _steps(self, accumulate: int) -> Steps:
        """Return the steps that take a number of items of each rank."""
        return Steps(self._whole, self._facts, self._of_epoch,
                     positive('accumulate', accumulate))

    def step(self, number: int, accumulate: int = 1) -> OrderTable:
        """Return the examples of a step of the optimizer, of all ranks.

        A step takes `accumulate` items of each rank. Steps are counted from 0
        at the first epoch. What is left at the end of an epoch is a step.

        Parameters
        ----------
        number : int
            From 0 on.
        accumulate : int, optional
            Number of items of each rank for a step.  Defaults to 1.

        Returns
        -------
        OrderTable
            With the column `rank` if there are several ranks. It is assumed
            that all earlier epochs had the same number of ranks.

        Raises
        ------
        fuel.exceptions.UnknownOrderError
            If the numbers of items of earlier epochs, or the order of the
            epoch of this step, are not known.
        """
        number = not_negative('number', number)
        epoch, first, most = self._steps(accumulate).find(number)
        whole = StreamOrder(self._of_epoch(epoch), self._facts, epoch)
        rounds = whole._rounds
        stop = min(first + accumulate, most, rounds.count)
        rows = [(item, rank, example) for item in range(first, stop)
                for rank, examples in enumerate(rounds.examples(item))
                for example in examples]
        columns = {'round': as_column([item for item, _, _ in rows])}
        if self._facts.shard.num_shards > 1:
            columns['rank'] = as_column([rank for _, rank, _ in rows])
        return whole._with_examples(
            f'step {number}, ' + items_title(range(first, stop), 'round',
                                          rounds.count),
            columns, [example for _, _, example in rows])

    def step_of(self, item: int, accumulate: int = 1) -> int | None:
        """Return the number of the step that has an item of this epoch.

        Parameters
        ----------
        item : int
            Number of an item of this order, from 0 on.
        accumulate : int, optional
            See :meth:`step`.

        Returns
        -------
        int or None
            None if the item belongs to no step: the epoch was left before it,
            or ``uneven='drop'`` leaves it out.

        Raises
        ------
        fuel.exceptions.UnknownOrderError
            As for :meth:`step`, or if the ranks share the examples that a
            stage reads: then ask the order of a rank.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> order = DataStream(IndexableDataset(range(10)), batch_size=2).order
        >>> order.step_of(3, accumulate=2), order.epoch(2).step_of(0)
        (1, 10)
        """
        number = not_negative('item', item)
        if self._share is None:
            self._check_dealt()
            number = self._rounds.round_of(number)
        first, rounds = self._first_step(accumulate)
        return first + number // accumulate if number < rounds else None

    def items_of_step(self, number: int, accumulate: int = 1,
                      ) -> tuple[int, range]:
        """Return the epoch of a step, and the items of all ranks in it.

        Parameters
        ----------
        number, accumulate : int
            See :meth:`step`.

        Returns
        -------
        epoch : int
        items : range
            Numbers of items in the order of all ranks.
        """
        number = not_negative('number', number)
        epoch, first, most = self._steps(accumulate).find(number)
        rounds = self.epoch(epoch)._rounds
        return epoch, rounds.items(first, min(first + accumulate, most))

    def items_of_examples(self, first: int, stop: int,
                          accumulate: int = 1) -> range:
        """Return the items of the steps that have some examples.

        Parameters
        ----------
        first, stop : int
            Numbers of the first example, and of the example after the last
            one, in the order of all ranks.
        accumulate : int, optional
            See :meth:`step`.

        Returns
        -------
        range
            Numbers of items in the order of all ranks.
        """
        order, rounds = self._known, self._rounds
        positive('accumulate', accumulate)
        if not 0 <= first < stop:
            raise ValueError(
                f'expected examples from 0 on, at least one, got {first} to '
                f'{stop - 1}')
        self._check_dealt()
        item = passed = 0
        found: list[int] = []
        size = order.batch_size or (1 if order.is_single else None)
        if size is not None:
            found = [first // size, (stop - 1) // size]
        else:
            while passed < stop and order.count_to(item + 1) > item:
                passed += order.size(item)
                if passed > first:
                    found.append(item)
                item += 1
        last = found[-1] if found and found[-1] < len(self) else None
        if last is None or stop > order.size(last) + (
                passed - order.size(last) if size is None else last * size):
            raise IndexError(
                f'epoch {self.epoch_number} ends before example {stop - 1}')
        begin, end = (rounds.round_of(item) // accumulate * accumulate
                      for item in (found[0], found[-1]))
        return rounds.items(begin, end + accumulate)

    def _check_dealt(self) -> None:
        """Raise UnknownOrderError if the items of this order have no
        rounds."""
        if self._facts.shard.num_shards > 1 and not self._rounds.deals_items:
            raise UnknownOrderError(
                'the ranks share the examples that a stage reads, not its '
                'items, so an example of the whole order has no round: name '
                'steps, or ask order.share(rank)')

    def passed_steps(self, accumulate: int = 1) -> PassedSteps:
        """Return a counter of the steps of the epoch that have passed.

        Parameters
        ----------
        accumulate : int, optional
            See :meth:`step`.

        Returns
        -------
        fuel.orders.steps.PassedSteps
        """
        self._check_known()
        return PassedSteps(self._first_step(accumulate)[0], accumulate,
                           self._rounds, self._facts.unit)

    def _first_step(self, accumulate: int) -> tuple[int, int]:
        """Return the number of the first step of the epoch, and its number of
        rounds that are trained."""
        steps, number = self._steps(accumulate), self.epoch_number
        if number is None:
            # This raises the error.
            self._of_epoch(0)
        return steps.of_epoch(number or 0)

    def next_round(self) -> int:
        """Return the number of the round with which a stream goes on from a
        state that it has loaded; 0 if it begins an epoch."""
        return 0 if self._facts.begun is None else (
            self._rounds.passed(*self._facts.begun))

    def next_item(self) -> int:
        """Return the number of the first item of this round."""
        number = self.next_round()
        return number and self._rounds.items(number, number).start

    def refuse_repeats(self, omitted: Omitted) -> None:
        """Raise ValueError if padding would repeat what is left out of a
        present or later epoch."""
        if self._facts.shard.uneven != 'pad' or self.epoch_number is None:
            return
        for epoch in {epoch for epoch, _, _ in omitted}:
            # Of an order that is not known yet, the epoch asks again.
            with suppress(UnknownOrderError):
                if epoch < self.epoch_number:
                    continue
                rounds = self.epoch(epoch)._rounds
                rounds.refuse_repeats(rounds.touched([
                    (first, stop) for number, first, stop in omitted
                    if number == epoch]))

    def round_of(self, epoch: int, item: int) -> int:
        """Return the number of the round of an epoch that has an item."""
        return self.epoch(epoch)._rounds.round_of(item)
