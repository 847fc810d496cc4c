"""Arrays of every type and shape, for Hypothesis."""
import numpy
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

DTYPES = st.one_of(
    arrays.integer_dtypes(), arrays.floating_dtypes(),
    arrays.datetime64_dtypes(), arrays.byte_string_dtypes(),
    arrays.unicode_string_dtypes(), st.just(numpy.dtype(bool)),
    st.just(numpy.dtype([('a', 'i1'), ('b', '>f8', (2,))], align=True)))
ARRAYS = arrays.arrays(DTYPES, arrays.array_shapes(
    min_dims=0, max_dims=3, min_side=0, max_side=8))
