"""Compute the order of a pipeline's running epoch, or of its next epoch.

All draws come from copies of the schemes and generators.
"""
from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fuel.epochs.ahead import ReadAhead
from fuel.epochs.epoch import Epoch
from fuel.epochs.readers import known_length
from fuel.epochs.pipeline import datasets_of, omits, why_not_one_to_one
from fuel.epochs.stage import Stage, children_of, stage_of
from fuel.epochs.state import (
    RUNNING, Position, available, shallow_state)
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.inverse import as_index
from fuel.schemes.iteration_scheme import (
    batch_size_of, chooses_examples, is_random_access, num_requests_of)
from fuel.schemes.requests import IndexRequests
from fuel.schemes.ordered import ConstantScheme, size_requests
from fuel.schemes.sharded_requests import RankRequests, RowRequests
from fuel.sharding.draws import (
    Draws, FirstEpochs, Known, ListedRequests, Replay, Start, is_of_fuel,
    scheme_kind, shared_draws, whole_scheme, why_unknown)
from fuel.sharding.given import GivenOrder
from fuel.sharding.keys import KeyStart
from fuel.sharding.made import DatasetRows, Made
from fuel.sharding.planned import has_numbered_items
from fuel.sharding.order import (
    ENDLESS, EpochOrder, RemadeOrder, Unordered)
from fuel.sharding.places import ItemPlace
from fuel.sharding.shard_pipeline import copied_scheme
from fuel.typing import State, StreamLike
from fuel.utils import rng_state
from fuel.utils.overrides import covers, is_original


class RequestOrder(EpochOrder):
    """Order of a data stream: the requests that its scheme makes.

    `dataset`: number of the data set in the pipeline.
    `place`: place of the scheme's requests in `draws`.
    """

    takes_share = True
    dataset: int
    # The requests for single examples, and a copy of them.
    _peeked: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_peeked': None}

    def __init__(self, dataset: int, scheme: Any, draws: Draws, place: int,
                 ) -> None:
        self.dataset = dataset
        self.draws = draws
        self.place = place
        self.is_single = bool(scheme.requests_examples)
        self.own_kind = scheme_kind(scheme)
        self._is_of_fuel = is_of_fuel(scheme)
        self._count = num_requests_of(scheme)
        self.batch_size = None if self.is_single or not (
            is_random_access(scheme)) else batch_size_of(scheme)

    @property
    def requests(self) -> Any:
        """The requests of the epoch; each is found by its number."""
        return self.draws.at(self.place)

    @property
    def num_items(self) -> Any:
        """The number of requests."""
        if self._count is not None or isinstance(
                self.requests, ListedRequests):
            return self._count
        return int(self.requests.num_requests)

    @property
    def has_fixed_length(self) -> bool:
        """Whether all epochs have the same number of items (bool)."""
        return self._count is not None

    @property
    def has_fixed_sizes(self) -> bool:
        """True if the item of each number has as many rows in all epochs."""
        return self.is_single or self.batch_size is not None or (
            self._is_of_fuel)

    def count_to(self, stop: int) -> int:
        """Return the number of items; counting may end at `stop`."""
        requests = self.requests
        return (requests.count_to(stop) if isinstance(
            requests, ListedRequests) else int(requests.num_requests))

    def make(self, item: int) -> Made:
        """Return the rows that a request names."""
        request = self.requests.request_at(item)
        if request is None:
            raise IndexError(f'the epoch has no item {item}')
        return DatasetRows(self.dataset, request)

    def make_all(self, items: Sequence[int]) -> list[Made]:
        """Return the rows of several items."""
        requests = self.requests
        if not (isinstance(items, range) and items.step == 1
                and isinstance(requests, IndexRequests)):
            return super().make_all(items)
        # Faster than one by one.
        if self._peeked is None or self._peeked[0] is not requests:
            self._peeked = requests, requests.copied()
        copied = self._peeked[1]
        copied.position = items.start
        found = copied.peek(len(items))
        if len(found) < len(items):
            raise IndexError(f'the epoch has no item {items[-1]}')
        return [DatasetRows(self.dataset, row) for row in found]

    def size(self, item: int) -> int:
        """Return the number of rows of an item."""
        size: int | None = self.batch_size
        return super().size(item) if size is None or (
            item + 1 >= self.num_items) else size

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        if dataset != self.dataset:
            return iter(())
        requests = self.requests
        found = requests.places_of(as_index(row)) if covers(
            requests, 'places_of', ('_request', 'request_at')) else None
        return super().places_of(dataset, row, stop) if found is None else (
            itertools.starmap(ItemPlace, found))


class CarriesInputs:
    """Base of stages whose inputs may continue in the next epoch.

    Such an input resumes from its position at the end of the epoch before.
    """

    @property
    def carried_iterators(self) -> Sequence[Any]:
        """The iterators of the inputs, if these continue; () otherwise."""
        return ()


class StageEpoch(NamedTuple):
    """An epoch of a stage, for computing the order of its items.

    `query`: the query about the whole pipeline.
    `stage`: the stage.
    `epoch`: the epoch, None if it has not begun.
    `state`: the state that the epoch restores, None if there is none. It may
        have positions in place of the inputs' states.
    `is_past`: whether `state` belongs to an epoch that is over.
    """

    query: OrderQuery
    stage: Stage
    epoch: Epoch | None = None
    state: State | None = None
    is_past: bool = False

    @property
    def draws(self) -> Draws:
        """The draws of the pipeline (Draws)."""
        return self.query.draws

    @property
    def first_epochs(self) -> FirstEpochs | None:
        """The first epochs of the stage's inputs; None if the stage does not
        restart inputs."""
        found: FirstEpochs | None = (
            self.epoch.attributes if self.epoch is not None
            else self.state or {}).get('_first_epochs')
        return found

    @property
    def drawn_position(self) -> Position | None:
        """The position from which the stage drew, if it has drawn since;
        otherwise None."""
        return self.query.drawn_positions.get(id(self.stage.stream))

    @property
    def leftover(self) -> Any:
        """The left-overs in the restored state, None if there are none."""
        return None if self.state is None else self.state['leftover']

    def requests(self, scheme: Any) -> Any:
        """Return the requests of the epoch, or those of a scheme that draws
        nothing; None if they are not known before the epoch begins."""
        if self.epoch is not None:
            return self.epoch.request_iterator
        return (size_requests(scheme) if type(scheme) is ConstantScheme
                else None)

    def add_scheme(self, scheme: Any) -> int:
        """Add the draw of a scheme's requests; return its place in
        `draws`."""
        present = Start(copied_scheme(scheme, self.query.known, True), None)
        epoch, drawn = self.epoch, self.drawn_position
        if drawn is not None:
            present.scheme.load_state_dict(available(drawn.start))
        if self.is_past:
            assert self.state is not None
            return self.draws.add(Replay(
                copied_scheme(scheme, {}, True), self.state['scheme']),
                present)
        if epoch is None:
            if self.state is not None:
                present.state = self.state['scheme']
            return self.draws.add(present)
        requests = epoch.request_iterator
        while isinstance(requests, (RankRequests, RowRequests)):
            requests = requests.requests
        if requests is not None and requests.is_random_access:
            return self.draws.add(Known(
                requests.copied()), present)
        return self.draws.add(Replay(
            copied_scheme(scheme, {}, True), available(epoch.start)), present)

    def add_key(self, rng: Any, key: int | None, first: Any) -> int:
        """Add the draw of a stage's key for an epoch; return its place in
        `draws`.

        `rng`: the generator from which the key is drawn.
        `key`: the key, if the epoch has drawn it; otherwise None.
        `first`: the generator as it is before the first epoch.
        """
        start = KeyStart(copy.deepcopy(rng, self.query.known), first)
        if self.state is not None:
            # The state of the generator comes with that of the pipeline.
            rng_state.set_state(start.rng, self.state['rng'])
        elif self.drawn_position is not None:
            assert self.drawn_position.rng is not None
            rng_state.set_state(
                start.rng, rng_state.as_plain(self.drawn_position.rng))
        return self.draws.add(
            *(start,) if key is None else (Known(key), start))

    def first_inputs(self, first: FirstEpochs) -> tuple[
            list[EpochOrder], Draws]:
        """Return the orders of the inputs' first epochs, and the draws of
        their later epochs.

        It is called if an input was restarted in this epoch.
        """
        query = OrderQuery(first.standing, self.query.datasets,
                           self.query.counts_tokens)
        parts = (children_of(self.epoch) if self.epoch is not None
                 else [None] * len(first.ends) if self.state is None
                 else self.state['children'])
        return [
            query.of_iterator(part) if end is None and self.epoch is not None
            else query.past(stream, part if end is None else end)
            for stream, part, end in zip(
                self.stage.inputs, parts, first.ends, strict=True)
        ], query.draws


def epoch_order(stream: StreamLike) -> EpochOrder:
    """Return the order of a stream's epoch, for all ranks.

    It is the order of the running epoch. If no epoch is running, it is the
    order of the epoch that the next iterator begins.
    """
    query, stage = OrderQuery(datasets={
        id(dataset): number for number, dataset in enumerate(
            datasets_of(stream))}), stage_of(stream)
    if any(omits(child) for child in stage.inputs):
        return Unordered(
            f'a stream below {stage.name} leaves out steps: let '
            'leave_out(stream, ...) take the last stage')
    shared = shared_draws(stream)
    if shared.now:
        return Unordered(shared.now)
    query.draws.unknown = shared.later
    with stage.lock:
        running = (None if stage.pending is not None or stage.is_left()
                   else stage.epoch)
        return query.next_epoch(stream) if running is None else (
            query.running(stream, running))


def order_of_state(stream: StreamLike, state: State,
                   begin: int) -> EpochOrder:
    """Return the order of an epoch that was saved, for the rank that saved it.

    `begin`: number of an item of all ranks with which a step begins.

    Its rows have data sets in the place of their numbers, and the tokens of
    their steps beside them.
    """
    reason = shared_draws(stream).now
    if reason:
        return Unordered(reason)
    query = OrderQuery(datasets={
        id(dataset): dataset for dataset in datasets_of(stream)},
        counts_tokens=True)
    order, shard = query.next_epoch(stream, state), stage_of(stream).shard
    return order if shard is None else order.share(shard, begin)


class OrderQuery:
    """Computes the order of a pipeline.

    `draws`: the draws of the pipeline.
    `known`: copies of generators, by the identities of the originals.
    `datasets`: the numbers of the data sets, by their identities.
    `drawn_positions`: for streams that have drawn since, the positions from
        which they drew, by the streams' identities.
    `counts_tokens`: whether the order names the tokens of each step, too.
    """

    def __init__(self, drawn_positions: Sequence[Position] = (),
                 datasets: dict[int, Any] | None = None,
                 counts_tokens: bool = False) -> None:
        self.counts_tokens = counts_tokens
        self.draws = Draws([], [])
        self.known: dict[int, Any] = {}
        self.datasets = {} if datasets is None else datasets
        self.drawn_positions = {id(one.stream): one for one in drawn_positions}

    def next_epoch(self, stream: StreamLike, state: State | None = None,
                   is_past: bool = False) -> EpochOrder:
        """Return the order of an epoch that has not begun.

        `state`: the state that the epoch restores. Defaults to the stage's
            pending state.
        `is_past`: whether `state` belongs to an epoch that is over.
        """
        stage = stage_of(stream)
        if stage.is_remote:
            return self._of_remote(stage)
        carried = (stage.stream.carried_iterators
                   if isinstance(stage.stream, CarriesInputs) else ())
        state = state or stage.pending
        if carried and state is None:
            inputs = list(map(self.of_iterator, carried))
        else:
            parts = [None] * len(stage.inputs) if state is None else (
                state['children'])
            inputs = [self.past(child, part) if is_past
                      else self.next_epoch(child, part)
                      for child, part in zip(
                          stage.inputs, parts, strict=True)]
        return self._of_stage(stage, inputs, StageEpoch(
            self, stage, None, state, is_past))

    def past(self, stream: StreamLike, end: Any) -> EpochOrder:
        """Return the order of an epoch that is over.

        `end`: the position at which it was left.
        """
        stage = stage_of(stream)
        try:
            state = shallow_state(end)
        except Exception as error:  # noqa: BLE001 - it is the reason
            return Unordered(
                f'where the epoch of {stage.name} ended is not known: {error}')
        # A stage whose items are made elsewhere has drawn nothing here.
        return (self._of_elsewhere(stage, state) if stage.is_remote
                else self.next_epoch(stream, state, True))

    def running(self, stream: StreamLike, epoch: Epoch) -> EpochOrder:
        """Return the order of an epoch that has begun."""
        if epoch.finished:
            return self.past(stream, epoch.end)
        stage = stage_of(stream)
        if stage.is_remote:
            return self._of_remote(stage, epoch)
        inputs = list(map(self.of_iterator, children_of(epoch)))
        return self._of_stage(stage, inputs, StageEpoch(self, stage, epoch))

    def of_iterator(self, iterator: Any) -> EpochOrder:
        """Return the order of the epoch of an iterator."""
        if isinstance(iterator, ReadAhead):
            iterator = iterator.source
        if not isinstance(iterator, EpochIterator):
            return Unordered(
                f'an iterator of type {type(iterator).__name__} is read')
        return self.running(iterator.data_stream, iterator.epoch)

    def _of_remote(self, stage: Stage, epoch: Epoch | None = None,
                   ) -> EpochOrder:
        """Return the order of a stage whose input other processes or threads
        read."""
        try:
            state = stage.state() if epoch is None else stage.state_of(epoch)
        except Exception as error:  # noqa: BLE001 - it is the reason
            return Unordered(str(error))
        if epoch is None and stage.pending is None and (
                state['epoch'] == RUNNING):
            return Unordered(
                f'an epoch of {stage.name} was left before its end, and the '
                'draws of the next one in other processes are not known')
        return self._of_elsewhere(stage, state)

    def _of_elsewhere(self, stage: Stage, state: State) -> EpochOrder:
        """Return the order of a stage whose input other processes or threads
        read.

        `state`: state of the input.
        """
        if not (stage.passes_items_on and len(stage.inputs) == 1):
            return Unordered(f'the items of {stage.name} are made elsewhere')
        # The input has generators of its own there.
        known, self.known = self.known, {}
        try:
            return self.next_epoch(stage.inputs[0], state)
        finally:
            self.known = known

    def _of_stage(self, stage: Stage, inputs: list[EpochOrder],
                  begun: StageEpoch) -> EpochOrder:
        """Return the order of a stage, from the orders of its inputs."""
        if stage.dataset is not None and not inputs:
            return self._of_dataset(stage, begun)
        for part in inputs:
            if part.own_kind == 'none':
                return part
        stream = stage.stream
        if inspect.isgeneratorfunction(type(stream).get_epoch_iterator):
            return Unordered(
                f'{stage.name} overrides get_epoch_iterator() with one that '
                'makes no DataIterator')
        if covers(stream, 'order_items', ('get_data', 'get_epoch_iterator')):
            order: EpochOrder = stream.order_items(inputs, begun)
            if all(order is not part for part in inputs) and (
                    has_numbered_items(stage)):
                order.takes_share = True
            return order
        if len(inputs) == 1 and (stage.passes_items_on or stage.one_to_one):
            return passed_on(stage, inputs[0])
        return Unordered(why_not_one_to_one(stage)[0])

    def _of_dataset(self, stage: Stage, begun: StageEpoch) -> EpochOrder:
        """Return the order of a stream of a data set."""
        stream, scheme = stage.stream, stage.scheme
        number = self.datasets.setdefault(
            id(stage.dataset), len(self.datasets))
        if not covers(stream, 'source_examples', ('get_data',)):
            return Unordered(
                f'{stage.name} has a get_data of its own, so which rows it '
                'reads is not known')
        if scheme is None:
            return GivenOrder(number, known_length(stage.dataset))
        scheme = whole_scheme(scheme)
        reason = why_unknown(scheme)
        if begun.epoch is not None:
            requests = begun.epoch.request_iterator
            if requests is not None and requests.is_random_access:
                reason = ''
            elif isinstance(begun.epoch.start, Exception):
                reason = str(begun.epoch.start)
        elif not is_original(stream, 'get_epoch_iterator'):
            reason = (f'{stage.name} has a get_epoch_iterator of its own, so '
                      'its requests are not known before the epoch')
        if not chooses_examples(scheme):
            reason = (f'the scheme {type(scheme).__name__} says how many '
                      'examples to take, not which')
        if reason:
            return Unordered(reason)
        try:
            place = begun.add_scheme(scheme)
        except Exception as error:  # noqa: BLE001 - it is the reason
            return Unordered(f'the iteration scheme {type(scheme).__name__} '
                             f'cannot be copied: {error!r:.200}')
        return RequestOrder(number, scheme, begun.draws, place)


def passed_on(stage: Stage, below: EpochOrder) -> EpochOrder:
    """Return the order of a one-to-one stage, from its input's order."""
    return below if below.is_single or stage.keeps_rows or (
        stage.passes_items_on) else RemadeOrder(below, stage.name)
