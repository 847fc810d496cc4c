"""Find the classes of other libraries that Fuel looks for by name."""
from importlib import import_module

from fuel.interop.torch.callers import CLASSES


def named_classes(*libraries):
    """Return the names of classes of some libraries."""
    return [name for library, names in CLASSES.items()
            if library.partition(' ')[0] in libraries for name in names]


def find_class(name):
    """Return the class of a full name."""
    module, _, cls = name.rpartition('.')
    return getattr(import_module(module), cls)
