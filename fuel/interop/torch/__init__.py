"""Fuel streams and data sets in PyTorch, and PyTorch's in Fuel."""
from fuel.interop.extras import from_extra

with from_extra('torch', 'torch'):
    from fuel.interop.torch.dataset import TorchDataset
    from fuel.interop.torch.map_style import MapStyleDataset, as_map

__all__ = ['MapStyleDataset', 'TorchDataset', 'as_map']

# Classes are pickled, and shown, under the name that users import.
for _class in (MapStyleDataset, TorchDataset):
    _class.__module__ = __name__
