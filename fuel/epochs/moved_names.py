"""Names that saved states use for classes and functions that were moved."""
from __future__ import annotations

from typing import Any

#: The first name of each class, method and function that was moved.
#:
#: The keys are all later names, including the present one. States name a
#: class or function by its module. They keep using the first name, so that
#: states from before and after a move fit each other. This includes checksums
#: of many names.
FIRST_NAMES: dict[str, str] = {
    'fuel.schemes.mixing.MixtureWeights.at':
        'fuel.transformers.mixture_weights.MixtureWeights.at',
    'fuel.transformers.mixture.weights.MixtureWeights.at':
        'fuel.transformers.mixture_weights.MixtureWeights.at',
}


def with_first_names(described: Any) -> Any:
    """Return a description with each moved name replaced by the first name of
    the class or function.

    `described`: the description, as plain data.
    """
    if isinstance(described, str):
        return FIRST_NAMES.get(described, described)
    if isinstance(described, dict):
        return {key: with_first_names(value)
                for key, value in described.items()}
    if isinstance(described, (list, tuple)):
        return list(map(with_first_names, described))
    return described
