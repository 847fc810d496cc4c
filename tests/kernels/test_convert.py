"""One-pass conversions against plain NumPy."""
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fuel.kernels.convert import scale_and_shift
from fuel.kernels.converter import Converter, converter_of
from fuel.kernels.rows import take

NUMBERS = '?bhilqBHILQefd'

# No larger, so that nothing overflows a half.
FACTORS = st.floats(-3, 3, allow_subnormal=False)


def elements(dtype):
    """Return numbers of a type that stay far from its limits."""
    if dtype.kind == 'f':
        return npst.from_dtype(dtype, min_value=-100, max_value=100)
    return npst.from_dtype(dtype)


@st.composite
def arrays(draw):
    """Return arrays of any type, shape, strides and byte order."""
    dtype = numpy.dtype(draw(st.sampled_from(NUMBERS)))
    if draw(st.booleans()):
        dtype = dtype.newbyteorder()
    array = draw(npst.arrays(dtype, npst.array_shapes(
        min_dims=0, max_dims=3, min_side=0, max_side=5),
        elements=elements(dtype.newbyteorder('='))))
    if array.ndim and draw(st.booleans()):
        array = array[::draw(st.sampled_from([-1, 2, -2]))]
    if draw(st.booleans()):
        array = array.T
    if draw(st.booleans()):
        array = numpy.array(array)
        array.flags.writeable = False
    return array


@given(arrays(), FACTORS, FACTORS, st.sampled_from('efd'))
def test_scale_and_shift_equals_doubles_rounded_once(
        array, scale, shift, dtype):
    """One pass equals NumPy's result in float64, rounded."""
    with numpy.errstate(over='ignore'):
        expected = (array.astype('d') * scale + shift).astype(dtype)
        result = scale_and_shift(array, scale, shift, dtype)
    numpy.testing.assert_array_equal(expected, result)
    assert numpy.dtype(dtype) == result.dtype
    assert result.dtype.isnative
    assert expected.shape == result.shape
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert not numpy.shares_memory(array, result)


@pytest.mark.parametrize('dtype', 'efd')
@pytest.mark.parametrize('kind', NUMBERS)
@pytest.mark.parametrize('size', [1, 15, 64, 1003])
def test_scale_and_shift_of_any_length_equals_numpy(kind, dtype, size):
    """The rest after the last full register is converted, too."""
    array = (numpy.arange(size) * 7 % 256).astype(kind)
    expected = (array.astype('d') * (1 / 3) - 0.1).astype(dtype)
    result = scale_and_shift(array, 1 / 3, -0.1, dtype)
    numpy.testing.assert_array_equal(expected, result)
    assert numpy.dtype(dtype) == result.dtype


def test_scale_and_shift_of_every_pixel_that_overflows_is_noticed():
    """The widest registers of the processor notice it, too."""
    pixels = numpy.zeros(1000, 'uint8')
    for place in (0, 500, 999):
        pixels[:] = 0
        pixels[place] = 255
        with numpy.errstate(over='ignore'):
            assert numpy.inf == scale_and_shift(
                pixels, 1e38, 0, 'float32')[place]
        with pytest.raises(OverflowError, match='too large for float64'):
            scale_and_shift(pixels, 1e307, 0, 'float32')
        assert not scale_and_shift(1 - pixels // 255, 1e38, 0, 'f')[place]


@pytest.mark.parametrize('dtype', ['uint8', 'int64', 'float16'])
def test_scale_and_shift_of_many_blocks_equals_numpy(dtype):
    """The ends of the blocks that NumPy converts meet."""
    array = numpy.arange(20001) % 251
    expected = (array.astype('d') * 0.7 + 0.1).astype(dtype)
    numpy.testing.assert_array_equal(
        expected, scale_and_shift(array, 0.7, 0.1, dtype))


def test_scale_and_shift_keeps_infinities_and_nans():
    """Values that are not finite before may stay so."""
    array = numpy.array([numpy.inf, -numpy.inf, numpy.nan, 1])
    numpy.testing.assert_array_equal(
        numpy.array([numpy.inf, -numpy.inf, numpy.nan, 3], 'f'),
        scale_and_shift(array, 2, 1, 'float32'))


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_scale_and_shift_beyond_doubles_raises(dtype):
    """A result that no float64 holds is refused."""
    with pytest.raises(OverflowError, match='too large for float64'):
        scale_and_shift(numpy.array([1., 1e300]), 1e10, 0, dtype)


def test_scale_and_shift_beyond_singles_alone_warns_as_a_cast_does():
    """A result that float64 would hold becomes what a cast makes of it."""
    array = numpy.array([1e30])
    with numpy.errstate(over='ignore'):
        assert numpy.inf == scale_and_shift(array, 1e10, 0, 'float32')


def test_scale_and_shift_to_no_number_warns_as_numpy_does():
    """Infinity times zero is not silent."""
    with pytest.warns(RuntimeWarning, match='invalid value'):
        scale_and_shift(numpy.array([numpy.inf]), 0, 0, 'float64')


@pytest.mark.parametrize('array, dtype', [
    (numpy.ones(2, complex), 'float32'),
    (numpy.array(['1']), 'float32'),
    (numpy.array([None]), 'float32'),
    (numpy.ones(2), 'complex64'),
    (numpy.ones(2), 'object'),
])
def test_scale_and_shift_of_other_types_raises(array, dtype):
    """Values that a double cannot hold are refused, not converted."""
    with pytest.raises(TypeError, match='of up to 64 bits'):
        scale_and_shift(array, 1, 0, dtype)


@pytest.mark.parametrize('length', [0, 1, 15, 64, 3072, 20000])
@pytest.mark.parametrize('scale, shift', [
    (None, None), (1 / 255, 0), (1 / 255, -.5), (-3, None)])
@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_rows_converted_while_gathered_are_those_of_two_steps(
        length, scale, shift, dtype):
    """Rows of any length come with the same bits."""
    pixels = numpy.random.RandomState(0).randint(
        0, 256, (9, length)).astype('uint8')
    pixels.flags.writeable = False
    for rows in ([8, 0, 3, 3, 7], [2, 3, 4, 5, 1], []):
        indices = numpy.array(rows, numpy.intp)
        taken = take(pixels, indices, Converter(
            pixels.dtype, (numpy.dtype(dtype), scale, shift)))
        expected = (pixels[indices].astype(dtype) if scale is None
                    else scale_and_shift(pixels[indices], scale, shift or 0,
                                         dtype))
        assert taken.flags.writeable and taken.dtype == dtype
        numpy.testing.assert_array_equal(expected, taken)


@given(npst.arrays('uint8', npst.array_shapes(max_dims=4, min_side=0,
                                             max_side=4)), st.data())
def test_rows_of_any_shape_are_converted_while_gathered(pixels, data):
    """A side of the shape may be 0, and so may the number of rows."""
    rows = numpy.array(data.draw(st.lists(
        st.integers(0, len(pixels) - 1), max_size=9) if len(pixels)
        else st.just([])), numpy.intp)
    converter = Converter(pixels.dtype, (numpy.dtype('float32'), None, None))
    expected = pixels[rows].astype('float32')
    taken = take(pixels, rows, converter)
    numpy.testing.assert_array_equal(expected, taken)
    assert expected.shape == taken.shape
    numpy.testing.assert_array_equal(pixels[rows], take(pixels, rows))


@pytest.mark.parametrize('source, target, scale, shift', [
    ('int64', 'float32', None, None), ('uint8', 'int32', None, None),
    ('uint8', '>f4', 1., 0.), ('uint8', 'float32', 1e38, 0.),
    ('uint8', 'float32', float('nan'), 0.),
    ('uint8', 'float64', 1., float('inf'))])
def test_conversions_without_a_kernel_are_refused(
        source, target, scale, shift):
    """Conversions whose result may not be a number are refused, too."""
    wanted = numpy.dtype(target), scale, shift
    with pytest.raises(TypeError, match='cannot be read as'):
        Converter(numpy.dtype(source), wanted)
    assert converter_of(numpy.dtype(source), wanted) is None
    converter = Converter(
        numpy.dtype('uint8'), (numpy.dtype('float32'), None, None))
    for array in numpy.zeros((4, 4)), numpy.zeros((4, 4), 'uint8')[:, ::2]:
        with pytest.raises(TypeError, match='uint8 in C order'):
            take(array, [0], converter)
