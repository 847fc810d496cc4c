"""The weights of a mixture, which may differ from epoch to epoch."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.schemes.mixing import as_thresholds
from fuel.suggestions import did_you_mean

#: The weights of one epoch, in the order of the streams or by name.
EpochWeights: TypeAlias = 'Sequence[float] | Mapping[str, float]'
#: Weights of all epochs, of one after another, or a function of the epoch.
Weights: TypeAlias = (
    'EpochWeights | Sequence[EpochWeights] | Callable[[int], EpochWeights]')


class MixtureWeights:
    """Weights of streams, checked; of all epochs as soon as they are known."""

    def __init__(self, weights: Weights | None,
                 names: tuple[str, ...]) -> None:
        self._names = names
        self._function: Callable[[int], EpochWeights] | None = None
        self._epochs: list[NDArray[numpy.float64]] = []
        if callable(weights):
            self._function = weights
        elif weights is None:
            self._epochs = [numpy.ones(len(names))]
        elif isinstance(weights, Mapping) or not _are_for_epochs(weights):
            self._epochs = [self._checked(weights, 'weights')]
        else:
            self._epochs = [
                self._checked(part, f'weights of epoch {number}')
                for number, part in enumerate(weights)]

    def at(self, epoch: int) -> NDArray[numpy.float64]:
        """Return the weights of an epoch, in the order of the streams."""
        if self._function is None:
            return self._epochs[min(epoch, len(self._epochs) - 1)]
        return self._checked(
            self._function(epoch), f'weights of epoch {epoch}')

    def are_positive(self) -> bool:
        """Return whether every stream has a positive weight in each epoch."""
        return self._function is None and all(
            bool((weights > 0).all()) for weights in self._epochs)

    def _checked(self, weights: Any, what: str) -> NDArray[numpy.float64]:
        names = self._names
        if isinstance(weights, Mapping):
            weights = self._by_name(weights, what)
        try:
            checked = numpy.array(weights, numpy.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f'{what} must be numbers, got {weights!r:.200}') from None
        if checked.shape != (len(names),):
            raise ValueError(
                f'{what} must be {len(names)} numbers, one for each of the '
                f'streams {names}, got {weights!r:.200}')
        for name, weight in zip(names, checked.tolist(), strict=True):
            if not 0 <= weight < float('inf'):
                raise ValueError(
                    f'{what} must be numbers from 0 on, but the one of '
                    f'{name!r} is {weight}')
        if not checked.any():
            raise ValueError(
                f'{what} are all 0: give at least one of the streams '
                f'{names} a positive one')
        checked /= checked.max()
        shares = numpy.diff(as_thresholds(checked), prepend=0)
        for name, weight, share in zip(names, checked, shares, strict=True):
            if weight > 0 and share <= 0:
                raise ValueError(
                    f'{what}: that of {name!r} is so small beside the '
                    'others that it would never be chosen: use 0')
        return checked

    def _by_name(self, weights: Mapping[str, float], what: str
                 ) -> list[float]:
        """Return weights in the order of the streams."""
        for name in weights:
            if name not in self._names:
                hint = did_you_mean(str(name), self._names, '{} ')
                raise ValueError(
                    f'{what} name {name!r}, but there is no such stream: '
                    f'{hint}the streams are {self._names}')
        for name in self._names:
            if name not in weights:
                raise ValueError(
                    f'{what} must name all streams, but {name!r} is '
                    'missing: give it 0 to leave it out')
        return [weights[name] for name in self._names]


def _are_for_epochs(weights: Any) -> bool:
    """Return whether these are several weights, one for each epoch."""
    return isinstance(weights, (list, tuple, numpy.ndarray)) and len(
        weights) > 0 and not numpy.isscalar(weights[0])
