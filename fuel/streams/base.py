"""The base of all streams: their arguments, data and epochs."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeVar

from fuel.describe import PipelineGraph, SourceTypes
from fuel.describe.pipeline import short, stream_text
from fuel.describe.preview import Preview
from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import skip
from fuel.epochs.runtime import KEPT_STAGE, KnownSources
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
from fuel.sharding.shard_pipeline import shard_pipeline, warn_if_uneven
from fuel.streams.arguments import (
    KeptLabels, refuse_no_scheme, takes_stream_by_name)
from fuel.streams.stage import StreamStage
from fuel.typing import (
    AxisLabels, EpochReader, SchemeLike, State, returns_epochs)
from fuel.utils.arguments import (
    NamedArguments, checked_labels, is_dataset, try_call, unknown_argument)
from fuel.utils.checks import positive
from fuel.utils.old_pickles import add_new_arguments
from fuel.utils.overrides import cached, class_hook
from fuel.utils.other_libraries import (
    FOR_STREAMS, OtherLibraryName, names_shown, no_member)

if TYPE_CHECKING:
    from fuel.profiling import Measurements

Applied = TypeVar('Applied')


class AbstractDataStream(NamedArguments):
    """A stream of examples or batches, separated into epochs.

    Subclasses implement :meth:`get_data` or :meth:`get_epoch_iterator`,
    without which they cannot be constructed.

    Parameters
    ----------
    iteration_scheme : IterationScheme, optional
        Which requests to make.  Some data sets and stages need one, others
        do not take any.
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
        Whether each item is made of one request, or one item of the stream
        that is read, and of no other, so that items can be skipped and
        several workers can share an epoch.
    sharding : Shard or None
        The rank's share, where it is taken of this stream's own items.

    Notes
    -----
    A stream may have several epoch iterators at once, in one thread or in
    several.  A pickled stream keeps data set, scheme and generators, and
    begins a new epoch; a pickled epoch iterator goes on where it stood.
    """

    must_override = ('get_data', 'get_epoch_iterator')
    epoch_attributes: tuple[str, ...] = ()
    one_to_one: Any = False
    iteration_scheme: Any = None
    axis_labels: Any = None
    sharding: Shard | None = None
    makes_pieces = False  # As those of Expand do.
    #: The properties that data keep: any of ``'dtype'``, ``'shape'``
    #: and ``'axes'`` (frozenset of str).
    keeps: frozenset[str] = frozenset()
    #: The class of the stage that :func:`stage_of` makes of a stream.
    __fuel_stage__: type[Stage] = StreamStage
    #: The class of the plans that make its items by their numbers, if any.
    __fuel_plan__: Any = None
    #: True if its items are those of its input, as they are.
    __fuel_passes_on__: Any = False
    #: True if what it draws for an item depends on the item's number alone.
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
        return _ask_sources(self, stage)

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
        # Some pickles of Fuel 0.2.0 hold them so.
        if 'sources' in vars(self):
            return vars(self)['sources']
        raise AttributeError(f'{type(self).__name__} has no sources')

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
        """Start afresh."""

    def close(self) -> None:
        """Release resources, such as open files."""

    def next_epoch(self) -> None:
        """Switch to the next epoch."""

    def num_items(self) -> int | None:
        """Return the number of items of an epoch of all ranks.

        A hook for stages whose items are not those that they read, or that
        the iteration scheme asks for.

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
            After :meth:`load_state_dict`, the one that goes on where the
            state was saved.
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

        A hook for stages that name some in `epoch_attributes`, and call this
        method of their base class too. Epochs of a stream that begin in
        several threads begin one after another.
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
            If `nested`, and a name is that of data and of a dict, or has an
            empty part.

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
        """Return an iterator over the epoch iterators, without end.

        Parameters
        ----------
        as_dict : bool or 'nested', optional
            See :meth:`get_epoch_iterator`.
        """
        while True:
            yield self.get_epoch_iterator(as_dict=as_dict)

    def _get_requests(self) -> Iterator[Any] | None:
        """Return the requests of a new epoch, or of the one taken up."""
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
                # Cheaper than its state, which is seldom wanted.
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

        Called before new ones are made: a child whose iterator is gone goes
        on to its next epoch, instead of running two at a time.
        """
        stage = stage_of(self)
        if stage.is_left():
            stage.epoch = None
            for name in ('child_epoch_iterator', 'child_epoch_iterators'):
                vars(self).pop(name, None)

    def skip(self, count: int) -> None:
        """Skip items of the epoch without making them.

        A hook for one-to-one stages that count their items; requests are
        counted already. They call this method too, which skips items of the
        streams that are read.
        """
        for iterator in stage_of(self).iterators:
            skip(iterator, count)

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the data set that the last items came from.

        A hook for stages that know, so that errors and logs name them.

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

        That is the position of the epoch iterator made last: counts and
        states of generators, a few kilobytes, never data.

        Raises
        ------
        TypeError
            If some part of the pipeline has no position; the text names it
            and the hooks it lacks.

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

    def load_state_dict(self, state: State) -> None:
        """Go on where another stream, built in the same way, stood.

        The next epoch iterator takes up the state; those made before are
        not disturbed.

        Parameters
        ----------
        state : dict
            The state that :meth:`state_dict` returned.

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the state is of another format, or was saved by a pipeline
            of other stages, sources, numbers of examples or batch sizes.
        """
        stage = stage_of(self)
        with stage.change():
            stage.load(checked_state(self, state))

    def skipped_examples(self) -> Skipped:
        """Return the examples that the present epoch has left out.

        That is the epoch of the epoch iterator made last, from its
        beginning on, also where a state was loaded; see `on_error` of
        :class:`DataStream`.

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
        """Return what the stage keeps of its input's last batch, for a state.

        A hook for stages that do not deliver all of a child's batch at
        once.

        Returns
        -------
        object
            Counts and the like, ready for JSON, never data; None if there
            is nothing.
        """
        return None

    def set_leftover(self, leftover: Any) -> None:
        """Restore the left-overs that :meth:`get_leftover` returned.

        Called when the child's iterator has been put back to where it stood
        *before* the batch that the left-overs came from. It reads that
        again, so that the child stands where it stood: if no item follows,
        the child's next epoch may go on there.
        """
        raise NotImplementedError(
            f'{type(self).__name__} has get_leftover() but no '
            'set_leftover()')

    def get_child_position(self) -> Any:
        """Return the position of the child that a state should hold.

        A hook for stages with left-overs, which return the position they took
        before the batch that the left-overs came from.

        Returns
        -------
        object
            What ``child_epoch_iterator.get_position()`` returned.  None, the
            default, means the child's present position.
        """
        return None

    def shard(self, rank: int | str | Shard, num_shards: int | None = None,
              by: str = 'batch', uneven: str | None = None) -> Any:
        """Return the stream of one of several ranks that share the order.

        The order is that of this stream: together, the ranks get its items,
        each once. A state that one of them saves is a state of the whole
        order, so any number of ranks, or a stream that is not sharded, can
        take it up.

        Parameters
        ----------
        rank : int, Shard or str
            From 0 to below `num_shards`. With ``'auto'``, rank and number
            are those of `torch.distributed` if it is initialised, or of the
            launcher: torchrun, MPI, SLURM, Ray Train or JAX. An epoch that
            begins where they are others is an error.
        num_shards : int, optional
            Number of ranks that share the order. It must be given with a rank.
        by : {'batch', 'example'}, optional
            Whether a rank takes every n-th batch (of a stream of examples,
            every n-th example), the default, or its part of each batch, so
            that the batches of all ranks together are the same for any
            number of them. A batch of fewer examples than ranks, if it is
            not the last, goes to some, and the next one to the others.
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
            If `rank` is outside the range, the stream is sharded already, or
            a stage draws from an `rng`, which depends on the batches before.
        TypeError
            If the stream cannot be sharded.

        Notes
        -----
        Of stages whose order depends on the data, such as
        :class:`~fuel.transformers.Filter`, what they read is shared. Then
        the state of each rank is its own, and only that rank of as many can
        take it up.

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
            return shard_pipeline(self, rank)
        chosen = 'uneven' if uneven is None else uneven
        share = found_shard(by, chosen) if rank == 'auto' else checked_shard(
            rank, num_shards, by, chosen)
        if uneven is None:
            warn_if_uneven(self, share)
        return shard_pipeline(self, share)

    def as_dataset(self) -> Any:
        """Return the data set of the examples that the pipeline makes.

        It has the examples of the data set at its bottom, in their order,
        and takes a number, a slice or a list of numbers; the stages are
        applied to what is asked for. So it goes where a data set goes: under
        a stream of another scheme, or to a loader that indexes.

        Returns
        -------
        StreamDataset

        Raises
        ------
        ValueError
            If a stage does not make one item of one, or draws from an
            `rng`.
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

        Each loop is an epoch of its own, also in another and after
        ``break``; after
        :meth:`~fuel.streams.AbstractDataStream.load_state_dict`, the rest
        of the one that was saved.
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

        The epochs of a stream are always measured. This reads the counters,
        and waits for nobody: what runs in workers and servers is reported
        with their batches, about once a second.

        Returns
        -------
        fuel.profiling.Measurements
            Of all epochs in this process. Its `interval` is what happened
            since the call before.

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
        """Return some of the stream's data to look at: images, texts, rows of
        a table, curves and histograms.

        A copy of the pipeline makes the batch with which the next epoch would
        begin, in this process. Epochs that run, the state, the order and the
        global generators are not disturbed. What fails is shown, and does not
        raise.

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
        """The workers, threads or server that make the items (str), or None
        for the reader's process."""
        return None

    def known_types(self) -> SourceTypes:
        """Return the known types of each source.

        A hook of stages, for descriptions. It reads no data.

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
                    f'takes each {_item_of(self)} is that of a stage, '
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
        # A copy that shares it would have the position of the other.
        kept = state.pop(KEPT_STAGE, None)
        pending = kept.pending if isinstance(kept, Stage) else kept
        if pending is not None:
            state[KEPT_STAGE] = pending
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        add_new_arguments(self)


def _ask_sources(stream: AbstractDataStream, stage: Stage) -> Any:
    """Return the sources of a stream, which keeps them from now on."""
    changes, inputs = stage.changes, stage.inputs
    # Of the inputs whose assignments are noticed.
    below: dict[int, Stage] = {}
    for child in inputs:
        if isinstance(child, AbstractDataStream) and (
                type(child).sources is AbstractDataStream.sources):
            below[id(child)] = stage_of(child)
    if below:
        stage.depend_on(below.values())
    found = stream._get_sources()
    if type(found) is not tuple or not _are_assigned(type(stream)) or (
            # It may be changed in place.
            type(vars(stream).get('data_streams')) is list):
        return found
    origins: list[tuple[Any, Any]] = []
    dataset: Any = stage.dataset
    if dataset is not None and is_dataset(dataset):
        origins.append((dataset, tuple(dataset.sources)))
    for child in inputs:
        one = below.get(id(child))
        if one is not None and one.known_sources is not None:
            origins += one.known_sources.origins
        elif one is None or type(vars(child).get('_sources')) is not tuple:
            # Asked each time.
            origins.append((child, tuple(child.sources)))
    if inputs or origins:
        stage.keep_sources(KnownSources(found, tuple(origins)), changes)
    return found


# The attributes that hold what a stream reads.
_READ = frozenset({'data_stream', 'data_streams', 'dataset'})


@cached
def _are_assigned(cls: type[AbstractDataStream]) -> bool:
    """Return whether it is noticed if objects of a class are to read another
    stream: not if that belongs to an epoch, or the class has an attribute or
    a property in its place."""
    return _READ.isdisjoint(cls.epoch_attributes) and all(
        _READ.isdisjoint(vars(base)) for base in cls.__mro__)


def _no_member(stream: AbstractDataStream, name: str) -> AttributeError:
    """Return the error that streams have no method of another library."""
    sources = try_call((), lambda: tuple(stream.sources))
    return no_member(stream, name, FOR_STREAMS, sources or ('data',),
                     _item_of(stream))


def _item_of(stream: AbstractDataStream) -> str:
    """Return 'example' if the stream is known to produce these, or 'batch'."""
    is_example = try_call(False, lambda: stream.produces_examples)
    return 'example' if is_example is True else 'batch'


for _name in FOR_STREAMS:
    setattr(AbstractDataStream, _name,
            OtherLibraryName(AbstractDataStream, _name, _no_member))
