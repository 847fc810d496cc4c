"""A check of the axes that a stage works on."""
from __future__ import annotations

import logging
from collections.abc import Sequence

from fuel.epochs.stage import stage_of
from fuel.exceptions import AxisLabelsMismatchError
from fuel.transformers.source_names import as_labels

logger = logging.getLogger(__name__)


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
        """Check the axis labels of a source, the first time it is asked.

        Parameters
        ----------
        actual : tuple of str or None
            If None, or all empty, a warning is logged, since nothing can be
            checked.
        source_name : str
            Whose labels they are. Once they were accepted, later calls for
            the source check nothing.

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
            logger.warning(
                '%s expects the axes %s of source %r, but the stream has no '
                'axis labels for it to check: give the data set '
                'axis_labels={%r: %r}, if these are its axes',
                type(self).__name__, tuple(expected), source_name,
                source_name, tuple(expected))
        elif found != tuple(expected):
            raise AxisLabelsMismatchError(
                f'{type(self).__name__} expects the axes {tuple(expected)} '
                f'of source {source_name!r}, but they are labelled '
                f'{found}: transpose the data, or correct the '
                f"stream's axis_labels{self._meant(tuple(expected))}")
        verified.add(source_name)

    def _meant(self, expected: tuple[str, ...]) -> str:
        """Return the advice to choose the sources that have the axes."""
        fitting = tuple(
            source for stream in stage_of(self).inputs
            for source, labels in stage_of(stream).labels.items()
            if labels and as_labels(labels) == expected)
        if not fitting:
            return ''
        return (', or name the sources that the stage is for: '
                f'which_sources={fitting}')
