"""Pipelines on a Ray cluster, and the data sets of Ray Data in Fuel."""
from typing import TYPE_CHECKING, Any

from fuel.utils.extras import from_extra

if TYPE_CHECKING:
    from fuel.interop.ray.batch_mapping import map_batches as map_batches
    from fuel.interop.ray.dataset import RayDataset as RayDataset
    from fuel.interop.ray.datasource import to_ray as to_ray
    from fuel.interop.ray.stage import RayWorkers as RayWorkers

__all__ = ['RayDataset', 'RayWorkers', 'map_batches', 'to_ray']

# Ray is imported when one of these names is used.
_MODULES = {'RayDataset': 'dataset', 'RayWorkers': 'stage',
            'map_batches': 'batch_mapping', 'to_ray': 'datasource'}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from importlib import import_module
    with from_extra('ray', 'ray', 'pyarrow', 'pandas'):
        module = import_module(f'{__name__}.{_MODULES[name]}')
    value = getattr(module, name)
    # Classes are pickled, and shown, under the name that users import.
    value.__module__ = __name__
    return value


def __dir__() -> list[str]:
    # Include the names that are loaded on demand.
    return sorted({*globals(), *__all__})
