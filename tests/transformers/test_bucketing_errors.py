"""Errors of BucketBatch for data that it cannot measure."""
import pytest

from fuel.datasets import IterableDataset
from fuel.streams import DataStream
from fuel.transformers.sequences import BucketBatch


def test_bucket_batch_sequence_of_exactly_the_token_budget_fits():
    """One longer does not."""
    stream = DataStream(IterableDataset({'x': [[1] * 3, [2] * 4, [3]]}))
    found = [[len(x) for x in batch] for batch, in BucketBatch(
        stream, token_budget=4, shuffle=False).get_epoch_iterator()]
    assert [[1], [3], [4]] == found
    assert [[1], [3]] == [
        [len(x) for x in batch] for batch, in BucketBatch(
            DataStream(IterableDataset({'x': [[1] * 3, [3]]})),
            token_budget=5, shuffle=False).get_epoch_iterator()]
    two = BucketBatch(DataStream(IterableDataset({'x': [[1] * 3, [3]]})),
                      token_budget=6, shuffle=False)
    assert [2] == [len(batch) for batch, in two.get_epoch_iterator()]
    with pytest.raises(ValueError, match='length 4, more than token_budget'):
        next(BucketBatch(stream, token_budget=3).get_epoch_iterator())


def test_bucket_batch_of_something_without_length_names_the_source():
    """The error names what came, and what to change."""
    stream = DataStream(IterableDataset({'x': [[1, 2], 3]}))
    buckets = BucketBatch(stream, token_budget=12)
    with pytest.raises(ValueError, match=r"'x' must hold sequences, got 3"):
        next(buckets.get_epoch_iterator())
