"""The base of all stages: a stream that transforms another stream."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Self, TypeAlias, Unpack

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch, asking
from fuel.epochs.examples import SourceExamples, joined
from fuel.epochs.pipeline import length_of, note_examples, source_examples
from fuel.epochs.stage import stage_of
from fuel.epochs.step_count import step_tokens_of
from fuel.exceptions import NotAStreamError
from fuel.iterator import DataIterator
from fuel.kernels.stage_reader import BoundStageReader, StageReader
from fuel.sharding.asking import StageEpoch, passed_on
from fuel.sharding.order import EpochOrder
from fuel.streams import AbstractDataStream
from fuel.streams.arguments import KEPT, StreamOptions
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, EpochReader, Request, StreamLike
from fuel.utils.arguments import has_own_constructor, is_dataset, is_stream
from fuel.utils.other_libraries import class_for, short_repr
from fuel.utils.overrides import (
    cached, calls, covers, declares, replaces_methods)
from fuel.utils.rng_state import generator_in
from fuel.utils.signatures import constructors_of

#: Value of `keeps`: data keep their dtype, shape and axes.
ALL = frozenset({'dtype', 'shape', 'axes'})

#: A function of a stage and an item, which returns the item transformed.
Transformation: TypeAlias = 'Callable[[Any, Any], Any]'


class Transformer(AbstractDataStream):
    """A stage of a pipeline: a stream that reads another stream.

    Subclasses implement :meth:`transform_example`, which is called with each
    example, :meth:`transform_batch`, which is called with each batch, or
    both. Their results are the items of the stage. A stage that turns
    batches into examples or the reverse, or that takes requests, overrides
    :meth:`get_data` instead and reads ``next(self.child_epoch_iterator)``.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read.
    produces_examples : bool, optional
        Whether the stage produces examples (as opposed to batches). It must
        be given unless there is an iteration scheme, or the class has an
        attribute of that name.
    iteration_scheme, axis_labels
        See :class:`~fuel.streams.AbstractDataStream`. The axis labels may be
        ``'kept'``, which means those of `data_stream`.

    Attributes
    ----------
    data_stream : AbstractDataStream
    child_epoch_iterator : iterator
        Reads `data_stream`. It is made with each epoch iterator and belongs
        to it.
    sources : tuple of str
        The sources of `data_stream`, unless others are assigned.

    Notes
    -----
    A stage may have several epoch iterators at once, even in several
    threads. So it must store the values that it keeps from one call to the
    next within an epoch in the attributes that `epoch_attributes` names.
    :meth:`get_epoch_iterator` sets these attributes for each epoch; see also
    :meth:`get_leftover`. A stage owns the data that it receives, so it may
    change them in place.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> class Doubler(Transformer):
    ...     def __init__(self, data_stream, **kwargs):
    ...         super().__init__(
    ...             data_stream, data_stream.produces_examples, **kwargs)
    ...     def transform_batch(self, batch):
    ...         return tuple(2 * data for data in batch)
    >>> stream = DataStream(IndexableDataset(numpy.arange(3)),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> list(Doubler(stream).get_epoch_iterator())
    [(array([0, 2]),), (array([4]),)]
    """

    epoch_attributes: tuple[str, ...] = ('child_epoch_iterator',)
    data_stream: Any
    child_epoch_iterator: Any
    #: True if the same item gives the same result, in any order, in several
    #: threads at a time and in any epoch (bool). Such a stage is read faster,
    #: and has no access to the attributes of the epoch.
    pure: Any = False
    #: True if each row of a batch is made of the same row of the batch of
    #: `data_stream` (bool), so that a rank reads only its own rows.
    keeps_rows = False
    #: True if a row may be made of several examples (bool).
    packs_examples = False
    #: True if NumPy's masked arrays are accepted, and keep their mask where
    #: data are converted or rearranged; if False, they raise an error (bool).
    takes_masked = True

    def __init__(self, data_stream: StreamLike,
                 produces_examples: bool | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if is_dataset(data_stream):
            # A data set raises here, and says what to write.
            _ = data_stream.get_epoch_iterator
        if 'axes' in stage_of(self).keeps:
            kwargs.setdefault('axis_labels', KEPT)
        if kwargs.get('axis_labels') == KEPT:
            kwargs['axis_labels'] = labels_of(data_stream)
        super().__init__(**kwargs)
        if produces_examples is not None:
            self.produces_examples = produces_examples
        self.data_stream = data_stream

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return a new stage; raise an error if its input is not a stream."""
        if _reads_first_argument(cls):
            read = args[0] if args else kwargs.get('data_stream')
            if read is not None:
                refuse_no_stream(cls.__name__, read)
        return super().__new__(cls, *args, **kwargs)

    @property
    def step_tokens(self) -> Any:
        """Number of tokens of the step to which the last batch belongs (int),
        if a :class:`BalancedBatches` makes the batches.

        A class of a user may have, or assign, an attribute with this name.
        """
        return step_tokens_of(self)

    @step_tokens.setter
    def step_tokens(self, value: Any) -> None:
        vars(self)['step_tokens'] = value

    @step_tokens.deleter
    def step_tokens(self) -> None:
        vars(self).pop('step_tokens', None)

    def _get_sources(self) -> Any:
        return self.data_stream.sources

    def get_data(self, request: Request = None) -> Any:
        """Return the next data of `data_stream`, transformed.

        Parameters
        ----------
        request : None
            Only stages whose documentation says so take a request.

        Returns
        -------
        tuple
            The data of each source.

        Raises
        ------
        ValueError
            If `request` is not None.
        NotImplementedError
            If `data_stream` produces examples and this stage batches, or
            the reverse; if the method that transforms them is missing.
        """
        self._refuse(request)
        examples = self.produces_examples
        if examples != self.data_stream.produces_examples:
            raise NotImplementedError(_mismatch(self, examples))
        data = self._pull()
        try:
            return as_tuple(self.transform_example(data) if examples
                            else self.transform_batch(data))
        except Exception as error:
            explained = self._explained(
                error, self.child_epoch_iterator, data)
            if explained is error:
                raise
            raise explained from error

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return a reader of an epoch that replaces :meth:`get_data`.

        Returns
        -------
        EpochReader or None
            None if a subclass has its own `get_data`, or if the iterator that
            is read is not a DataIterator.
        """
        child = epoch.attributes.get('child_epoch_iterator')
        if (not isinstance(child, DataIterator)
                or epoch.request_iterator is not None
                or not covers(self, 'open_reader', ('get_data', '_pull'))):
            return None
        examples = self.produces_examples
        if examples != self.data_stream.produces_examples:
            return None
        method = 'transform_example' if examples else 'transform_batch'
        if not (declares(self, 'pure') and self._is_stateless()):
            return BoundStageReader(epoch, self, method)
        return StageReader(
            self, child, self._transformation(epoch)
            if replaces_methods(self, '_transformation')
            else getattr(type(self), method))

    @calls('transform_example', 'transform_batch')
    def _transformation(self, epoch: Epoch) -> Transformation:
        """Return the function that transforms the items of an epoch."""
        cls = type(self)
        return (cls.transform_example if self.produces_examples
                else cls.transform_batch)

    def _refuse(self, request: Request) -> None:
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} reads its data stream in order and '
                f'takes no requests, got {request!r}: give the iteration '
                'scheme to the stream that it reads')

    def known_types(self) -> SourceTypes:
        """Return the known types of each source.

        See :meth:`~fuel.streams.AbstractDataStream.known_types`.
        """
        keeps = stage_of(self).keeps
        return {source: kept for source, known
                in types_of(self.data_stream).items()
                if (kept := known.kept(keeps)) is not None}

    def _pull(self) -> Any:
        """Return the next data of `data_stream`."""
        return next(self.child_epoch_iterator)

    def _explained(self, error: Exception, child: DataIterator,
                   data: Batch, function: str = '') -> Exception:
        """Return an error of a transformation, with a note of its examples.

        A StopIteration becomes a RuntimeError, as in PEP 479, unless the
        child's iterator has raised it at the end of the epoch.
        """
        if not isinstance(error, StopIteration):
            note_examples(error, child, data)
        elif not (isinstance(child, DataIterator) and child.epoch.finished):
            function = function or ('transform_example' if
                                    self.produces_examples
                                    else 'transform_batch')
            refusal = RuntimeError(
                f'{function} of the stage {type(self).__name__} raised '
                'StopIteration, which would end the epoch too early: catch '
                'it there')
            refusal.__cause__ = error
            return refusal
        return error

    def transform_example(self, example: Batch) -> Any:
        """Return an example, transformed.

        Parameters
        ----------
        example : tuple
            The data of each source.
        """
        raise NotImplementedError(missing(self, 'transform_example'))

    def transform_batch(self, batch: Batch) -> Any:
        """Return a batch, transformed.

        Parameters
        ----------
        batch : tuple
            The data of each source.
        """
        raise NotImplementedError(missing(self, 'transform_batch'))

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._release_children()
        self.child_epoch_iterator = child = _child_iterator(self)
        if asking.examples and type(child) is DataIterator and not (
                _has_source_examples(self) or self._knows_examples()):
            child.__class__ = NotedIterator
        super().start_epoch()

    def _knows_examples(self) -> bool:
        """Return whether the examples of an item are those of the input's
        last item, or another method knows them."""
        return (covers(self, 'source_examples', ('get_data',))
                or stage_of(self).one_to_one)

    @property
    def one_to_one(self) -> bool:
        """Whether an item is made of exactly one item of `data_stream` (bool).

        True unless the stage draws from an `rng` or has attributes of its
        own that belong to an epoch. A stage that overrides :meth:`get_data`
        may declare it with a class attribute of this name.
        """
        return self._is_stateless()

    def _is_stateless(self) -> bool:
        """Return whether nothing is kept from one item to the next."""
        return generator_in(self) is None and (
            set(self.epoch_attributes) <= {'child_epoch_iterator'})

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the data set that the last items came from.

        See :meth:`~fuel.streams.AbstractDataStream.source_examples`.
        """
        stage = stage_of(self)
        if not self._knows_examples():
            child = self.child_epoch_iterator
            return child.take_noted(requests[0]).unordered(stage.name) if (
                isinstance(child, NotedIterator)) else None
        found = source_examples(self.child_epoch_iterator, len(requests))
        if found is None or self.produces_examples or declares(
                self, 'keeps_rows'):
            return found
        # transform_batch may change the order of the rows.
        return found.unordered(stage.name)

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch: that of `data_stream`."""
        return passed_on(stage_of(self), inputs[0])

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        if self.iteration_scheme is None and (
                type(self).get_data is Transformer.get_data):
            return length_of(self.data_stream)
        return super().num_items()

    def close(self) -> None:
        """Close `data_stream`."""
        self.data_stream.close()

    def reset(self) -> None:
        """Reset `data_stream`."""
        self.data_stream.reset()

    def next_epoch(self) -> None:
        """Switch `data_stream` to the next epoch."""
        self.data_stream.next_epoch()


class NotedIterator(DataIterator):
    """Iterator that notes the examples of its items, for a stage that may read
    any number of them for an item."""

    # The number of the stage's last item, and its examples.
    _taken: tuple[Any, SourceExamples] = None, SourceExamples([], False)

    def __next__(self) -> Any:
        item = super().__next__()
        self._noted.append(source_examples(self, 1))
        return item

    @functools.cached_property
    def _noted(self) -> list[SourceExamples | None]:
        """The examples of the items that were read for the next item."""
        return []

    def take_noted(self, number: Any) -> SourceExamples:
        """Return the examples of all items that were read for an item.

        `number`: number of the item, for which the answer stays the same.
        """
        if self._noted or number != self._taken[0]:
            known = [found for found in self._noted if found is not None]
            self._taken = number, joined(known) or SourceExamples([], False)
            self._noted.clear()
        return self._taken[1]


def _has_source_examples(stage: Transformer) -> bool:
    """Return whether a class has a method `source_examples` of its own."""
    return type(stage).source_examples is not Transformer.source_examples


@cached
def _reads_first_argument(cls: type) -> bool:
    """Return whether the first argument of a class is the stream.

    Only constructors of Fuel's own classes are examined.
    """
    return has_own_constructor(cls) and [parameter.name for parameter in next(
        constructors_of(cls))][:1] == ['data_stream']


def refuse_no_stream(reader: str, candidate: object) -> None:
    """Raise NotAStreamError unless an object is a stream or a data set.

    The text says what to write instead.
    """
    if not (is_stream(candidate) or is_dataset(candidate)):
        raise NotAStreamError(
            f'{reader} reads a stream, got {short_repr(candidate)}: '
            f'{class_for(candidate)}, and put a DataStream over it')


def _child_iterator(stage: Transformer) -> Any:
    """Return an epoch iterator of the stream that a stage reads.

    A stage with a `get_data` of its own may make the requests itself, so the
    stream that it reads does not need a scheme.
    """
    try:
        child = stage.data_stream
    except AttributeError as error:
        refuse_unset(stage, error)
    if covers(stage, 'open_reader', ('get_data',)) or not covers(
            child, 'get_unchecked_iterator', ('get_epoch_iterator',)):
        return child.get_epoch_iterator()
    return child.get_unchecked_iterator()


def refuse_unset(stage: Transformer, error: AttributeError) -> NoReturn:
    """Raise an error that advises to call the base class's constructor.

    An error about another object is raised as it is.
    """
    if error.obj is not stage:
        raise error
    raise AttributeError(
        f'{error}: let __init__ of the class call '
        'super().__init__(data_stream, ...), with the arguments of its base',
        name=error.name, obj=stage) from error


def as_tuple(data: object) -> Any:
    """Return the result of a user's function; an iterator becomes a tuple.

    Lists stay lists: scripts may change them in place.
    """
    return tuple(data) if isinstance(data, Iterator) else data


def check_count(parts: Sequence[object], sources: Sequence[str]) -> None:
    """Raise ValueError if data have fewer parts than there are sources.

    Parts beyond the last source pass through: a stream whose `sources` were
    shortened hides them.
    """
    if len(parts) < len(sources):
        raise ValueError(
            f'expected data of {len(sources)} sources, {tuple(sources)}, but '
            f'{len(parts)} came: the stream names more sources than it '
            'returns')


def common_types(data_streams: Sequence[object]) -> SourceTypes:
    """Return the known types of the sources that all streams agree on."""
    first, *others = map(types_of, data_streams)
    return {source: found for source, found in first.items()
            if all(found == other.get(source) for other in others)}


def missing(stage: Transformer, method: str) -> str:
    """Return the text of the error that a method is not implemented."""
    return (f'{type(stage).__name__} does not implement {method}, which it '
            'needs for this data stream')


def _mismatch(stage: Transformer, examples: bool) -> str:
    kind, other = (('examples', 'batches') if examples
                   else ('batches', 'examples'))
    return (
        f'{type(stage).__name__} produces {kind}, but the data stream that '
        f'it reads ({type(stage.data_stream).__name__}) produces {other}: '
        'override get_data to turn one into the other, or put Batch or '
        'Unpack between them')
