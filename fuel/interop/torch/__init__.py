"""Use Fuel's streams and data sets in PyTorch, and PyTorch's in Fuel."""
from fuel.utils.extras import from_extra

with from_extra('torch', 'torch'):
    from fuel.interop.torch.dataset import TorchDataset
    from fuel.interop.torch.iterable import as_iterable
    from fuel.interop.torch.loader import Loader
    from fuel.interop.torch.map_style import MapStyleDataset, as_map
    from fuel.interop.torch.stage import ToTorch, to_torch
    from fuel.interop.torch.stream_iterable import StreamIterable

__all__ = ['Loader', 'MapStyleDataset', 'StreamIterable', 'ToTorch',
           'TorchDataset', 'as_iterable', 'as_map', 'to_torch']

# Classes are pickled, and shown, under the name that users import.
for _class in (Loader, MapStyleDataset, StreamIterable, ToTorch,
               TorchDataset):
    _class.__module__ = __name__
