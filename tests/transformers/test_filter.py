"""Filter."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Filter


@given(st.lists(st.integers()))
def test_filter_keeps_what_fulfils_the_condition(numbers):
    """It keeps them in order, and nothing else."""
    stream = Filter(DataStream(IterableDataset(numbers)),
                    lambda data: data[0] % 2)
    for _ in range(2):
        assert [(number,) for number in numbers if number % 2] == list(
            stream.get_epoch_iterator())


def test_filter_honours_as_dict():
    """`as_dict` gives dicts."""
    stream = Filter(DataStream(IterableDataset([1, 2])),
                    lambda data: data[0] == 2)
    assert [{'data': 2}] == list(stream.get_epoch_iterator(as_dict=True))


def test_filter_batches():
    """The condition sees whole batches."""
    stream = Filter(
        DataStream(IndexableDataset([1, 2, 3], axis_labels={
            'data': ('batch',)}), iteration_scheme=SequentialScheme(3, 2)),
        lambda data: len(data[0]) == 2)
    assert not stream.produces_examples
    assert {'data': ('batch',)} == stream.axis_labels
    assert [([1, 2],)] == list(stream.get_epoch_iterator())
    with pytest.raises(ValueError, match='takes no requests'):
        stream.get_data(1)


def test_filter_has_no_known_length():
    """The number of kept items is not known in advance."""
    with pytest.raises(TypeError, match='not known'):
        len(Filter(DataStream(IterableDataset([1, 2])), None))
