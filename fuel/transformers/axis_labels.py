"""A check of the axes that a stage works on."""
from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence

from fuel.describe.pipeline import short
from fuel.epochs.stage import stage_of
from fuel.exceptions import AxisLabelsMismatchError
from fuel.transformers.source_names import as_labels
from fuel.typing import StreamLike

logger = logging.getLogger(__name__)

# Stages that drop axis labels, and for which a warning was logged.
_told_of: weakref.WeakSet[StreamLike] = weakref.WeakSet()


class ExpectsAxisLabels:
    """Mixin for stages that need certain axes in a certain order.

    Examples
    --------
    >>> class Checker(ExpectsAxisLabels):
    ...     pass
    >>> Checker().verify_axis_labels(
    ...     ('batch', 'channel'), ('channel', 'batch'), 'features')
    Traceback (most recent call last):
        ...
    fuel.exceptions.AxisLabelsMismatchError: Checker expects the axes \
('batch', 'channel') of source 'features', but they are labelled \
('channel', 'batch'): transpose the data, or correct the stream's axis_labels
    """

    def verify_axis_labels(self, expected: Sequence[str],
                           actual: Sequence[str] | None,
                           source_name: str) -> None:
        """Check the axis labels of a source, once for each source.

        Parameters
        ----------
        actual : tuple of str or None
            The labels of the source's axes. If None, or all empty, a warning
            is logged, since nothing can be checked.
        source_name : str
            Name of the source. After its labels were accepted, later calls
            for this source check nothing.

        Raises
        ------
        fuel.exceptions.AxisLabelsMismatchError
            If the labels differ.
        """
        # A mixin has no __init__ to rely on.
        verified = vars(self).setdefault('_verified_sources', set())
        if source_name in verified:
            return
        found = as_labels(actual)
        if found is None:
            self._warn(tuple(expected), source_name)
        elif found != tuple(expected):
            raise AxisLabelsMismatchError(
                f'{type(self).__name__} expects the axes {tuple(expected)} '
                f'of source {source_name!r}, but they are labelled '
                f'{found}: transpose the data, or correct the '
                f"stream's axis_labels{self._meant(tuple(expected))}")
        verified.add(source_name)

    def _warn(self, expected: tuple[str, ...], source: str) -> None:
        """Warn of missing axis labels, once for each stage that drops them."""
        name = type(self).__name__
        dropping = _dropping_stage(stage_of(self).inputs, source)
        if dropping is None:
            logger.warning(
                '%s expects the axes %s of source %r, but the stream has no '
                'axis labels for it to check: give the data set '
                'axis_labels={%r: %r}, if these are its axes',
                name, expected, source, source, expected)
        elif dropping not in _told_of:
            _told_of.add(dropping)
            logger.warning(
                '%s expects the axes %s of source %r, but %s, which the '
                'stream passes before, gives no axis labels on: write '
                "%s(..., axis_labels='kept') if it keeps the axes, else "
                'axis_labels={%r: %r}, if these are its axes',
                name, expected, source, short(dropping),
                type(dropping).__name__, source, expected)

    def _meant(self, expected: tuple[str, ...]) -> str:
        """Return advice to name the sources that have the expected axes.

        It is empty if no source has them.
        """
        fitting = tuple(
            source for stream in stage_of(self).inputs
            for source, labels in stage_of(stream).labels.items()
            if labels and as_labels(labels) == expected)
        if not fitting:
            return ''
        return (', or name the sources that the stage is for: '
                f'which_sources={fitting}')


def _dropping_stage(streams: Sequence[StreamLike],
                    source: str) -> StreamLike | None:
    """Return the stage that drops a source's axis labels, or None."""
    while len(streams) == 1:
        stream, = streams
        streams = stage_of(stream).inputs
        if any(as_labels(stage_of(below).labels.get(source))
               for below in streams):
            return stream
    return None
