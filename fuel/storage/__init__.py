"""How bytes leave an HDF5 file."""
from fuel.storage.description import Description, describe
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader, open_parts

__all__ = ['Description', 'Reader', 'choose_reader', 'describe', 'open_parts']
