"""What BucketBatch says of data that it cannot measure."""
import pytest

from fuel.datasets import IterableDataset
from fuel.streams import DataStream
from fuel.transformers.sequences import BucketBatch


def test_bucket_batch_of_something_without_length_names_the_source():
    """The error names what came, and what to change."""
    stream = DataStream(IterableDataset({'x': [[1, 2], 3]}))
    buckets = BucketBatch(stream, token_budget=12)
    with pytest.raises(ValueError, match=r"'x' must hold sequences, got 3"):
        next(buckets.get_epoch_iterator())
