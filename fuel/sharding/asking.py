"""Ask a pipeline for its order: of the epoch that is running, or the next.

What an epoch draws from is copied before it is asked.
"""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from fuel.epochs.ahead import ReadAhead
from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import why_not_one_to_one
from fuel.epochs.readers import known_length
from fuel.epochs.stage import Stage, children_of, stage_of
from fuel.epochs.state import Position, Unavailable, as_state, available
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import (
    ShardedScheme, batch_size_of, chooses_examples, is_random_access,
    num_requests_of)
from fuel.schemes.ordered import ConstantScheme
from fuel.schemes.sharded_requests import RankRequests, RowRequests
from fuel.sharding.draws import (
    Draws, KeyStart, Known, ListedRequests, Replay, Start, scheme_kind,
    why_unknown)
from fuel.sharding.made import Made, DatasetRows
from fuel.sharding.order import GivenOrder, EpochOrder, RemadeOrder, Unordered
from fuel.sharding.pipeline import copied_scheme
from fuel.typing import State, StreamLike
from fuel.utils import rng_state
from fuel.utils.overrides import covers, is_original


class RequestOrder(EpochOrder):
    """The requests of a scheme, for rows of a data set.

    `dataset`: which of the pipeline.
    `place`: of what the scheme draws.
    """

    takes_share = True
    dataset: int

    def __init__(self, dataset: int, scheme: Any, draws: Draws, place: int,
                 ) -> None:
        self.dataset = dataset
        self.draws = draws
        self.place = place
        self.is_single = bool(scheme.requests_examples)
        self.own_kind = scheme_kind(scheme)
        self._count = num_requests_of(scheme)
        self.batch_size = None if self.is_single or not (
            is_random_access(scheme)) else batch_size_of(scheme)

    @property
    def requests(self) -> Any:
        """The requests of the epoch."""
        return self.draws.at(self.place)

    @property
    def num_items(self) -> Any:
        """The number of requests."""
        if self._count is not None or isinstance(
                self.requests, ListedRequests):
            return self._count
        return int(self.requests.num_requests)

    def count_to(self, stop: int) -> int:
        """Return how many items there are, or at least `stop`."""
        requests = self.requests
        return (requests.count_to(stop) if isinstance(
            requests, ListedRequests) else int(requests.num_requests))

    def make(self, item: int) -> Made:
        """Return what a request asks for."""
        request = self.requests.request_at(item)
        if request is None:
            raise IndexError(f'the epoch has no item {item}')
        return DatasetRows(self.dataset, request)


class GoesOn:
    """Base of stages whose inputs may go on in the next epoch, where they
    stand at the end of one."""

    @property
    def carried_iterators(self) -> Sequence[Any]:
        """The iterators with which they do."""
        return ()


class Begun(NamedTuple):
    """The knowledge of an epoch of a stage whose order is asked for.

    `draws`: of the pipeline.
    `known`: the copies of generators that were made.
    `epoch`: the epoch, None if it has not begun.
    `state`: the state that it takes up, if there is one.
    `is_past`: whether it is the state of an epoch that is over.
    `with_drawn`: whether permutations are shared with the epoch.
    """

    draws: Draws
    known: dict[int, Any]
    epoch: Epoch | None = None
    state: State | None = None
    is_past: bool = False
    with_drawn: bool = True

    @property
    def leftover(self) -> Any:
        """The left-overs in the state that the epoch takes up, if any."""
        return None if self.state is None else self.state['leftover']

    def requests(self, scheme: Any) -> Any:
        """Return the requests of a scheme that draws nothing; None of
        another, before the epoch."""
        if self.epoch is not None:
            return self.epoch.request_iterator
        return (scheme.get_request_iterator()
                if type(scheme) is ConstantScheme else None)

    def add_scheme(self, scheme: Any) -> int:
        """Return the place at which a scheme draws its requests."""
        present = Start(copied_scheme(scheme, self.known, True), None)
        epoch = self.epoch
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
                requests.copied(self.with_drawn)), present)
        return self.draws.add(Replay(
            copied_scheme(scheme, {}, True), available(epoch.start)), present)

    def add_key(self, rng: Any, key: int | None) -> int:
        """Return the place at which a stage draws the key of an epoch.

        `key`: of the epoch, if it was drawn.
        """
        start = KeyStart(copy.deepcopy(rng, self.known))
        if key is not None:
            return self.draws.add(Known(key), start)
        if self.state is not None:
            # The state of the generator comes with that of the pipeline.
            rng_state.set_state(start.rng, self.state['rng'])
        return self.draws.add(start)


def epoch_order(stream: StreamLike) -> EpochOrder:
    """Return the order of all ranks, of the epoch of a stream that is
    running, or that its next iterator begins."""
    asked, stage = Asked(), stage_of(stream)
    with stage.lock:
        running = (None if stage.pending is not None or stage.is_left()
                   else stage.epoch)
        return asked.next_epoch(stream) if running is None else (
            asked.running(stream, running))


def order_in(iterator: Any) -> EpochOrder:
    """Return the order of the epoch of an iterator."""
    return Asked().of_iterator(iterator)


def stage_order(stream: Any, epoch: Epoch) -> Any:
    """Return the order of a stage that has a plan, for an epoch."""
    return Asked().with_inputs_of(stream, epoch)


class Asked:
    """A pipeline whose order is asked for."""

    def __init__(self, with_drawn: bool = True) -> None:
        self.draws = Draws([], [])
        self._with_drawn = with_drawn
        self._known: dict[int, Any] = {}
        self._datasets: dict[int, int] = {}

    def next_epoch(self, stream: StreamLike, state: State | None = None,
                   is_past: bool = False) -> EpochOrder:
        """Return the order of an epoch that has not begun.

        `state`: what it takes up.
        `is_past`: whether that is the state of an epoch that is over.
        """
        stage = stage_of(stream)
        if stage.is_remote:
            return self._of_remote(stage)
        carried = (stage.stream.carried_iterators
                   if isinstance(stage.stream, GoesOn) else ())
        state = state or stage.pending
        if carried and state is None:
            inputs = list(map(self.of_iterator, carried))
        else:
            parts = [None] * len(stage.inputs) if state is None else (
                state['children'])
            inputs = [self.next_epoch(child, part, is_past)
                      for child, part in zip(
                          stage.inputs, parts, strict=True)]
        return self._of_stage(stage, inputs, Begun(
            self.draws, self._known, None, state, is_past))

    def running(self, stream: StreamLike, epoch: Epoch) -> EpochOrder:
        """Return the order of an epoch that has begun."""
        stage = stage_of(stream)
        if stage.is_remote:
            return self._of_remote(stage, epoch)
        if epoch.finished:
            if not isinstance(epoch.end, Position):
                return Unordered(
                    f'where the epoch of {stage.name} ended is not known')
            return self.next_epoch(stream, as_state(epoch.end), True)
        inputs = list(map(self.of_iterator, children_of(epoch)))
        return self._of_stage(stage, inputs, Begun(
            self.draws, self._known, epoch, with_drawn=self._with_drawn))

    def with_inputs_of(self, stream: Any, epoch: Epoch) -> EpochOrder:
        """Return the order of a stage with a plan."""
        order: EpochOrder = stream.order_items(
            list(map(self.of_iterator, children_of(epoch))),
            Begun(self.draws, self._known, epoch))
        return order

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
        """Return the order of a stage whose input others read."""
        if not (stage.passes_items_on and len(stage.inputs) == 1):
            return Unordered(f'the items of {stage.name} are made elsewhere')
        try:
            state = stage.state() if epoch is None or epoch.finished else (
                stage.state_of(epoch))
        except Exception as error:  # noqa: BLE001 - it is the reason
            return Unordered(str(error))
        return self.next_epoch(stage.inputs[0], state)

    def _of_stage(self, stage: Stage, inputs: list[EpochOrder], begun: Begun,
                  ) -> EpochOrder:
        """Return the order of a stage, from those of its inputs."""
        if stage.dataset is not None and not inputs:
            return self._of_dataset(stage, begun)
        for part in inputs:
            if part.own_kind == 'none':
                return part
        stream = stage.stream
        if covers(stream, 'order_items', ('get_data', 'get_epoch_iterator')):
            order: EpochOrder = stream.order_items(inputs, begun)
            if all(order is not part for part in inputs) and stage.can_plan:
                order.takes_share = True
            return order
        if len(inputs) == 1 and (stage.passes_items_on or stage.one_to_one):
            return passed_on(stage, inputs[0])
        return Unordered(why_not_one_to_one(stage)[0])

    def _of_dataset(self, stage: Stage, begun: Begun) -> EpochOrder:
        """Return the order of a stream of a data set."""
        stream, scheme = stage.stream, stage.scheme
        number = self._datasets.setdefault(
            id(stage.dataset), len(self._datasets))
        if not covers(stream, 'source_examples', ('get_data',)):
            return Unordered(
                f'{stage.name} has a get_data of its own, so which rows it '
                'reads is not known')
        if scheme is None:
            return GivenOrder(number, known_length(stage.dataset))
        if isinstance(scheme, ShardedScheme):
            scheme = scheme.scheme
        reason = why_unknown(scheme)
        if begun.epoch is not None:
            requests = begun.epoch.request_iterator
            if requests is not None and requests.is_random_access:
                reason = ''
            elif isinstance(begun.epoch.start, Unavailable):
                reason = str(begun.epoch.start.reason)
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
    """Return the order of a stage that makes one item of one."""
    return below if below.is_single or stage.keeps_rows or (
        stage.passes_items_on) else RemadeOrder(below, stage.name)
