"""Indexing lists like arrays."""
import numpy
import pytest

from fuel.utils import buffer_, iterable_fancy_indexing


@pytest.mark.parametrize('request_', [[2, 0, 2], (2, 0, 2),
                                      numpy.array([2, 0, 2])])
@pytest.mark.parametrize('iterable', [[5, 6, 7], (5, 6, 7), range(5, 8)])
def test_iterable_fancy_indexing_of_sequence_gives_a_list(iterable, request_):
    """Plain sequences are read item by item."""
    assert [7, 5, 7] == iterable_fancy_indexing(iterable, request_)


@pytest.mark.parametrize('request_', [1, slice(1, 3), numpy.int8(1)])
def test_iterable_fancy_indexing_other_requests_are_handed_on(request_):
    """Integers and slices work as in brackets."""
    assert [5, 6, 7][request_] == iterable_fancy_indexing([5, 6, 7], request_)


def test_iterable_fancy_indexing_of_array_is_numpys():
    """Arrays index themselves."""
    result = iterable_fancy_indexing(numpy.arange(5, 8), [2, 0])
    assert isinstance(result, numpy.ndarray)
    assert [7, 5] == result.tolist()


def test_buffer_gives_bytes_without_a_copy():
    """`buffer_` wraps memory."""
    array = numpy.zeros(3, 'uint8')
    view = buffer_(array)
    array[1] = 7
    assert b'\0\7\0' == bytes(view)
