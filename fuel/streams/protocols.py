"""What Python's syntax does with a stream: loops, lengths, contexts."""
from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar

from fuel.describe import PipelineGraph, SourceTypes
from fuel.describe.pipeline import short
from fuel.describe.text import stream_text
from fuel.epochs.sharding import length_of
from fuel.utils.arguments import constructors_of

Applied = TypeVar('Applied')
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class StreamProtocols:
    """The base of streams: loops over epochs, lengths, contexts, stages."""

    def __iter__(self: Any) -> Any:
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

    def __len__(self: Any) -> int:
        """Return the number of batches or examples of an epoch."""
        length = length_of(self)
        if length is None:
            raise TypeError(
                f'the length of an epoch of {type(self).__name__} is not '
                'known before it is over')
        return length

    def __enter__(self) -> Any:
        return self

    def __exit__(self: Any, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return stream_text(self)

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

    @property
    def runs_in(self) -> str | None:
        """What makes the items (str); None for the reader's process."""
        return None

    def known_types(self) -> SourceTypes:
        """Return what is known of the data of each source.

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
        if isinstance(stage, type) and _takes_stream_by_name(stage):
            kwargs['data_stream'] = self
            applied: Applied = stage(*args, **kwargs)
            return applied
        return stage(self, *args, **kwargs)


def _takes_stream_by_name(stage: type) -> bool:
    """Return whether the stream is not the first argument of a class.

    A constructor that takes ``*args`` alone leaves it to the next base's.
    """
    for parameters in constructors_of(stage):
        kinds = {parameter.kind for parameter in parameters}
        if not kinds.isdisjoint(_POSITIONAL):
            return 'data_stream' in [
                parameter.name for parameter in parameters[1:]]
        if Parameter.VAR_POSITIONAL not in kinds:
            return True
    return False
