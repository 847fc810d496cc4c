"""Augmentation of other libraries draws the same wherever it runs."""
import subprocess
import sys
from functools import partial

import numpy
import pytest
import torch
from support import augment_pipelines as pipelines
from torch.utils.data import DataLoader

from fuel.interop.torch import as_iterable
from fuel.testing import check_stream
from fuel.testing.data import freeze_all
from fuel.transformers import Mapping, MultiProcessing

NAMES = pytest.mark.parametrize('name', pipelines.PIPELINES)
# Promises that break if draws depend on more than the seed.
PROMISES = ['equal', 'interleaved epochs', 'threads',
            'state in another process']


@pytest.fixture(autouse=True, scope='module')
def one_thread():
    """Let PyTorch change small images in one thread, which is faster."""
    number = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(number)


def two_epochs(stream):
    """Return what comes in two epochs."""
    return [freeze_all(stream.get_epoch_iterator()) for _ in range(2)]


@NAMES
def test_promises_of_streams_are_kept(name, another_process):
    """A state saved at any step is continued exactly in a new process, in this
    epoch and the next."""
    check_stream(partial(pipelines.build, name), promises=PROMISES,
                 another_process=another_process)


@NAMES
def test_images_are_changed(name):
    """Each epoch changes them in another way."""
    first, second = two_epochs(pipelines.build(name))
    assert first != second
    images = {image.tobytes() for image, *_ in pipelines.examples()}
    for changed, *_ in pipelines.build('torchvision'):
        assert sum(image.tobytes() in images for image in changed) < 2


@pytest.mark.parametrize('name, method, num_workers', [
    ('torchvision', 'fork', 1), ('torchvision', 'fork', 3),
    ('albumentations', 'fork', 1), ('albumentations', 'fork', 3),
    # Each imports the libraries, which takes seconds.
    ('torchvision', 'spawn', 2)])
def test_workers_draw_the_same(name, method, num_workers):
    """The number of workers and their start method do not matter."""
    expected = two_epochs(pipelines.build(name))
    with MultiProcessing(pipelines.build(name), num_workers=num_workers,
                         start_method=method) as stream:
        assert expected == two_epochs(stream)


@pytest.mark.parametrize('name', ['torchvision', 'albumentations'])
@pytest.mark.parametrize('num_workers', [0, 2])
def test_loaders_of_torch_draw_the_same(name, num_workers):
    """Draws depend on the numbers of epochs that trainers set."""
    stream = pipelines.build(name)
    epochs = [[image.tolist() for image, *_ in stream] for _ in range(3)]
    iterable = as_iterable(pipelines.build(name))
    loader = DataLoader(iterable, batch_size=None, num_workers=num_workers)
    for number in 0, 2, 1:
        iterable.set_epoch(number)
        assert epochs[number] == [image.tolist() for image, *_ in loader]


@NAMES
@pytest.mark.parametrize('num_workers', [0, 3])
def test_ranks_draw_the_same(name, num_workers):
    """Two ranks have workers of their own or none."""
    if num_workers and 'pairs' in name:
        num_workers = 1
    expected = freeze_all(pipelines.build(name).get_epoch_iterator())
    for rank in range(2):
        share = pipelines.build(name).shard(rank, 2)
        if num_workers:
            with MultiProcessing(share, num_workers=num_workers) as stream:
                found = freeze_all(stream.get_epoch_iterator())
        else:
            found = freeze_all(share.get_epoch_iterator())
        assert expected[rank::2] == found


@pytest.mark.parametrize('name', ['torchvision pairs',
                                  'albumentations pairs'])
def test_rows_that_ranks_share_are_the_same(name):
    """Examples are changed before they are batched."""
    whole = list(pipelines.build(name))
    parts = [list(pipelines.build(name).shard(rank, 2, by='example'))
             for rank in range(2)]
    for batch, *halves in zip(whole, *parts, strict=True):
        for source, part in enumerate(batch):
            numpy.testing.assert_array_equal(
                part, numpy.concatenate([half[source] for half in halves]))


def test_masks_are_moved_with_their_images():
    """The first channel shows where the image has an object."""
    for name in 'torchvision pairs', 'albumentations pairs':
        for images, masks, _ in pipelines.build(name):
            assert images.shape[2:] == masks.shape[-2:] == (12, 10)


def test_the_program_draws_what_it_would():
    """Its draws from PyTorch's generator are unchanged too."""
    torch.manual_seed(5)
    torch.randn(3)
    before = torch.get_rng_state()
    for _ in pipelines.build('torchvision'):
        assert before.equal(torch.get_rng_state())


def test_a_generator_of_ones_own_is_not_set():
    """Albumentations has such a generator, so its seed is set in the
    function."""
    def drawn():
        return freeze_all(Mapping(
            pipelines.batches(), pipelines.without_its_seed, seed=3
            ).get_epoch_iterator())

    assert drawn() != drawn()


LATE = """
from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import Mapping

def function(data):
    import torch
    {}
    return data

stream = Mapping(DataStream(IndexableDataset([1, 2]), batch_size=1), function,
                 seed=3)
print(len(list(stream)))
"""


@pytest.mark.parametrize('draw, said', [
    ('', '2\n'), ('torch.rand(1)', 'import torch before the first batch')])
def test_torch_that_is_imported_late_and_drawn_from_is_refused(draw, said):
    """The first item would have no seed."""
    done = subprocess.run(
        [sys.executable, '-c', LATE.format(draw)], capture_output=True,
        text=True, check=False)
    assert said in done.stdout + done.stderr
    assert bool(draw) == bool(done.returncode)
