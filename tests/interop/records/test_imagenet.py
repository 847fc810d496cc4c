"""PyTorch's example for ImageNet is exact after a kill, on a folder and on tar
archives; only its data lines and its checkpoints are changed."""
import io
import json
import signal
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from support import processes

# Each process imports PyTorch, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)

PROGRAM = Path(__file__).parents[2] / 'support' / 'imagenet_program.py'
SOURCE = Path(sys.prefix, 'sources', 'bagua-0.9.2.tar.gz')
COUNTS = {'train': 20, 'val': 5}
CHECKPOINT = 'checkpoint.pth.tar'
COLUMNS = {'image': 'jpg', 'label': 'cls', 'path': 'key'}


@pytest.fixture(scope='module')
def pictures(tmp_path_factory):
    """Return a folder with parts of two photographs as JPEG, each a class:
    in folders, and in tar archives."""
    root = tmp_path_factory.mktemp('pictures')
    (root / 'tar').mkdir()
    photographs = load_sample_images().images
    rng = numpy.random.default_rng(1)
    for split, count in COUNTS.items():
        for label, photograph in enumerate(photographs):
            folder = root / 'folder' / split / str(label)
            folder.mkdir(parents=True)
            path = root / 'tar' / f'photos-{split}-{label}.tar'
            with tarfile.open(path, 'w') as archive:
                for number in range(count):
                    height, width = rng.integers(60, 120, 2)
                    top, left = rng.integers(0, 300, 2)
                    file = folder / f'{number:03}.jpg'
                    Image.fromarray(photograph[
                        top:top + height, left:left + width]).save(file)
                    add(archive, file.relative_to(root / 'folder'),
                        file.read_bytes())
                    add(archive, file.relative_to(
                        root / 'folder').with_suffix('.cls'), b'%d' % label)
    return root


def add(archive, name, content):
    """Add a member to an archive."""
    member = tarfile.TarInfo(str(name))
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def run(data, folder, ranks, workers, *arguments, status=0, **options):
    """Run the program for two epochs on some ranks; return what each rank
    has written of its steps in this run: epoch, step, names and loss."""
    folder.mkdir(exist_ok=True)
    logs = [folder / f'rank{rank}.jsonl' for rank in range(ranks)]
    before = [log.read_text().count('\n') if log.exists() else 0
              for log in logs]
    if data.name == 'tar':
        options['columns'] = {'columns': COLUMNS}
    for found, _, errors in processes.end_together(processes.start_ranks(
            ranks, str(PROGRAM), json.dumps({
                'program': str(SOURCE), 'folder': str(folder), **options}),
            str(data), '--arch', 'shufflenet_v2_x0_5', '--epochs', '2',
            '--batch-size', '4', '--seed', '1', '--print-freq', '2',
            '--save-checkpoint', '--workers', str(workers), *arguments)):
        assert found == status, errors
    return [[(epoch, step, [name.removesuffix('.jpg') for name in names],
              loss)
             for epoch, step, names, loss in map(
                 json.loads, log.read_text().splitlines()[count:])]
            for log, count in zip(logs, before, strict=True)]


@pytest.mark.parametrize('ranks', [
    1, pytest.param(2, marks=pytest.mark.full)])
def test_killed_program_ends_with_the_same_weights(pictures, ranks, tmp_path):
    """The same for pictures in a folder and in tar archives."""
    plain = run(pictures / 'folder', tmp_path / 'plain', ranks, 0)
    steps = 2 * COUNTS['train'] // 4 // ranks
    names = [f'train/{label}/{number:03}' for label in range(2)
             for number in range(COUNTS['train'])]
    for epoch in range(2):
        assert Counter(names) == Counter(
            name for log in plain for row in log if row[0] == epoch
            for name in row[2])
    wanted = torch.load(tmp_path / 'plain' / CHECKPOINT)
    # The checkpoint is that of the step before.
    for kind, kill_at in ('folder', (0, 3)), ('tar', (1, 1)):
        folder, killed_at = tmp_path / kind, kill_at[0] * steps + kill_at[1]
        killed = run(pictures / kind, folder, ranks, 2,
                     status=-signal.SIGKILL, kill_at=kill_at)
        resumed = run(pictures / kind, folder, ranks, 1,
                      '--resume', CHECKPOINT)
        for log, first, rest in zip(plain, killed, resumed, strict=True):
            assert first == log[:killed_at + 1]
            assert rest == log[killed_at:]
        found = torch.load(folder / CHECKPOINT)
        assert found['best_acc1'] == wanted['best_acc1']
        assert found['state_dict'].keys() == wanted['state_dict'].keys()
        for name, value in wanted['state_dict'].items():
            assert torch.equal(found['state_dict'][name], value)
