"""The client checks each message of a server before it uses the data."""
import numpy
import pytest

from fuel.client.channel import Delivery
from fuel.client.session import take_data
from fuel.transport.leases import Leases
from fuel.wire import WireError

ITEMS = [{'type': 'array', 'dtype': '|u1', 'shape': [4], 'order': 'C'}]


class Segment:
    """A hundred bytes that two processes share."""

    memory = memoryview(bytearray(range(100)))

    def close_descriptor(self):
        """Do nothing."""


def take(slot, limit=1000):
    """Return a batch in a slot of the one segment."""
    leases = Leases(limit)
    leases.add_segment(1, Segment())
    return take_data(
        Delivery({'items': ITEMS, 'slot': slot}, [], None, leases), 1)


@pytest.mark.parametrize('limit', [0, 1000])
@pytest.mark.parametrize('offset', [0, 7, 96])
def test_batch_is_taken_of_its_slot(offset, limit):
    """The slot is lent, or copied if no more may be lent."""
    array, = take({'number': 1, 'segment': 1, 'extents': [[offset, 4]]},
                  limit)
    assert numpy.arange(offset, offset + 4).tolist() == array.tolist()


@pytest.mark.parametrize('limit', [0, 1000])
@pytest.mark.parametrize('slot', [
    {'number': 1, 'segment': 2, 'extents': [[0, 4]]},
    {'number': 1, 'segment': 1, 'extents': []},
    {'number': 1, 'segment': 1, 'extents': [[0]]},
    {'number': 1, 'segment': 1, 'extents': [[-4, 4]]},
    {'number': 1, 'segment': 1, 'extents': [[True, 4]]},
    {'number': 1, 'segment': 1, 'extents': [[97, 4]]},
    {'number': 1, 'segment': 1, 'extents': [[100, 4]]},
    {'number': 1, 'segment': 1, 'extents': [[0, 101]]},
    {'number': 1, 'segment': 1, 'extents': [[0, 4], [90, 20]]},
    {'number': 1, 'segment': 1, 'extents': [[0, 3]]},
    {'number': 1, 'segment': 1, 'extents': [[0, 0]]},
    {'number': 1, 'segment': 1, 'extents': [[2 ** 63, 4]]},
    {'number': 1, 'segment': 1, 'extents': [[0, 2 ** 70]]},
    {'number': 1, 'segment': 1, 'extents': [[2 ** 70, 0]]},
    {'number': 1, 'segment': 'x', 'extents': [[0, 4]]},
    {'number': 'x', 'segment': 1, 'extents': [[0, 4]]},
    {'segment': 1, 'extents': [[0, 4]]}, {}], ids=range(18))
def test_slot_outside_of_the_segment_is_refused(slot, limit):
    """The error comes before a byte is read."""
    with pytest.raises(WireError):
        take(slot, limit)
