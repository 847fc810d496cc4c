"""Stages that read only the rows of a rank."""
import pytest
from support import pipelines

from fuel.epochs.pipeline import can_seek_rows
from fuel.transformers import Unpack


@pytest.mark.parametrize('name', [
    'ImagesFromBytes', 'Resize', 'CenterCrop', 'RandomFixedSizeCrop seeded',
    'RandomResizedCrop', 'RandomHorizontalFlip', 'Normalize'])
def test_rank_makes_its_images_alone(name, tmp_path):
    """A batch is made row for row of the one below."""
    stream = pipelines.build(name, tmp_path)
    assert can_seek_rows(stream)
    examples = [list(Unpack(stream).shard(rank, 2).get_epoch_iterator())
                for rank in range(2)]
    assert [pipelines.N // 2] * 2 == list(map(len, examples))


def test_images_may_not_be_skipped_by_rows(tmp_path):
    """A skipped image would shift the numbers of the rows."""
    assert not can_seek_rows(pipelines.build(
        'ImagesFromBytes skipping', tmp_path))
