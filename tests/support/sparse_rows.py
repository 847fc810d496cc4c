"""Sparse batches for tests, and the dense arrays that they are held to."""
import numpy
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from fuel.datasets import Dataset
from fuel.datasets.rows import as_rows, check_request
from fuel.describe import SourceType
from fuel.schemes import SequentialExampleScheme
from fuel.utils.sparse import make_csr, slice_rows, take_rows, to_dense

DTYPES = ('float32', 'float64', 'float16', 'int8', 'int64', 'uint16', 'bool',
          '>f4', '>i2')


def random_csr(rows, columns, dtype='float32', index='int32', seed=0,
               density=0.3):
    """Return a sparse batch of small numbers, with rows that are empty."""
    rng = numpy.random.RandomState(seed)
    dense = rng.randint(1, 50, (rows, columns)) * (
        rng.uniform(size=(rows, columns)) < density)
    dense[::4] = 0
    batch = csr_array(dense)
    return make_csr(
        batch.data.astype(dtype), batch.indices.astype(index),
        batch.indptr.astype(index), batch.shape)


@st.composite
def sparse_batches(draw, least_rows=0):
    """Draw sparse batches of all types, byte orders and index types."""
    return random_csr(
        draw(st.integers(least_rows, 6)), draw(st.integers(1, 9)),
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(['int32', 'int64', '>i4'])),
        draw(st.integers(0, 999)), draw(st.sampled_from([0, 0.2, 1])))


def assert_same_rows(dense, batch, like=None):
    """Fail unless a sparse batch is sound and has the rows of an array.

    `like`: a sparse batch whose types it must have.
    """
    assert isinstance(batch, csr_array), type(batch)
    batch.check_format(full_check=True)
    assert dense.shape == batch.shape
    assert_array_equal(dense, to_dense(batch))
    assert batch.data.flags.writeable
    assert batch.data.dtype.isnative
    if like is not None:
        assert like.data.dtype == batch.data.dtype
        assert like.indices.dtype == batch.indices.dtype
        assert like.indptr.dtype == batch.indptr.dtype


class SparseDataset(Dataset):
    """Rows of a sparse array, ``x``, and their numbers, ``y``."""

    provides_sources = ('x', 'y')

    def __init__(self, rows, **kwargs):
        self.rows = rows
        self.num_examples = rows.shape[0]
        self.example_iteration_scheme = SequentialExampleScheme(rows.shape[0])
        super().__init__(axis_labels={
            'x': ('batch', 'feature'), 'y': ('batch',)}, **kwargs)

    def known_types(self):
        """Return the types of examples."""
        dtype = self.rows.data.dtype.newbyteorder('=')
        return {'x': SourceType(dtype, (self.rows.shape[1],), True),
                'y': SourceType(numpy.dtype('int64'), ())}

    def get_data(self, state=None, request=None):
        """Return the rows of a request."""
        check_request(self, state, request)
        rows = as_rows(request, self.num_examples)
        numbers = numpy.arange(self.num_examples)[rows]
        if isinstance(rows, int):
            return self.filter_sources(
                (slice_rows(self.rows, rows, rows + 1), numbers))
        return self.filter_sources((take_rows(self.rows, rows), numbers))
