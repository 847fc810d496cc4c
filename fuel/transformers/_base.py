"""What all stages share: a stream that reads another stream."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fuel._epoch import runtime_of
from fuel.streams import AbstractDataStream
from fuel.transformers._names import as_names, check_known


class Transformer(AbstractDataStream):
    """A stage of a pipeline: a stream that reads another stream.

    Subclasses implement :meth:`transform_example`, :meth:`transform_batch`
    or both; the one is called with each example, the other with each batch,
    and what they return goes on. A stage that turns batches into examples
    or the reverse, or that needs to see requests, overrides
    :meth:`get_data` instead and reads ``next(self.child_epoch_iterator)``.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read.
    produces_examples : bool, optional
        Whether the stage produces examples (as opposed to batches). It must
        be given unless there is an iteration scheme, or the class has an
        attribute of that name.
    **kwargs
        `iteration_scheme` and `axis_labels`; see
        :class:`~fuel.streams.AbstractDataStream`.

    Attributes
    ----------
    data_stream : AbstractDataStream
    child_epoch_iterator : iterator
        Reads `data_stream`. It is made with each epoch iterator and belongs
        to it.
    sources : tuple of str
        Those of `data_stream`, unless others are assigned.

    Notes
    -----
    A stage may have several epoch iterators at once, also in several
    threads. What it remembers from one call to the next within an epoch
    belongs into attributes that `epoch_attributes` names and that
    :meth:`get_epoch_iterator` sets anew; see also :meth:`get_leftover`.
    Data handed to a stage are its own, so it may change them in place.

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

    def __init__(self, data_stream: Any,
                 produces_examples: bool | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if produces_examples is not None:
            self.produces_examples = produces_examples
        self.data_stream = data_stream

    @property
    def sources(self) -> Any:
        """Names of the data, in the order in which they come (tuple)."""
        if '_sources' in vars(self):
            return self._sources
        return self._get_sources()

    @sources.setter
    def sources(self, value: Any) -> None:
        self._sources = value

    def _get_sources(self) -> Any:
        """Return the sources that the stage has if none are assigned."""
        return self.data_stream.sources

    def get_data(self, request: Any = None) -> Any:
        """Return the next data of `data_stream`, transformed.

        Parameters
        ----------
        request : None
            The stages that take requests say so.

        Returns
        -------
        tuple
            The data of each source.

        Raises
        ------
        ValueError
            If there is a request.
        NotImplementedError
            If `data_stream` produces examples and this stage batches, or
            the reverse; if the method that transforms them is missing.

        """
        self._refuse(request)
        examples = self.produces_examples
        if examples != self.data_stream.produces_examples:
            raise NotImplementedError(_mismatch(self, examples))
        data = self._pull()
        return as_tuple(self.transform_example(data) if examples
                        else self.transform_batch(data))

    def _refuse(self, request: Any) -> None:
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} reads its data stream in order and '
                f'takes no requests, got {request!r}: give the iteration '
                'scheme to the stream that it reads')

    def _pull(self) -> Any:
        """Return the next data of `data_stream`."""
        return next(self.child_epoch_iterator)

    def transform_example(self, example: Any) -> Any:
        """Return an example, transformed.

        Parameters
        ----------
        example : tuple
            The data of each source.

        Returns
        -------
        tuple

        """
        raise NotImplementedError(_missing(self, 'transform_example'))

    def transform_batch(self, batch: Any) -> Any:
        """Return a batch, transformed.

        Parameters
        ----------
        batch : tuple
            The data of each source.

        Returns
        -------
        tuple

        """
        raise NotImplementedError(_missing(self, 'transform_batch'))

    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        See :meth:`~fuel.streams.AbstractDataStream.get_epoch_iterator`.
        """
        with runtime_of(self).lock:
            self._release_children()
            self.child_epoch_iterator = self.data_stream.get_epoch_iterator()
            return super().get_epoch_iterator(as_dict=as_dict)

    def _length(self) -> int | None:
        if self.iteration_scheme is None and (
                type(self).get_data is Transformer.get_data):
            return length_of(self.data_stream)
        return super()._length()

    def close(self) -> None:
        """Close `data_stream`."""
        self.data_stream.close()

    def reset(self) -> None:
        """Reset `data_stream`."""
        self.data_stream.reset()

    def next_epoch(self) -> None:
        """Switch `data_stream` to the next epoch."""
        self.data_stream.next_epoch()


class AgnosticTransformer(Transformer):
    """A stage that treats examples and batches alike.

    Subclasses implement :meth:`transform_any`.

    Parameters
    ----------
    data_stream : AbstractDataStream
    produces_examples : bool, optional
    **kwargs
        See :class:`Transformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Reverser(AgnosticTransformer):
    ...     def transform_any(self, data):
    ...         return data[::-1]
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> list(Reverser(stream, stream.produces_examples).get_epoch_iterator())
    [(3, 1), (4, 2)]

    """

    def transform_any(self, data: Any) -> Any:
        """Return an example or a batch, transformed.

        Parameters
        ----------
        data : tuple
            The data of each source.

        Returns
        -------
        tuple

        """
        raise NotImplementedError(_missing(self, 'transform_any'))

    def transform_example(self, example: Any) -> Any:
        """Return :meth:`transform_any` of an example."""
        return self.transform_any(example)

    def transform_batch(self, batch: Any) -> Any:
        """Return :meth:`transform_any` of a batch."""
        return self.transform_any(batch)


class SourcewiseTransformer(Transformer):
    """A stage that transforms sources one by one.

    Subclasses implement :meth:`transform_source_example`,
    :meth:`transform_source_batch` or both.

    Parameters
    ----------
    data_stream : AbstractDataStream
    produces_examples : bool
        See :class:`Transformer`.
    which_sources : tuple of str, optional
        The sources of `data_stream` to transform; the others pass through.
        Defaults to all.
    **kwargs
        See :class:`Transformer`.

    Attributes
    ----------
    which_sources : tuple of str
    takes_single_name : bool
        Class attribute: whether `which_sources` may also be a bare string,
        the name of one source. False unless a subclass says otherwise.

    Raises
    ------
    ValueError
        If `data_stream` has no source of a name in `which_sources`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Upper(SourcewiseTransformer):
    ...     def transform_source_example(self, text, source):
    ...         return text.upper()
    >>> stream = DataStream(IterableDataset({'x': 'ab', 'y': 'cd'}))
    >>> upper = Upper(stream, produces_examples=True, which_sources=('x',))
    >>> list(upper.get_epoch_iterator())
    [('A', 'c'), ('B', 'd')]

    """

    which_sources: Any = None
    takes_single_name = False

    def __init__(self, data_stream: Any, produces_examples: bool,
                 which_sources: Any = None, **kwargs: Any) -> None:
        super().__init__(data_stream, produces_examples, **kwargs)
        self.which_sources = self._select(data_stream, which_sources)

    @classmethod
    def _select(cls, data_stream: Any, which_sources: Any) -> Any:
        """Return `which_sources` as a checked tuple of names."""
        if which_sources is None:
            return data_stream.sources
        if cls.takes_single_name and isinstance(which_sources, str):
            which_sources = (which_sources,)
        names = as_names('which_sources', which_sources)
        check_known('which_sources', names, data_stream.sources)
        return names

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return one source of an example, transformed.

        Parameters
        ----------
        source_example : object
        source_name : str

        Returns
        -------
        object

        """
        raise NotImplementedError(_missing(self, 'transform_source_example'))

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return one source of a batch, transformed.

        Parameters
        ----------
        source_batch : object
        source_name : str

        Returns
        -------
        object

        """
        raise NotImplementedError(_missing(self, 'transform_source_batch'))

    def transform_example(self, example: Any) -> Any:
        """Return an example with the chosen sources transformed."""
        return self._transform_sources(example, self.transform_source_example)

    def transform_batch(self, batch: Any) -> Any:
        """Return a batch with the chosen sources transformed."""
        return self._transform_sources(batch, self.transform_source_batch)

    def _transform_sources(self, data: Any,
                           transform: Callable[[Any, str], Any]) -> Any:
        parts = list(data)
        sources = self.data_stream.sources
        check_count(parts, sources)
        chosen = sources if self.which_sources is None else self.which_sources
        for place, source in enumerate(sources):
            if source in chosen:
                try:
                    parts[place] = transform(parts[place], source)
                except Exception as error:
                    error.add_note(f'in source {source!r}')
                    raise
        return tuple(parts)


class AgnosticSourcewiseTransformer(AgnosticTransformer,
                                    SourcewiseTransformer):
    """A stage that transforms sources one by one, in examples and batches.

    Subclasses implement :meth:`transform_any_source`.

    Parameters
    ----------
    data_stream : AbstractDataStream
    produces_examples : bool
    which_sources : tuple of str, optional
    **kwargs
        See :class:`SourcewiseTransformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Doubler(AgnosticSourcewiseTransformer):
    ...     def transform_any_source(self, data, source):
    ...         return 2 * data
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> doubler = Doubler(stream, stream.produces_examples,
    ...                   which_sources=('y',))
    >>> list(doubler.get_epoch_iterator())
    [(1, 6), (2, 8)]

    """

    def transform_any_source(self, source_data: Any,
                             source_name: str) -> Any:
        """Return one source of an example or a batch, transformed.

        Parameters
        ----------
        source_data : object
        source_name : str

        Returns
        -------
        object

        """
        raise NotImplementedError(_missing(self, 'transform_any_source'))

    def transform_any(self, data: Any) -> Any:
        """Return data with the chosen sources transformed."""
        return self._transform_sources(data, self.transform_any_source)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return :meth:`transform_any_source` of an example's source."""
        return self.transform_any_source(source_example, source_name)

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return :meth:`transform_any_source` of a batch's source."""
        return self.transform_any_source(source_batch, source_name)


def as_tuple(data: Any) -> Any:
    """Return what a user's function returned, an iterator read out.

    Lists stay lists: scripts may change them in place.
    """
    return tuple(data) if isinstance(data, Iterator) else data


def check_count(parts: Any, sources: Any) -> None:
    """Refuse data that have not one part for each source."""
    if len(parts) != len(sources):
        raise ValueError(
            f'expected data of {len(sources)} sources, {tuple(sources)}, but '
            f'{len(parts)} came: the stream names other sources than it '
            'returns')


def length_of(data_stream: Any) -> int | None:
    """Return how many items an epoch of a stream has; None if not known."""
    if hasattr(data_stream, '_length'):
        length: int | None = data_stream._length()
        return length
    return None


def _missing(stage: Transformer, method: str) -> str:
    return (f'{type(stage).__name__} does not implement {method}, which it '
            'needs for this data stream')


def _mismatch(stage: Transformer, examples: Any) -> str:
    kind, other = (('examples', 'batches') if examples
                   else ('batches', 'examples'))
    return (
        f'{type(stage).__name__} produces {kind}, but the data stream that '
        f'it reads ({type(stage.data_stream).__name__}) produces {other}: '
        'override get_data to turn one into the other, or put Batch or '
        'Unpack between them')
