"""A stream that reads a data set in the order of an iteration scheme."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Unpack

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.readers import (
    close_state, known_length, open_reader, state_beside)
from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples
from fuel.sharding.shard_pipeline import check_agreement, warn_if_uneven
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.skipped import SkipLimit, check_skipping, skip_limit
from fuel.epochs.stage import stage_of
from fuel.epochs.state import NOT_STARTED, RUNNING
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import batch_size_of, chooses_examples
from fuel.schemes.shard import Shard, as_shard
from fuel.sharding.made import DatasetRows
from fuel.streams.arguments import (
    StreamOptions, check_visited, refuse_no_dataset, refuse_positional,
    refuse_scheme_misfit, scheme_of)
from fuel.streams.base import AbstractDataStream
from fuel.streams.stage import StreamStage
from fuel.typing import DatasetLike, EpochReader, returns_epochs
from fuel.utils.arguments import labels_in
from fuel.utils.checks import truth
from fuel.utils.other_libraries import LOADER_KEYWORDS
from fuel.utils.overrides import covers


class DatasetStage(StreamStage):
    """The stage of a stream that reads a data set.

    Each epoch has its own state of the data set.
    """

    __slots__ = ()

    @property
    def most_skipped(self) -> int:
        """Largest number of failing examples that an epoch may skip (int)."""
        return 0 if self.stream.on_error == 'raise' else skip_limit(
            self.stream.max_skipped, known_length(self.dataset))

    def take_limit(self, epoch: Epoch) -> None:
        """Set how many examples an epoch may leave out."""
        if self.stream.on_error != 'raise':
            epoch.limit = SkipLimit(self.most_skipped, epoch.request_iterator)

    def share_in_order(self, shard: Shard) -> None:
        """Shard the stage's own items, which are read in order."""
        if shard.splits and self.most_skipped:
            raise ValueError(
                "by='example' cannot split batches if on_error='skip' leaves "
                "examples out: use by='batch'")
        super().share_in_order(shard)

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Make an epoch the current one, and hold its data set's state."""
        super().adopt(epoch, iterator)
        self.hold(epoch, iterator)


class DataStream(AbstractDataStream):
    """A stream of data from a data set.

    Parameters
    ----------
    dataset : Dataset
        The data set to read.
    batch_size : int, optional
        Instead of an iteration scheme: how many examples make a batch.
        Defaults to None: single examples, if `shuffle` is True.
    shuffle : bool, optional
        Instead of an iteration scheme: whether examples come in a new
        random order each epoch, that of
        :class:`~fuel.schemes.ShuffledScheme`.  Defaults to None, which
        means False: in order.
    seed : int, optional
        With `shuffle`: the seed of the random order.  Defaults to
        ``config.default_seed``, so that two streams with equal arguments
        have the same order.  With ``shuffle=False`` it has no effect.
    drop_last : bool, optional
        With `batch_size`: whether a last batch of fewer examples is left
        out.  Defaults to False.
    on_error : {'raise', 'skip'}, optional
        What happens with an example that cannot be read, or at which a
        downstream stage fails.  With ``'skip'`` it is left out, logged and
        counted; see :ref:`bad-records`.  Defaults to ``'raise'``.
    max_skipped : int or float, optional
        With ``on_error='skip'``: how many examples of an epoch may be left
        out (int), or which fraction of the data set (float); more are an
        error.  Defaults to None: a hundredth, but at least 10 examples.
    shard : tuple, Shard or str, optional
        The share of the order that this rank reads: ``(rank, num_shards)``,
        or ``'auto'`` to detect the rank, as :meth:`AbstractDataStream.shard`
        does.  Defaults to None: the whole order.  That method divides the
        order of a whole pipeline, and this argument divides the order of the
        data set.
    iteration_scheme, axis_labels
        See :class:`AbstractDataStream`.  The axis labels default to those
        of the data set.

    Raises
    ------
    TypeError
        If `dataset` is not a data set, or if another argument is passed
        without its name.
    ValueError
        If `batch_size` or `shuffle` is passed together with an iteration
        scheme, or with a data set that is read in order; if `on_error` or
        `max_skipped` has another value than those above.
    fuel.exceptions.BadRecordsError
        By the epoch iterator, if more than `max_skipped` examples, or all
        of an epoch, cannot be made.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> list(stream.get_epoch_iterator())
    [([1, 2],), ([3],)]
    >>> for batch in DataStream(IndexableDataset([1, 2, 3]), batch_size=2):
    ...     print(batch)
    ([1, 2],)
    ([3],)
    """

    __fuel_stage__ = DatasetStage
    epoch_attributes = ('data_state',)
    instead_of = LOADER_KEYWORDS
    data_state: Any
    # Arguments that are not kept: a scheme is made of them.
    made_into_others = (
        'batch_size', 'shuffle', 'drop_last', 'seed', 'shard')
    # Any, since hooks are called that not every data set has.
    dataset: Any
    on_error = 'raise'
    max_skipped: float | None = None
    # The first two do not change the examples that can be made. The scheme's
    # generator has the seed, and its state is saved.
    unsaved_arguments = ('on_error', 'max_skipped', 'seed')

    def __init__(self, dataset: DatasetLike, *args: Never,
                 batch_size: int | None = None, shuffle: bool | None = None,
                 drop_last: bool = False, seed: int | None = None,
                 on_error: str = 'raise', max_skipped: float | None = None,
                 shard: tuple[int, int] | str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        refuse_positional(self, args)
        refuse_no_dataset(dataset)
        if shuffle is not None:
            shuffle = truth(f'shuffle of {type(self).__name__}', shuffle)
        made = scheme_of(dataset, batch_size, shuffle, drop_last, seed,
                         kwargs.get('iteration_scheme'))
        if made is not None:
            if kwargs.get('iteration_scheme') is not None:
                raise ValueError(
                    'pass iteration_scheme, or batch_size and shuffle, from '
                    'which one is made; not both')
            kwargs['iteration_scheme'] = made
        else:
            check_visited(dataset, kwargs.get('iteration_scheme'))
        axis_labels = labels_in(dataset)
        if axis_labels:
            kwargs.setdefault('axis_labels', dict(axis_labels))
        super().__init__(**kwargs)
        check_skipping(on_error, max_skipped, known_length(dataset))
        self.on_error = on_error
        self.max_skipped = max_skipped
        if self.iteration_scheme is None:
            self.produces_examples = True
        if self.axis_labels and self.produces_examples:
            self.axis_labels = {
                source: without_batch(labels)
                for source, labels in self.axis_labels.items()}
        self.dataset = dataset
        self.data_state = dataset.open()
        self._fresh_state = True
        share = as_shard(shard)
        if share is not None:
            if shard == 'auto' or len(shard or ()) < len(share):
                warn_if_uneven(self, share)
            stage_of(self).share_in_order(share)
            check_agreement(self, share)

    def _get_sources(self) -> Any:
        return self.dataset.sources

    @classmethod
    def default_stream(cls, dataset: Any, **kwargs: Any) -> Any:
        """Return a stream with the data set's default transformers.

        Parameters
        ----------
        **kwargs
            Arguments of the stream.
        """
        return dataset.apply_default_transformers(cls(dataset, **kwargs))

    def get_data(self, request: Any = None) -> Any:
        """Return the data of one request from the data set."""
        if 'data_state' not in vars(self):
            self.data_state = self.dataset.open()
        return self.dataset.get_data(self.data_state, request)

    @property
    def one_to_one(self) -> bool:
        """Whether each item is made of one request (bool)."""
        return self.iteration_scheme is not None

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples that are requested by `requests`.

        See :meth:`AbstractDataStream.source_examples`.
        """
        if not covers(self, 'source_examples', ('get_data',)) or not (
                self.iteration_scheme is None
                or chooses_examples(self.iteration_scheme)):
            return None
        if len(requests) == 1:
            return SourceExamples(DatasetRows(self.dataset, requests[0]))
        return SourceExamples(DatasetRows(
            self.dataset, list(requests) if self.produces_examples else [
                index for request in requests for index in request]))

    def known_types(self) -> SourceTypes:
        """Return the known types of each source.

        They describe batches if the stream makes batches.
        """
        types = types_of(self.dataset)
        # A stream may give its sources other names.
        types = {source: types[own] for source, own in zip(
            self.sources, self.dataset.sources, strict=False) if own in types}
        if self.produces_examples:
            return types
        size = batch_size_of(self.iteration_scheme)
        return {source: known.in_batches(size)
                for source, known in types.items()}

    def num_items(self) -> int | None:
        """Return the number of items of an epoch of all ranks, if known."""
        if self.on_error == 'skip' and self.produces_examples:
            return None
        if self.iteration_scheme is not None:
            return super().num_items()
        return known_length(self.dataset)

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        See :meth:`AbstractDataStream.get_epoch_iterator`.
        """
        refuse_scheme_misfit(self)
        return super().get_epoch_iterator(as_dict)

    def get_unchecked_iterator(self, as_dict: bool = False) -> Any:
        """Return an epoch iterator without a check of the iteration scheme.

        For stages that pass requests of their own to :meth:`get_data`.
        """
        return super().get_epoch_iterator(as_dict)

    def start_epoch(self) -> None:
        """Open a state of the data set that no other epoch uses."""
        self.data_state = self._get_state_for_epoch()
        super().start_epoch()

    def _get_state_for_epoch(self) -> Any:
        """Return a state of the data set that no other epoch uses."""
        stage = stage_of(self)
        idle = [epoch.attributes['data_state']
                for epoch in stage.release_left()
                if 'data_state' in epoch.attributes]
        is_fresh = vars(self).pop('_fresh_state', False)
        if is_fresh and 'data_state' in vars(self) and not self._is_held():
            idle = [state for state in idle if state is not self.data_state]
            idle.append(self.data_state)
        else:
            is_fresh = False
        pending = stage.pending
        if pending is not None and pending['dataset'] is not None:
            idle.append(self.dataset.open_at(pending['dataset']))
            is_fresh = pending['epoch'] == RUNNING
        elif (not is_fresh and pending is not None
                and pending['epoch'] == NOT_STARTED):
            idle.append(self.dataset.open())
            is_fresh = True
        if not idle:
            return state_beside(self.dataset, vars(self).get('data_state'))
        if len(idle) > 1:
            self._close_others(idle[:-1], idle[-1])
        return idle[-1] if is_fresh else self.dataset.next_epoch(idle[-1])

    def _close_others(self, states: list[Any], chosen: Any) -> None:
        """Close the states that no epoch uses any more, each once.

        States are compared by identity, since a data set may return the same
        state from each ``open()``.
        """
        used = {id(chosen)} | {
            id(epoch.attributes.get('data_state'))
            for _, epoch in stage_of(self).holders}
        for state in states:
            if id(state) not in used:
                used.add(id(state))
                close_state(self.dataset, state)

    def _is_held(self) -> bool:
        """Return whether a running epoch uses the present state."""
        return self.data_state is not None and any(
            epoch.attributes.get('data_state') is self.data_state
            for _, epoch in stage_of(self).holders)

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return the reader of an epoch.

        Returns
        -------
        EpochReader or None
            None if a subclass has its own `get_data`.
        """
        if 'data_state' not in epoch.attributes or not covers(
                self, 'open_reader', ('get_data',)):
            return None
        # The options have the stream's names of sources, which may differ from
        # those of the data set.
        options = ReadOptions() if '_sources' in vars(self) else epoch.options
        return open_reader(self.dataset, epoch.request_iterator,
                           options, epoch.attributes['data_state'])

    def _replace_state(self, state: Any) -> None:
        """Replace the data set's state, here and in the epochs that use it."""
        old = vars(self).get('data_state')
        for _, epoch in stage_of(self).holders:
            if epoch.attributes.get('data_state') is old:
                epoch.drop_prefetched()
                epoch.attributes['data_state'] = state
        self.data_state = state

    def reset(self) -> None:
        """Put the state of the data set back to its beginning."""
        with stage_of(self).lock:
            if 'data_state' in vars(self):
                self._replace_state(self.dataset.reset(self.data_state))
                self._fresh_state = True

    def next_epoch(self) -> None:
        """Switch the state of the data set to the next epoch."""
        with stage_of(self).lock:
            if 'data_state' in vars(self):
                self._replace_state(self.dataset.next_epoch(self.data_state))

    def close(self) -> None:
        """Close the states of the data set; closing again does nothing."""
        stage = stage_of(self)
        with stage.lock:
            shown = [vars(self)] + [
                epoch.attributes for _, epoch in stage.holders]
            # By identity: several epochs may share one state.
            states = {id(attributes['data_state']): attributes['data_state']
                      for attributes in shown if 'data_state' in attributes}
            for state in states.values():
                close_state(self.dataset, state)
            stage.holders = []
            vars(self).pop('data_state', None)
            vars(self).pop('_fresh_state', None)


def without_batch(labels: Any) -> Any:
    """Return axis labels of a batch as those of an example."""
    if labels is None or isinstance(labels, str):
        return labels
    return tuple(label for label in labels if label != 'batch')
