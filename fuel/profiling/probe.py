"""A stage that measures those below it, in a worker process."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.runtime import runtime_of
from fuel.profiling.clock import COLUMNS, Clock, instrument, rows_of
from fuel.transformers.base import Transformer, length_of
from fuel.typing import Batch, Request, StreamLike, returns_epochs


class Probe(Transformer):
    """A stage that adds to each item what the stages below took so far.

    That is an array with a row for each of them, the outermost first, behind
    a row that begins with the identifier of the process.
    """

    def __init__(self, data_stream: StreamLike) -> None:
        super().__init__(
            data_stream, data_stream.produces_examples,
            axis_labels=getattr(data_stream, 'axis_labels', None))
        self._clocks: list[Clock] = []

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over a new epoch, with clocks below."""
        with runtime_of(self).lock:
            iterator: Any = super().get_epoch_iterator(as_dict)
            attributes = iterator.epoch.attributes
            clock = instrument(attributes['child_epoch_iterator'])
            attributes['child_epoch_iterator'] = clock
            self._clocks.append(clock)
            return iterator

    def get_data(self, request: Request = None) -> Batch:
        """Return the next item, and the measures."""
        item = next(self.child_epoch_iterator)
        rows = numpy.sum([rows_of(clock) for clock in self._clocks], axis=0)
        head = numpy.zeros((1, len(COLUMNS)))
        head[0, 0] = os.getpid()
        return (*item, numpy.concatenate([head, rows]))

    @property
    def one_to_one(self) -> bool:
        """Whether workers may share the pipeline below (bool)."""
        return True

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return nothing: errors below say which examples they are about."""
        return None

    def known_types(self) -> SourceTypes:
        """Return the types of the pipeline below."""
        return types_of(self.data_stream)

    def _length(self) -> int | None:
        return length_of(self.data_stream)
