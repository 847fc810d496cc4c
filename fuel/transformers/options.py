"""The keyword arguments that stages pass on to their bases.

There is one class for each base, and the classes are derived from each other
as the bases are. A constructor names its own arguments, and takes the
arguments of its base as ``**kwargs: Unpack[SourcewiseOptions]``, with
:data:`typing.Unpack`. Then type checkers, ``help`` and
:func:`inspect.signature` know these arguments too. Their defaults are those
of the base.
"""
from __future__ import annotations

from collections.abc import Sequence

from fuel.streams.arguments import LabelOptions, StreamOptions

__all__ = [
    'ImageOptions', 'LabelOptions', 'MixerOptions', 'NoiseOptions',
    'RandomImageOptions', 'SeededOptions', 'SourcewiseOptions',
    'StreamOptions', 'ThreadedOptions', 'WorkerOptions']


class SourcewiseOptions(StreamOptions, total=False):
    """Keywords of `SourcewiseTransformer`, except `produces_examples`."""

    which_sources: Sequence[str] | str | None


class SeededOptions(StreamOptions, total=False):
    """Keywords of `SeededTransformer`, except `produces_examples`."""

    seed: int | None
    draws: str


class NoiseOptions(SeededOptions, SourcewiseOptions, total=False):
    """Keywords of the stages that add noise."""


class MixerOptions(SeededOptions, SourcewiseOptions, total=False):
    """Keywords of the stages that mix the examples of a batch."""

    target_source: str | None
    probability: float


class ThreadedOptions(SourcewiseOptions, total=False):
    """Keywords of the stages that work on examples in several threads."""

    num_threads: int | None
    produces_examples: bool | None


class ImageOptions(ThreadedOptions, total=False):
    """Keywords of the stages on images."""


class RandomImageOptions(SeededOptions, ImageOptions, total=False):
    """Keywords of the stages that change images at random."""


class WorkerOptions(StreamOptions, total=False):
    """Keywords of the stages whose stream is read by workers."""

    produces_examples: bool | None
