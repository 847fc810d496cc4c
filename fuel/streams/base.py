"""The base of all streams: their arguments, data and epochs."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeVar

from fuel.describe import PipelineGraph, SourceTypes
from fuel.describe.pipeline import short, stream_text
from fuel.describe.preview import Preview
from fuel.epochs.accepted import of_plain
from fuel.epochs.epoch import Epoch
from fuel.epochs.past import with_epoch
from fuel.epochs.pipeline import skip
from fuel.epochs.runtime import KEPT_STAGE
from fuel.epochs.sealing import refuse_midway, sealed, sealed_epoch
from fuel.epochs.skipped import Skipped
from fuel.epochs.stage import Stage, stage_of
from fuel.epochs.state import SchemeStart, without_frames
from fuel.epochs.state_check import checked_state
from fuel.iterator import NESTED, DataIterator
from fuel.schemes.iteration_scheme import (
    keeps_generator_before, num_requests_of, scheme_state)
from fuel.schemes.requests import as_requests
from fuel.schemes.shard import Shard, checked_shard, found_shard
from fuel.sharding.shard_pipeline import warn_if_uneven
from fuel.streams.arguments import (
    KeptLabels, item_name, no_stream_member, refuse_no_scheme,
    takes_stream_by_name)
from fuel.streams.order import (
    current_step, iterate_from, leave_out_more, order_attribute, shared_stream)
from fuel.streams.sources import keep_found_sources
from fuel.streams.stage import StreamStage
from fuel.typing import (
    AxisLabels, EpochReader, SchemeLike, State, returns_epochs)
from fuel.utils.arguments import (
    NamedArguments, checked_labels, unknown_argument)
from fuel.utils.checks import positive
from fuel.utils.old_pickles import add_new_arguments
from fuel.utils.overrides import class_hook
from fuel.utils.other_libraries import (
    FOR_STREAMS, OtherLibraryName, names_shown)

if TYPE_CHECKING:
    from fuel.orders.omitted import Steps
    from fuel.profiling import Measurements

Applied = TypeVar('Applied')


class AbstractDataStream(NamedArguments):
    """A stream of examples or batches, separated into epochs.

    Subclasses implement :meth:`get_data` or :meth:`get_epoch_iterator`,
    without which they cannot be constructed.

    Parameters
    ----------
    iteration_scheme : IterationScheme, optional
        Decides which requests to make.  Some data sets and stages need a
        scheme, others take none.
    axis_labels : dict, optional
        Maps source names to tuples of strings, one for each axis.  Defaults
        to None: nothing is known.

    Attributes
    ----------
    iteration_scheme : IterationScheme or None
    sources : tuple of str
        Names of the data, in the order in which they come.
    produces_examples : bool
        Whether single examples come (as opposed to batches).
    epoch_attributes : tuple of str
        Class attribute: names of the attributes that belong to an epoch.
        Each epoch iterator has its own values, present while `get_data`
        runs.
    one_to_one : bool
        Whether each item is made of exactly one request, or of exactly one
        item of the stream that is read.  Then items can be skipped, and
        several workers can share an epoch.
    sharding : Shard or None
        The rank's share of this stream's own items; None if the ranks do
        not share these items.

    Notes
    -----
    A stream may have several epoch iterators at once, in one thread or in
    several.  A pickled stream keeps data set, scheme and generators, and
    begins a new epoch.  A pickled epoch iterator resumes at its position.
    """

    must_override = ('get_data', 'get_epoch_iterator')
    epoch_attributes: tuple[str, ...] = ()
    one_to_one: Any = False
    iteration_scheme: Any = None
    axis_labels: Any = None
    sharding: Shard | None = None
    current_step: Any = current_step
    iterate_from: Any = iterate_from
    makes_pieces = False  # True if an item can become several, as in Expand.
    #: The properties that data keep: any of ``'dtype'``, ``'shape'``
    #: and ``'axes'`` (frozenset of str).
    keeps: frozenset[str] = frozenset()
    #: The class of the stage that :func:`stage_of` makes of a stream.
    __fuel_stage__: type[Stage] = StreamStage
    #: The class of the plans that make its items by their numbers, if any.
    __fuel_plan__: Any = None
    #: True if it returns the items of its input unchanged.
    __fuel_passes_on__: Any = False
    # True if states between two epochs have left-overs, such as a count.
    __fuel_counts__: Any = False
    __fuel_marks__: Any = False  # True if it marks repeated examples.
    #: True if the random draws for an item depend only on the item's number.
    __fuel_draws_by_seed__: Any = False
    #: The class that `as_dataset` calls, set by `fuel.datasets`.
    __fuel_view__: Callable[[Any], Any] | None = None
    _produces_examples: bool | None = None
    unsaved_arguments: tuple[str, ...] = (
        'axis_labels', 'data_stream', 'data_streams', 'dataset',
        'iteration_scheme', 'produces_examples', 'sources')

    def __init__(self, iteration_scheme: SchemeLike | None = None,
                 axis_labels: AxisLabels | KeptLabels | None = None,
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
        if iteration_scheme is not None:
            refuse_no_scheme(self, iteration_scheme)
        self.iteration_scheme = iteration_scheme
        self.axis_labels = None if axis_labels is None else checked_labels(
            self, axis_labels)

    @property
    def sources(self) -> Any:
        """Names of the data, in the order in which they come (tuple)."""
        if '_sources' in vars(self):
            return self._sources
        stage = stage_of(self)
        known = stage.known_sources
        if known is not None:
            for origin, sources in known.origins:
                if tuple(origin.sources) != sources:
                    break
            else:
                return known.sources
        return keep_found_sources(self, stage, AbstractDataStream)

    @sources.setter
    def sources(self, value: Any) -> None:
        self._sources = value

    if not TYPE_CHECKING:
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            stage = vars(self).get(KEPT_STAGE)
            if isinstance(stage, Stage) and name not in self.epoch_attributes:
                stage.changes += 1
                if stage.known_sources is not None or stage.readers:
                    stage.forget()

        def __delattr__(self, name):
            super().__delattr__(name)
            stage_of(self).forget()

    def _get_sources(self) -> Any:
        """Return the sources that the stream has if none are assigned."""
        # Some pickles of Fuel 0.2.0 hold the sources under this name.
        if 'sources' in vars(self):
            return vars(self)['sources']
        raise AttributeError(f'{type(self).__name__} has no sources')

    @property
    def order(self) -> Any:
        """The order of the epoch that is running, or that the next iterator
        begins (:class:`fuel.orders.StreamOrder`).

        It is the order of all ranks, and is known without reading data. A
        class of a user may have, or assign, an attribute with this name.
        """
        return order_attribute(self)

    @order.setter
    def order(self, value: Any) -> None:
        vars(self)['order'] = value

    @order.deleter
    def order(self) -> None:
        vars(self).pop('order', None)

    @property
    def produces_examples(self) -> Any:
        """Whether single examples come, as opposed to batches (bool)."""
        if self.iteration_scheme is not None:
            return self.iteration_scheme.requests_examples
        if self._produces_examples is None:
            raise ValueError(
                f'{type(self).__name__} has no iteration scheme, so it does '
                'not know whether it produces examples: set '
                'produces_examples')
        return self._produces_examples

    @produces_examples.setter
    def produces_examples(self, value: bool) -> None:
        if self.iteration_scheme is not None:
            raise ValueError(
                'produces_examples follows from the iteration scheme '
                f'({type(self.iteration_scheme).__name__}) and cannot be '
                'set')
        self._produces_examples = value

    def get_data(self, request: Any = None) -> Any:
        """Return the data of one request.

        Parameters
        ----------
        request : object, optional
            The request of the request iterator.

        Returns
        -------
        tuple
            The data of each source.

        Raises
        ------
        StopIteration
            If the epoch is over.
        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_data')

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader of an epoch that replaces :meth:`get_data`.

        Returns
        -------
        EpochReader or None
            None, the default: :meth:`get_data` is called for each item.
        """
        return None

    def reset(self) -> None:
        """Put the stream back to its beginning."""

    def close(self) -> None:
        """Release resources, such as open files."""

    def next_epoch(self) -> None:
        """Switch to the next epoch."""

    def num_items(self) -> int | None:
        """Return the number of items of an epoch of all ranks.

        A hook for stages that make another number of items than they read,
        or than the iteration scheme requests.

        Returns
        -------
        int or None
            None if it is not known.
        """
        scheme = self.iteration_scheme
        return None if scheme is None else num_requests_of(scheme)

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        Parameters
        ----------
        as_dict : bool or 'nested', optional
            Whether to return a dict from source names to data instead of a
            tuple; ``'nested'``: a dict of dicts, by the parts of the names
            between slashes.  Defaults to False.

        Returns
        -------
        DataIterator
            After :meth:`load_state_dict`, it resumes at the saved position.
        """
        # As Stage.change does, in fewer calls, since epochs may be short.
        stage = stage_of(self)
        with stage.lock:
            before, stage.changing = stage.changing, True
            try:
                class_hook(type(self), 'start_epoch')(self)
                return DataIterator(self, self._get_requests(), as_dict)
            finally:
                stage.changing = before

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch.

        A hook for stages that name attributes in `epoch_attributes`. An
        override calls this method of its base class too. If several threads
        begin epochs of a stream, the epochs begin one after another.
        """

    def dicts(self, nested: bool = False) -> Any:
        """Return an iterator over a new epoch that gives dicts.

        Parameters
        ----------
        nested : bool, optional
            Whether names such as ``'obs/image'`` make dicts of dicts:
            ``batch['obs']['image']``.  Defaults to False.

        Returns
        -------
        DataIterator
            That of :meth:`get_epoch_iterator`.

        Raises
        ------
        ValueError
            If `nested`, and two names clash, such as ``'obs'`` and
            ``'obs/image'``, or a name has an empty part.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(IndexableDataset({
        ...     'obs/image': numpy.zeros((4, 2)),
        ...     'obs/state': numpy.ones(4), 'actions': numpy.arange(4)}),
        ...     batch_size=2)
        >>> batch = next(stream.dicts(nested=True))
        >>> batch['actions'], list(batch['obs'])
        (array([0, 1]), ['image', 'state'])
        """
        # Users' classes that override the method take a bool.
        naming: Any = NESTED if nested else True
        return self.get_epoch_iterator(as_dict=naming)

    def iterate_epochs(self, as_dict: bool = False) -> Iterator[Any]:
        """Return an endless iterator over epoch iterators.

        Parameters
        ----------
        as_dict : bool or 'nested', optional
            See :meth:`get_epoch_iterator`.
        """
        while True:
            yield self.get_epoch_iterator(as_dict=as_dict)

    def _get_requests(self) -> Iterator[Any] | None:
        """Return the requests of a new epoch, or the rest of a saved one."""
        scheme = self.iteration_scheme
        if scheme is None:
            return None
        stage = stage_of(self)
        resumed = None if stage.pending is None else stage.resumed()
        if resumed:
            scheme.load_state_dict(resumed['scheme'])
        requests: Iterator[Any] | None = None
        try:
            if keeps_generator_before(scheme):
                # Cheaper than the scheme's state, which is seldom needed.
                requests = scheme.get_request_iterator()
                stage.start = SchemeStart(scheme.generator_before(requests))
            else:
                stage.start = SchemeStart(scheme_state(scheme))
        except TypeError as error:
            stage.start = without_frames(error)
        if requests is None:
            requests = scheme.get_request_iterator()
        if not hasattr(requests, '__next__'):
            raise TypeError(
                f'get_request_iterator() of {type(scheme).__name__} must '
                f'return an iterator, got {type(requests).__name__}: return '
                'iter(...) of it')
        if resumed:
            requests = as_requests(requests)
            requests.advance(resumed['requested'])
        return requests

    def _release_children(self) -> None:
        """Release the children's iterators if this stream is not in use.

        Called before this stream makes new iterators of its children. A child
        whose iterator is released begins its next epoch, instead of running
        two epochs at a time.
        """
        stage = stage_of(self)
        if stage.is_left():
            stage.past, stage.epoch = stage.past_epochs(), None
            for name in ('child_epoch_iterator', 'child_epoch_iterators'):
                vars(self).pop(name, None)

    def skip(self, count: int) -> None:
        """Skip items of the epoch without making them.

        A hook for one-to-one stages that count their items. An override
        calls this method too: it skips items of the streams that the stage
        reads. The stage's own requests are skipped without this hook.
        """
        for iterator in stage_of(self).iterators:
            skip(iterator, count)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the data set that the last items came from.

        A hook for stages that know these examples. Errors and logs name them.

        Parameters
        ----------
        requests : sequence
            The requests of these items, or their numbers in the epoch if
            there is no iteration scheme.

        Returns
        -------
        fuel.epochs.pipeline.SourceExamples or None
            None, the default, if they are not known.
        """
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the stream, as plain data ready for JSON.

        It is the position of the epoch iterator made last: counts and states
        of random generators, a few kilobytes, and no data.

        Raises
        ------
        TypeError
            If a part of the pipeline cannot save its position. The error
            names the part and the hooks that it lacks.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> from fuel.streams import DataStream
        >>> def build():
        ...     return DataStream(IndexableDataset(list(range(6))),
        ...                       iteration_scheme=ShuffledScheme(6, 2))
        >>> stream = build()
        >>> epoch = stream.get_epoch_iterator()
        >>> next(epoch)
        ([2, 1],)
        >>> restored = build()
        >>> restored.load_state_dict(stream.state_dict())
        >>> list(restored.get_epoch_iterator()) == list(epoch)
        True
        """
        stage = stage_of(self)
        with stage.lock:
            refuse_midway(stage, stage.epoch)
            if stage.pending is None and stage.epoch is not None:
                return sealed_epoch(stage, stage.epoch)
            return sealed(self, stage.state())

    def load_state_dict(self, state: State, leave_out: Steps | None = None,
                        accumulate: int = 1, accept: Sequence[str] = (),
                        ) -> None:
        """Restore the position that a stream built in the same way saved.

        The next epoch iterator resumes at this position. Iterators that were
        made before are not affected.

        Parameters
        ----------
        state : dict
            The state that :meth:`state_dict` returned.
        leave_out : iterable of int or range, optional
            Steps that are left out from here on, beside those that the state
            names; see :func:`fuel.orders.leave_out`. They are counted with
            the ranks that saved the state. Later states name them.
        accumulate : int, optional
            Number of a rank's items for such a step.  Defaults to 1.
        accept : sequence of {'data', 'order'}, optional
            What may differ between the pipeline and the state, this once:
            the data (sizes, types, checksums), or the order (iteration
            schemes). Later states have a record, in the field ``accepted``.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state is of another format, or was saved by a pipeline
            of other stages, sources, numbers of examples, batch sizes or data.
        ValueError
            If a step in `leave_out` is before the position, or is one of
            `BalancedBatches` on other ranks. The state was loaded then.
        fuel.exceptions.UnknownOrderError
            If the steps in `leave_out` are not known, since the order depends
            on the data. The state was loaded then.
        """
        stage = stage_of(self)
        with stage.change():
            checked = checked_state(self, state, accept)
            stage.load(checked)
            stage.accepted = of_plain(checked)
            if leave_out is not None or 'omitted' in checked or stage.omitted:
                leave_out_more(self, checked, leave_out, accumulate)

    def skipped_examples(self) -> Skipped:
        """Return the examples that the current epoch has left out.

        It is the epoch of the epoch iterator made last. After a restored
        state, examples left out before the state was saved count too. See
        `on_error` of :class:`DataStream`.

        Returns
        -------
        fuel.epochs.skipped.Skipped
            Their number, and the first of them with their errors.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> from fuel.transformers import Mapping
        >>> stream = Mapping(
        ...     DataStream(IndexableDataset(['1', '2', 'x', '4']),
        ...                batch_size=2, on_error='skip'),
        ...     lambda batch: ([int(text) for text in batch[0]],))
        >>> list(stream)
        [([1, 2],), ([4],)]
        >>> skipped = stream.skipped_examples()
        >>> skipped.count, skipped.examples[0].example
        (1, 2)
        >>> print(skipped.examples[0])
        example 2 in stage Mapping: ValueError: invalid literal for int() ...
        """
        return stage_of(self).skipped

    def get_leftover(self) -> Any:
        """Return a description of the stage's left-overs, for a state.

        A hook for stages that do not deliver all of a child's batch at once:
        left-overs are the part that is not delivered yet.

        Returns
        -------
        object
            Counts and the like, ready for JSON, and no data; None if there
            are no left-overs.
        """
        return None

    def set_leftover(self, leftover: Any) -> None:
        """Restore the left-overs that :meth:`get_leftover` described.

        The child's iterator has been put back to its position *before* the
        batch that the left-overs came from. This method reads that batch
        again, to move the child to the position that it had: even if no item
        follows, the child's next epoch may begin there.
        """
        raise NotImplementedError(
            f'{type(self).__name__} has get_leftover() but no '
            'set_leftover()')

    def get_child_position(self) -> Any:
        """Return the position of the child that a state should hold.

        A hook for stages with left-overs. Such a stage returns the child's
        position from before the batch that the left-overs came from.

        Returns
        -------
        object
            The result of an earlier ``child_epoch_iterator.get_position()``.
            None, the default, means the child's current position.
        """
        return None

    def shard(self, rank: int | str | Shard, num_shards: int | None = None,
              by: str = 'batch', uneven: str | None = None) -> Any:
        """Return the stream of one of several ranks that share the order.

        Together, the ranks get each item of this stream once, in the order of
        this stream. A state that one rank saves is a state of the whole order:
        any number of ranks, or a stream that is not sharded, can restore it.

        Parameters
        ----------
        rank : int, Shard or str
            From 0 to below `num_shards`. With ``'auto'``, the rank and the
            number of ranks come from `torch.distributed` if it is
            initialised, or from the launcher: torchrun, MPI, SLURM, Ray Train
            or JAX. It is an error if they change before an epoch begins.
        num_shards : int, optional
            Number of ranks that share the order. It must be given with a rank.
        by : {'batch', 'example'}, optional
            Whether a rank takes every n-th batch (of a stream of examples,
            every n-th example), the default, or its part of each batch, so
            that the batches of all ranks together are the same for any
            number of them. A batch of fewer examples than ranks, unless it is
            the last, is split over some ranks, the next over the others.
        uneven : {'uneven', 'drop', 'pad'}, optional
            What happens at the end of an epoch that cannot be shared evenly.
            ``'uneven'`` gives some ranks one batch less, or less of the last
            batch; ``'drop'`` leaves out the batches of the last round if
            there are too few for all, or the last batch if it is short;
            ``'pad'`` repeats batches, or examples, from the start of the
            epoch in their place.  Defaults to None: ``'uneven'``, with a
            warning where ranks that get one batch less leave others waiting.

        Returns
        -------
        AbstractDataStream
            Of the same class, over the same data set. This stream stays as
            it is, and its generators are copied.

        Raises
        ------
        ValueError
            If `rank` is outside the range, the stream is sharded already or
            leaves out steps, or a stage draws from an `rng`.
        TypeError
            If the stream cannot be sharded.

        Notes
        -----
        If the order of a stage depends on the data, as that of
        :class:`~fuel.transformers.Filter` does, the ranks share the items
        that the stage reads. Then each rank has a state of its own, and only
        the same rank of the same number of ranks can restore it.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(IndexableDataset(list(range(8))),
        ...                     iteration_scheme=ShuffledScheme(8, 2))
        >>> [batch for batch, in stream.shard(0, 2).get_epoch_iterator()]
        [[7, 2], [0, 4]]
        >>> [batch for batch, in stream.shard(1, 2).get_epoch_iterator()]
        [[1, 6], [3, 5]]
        """
        if isinstance(rank, Shard):
            checked_shard(*rank)
            return shared_stream(self, rank)
        chosen = 'uneven' if uneven is None else uneven
        share = found_shard(by, chosen) if rank == 'auto' else checked_shard(
            rank, num_shards, by, chosen)
        if uneven is None:
            warn_if_uneven(self, share)
        return shared_stream(self, share)

    def as_dataset(self) -> Any:
        """Return the data set of the examples that the pipeline makes.

        It has the examples of the data set that the pipeline reads, in the
        same order, with the stages applied. Index it with a number, a slice
        or a list of numbers: only these examples are made. Use it like any
        data set: in a stream of another scheme, or in a loader that indexes.

        Returns
        -------
        StreamDataset

        Raises
        ------
        ValueError
            If a stage does not make exactly one item of each item that it
            reads, or draws from an `rng`.
        TypeError
            If the data set is read in order.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> from fuel.transformers import ScaleAndShift
        >>> stream = ScaleAndShift(DataStream(
        ...     IndexableDataset(numpy.arange(5.)), batch_size=2), 10., 1.)
        >>> scaled = stream.as_dataset()
        >>> len(scaled), scaled[[4, 0]]
        (5, (array([41.,  1.]),))
        """
        view = self.__fuel_view__
        if view is None:
            raise TypeError(
                f'{type(self).__name__} reads no data set of Fuel: put the '
                'data into one of fuel.datasets')
        return view(self)

    def __iter__(self) -> Any:
        """Return an iterator over a new epoch.

        Each loop reads an epoch of its own, even inside another loop and after
        ``break``. After
        :meth:`~fuel.streams.AbstractDataStream.load_state_dict`, it reads the
        rest of the saved epoch.
        """
        return self.get_epoch_iterator()

    def __bool__(self) -> bool:
        # A stream without batches is a stream all the same.
        return True

    def __len__(self) -> int:
        """Return the number of batches or examples of an epoch."""
        length = stage_of(self).num_items()
        if length is not None:
            return length
        raise TypeError(f'the length of an epoch of {type(self).__name__} is '
                        'not known before it is over')

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return stream_text(self)

    def measurements(self) -> Measurements:
        """Return the measurements of the pipeline, stage by stage.

        Epochs are always measured. This method only reads the counters, and
        does not wait. Workers and servers send their counters with their
        batches, about once a second.

        Returns
        -------
        fuel.profiling.Measurements
            The measurements of all epochs in this process. Their `interval`
            covers the time since the previous call.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(IndexableDataset(numpy.zeros((100, 3))),
        ...                     batch_size=10)
        >>> for batch in stream:
        ...     pass  # training
        >>> found = stream.measurements()
        >>> found.items, found.examples, found.stages[0].name
        (10, 100, 'DataStream')
        """
        from fuel.profiling.measurements import measure_and_compare
        return measure_and_compare(self)

    def _repr_html_(self) -> str:
        from fuel.describe.html import stream_html
        return stream_html(self)

    def describe(self) -> PipelineGraph:
        """Return a drawing of the pipeline.

        ``print(stream)`` shows the same as text, one stage a line.

        Returns
        -------
        fuel.describe.PipelineGraph
        """
        return PipelineGraph(self)

    def preview(self, count: int = 40) -> Preview:
        """Return a sample of the stream's data that can be displayed.

        It shows images, texts, rows of a table, curves and histograms. A copy
        of the pipeline makes the first batch of the next epoch, in this
        process. Running epochs, the state, the order and the global
        generators do not change. Errors are shown, not raised.

        Parameters
        ----------
        count : int, optional
            How many examples of the batch; of a stream of examples, how many
            are made.  Defaults to 40.

        Returns
        -------
        fuel.describe.preview.Preview
            ``print`` shows it as text, a notebook as pictures, and
            ``save('batch.png')`` draws it into a file.

        Notes
        -----
        The functions of stages are called as in an epoch. A stream whose
        batches come from a server, or from an iterator that can be read only
        once, is not read.

        Examples
        --------
        >>> import numpy
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(
        ...     IndexableDataset({'kind': numpy.arange(6) % 2}), batch_size=4)
        >>> stream.preview()
        DataStream(IndexableDataset): 4 examples of the first batch
           kind
        0  0
        1  1
        2  0
        3  1
        kind: 0 (2), 1 (2)
        """
        from fuel.describe.samples import preview_stream
        return preview_stream(self, positive('count', count))

    @property
    def runs_in(self) -> str | None:
        """Workers, threads or server that make the items (str).

        None if the reader's process makes them.
        """
        return None

    def known_types(self) -> SourceTypes:
        """Return the known types of each source.

        A hook of stages, for descriptions of a pipeline. It reads no data.

        Returns
        -------
        dict of str to fuel.describe.SourceType
        """
        return {}

    def apply(self, stage: Callable[..., Applied], *args: Any,
              **kwargs: Any) -> Applied:
        """Return a stage that reads this stream.

        Parameters
        ----------
        stage : type or callable
            The class of a stage, or a function that takes a stream.
        *args, **kwargs
            Its other arguments.

        Returns
        -------
        object
            ``stage(stream, *args, **kwargs)``.  A class whose constructor
            has an argument `data_stream` that is not the first, such as
            :class:`~fuel.transformers.sequences.NGrams`, gets it there.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.streams import DataStream
        >>> from fuel.transformers import Cast, ScaleAndShift
        >>> dataset = IndexableDataset([1, 2, 3])
        >>> stream = (DataStream(dataset, batch_size=2)
        ...           .apply(ScaleAndShift, 10, 0.5)
        ...           .apply(Cast, 'float32'))
        >>> [batch.tolist() for batch, in stream]
        [[10.5, 20.5], [30.5]]

        """
        if not callable(stage):
            name = type(stage).__name__
            raise TypeError(
                'apply takes the class of a stage and its other arguments, '
                f'got {short(stage)}: write apply({name}, ...)')
        if isinstance(stage, type) and takes_stream_by_name(stage):
            kwargs['data_stream'] = self
            applied: Applied = stage(*args, **kwargs)
            return applied
        try:
            return stage(self, *args, **kwargs)
        except (AttributeError, TypeError) as error:
            if not isinstance(stage, type):
                error.add_note(
                    'apply calls a function once, with the stream: one that '
                    f'takes each {item_name(self)} is that of a stage, '
                    'stream.apply(Mapping, function) (from fuel.transformers '
                    'import Mapping)')
            raise

    def __dir__(self) -> list[str]:
        # Hide the names that only raise an error with advice.
        return names_shown(self, super().__dir__())

    def __getstate__(self) -> dict[str, Any]:
        # The iterator of an epoch keeps the attributes of the epoch.
        state = vars(self).copy()
        for name in self.epoch_attributes:
            state.pop(name, None)
        # A copy that shared the stage would share its position.
        kept = state.pop(KEPT_STAGE, None)
        if isinstance(kept, Stage):
            stage, last = kept, kept.epoch
            kept = kept.pending or (kept.past if last is None else with_epoch(
                last.past, None if last.finished else last.position))
            if kept is None or stage.omitted or stage.accepted:
                kept = stage.to_pickle(kept)
        if kept:
            state[KEPT_STAGE] = kept
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        add_new_arguments(self)


for _name in FOR_STREAMS:
    setattr(AbstractDataStream, _name,
            OtherLibraryName(AbstractDataStream, _name, no_stream_member))
