"""The epoch iterator: one pass over a stream."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from fuel.describe.pipeline import iterator_text
from fuel.epochs.epoch import Epoch
from fuel.epochs.read_options import Conversion
from fuel.epochs.sealing import refuse_midway, sealed_epoch
from fuel.epochs.stage import Stage, stage_of
from fuel.epochs.state import Position, position_of
from fuel.kernels.epoch_iterator import EpochIterator, next_in_c
from fuel.kernels.epoch_reader import new_object
from fuel.schemes.iteration_scheme import ShardedScheme, num_requests_of
from fuel.schemes.shard import num_of_rank
from fuel.typing import Batch, Naming, State, StreamLike

__all__ = ['DataIterator']

NESTED: Literal['nested'] = 'nested'


@next_in_c
class DataIterator(EpochIterator):
    """Iterator over the examples or batches of one epoch of a stream.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read.
    request_iterator : iterator, optional
        The requests of the epoch.  If None, the iterator reads data without a
        request until the stream raises :class:`StopIteration`.
    as_dict : bool or 'nested', optional
        Whether to return a dict from source names to data instead of a
        tuple; ``'nested'``: a dict of dicts, whose keys are the parts of the
        names between slashes.  Defaults to False.

    Notes
    -----
    The iterator owns the attributes of its epoch: the attributes of the stream
    that the stream's class names in `epoch_attributes` (the child's iterator,
    the data set's state, left-overs).  The constructor reads their values from
    the stream.  Each time the iterator reads data, it sets them on the stream
    again, under the stream's lock.  So several iterators of one stream do not
    disturb each other.

    Several threads may share an iterator over workers or a server: each item
    goes to one of the threads.  Only one thread at a time may use any other
    iterator.

    An iterator can be pickled; the loaded one resumes at its position.
    ``len(iterator)`` is the number of items left, if the length of the epoch
    is known.
    """

    epoch: Epoch

    def __init__(self, data_stream: StreamLike,
                 request_iterator: Iterator[Any] | None = None,
                 as_dict: Naming = False) -> None:
        self.data_stream: Any = data_stream
        self.as_dict: Naming = checked_naming(
            as_dict, data_stream) if isinstance(as_dict, str) else as_dict
        self.epoch = Epoch(request_iterator)
        stage = stage_of(data_stream)
        stage.begin(self.epoch)
        stage.adopt(self.epoch, self)

    @property
    def request_iterator(self) -> Iterator[Any] | None:
        """The requests of the epoch (iterator), or None."""
        return self.epoch.request_iterator

    def __repr__(self) -> str:
        return iterator_text(self)

    def __bool__(self) -> bool:
        # Without this, `__len__` would make it false at the end of an epoch.
        return True

    def __len__(self) -> int:
        """Return the number of items left in the epoch."""
        count = _num_left(self)
        if count and self.epoch.omitted:
            reader: Any = stage_of(self.data_stream).reader_of(self.epoch)
            count -= reader.count_omitted(count)
        if count is None:
            raise TypeError(
                'how many items are left of an epoch of '
                f'{type(self.data_stream).__name__} is not known before it '
                'is over')
        return count

    def read_next(self) -> Any:
        """Return the next data, if no compiled reader reads them."""
        data = stage_of(self.data_stream).read(self.epoch)
        return self.name_sources(data) if self.as_dict else data

    def name_sources(self, data: Batch) -> dict[str, Any]:
        """Return data as a dict from source names to data."""
        return as_dict(self.data_stream, data, self.as_dict)

    def request_conversions(
            self, conversions: Mapping[str, Conversion]) -> None:
        """Request that data of sources are converted to a type, or scaled.

        Call this method before the first item is read.  Afterwards `converted`
        names the sources that are converted.

        `conversions`: a dict from source names to conversions.
        """
        self.epoch.options = self.epoch.options._replace(
            conversions=conversions)

    @property
    def converted(self) -> frozenset[str]:
        """The sources whose data have the type and scale that were
        requested."""
        return self.epoch.converted

    def get_position(self) -> Position | State | Exception:
        """Return the position of the iterator.

        This takes less time than returning its state.

        Returns
        -------
        object
            A position from which a state can be made later.
        """
        return stage_of(self.data_stream).position(self.epoch)

    def only_counts(self) -> bool:
        """Return whether each item changes only counts in the stage's
        state."""
        return (type(self) is DataIterator
                and stage_of(self.data_stream).only_counts(self.epoch))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the iterator, as plain data ready for JSON.

        Returns
        -------
        dict
            A state for
            :meth:`~fuel.streams.AbstractDataStream.load_state_dict` of a
            stream that was built in the same way.

        Raises
        ------
        TypeError
            If a part of the pipeline has no position; the error names it and
            the methods that it lacks.
        """
        stage = stage_of(self.data_stream)
        refuse_midway(stage, self.epoch)
        return sealed_epoch(stage, self.epoch)

    def present_state(self) -> State:
        """Return the state without the pipeline's fingerprint, for use inside
        the pipeline."""
        return stage_of(self.data_stream).state_of(self.epoch)

    def __reduce__(self) -> Any:
        return new_object, (type(self),), {
            'data_stream': self.data_stream, 'as_dict': self.as_dict,
            'epoch': self.epoch}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if 'epoch' not in state:
            # Pickles of Fuel 0.2.0 hold the arguments of the constructor; the
            # attributes of the epoch are in the stream.
            self.__init__(**state)  # type: ignore[misc]
            return
        self.data_stream = state['data_stream']
        self.as_dict = state['as_dict']
        self.epoch = state['epoch']
        stage = stage_of(self.data_stream)
        with stage.lock:
            stage.adopt(self.epoch, self)
            if self.epoch.attributes:
                stage.show(self.epoch)


def checked_naming(naming: Naming, data_stream: StreamLike) -> Naming:
    """Return `as_dict`; raise ValueError if it is not valid, or if the names
    of the sources cannot make a tree."""
    if naming != NESTED:
        if isinstance(naming, bool):
            return naming
        raise ValueError(
            f"as_dict must be True, False or 'nested', got {naming!r}")
    sources = tuple(data_stream.sources)
    for source in sources:
        names = source.split('/')
        if not all(names):
            raise ValueError(
                f'the name {source!r} has an empty part between slashes, so '
                "as_dict='nested' cannot make a tree of it: rename the "
                'source by fuel.transformers.Rename, or use as_dict=True')
        for count in range(1, len(names)):
            if '/'.join(names[:count]) in sources:
                raise ValueError(
                    f"the source {'/'.join(names[:count])!r} would be both "
                    f'data and a dict that holds {source!r}, so '
                    "as_dict='nested' cannot make a tree of the names: "
                    'rename one by fuel.transformers.Rename, or use '
                    'as_dict=True')
    return NESTED


def as_dict(data_stream: StreamLike, data: Batch,
            naming: Naming = True) -> dict[str, Any]:
    """Return data as a dict from source names to data.

    Data without a source are left out: a stream has such data if its `sources`
    were shortened.  A source that a data set provides twice is in the dict
    once.

    `naming`: ``'nested'`` for a dict of dicts.
    """
    sources, data = tuple(data_stream.sources), tuple(data)
    named = dict(zip(sources, data, strict=False))
    if len(named) < len(sources) and (
            len(data) < len(sources) or not _repeats(data_stream, sources)):
        raise ValueError(
            f'{type(data_stream).__name__} gave {len(data)} items for the '
            f'{len(sources)} sources {sources}: to make a dict, there must be '
            'exactly one item for each source, and the names of the sources '
            'must differ')
    return _as_tree(named) if naming == NESTED else named


def _as_tree(named: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of dicts, whose keys are the parts of the names between
    slashes."""
    tree: dict[str, Any] = {}
    for source, part in named.items():
        *folders, name = source.split('/')
        branch = tree
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = part
    return tree


def _repeats(data_stream: StreamLike, sources: tuple[str, ...]) -> bool:
    """Return whether each repeated name belongs to one source of a data set,
    and no stage changes the items of the data set."""
    stage = stage_of(data_stream)
    while stage.passes_items_on and len(stage.inputs) == 1:
        stage = stage_of(stage.inputs[0])
    dataset: Any = stage.dataset
    if dataset is None or sources != tuple(dataset.sources):
        return False
    try:
        provided = list(dataset.provides_sources)
    except (AttributeError, TypeError):
        # A data set of the user's own need not have `provides_sources`.
        return False
    return all(sources.count(source) == 1 or provided.count(source) == 1
               for source in sources)


def _num_left(iterator: DataIterator) -> int | None:
    """Return the number of items left in an epoch; None if unknown."""
    stage, epoch = stage_of(iterator.data_stream), iterator.epoch
    if epoch.finished:
        return 0
    length, shard = stage.num_items(), stage.shard
    if length is None or epoch.has_own_requests:
        return None
    used, step = _num_used(iterator, stage), epoch.step
    if epoch.request_iterator is not None and shard == stage.shard_of_inputs:
        # The epoch's own requests are those of this rank only.
        step = 1
    total = _length_of_all(stage) if shard and used % step else None
    if total is None or shard is None:
        # The last round of the ranks may be short.
        return max(0, length - -(-used // step))
    # Another number of ranks has read the epoch up to this position.
    return num_of_rank(max(0, total - used), shard)


def _num_used(iterator: DataIterator, stage: Stage) -> int:
    """Return the number of requested items of all ranks together.

    If ranks share the examples of each batch, one step may take several
    batches that are too small.  Only the stage that requests the batches
    counts each of them.
    """
    if stage.one_to_one and (stage.shard is None or stage.shard.splits):
        position: object = position_of(iterator)
        while isinstance(position, Position) and stage.one_to_one and (
                len(position.children) == 1):
            stage, position = stage_of(stage.inputs[0]), position.children[0]
        if isinstance(position, Position):
            return position.requested
    return iterator.epoch.requested


def _length_of_all(stage: Stage) -> int | None:
    """Return the number of items that all ranks share; None if unknown."""
    if stage.own_shard is not None:
        return stage.num_items(of_all=True)
    if isinstance(stage.scheme, ShardedScheme):
        return num_requests_of(stage.scheme.scheme)
    counts = [_length_of_all(stage_of(one)) for one in stage.inputs]
    known = [count for count in counts if count is not None]
    return min(known) if stage.one_to_one and (
        len(known) == len(counts) > 0) else None
