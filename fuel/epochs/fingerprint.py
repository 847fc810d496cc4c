"""Description of a pipeline that a saved state must fit."""
from __future__ import annotations

from typing import Any

from fuel.exceptions import StateMismatchError
from fuel.utils import rng_state

FORMAT = 1


def fingerprint(stream: Any) -> dict[str, Any]:
    """Return what must be equal where a state is taken up."""
    scheme = getattr(stream, 'iteration_scheme', None)
    dataset = getattr(stream, 'dataset', None)
    described: dict[str, Any] = {
        'class': _name(stream), 'sources': list(stream.sources)}
    _describe_rng(described, 'rng', stream)
    if scheme is not None:
        described['scheme'] = _name(scheme)
        for attribute in ('batch_size', 'num_examples', 'times',
                          'sorted_indices'):
            _describe(described, f'scheme {attribute}',
                      getattr(scheme, attribute, None))
        _describe_rng(described, 'scheme rng', scheme)
    if dataset is not None:
        described['data set'] = _name(dataset)
        _describe(described, 'data set num_examples',
                  getattr(dataset, 'num_examples', None))
    return described


def _name(instance: object) -> str:
    cls = type(instance)
    return f'{cls.__module__}.{cls.__qualname__}'


def _describe(described: dict[str, Any], key: str, value: Any) -> None:
    # Only numbers: NaN, for an unknown length, is not equal to itself.
    if isinstance(value, int) or hasattr(value, '__index__'):
        described[key] = int(value)


def _describe_rng(described: dict[str, Any], key: str, owner: Any) -> None:
    kind = rng_state.kind_of(getattr(owner, 'rng', None))
    if kind is not None:
        described[key] = kind


def check_fingerprint(stream: Any, state: dict[str, Any]) -> None:
    """Refuse a state that another kind of stream made."""
    if not isinstance(state, dict) or 'format' not in state:
        raise StateMismatchError(
            'a state must be what state_dict() returned, got '
            f'{type(state).__name__}')
    if state['format'] != FORMAT:
        raise StateMismatchError(
            f'the state has format {state["format"]!r}, but this version of '
            f'Fuel reads format {FORMAT}')
    saved, present = state['stream'], fingerprint(stream)
    for key in sorted(saved.keys() | present.keys()):
        if saved.get(key) != present.get(key):
            raise StateMismatchError(
                f'the state was saved by another pipeline: {key} was '
                f'{saved.get(key)!r}, but here it is {present.get(key)!r} '
                f'(stage {type(stream).__name__}): build the stream as it '
                'was when the state was saved')
