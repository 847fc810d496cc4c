"""How bytes leave an HDF5 file."""
from fuel.storage.description import Description, describe
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader

__all__ = ['Description', 'Reader', 'choose_reader', 'describe']
