"""Columns: the parts of an HDF5 file that become sources."""
from fuel.datasets.columns.categorical import Categorical
from fuel.datasets.columns.csr import CSR
from fuel.datasets.columns.rows import Flat, Rows
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.scaled import Scaled
from fuel.datasets.columns.shared import Constant, PerRun, PerStep

__all__ = ['CSR', 'Categorical', 'Constant', 'Flat', 'PerRun', 'PerStep',
           'Ragged', 'Rows', 'Scaled']

# Classes are pickled, and shown, under the name that users import.
for _public in (CSR, Categorical, Constant, Flat, PerRun, PerStep, Ragged,
                Rows, Scaled):
    _public.__module__ = __name__
