"""A stage that mixes several streams by weights."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy

from fuel.config_parser import config
from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import can_seek, length_of
from fuel.epochs.stage import children_of, stage_of
from fuel.epochs.state import shallow_state
from fuel.kernels.mixing import MixReader
from fuel.schemes.mixing import MixingScheme, MixtureWeights, Weights
from fuel.sharding.asking import CarriesInputs, StageEpoch
from fuel.sharding.order import EpochOrder, Unordered
from fuel.transformers.base import ALL
from fuel.transformers.mixture.order import (
    Beginning, MixedOrder, Mixture, Stop)
from fuel.transformers.mixture.reader import (
    BY_METHOD, Finish, MixStage, MixtureItems, MixturePlan)
from fuel.transformers.several import SeveralStreams, as_streams
from fuel.transformers.source_names import labels_of
from fuel.typing import AxisLabels, Batch, EpochReader, StreamLike
from fuel.utils.checks import not_negative, positive
from fuel.utils.overrides import covers

#: Streams to mix, by name or in order.
Streams: TypeAlias = 'Mapping[str, StreamLike] | Iterable[StreamLike]'


class Mix(SeveralStreams, CarriesInputs):
    """Mixes several streams by weights.

    Each item, a batch or an example, comes from one of the streams.

    Parameters
    ----------
    data_streams : dict of str to AbstractDataStream, or iterable of them
        They have the same sources, in the same order, and all produce
        examples, or all batches. A dict gives them names, for `weights` and
        errors.
    weights : optional
        Frequency of each stream, not negative; only the proportions matter.
        Weights are a list with a number for each stream, or a dict from
        names to numbers. A list of such weights has the weights of the first
        epoch, the second epoch and so on; its last weights are those of all
        later epochs too. A function takes the number of an epoch, from 0 on,
        and returns its weights. Defaults to None: equal weights.
    stop : {'first', 'last', 'forever'}, optional
        What to do when the stream that is chosen has ended. The epoch ends
        (``'first'``, the default); the stream leaves the mixture, and the
        epoch ends when no stream is left (``'last'``); or the stream begins
        its next epoch, and the mixture never ends (``'forever'``).
    epoch_size : int, optional
        Largest number of items of an epoch. Defaults to None: no limit.
    seed : int, optional
        Not negative. Defaults to ``config.default_seed``.
    origin_source : str, optional
        Name of an additional source, which has the number of the stream that
        an example is from, from 0 on; in a batch it is an array with this
        number for each example. Defaults to None: no such source.
    axis_labels : dict, optional
        See :class:`~fuel.streams.AbstractDataStream`. Default to the labels
        on which all streams agree.

    Attributes
    ----------
    names : tuple of str
        The names of the streams; their numbers if they have none.
    taken : dict of str to int
        Number of items that the current epoch has taken from each stream,
        including items that could not be read.
    restarts : dict of str to int
        Number of restarts of each stream in the current epoch.

    Raises
    ------
    ValueError
        If streams differ in their sources, or some produce examples and
        others batches; if weights are negative, not numbers, all zero or not
        one for each stream; if `stop` has another value; when data are
        requested, with ``'forever'``, if an epoch of a stream is empty.

    Notes
    -----
    Which stream an item comes from depends only on the seed, the epoch and
    the number of the item, and is computed, not stored. The choices are
    spread evenly: in each 16 items from the beginning of an epoch, the number
    of items of a stream differs by at most one from what its weight demands,
    and the order is random. When a stream leaves, the weights of the others
    keep their proportions.

    With ``'forever'`` a stream continues from its position when the next
    epoch of the mixture begins. So all its items are delivered for any
    `epoch_size`. With the other values of `stop` each stream begins an epoch
    when the mixture does.

    A state holds the positions of the streams and their counters. If reading
    an item fails, it counts as taken.

    In a sharded mixture a rank skips the items of the other ranks. It does
    not read them if the streams have schemes and one-to-one stages. Otherwise
    it reads a whole round, one item for each rank, before it returns its own
    item of the round.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> def letters(text):
    ...     return DataStream(IterableDataset(list(text)))
    >>> mixed = Mix({'small': letters('abcdefgh'), 'large': letters('ABCD')},
    ...             {'small': 3, 'large': 1}, seed=1)
    >>> ''.join(letter for letter, in mixed.get_epoch_iterator())
    'abcdeAfgBhC'
    >>> mixed.taken
    {'small': 8, 'large': 3}

    """

    __fuel_stage__ = MixStage
    __fuel_plan__ = MixturePlan
    epoch_attributes = (
        *SeveralStreams.epoch_attributes, '_mixture', '_first_epochs')
    keeps = ALL
    _mixture: Mixture | None = None
    # True if a plan reads the items, in any order.
    is_sought = False
    # With 'forever', the iterators with which the next epoch continues.
    _carried: list[Any] | None = None

    def __init__(self, data_streams: Streams, weights: Weights | None = None,
                 *, stop: Stop = 'first', epoch_size: int | None = None,
                 seed: int | None = None, origin_source: str | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        if isinstance(data_streams, Mapping):
            self.names = tuple(map(str, data_streams))
            streams = as_streams('Mix', data_streams.values())
        else:
            streams = as_streams('Mix', data_streams)
            self.names = tuple(map(str, range(len(streams))))
        _check_streams(streams, self.names, origin_source)
        if stop not in ('first', 'last', 'forever'):
            raise ValueError(
                "stop must be 'first', 'last' or 'forever', got "
                f'{stop!r}')
        if epoch_size is not None:
            epoch_size = positive('epoch_size', epoch_size)
        seed = not_negative(
            'seed', config.default_seed if seed is None else seed)
        self.weights = weights
        self.stop = stop
        self.epoch_size = epoch_size
        self.seed = seed
        self.origin_source = origin_source
        self._weights = MixtureWeights(weights, self.names)
        super().__init__(
            streams,
            _common_labels(streams) if axis_labels is None else axis_labels,
            MixingScheme(self._weights.at, seed, epoch_size,
                         bool(streams[0].produces_examples)))

    def _get_sources(self) -> tuple[str, ...]:
        sources = tuple(self.data_streams[0].sources)
        return sources if self.origin_source is None else (
            *sources, self.origin_source)

    @property
    def taken(self) -> dict[str, int]:
        """Number of items that came from each stream in the epoch (dict)."""
        return self._named(
            None if self._mixture is None else self._mixture.taken)

    @property
    def restarts(self) -> dict[str, int]:
        """Number of times that each stream restarted in the epoch (dict)."""
        return self._named(
            None if self._mixture is None else self._mixture.restarts)

    def _named(self, counts: Any) -> dict[str, int]:
        numbers = [0] * len(self.names) if counts is None else [
            int(count) for count in counts]
        return dict(zip(self.names, numbers, strict=True))

    def _open_children(self) -> list[Any]:
        stage = stage_of(self)
        carried, self._carried = self._carried, None
        if stage.epoch is not None or stage.pending is not None:
            # Another epoch has these, or a state says where to begin.
            carried = None
        if carried is None:
            carried = super()._open_children()
        if self.stop == 'forever':
            self._carried = carried
        return carried

    def _get_requests(self) -> Iterator[Any] | None:
        requests: Any = super()._get_requests()
        mixture = Mixture(requests, self.stop)
        # Attributes of an epoch, whose assignment changes no source.
        vars(self).update(
            _mixture=mixture, _first_epochs=mixture.first_epochs)
        return requests  # type: ignore[no-any-return]

    def get_data(self, request: Any = None) -> Any:
        """Return the next item of the stream that is chosen.

        Parameters
        ----------
        request : (int, int)
            The position and the point that chooses, from the iteration
            scheme.

        Returns
        -------
        tuple

        Raises
        ------
        StopIteration
            If the mixture has ended.
        ValueError
            If the request is not from the iteration scheme.
        """
        if not (isinstance(request, tuple) and len(request) == 2):
            raise ValueError(
                f'{type(self).__name__} takes (position, point) of its '
                f'iteration scheme as request, got {request!r}')
        assert self._mixture is not None
        return self.mixture_reader(
            self._mixture, self.child_epoch_iterators).read_request(request)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item of the stream that was
        chosen."""
        if len(requests) > 1 or self._mixture is None or (
                not covers(self, 'source_examples', ('get_data',))):
            return None
        _, point = requests[0]
        return self._examples_of(self._mixture.choose(point))

    def mixture_reader(self, mixture: Mixture, iterators: list[Any]
                       ) -> MixtureItems:
        """Return a reader of an epoch's items."""
        return MixtureItems(mixture, self.data_streams, iterators,
                             self.names, self._finish(), self.is_sought)

    def _finish(self) -> Finish | None:
        """Return a function that adds the number of the stream to an item.

        It is None if no number is added.
        """
        return None if self.origin_source is None else partial(
            _with_origin, len(self.data_streams[0].sources),
            self.iteration_scheme.requests_examples)

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader of an epoch that replaces :meth:`get_data`.

        Parameters
        ----------
        epoch : object
            The open epoch of this stage.

        Returns
        -------
        EpochReader or None
            None if a subclass has its own `get_data`.

        """
        mixture: Any = epoch.attributes.get('_mixture')
        requests = epoch.request_iterator
        if (mixture is None or requests is not mixture.points
                or not covers(self, 'open_reader', ('get_data',))):
            return None
        iterators = epoch.attributes['child_epoch_iterators']
        slow = self.mixture_reader(mixture, iterators)
        if self.is_sought:
            return slow
        return MixReader(requests, slow, iterators, mixture.thresholds,
                         mixture.taken, self._finish())

    @property
    def carried_iterators(self) -> Sequence[Any]:
        """The iterators with which the next epoch continues."""
        return self._carried or ()

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        for name, part in zip(self.names, inputs, strict=True):
            if part.num_items is None:
                return Unordered(
                    f'how many items the stream {name!r} of the '
                    f'{type(self).__name__} has is not known')
        mixture: Any = None if begun.epoch is None else (
            begun.epoch.attributes['_mixture'])
        first = begun.first_epochs
        if first is not None and first.given:
            orders, draws = begun.first_inputs(first)
            for part in orders:
                if part.own_kind == 'none':
                    return part
            given = [*first.given]
            given[first.ended] += len(orders[first.ended])
            beginning = Beginning(orders, given, draws)
        else:
            beginning = Beginning(
                inputs, *self._beginning_fields(begun, mixture))
        return MixedOrder(
            beginning, begun.draws, begun.add_scheme(self.iteration_scheme),
            self.stop, self.epoch_size)

    def _beginning_fields(self, begun: StageEpoch, mixture: Mixture | None,
                          ) -> Any:
        """Return the fields of Beginning that follow the inputs."""
        none = [0] * len(self.names)
        if self.stop != 'forever':
            return none, begun.draws
        counts = begun.leftover
        if begun.state is not None:
            given = [shallow_state(part)['requested']
                     for part in begun.state['children']]
        elif mixture is None:
            given = [int(one.epoch.requested)
                     for one in self.carried_iterators] or none
        else:
            assert begun.epoch is not None
            counts = mixture.state()
            given = [int(one.epoch.requested)
                     for one in children_of(begun.epoch)]
        if counts is not None and any(counts['restarts']):
            return given, begun.draws, counts['taken']
        # The positions of the streams when the epoch began.
        taken = none if counts is None else counts['taken']
        return [place - count for place, count in zip(
            given, taken, strict=True)], begun.draws

    def read_in_order(self) -> str:
        """Return why items must be read in order, '' if they need not.

        The reason names the stream that must be read in order, or is
        `BY_METHOD`.
        """
        for name, stream in zip(self.names, self.data_streams, strict=True):
            if not can_seek(stream, forward=True):
                return f'the stream {name!r}'
        # The property of Mix itself checks the same as the loop above.
        return '' if type(self).one_to_one is Mix.one_to_one or (
            stage_of(self).one_to_one) else BY_METHOD

    @property
    def one_to_one(self) -> bool:
        """Whether items can be skipped without reading them (bool).

        They can if the lengths of all streams are known.
        """
        return covers(self, 'one_to_one', ('get_data',)) and (
            self.is_sought or all(
                length_of(stream) is not None
                or can_seek(stream, forward=True)
                for stream in self.data_streams))

    def skip(self, count: int) -> None:
        """Do nothing: the next read skips the items that the requests
        skipped."""

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        if self.stop == 'forever':
            return self.epoch_size
        lengths = self._lengths()
        # With 'first', the number of items differs from epoch to epoch.
        if self.stop == 'first' or lengths is None or (
                not self._weights.are_positive()):
            return None
        total = sum(lengths)
        return total if self.epoch_size is None else min(
            total, self.epoch_size)

    def get_leftover(self) -> Any:
        """Return the counters of the mixture, None without an epoch."""
        if self._mixture is None:
            return None
        # A state is that of all ranks, at the position of the requests.
        self.mixture_reader(self._mixture, self.child_epoch_iterators).skip_to(
            self._mixture.points.position)
        return self._mixture.state()

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Restore the left-overs that :meth:`get_leftover` returned."""
        assert self._mixture is not None
        self._mixture.load(leftover)

    def close(self) -> None:
        """Close all streams."""
        self._carried = None
        super().close()

    def reset(self) -> None:
        """Reset all streams."""
        self._carried = None
        super().reset()

    def next_epoch(self) -> None:
        """Switch all streams to the next epoch."""
        self._carried = None
        super().next_epoch()


def _with_origin(count: int, is_example: bool, data: Batch,
                 place: int) -> Batch:
    """Return an item with the number of the stream that it is from."""
    parts = data[:count]
    return (*parts, place if is_example else numpy.full(
        len(parts[0]), place, numpy.int64))


def _check_streams(streams: tuple[Any, ...], names: tuple[str, ...],
                  origin_source: str | None) -> None:
    """Raise ValueError if streams differ in sources or kind of items."""
    first = tuple(streams[0].sources)
    kind = bool(streams[0].produces_examples)
    for name, stream in zip(names, streams, strict=True):
        if tuple(stream.sources) != first:
            raise ValueError(
                'the streams to mix must have the same sources in the same '
                f'order, but {names[0]!r} has {first} and {name!r} has '
                f'{tuple(stream.sources)}: put Rename or FilterSources '
                'before one of them')
        if bool(stream.produces_examples) is not kind:
            kinds = ('batches', 'examples')
            raise ValueError(
                'the streams to mix must all produce examples or all '
                f'produce batches, but {names[0]!r} produces {kinds[kind]} '
                f'and {name!r} {kinds[not kind]}: put Batch or Unpack '
                'before one of them')
    if origin_source in first:
        raise ValueError(
            f'origin_source cannot be {origin_source!r}, which the streams '
            'have already: choose another name')


def _common_labels(streams: tuple[Any, ...]) -> Any:
    """Return the axis labels that all streams agree on."""
    first, *others = [labels_of(stream) or {} for stream in streams]
    return {source: labels for source, labels in first.items()
            if all(other.get(source) == labels for other in others)} or None
