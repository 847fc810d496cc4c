"""Batches of Fuel streams in the training loop of Keras."""
from fuel.utils.extras import from_extra

with from_extra('keras', 'keras'):
    from fuel.interop.keras.backup import Backup
    from fuel.interop.keras.batches import BatchesDataset

__all__ = ['Backup', 'BatchesDataset']

# Classes are pickled, and shown, under the name that users import.
for _class in (Backup, BatchesDataset):
    _class.__module__ = __name__
