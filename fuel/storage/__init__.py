"""How bytes leave an HDF5 file."""
from fuel.storage._ahead import RequestsAhead
from fuel.storage._describe import Description, describe
from fuel.storage._open import open_reader
from fuel.storage._reader import Reader

__all__ = ['Description', 'Reader', 'RequestsAhead', 'describe', 'open_reader']
