"""Names that saved states have for what was moved since."""
from __future__ import annotations

from typing import Any

#: The first name of each class, method and function that was moved, by each
#: of its later names, the present one among them.
#:
#: States name what a pipeline is made of by its module. They go on to use the
#: first name, so that states from before and after a move fit each other,
#: checksums of many names included.
FIRST_NAMES: dict[str, str] = {
    'fuel.schemes.mixing.MixtureWeights.at':
        'fuel.transformers.mixture_weights.MixtureWeights.at',
    'fuel.transformers.mixture.weights.MixtureWeights.at':
        'fuel.transformers.mixture_weights.MixtureWeights.at',
}


def with_first_names(described: Any) -> Any:
    """Return a description in plain data, each name replaced by the first
    name of that class or function."""
    if isinstance(described, str):
        return FIRST_NAMES.get(described, described)
    if isinstance(described, dict):
        return {key: with_first_names(value)
                for key, value in described.items()}
    if isinstance(described, (list, tuple)):
        return list(map(with_first_names, described))
    return described
