"""Train a small model on several ranks, and go on with another number.

``python many_ranks.py --launch 4`` starts four processes as torchrun does;
``torchrun --nproc-per-node 4 many_ranks.py`` starts them too. Each trains on
its share of the batches, and rank 0 averages the gradients. After each step
it saves a checkpoint, with which any number of ranks goes on. Neither an
accelerator nor PyTorch is needed.
"""
import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

import numpy

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import Cast

COUNT, FEATURES, EPOCHS = 4800, 8, 2


def build():
    """Return the stream of all ranks: noisy sums of the features."""
    rng = numpy.random.RandomState(0)
    features = rng.normal(size=(COUNT, FEATURES))
    targets = features.sum(axis=1) + .1 * rng.normal(size=COUNT)
    stream = DataStream(IndexableDataset({
        'features': features, 'targets': targets,
        'number': numpy.arange(COUNT)}), batch_size=48, shuffle=True)
    return Cast(stream, 'float32', which_sources=('features', 'targets'))


class Group:
    """The ranks, connected by sockets: what a library for training has."""

    def __init__(self):
        self.rank = int(os.environ['RANK'])
        self.size = int(os.environ['WORLD_SIZE'])
        address = (os.environ.get('MASTER_ADDR', '127.0.0.1'),
                   int(os.environ['MASTER_PORT']) + 1)
        key = os.environ.get('FUEL_EXAMPLE_KEY', 'many ranks').encode()
        self.others = []
        if self.rank == 0:
            with Listener(address, authkey=key) as listener:
                self.others = [listener.accept()
                               for _ in range(self.size - 1)]
        else:
            self.others = [connect(address, key)]

    def average(self, values):
        """Return the mean of the values of all ranks."""
        if self.rank:
            self.others[0].send_bytes(values.tobytes())
            return self._receive(self.others[0])
        total = values + sum(map(self._receive, self.others))
        for other in self.others:
            other.send_bytes((total / self.size).tobytes())
        return total / self.size

    def _receive(self, other):
        return numpy.frombuffer(other.recv_bytes(8 * (FEATURES + 1)))


def connect(address, key):
    """Connect to rank 0, which may still be starting."""
    for attempt in range(600):
        try:
            return Client(address, authkey=key)
        except ConnectionRefusedError:
            if attempt == 599:
                raise
            time.sleep(.1)
    return None


def train(folder, steps):
    """Do so many steps, or all that are left."""
    group = Group()
    stream = build().shard('auto', uneven='drop')
    path = folder / 'checkpoint.json'
    weights, epoch_number, step = numpy.zeros(FEATURES), 0, 0
    if path.exists():
        saved = json.loads(path.read_text())
        weights = numpy.array(saved['weights'])
        epoch_number, step = saved['epoch'], saved['step']
        stream.load_state_dict(saved['stream'])
    while epoch_number < EPOCHS:
        for features, targets, number in stream:
            error = features @ weights - targets
            mean = group.average(numpy.append(
                error @ features / len(error), (error ** 2).mean()))
            weights -= .1 * mean[:-1]
            step += 1
            write(folder / f'seen-{step:04}-{group.rank}.json',
                  [epoch_number, number.tolist()])
            # All ranks have written what they saw of this step.
            group.average(mean)
            if group.rank == 0:
                write(path, {'weights': weights.tolist(), 'step': step,
                             'epoch': epoch_number,
                             'stream': stream.state_dict()})
                report(f'step {step}, loss {mean[-1]:.4f}')
            steps -= 1
            if not steps:
                return
        epoch_number += 1
    if group.rank == 0:
        report(f'done after {step} steps')


def write(path, content):
    """Replace a file of JSON in one step."""
    new = path.with_suffix('.new')
    new.write_text(json.dumps(content))
    new.replace(path)


def report(text):
    """Print a line at once."""
    sys.stdout.write(text + '\n')
    sys.stdout.flush()


def launch(count, arguments):
    """Start ranks as torchrun does; if one fails, the others end too."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1] - 1
    key = secrets.token_hex()
    ranks = [subprocess.Popen(
        [sys.executable, __file__, *arguments], env={
            **os.environ, 'RANK': str(rank), 'WORLD_SIZE': str(count),
            'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port),
            'FUEL_EXAMPLE_KEY': key}) for rank in range(count)]
    # A rank whose partner is gone gets an error from its connection.
    return max(abs(rank.wait()) for rank in ranks)


def main():
    """Train as one rank, or start several."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--launch', type=int, metavar='N',
                        help='start N ranks on this host')
    parser.add_argument('--folder', type=Path, default=Path('many_ranks'),
                        help='where checkpoints are')
    parser.add_argument('--steps', type=int, default=-1,
                        help='end after so many steps')
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.launch:
        return launch(options.launch, [
            '--folder', str(options.folder), '--steps', str(options.steps)])
    train(options.folder, options.steps)
    return 0


if __name__ == '__main__':
    sys.exit(main())
