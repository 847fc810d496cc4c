"""Whole programs of common forms are exact after a kill; their loaders are
Fuel's."""
import json
import os
import signal
from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image
from support import processes
from support.trainer_pipelines import read_log

from fuel.bin import fuel_convert

# Each process imports a framework, which takes long on a busy machine.
pytestmark = [pytest.mark.timeout(600), pytest.mark.full]

SUPPORT = Path(__file__).parents[2] / 'support'


def run(program, ranks, folder, status=0, **settings):
    """Run a program on some ranks, which are to end with a status."""
    for found, _, errors in processes.end_together(processes.start_ranks(
            ranks, SUPPORT / f'{program}.py',
            json.dumps({'folder': str(folder), **settings})), timeout=280):
        assert found == status, errors


def check_kill(program, ranks, folder, kill_at, others=None, **settings):
    """A run that is killed and goes on is that which is not."""
    plain, folder = folder / 'plain', folder / 'killed'
    for one in (plain, folder):
        one.mkdir(exist_ok=True)
    run(program, ranks, plain, **settings)
    run(program, ranks, folder, -signal.SIGKILL, kill_at=kill_at, **settings)
    run(program, ranks, folder, resume=True, **{**settings, **(others or {})})
    for rank in range(ranks):
        assert read_log(folder, rank) == read_log(plain, rank)
    weights, expected = [torch.load(one / 'weights.pt', weights_only=True)
                         for one in (folder, plain)]
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(weights[name], value)
    return read_log(plain, 0)


@pytest.fixture
def pictures(tmp_path):
    """Return a folder with a file of 50 pictures, each of its own color."""
    for number in range(50):
        os.makedirs(tmp_path / f'pictures/{number % 5}', exist_ok=True)
        Image.fromarray(numpy.full((8, 8, 3), number + 1, 'uint8')).save(
            tmp_path / f'pictures/{number % 5}/{number}.png')
    assert not fuel_convert.main([
        'image_folder', str(tmp_path / 'pictures'), '-o',
        str(tmp_path), '--size', '8x8', '--hold-out',
        'test=0.2', '--stratify'])
    for name in ('plain', 'killed'):
        (tmp_path / name).mkdir()
        os.link(tmp_path / 'pictures.hdf5', tmp_path / name / 'pictures.hdf5')
    return tmp_path


@pytest.mark.parametrize('ranks, kill_at', [
    (1, [0, 1]), (1, [1, 4]), (2, [0, 1]), (2, [0, 3]), (2, [0, 5]),
    (2, [1, 2])])
def test_pictures_on_several_ranks(pictures, ranks, kill_at):
    """The first rank saves the state of the loader for all of them."""
    read = check_kill('training_programs', ranks, pictures, kill_at,
                      {'workers': 1}, what='pictures', workers=2)
    assert len(read) == 2 * (10 // ranks)


@pytest.mark.parametrize('kill_at', [0, 1, 9, 16, 21])
def test_tokens_go_on_at_the_next_batch(tmp_path, kill_at):
    """The program saves where that batch begins."""
    read = check_kill('training_programs', 1, tmp_path, kill_at,
                      {'workers': 2}, what='tokens', workers=0)
    first = [number for _, numbers in read[:16] for number in numbers]
    assert sorted(first) == list(range(0, 256, 8))


@pytest.mark.parametrize('ranks, kill_at', [
    (1, [0, 1]), (1, [0, 15]), (1, [1, 4]), (2, [0, 7]), (2, [1, 2])])
def test_texts_with_accelerate(tmp_path, ranks, kill_at):
    """Accelerate saves the loader among what it registers; none is skipped."""
    read = check_kill('hugging_face_programs', ranks, tmp_path, kill_at,
                      {'workers': 0}, what='classify', workers=2)
    assert len(read) == 2 * (15 // ranks)


# On two ranks Transformers 5.24 goes on in the second epoch with another order
# than without a kill, also over a list.
@pytest.mark.parametrize('ranks, kill_at', [(1, 3), (1, 20), (2, 5), (2, 7)])
def test_texts_that_transformers_balances(tmp_path, ranks, kill_at):
    """Transformers chooses examples of a map-style data set by length."""
    read = check_kill('hugging_face_programs', ranks, tmp_path, kill_at,
                      what='balance')
    assert {len(numbers) for _, numbers in read} != {4}
    if ranks == 1:
        first = sum((numbers for _, numbers in read[:len(read) // 2]), [])
        assert len(first) == len(set(first))
