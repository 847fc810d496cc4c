"""Values that replace missing values in the files that converters write."""
from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from fuel.datasets.cells import TRUTHS
from fuel.transformers.imputation import (
    STRATEGIES, ImputeParameters, fit_impute)
from fuel.typing import StreamLike

# The strategy for text and truth values, which have no mean or median.
MOST_FREQUENT = STRATEGIES[-1]


def add_fill_option(subparser: ArgumentParser) -> None:
    """Add the option for missing values."""
    subparser.add_argument(
        '--fill', default=None, metavar='mean|median|most-frequent|VALUE',
        help='what replaces missing values: mean or median of the split '
        'train (sources that are not numbers get their most frequent value), '
        'most-frequent for all sources, or a value of your own (default: '
        'missing values stay)')


def fill_values(stream: StreamLike, source: str, kind: str, fill: str,
                mask: str | None = None) -> ImputeParameters:
    """Return the values that replace the missing values of a source.

    `stream`: the stream of the training examples.
    `kind`: the kind of the source's type, as in NumPy.
    `fill`: a strategy, or a value.

    Raises: ValueError if the source cannot hold the value, or if all training
        examples lack a value.
    """
    if fill not in STRATEGIES:
        return fit_impute(stream, source, value=_value(source, kind, fill),
                          mask=mask)
    if kind not in 'iuf':
        fill = MOST_FREQUENT
    found = fit_impute(stream, source, fill, mask=mask)
    if kind in 'iu' and all(value == int(value) for value in found.fill):
        # Whole values need no floating type.
        found = replace(found, fill=tuple(map(int, found.fill)))
    return found


def _value(source: str, kind: str, text: str) -> Any:
    """Convert the text of ``--fill`` to the kind of a source."""
    try:
        if kind == 'b':
            return TRUTHS[text.lower()]
        if kind in 'iu':
            return int(text) if text.lstrip('+-').isdecimal() else float(text)
        return float(text) if kind == 'f' else text
    except (KeyError, ValueError) as error:
        what = 'truth values' if kind == 'b' else 'numbers'
        raise ValueError(
            f'--fill {text} is not a valid value for {source!r}, which holds '
            f'{what}: choose one of {", ".join(STRATEGIES)}, or a value that '
            f'all sources with gaps can have') from error
