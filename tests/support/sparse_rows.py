"""Sparse batches for tests, and the dense arrays that they are held to."""
import numpy
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from fuel.utils.sparse import make_csr, to_dense

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
