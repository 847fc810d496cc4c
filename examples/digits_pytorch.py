"""Train a network of PyTorch on handwritten digits, and resume it exactly.

The 1797 digits come with scikit-learn. Every few steps model, optimiser and
position in the data go into one checkpoint, so that a run that was killed
goes on with the very next batch: the weights at the end are the same.

    python digits_pytorch.py CHECKPOINT [--workers N] [--epochs N]
    torchrun --nproc-per-node 2 digits_pytorch.py CHECKPOINT
"""
import argparse
import hashlib
import os
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fuel.datasets import IndexableDataset
from fuel.interop.torch import Loader, to_torch
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift

NUM_TRAINING = 1536
BATCH_SIZE = 64
CHECKPOINT_STEPS = 5


def open_stream(start, stop, scheme):
    """Return batches of digits with pixels from 0 to 1, and their labels."""
    pixels, labels = load_digits(return_X_y=True)
    dataset = IndexableDataset(
        {'features': pixels, 'targets': labels}, start=start, stop=stop)
    stream = DataStream(dataset, iteration_scheme=scheme(
        dataset.num_examples, BATCH_SIZE))
    chosen = {'which_sources': ('features',)}
    return Cast(ScaleAndShift(stream, 1 / 16, 0, **chosen), 'float32',
                **chosen)


def build_model():
    """Return the network, with the same weights in every run."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(model, loader, epochs, path):
    """Train for some epochs, from the checkpoint on if there is one."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
        first = saved['epoch']
        print(f'resumed in epoch {first}', flush=True)
    for epoch in range(first, epochs):
        for step, (features, targets) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features), targets)
            loss.backward()
            optimizer.step()
            if step % CHECKPOINT_STEPS == 0 and rank() == 0:
                save(path, {
                    'model': model.state_dict(),
                    'optimizer': optimizer.state_dict(),
                    'loader': loader.state_dict(), 'epoch': epoch})
                print(f'epoch {epoch}, step {step}, loss {loss:.4f}',
                      flush=True)


def save(path, checkpoint):
    """Write a checkpoint in one step, so that a kill leaves the old one."""
    torch.save(checkpoint, path.with_suffix('.new'))
    path.with_suffix('.new').replace(path)


def rank():
    """Return the number of this process among those of torchrun."""
    return int(os.environ.get('RANK', '0'))


def accuracy(model):
    """Return the share of held-out digits that the model gets right."""
    stream = to_torch(open_stream(NUM_TRAINING, None, SequentialScheme))
    with torch.no_grad():
        right = [model(features).argmax(1) == targets
                 for features, targets in stream.get_epoch_iterator()]
    return float(torch.cat(right).float().mean())


def main():
    """Train, and print how good the network is."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('checkpoint', type=Path)
    parser.add_argument('--workers', type=int, default=0)
    parser.add_argument('--epochs', type=int, default=10)
    arguments = parser.parse_args()
    # One thread, so that sums have one order.
    torch.set_num_threads(1)
    model = network = build_model()
    distributed = 'WORLD_SIZE' in os.environ
    if distributed:
        torch.distributed.init_process_group('gloo')
        model = DistributedDataParallel(network)
    loader = Loader(open_stream(0, NUM_TRAINING, ShuffledScheme),
                    num_workers=arguments.workers)
    train(model, loader, arguments.epochs, arguments.checkpoint)
    weights = nn.utils.parameters_to_vector(network.parameters()).detach()
    print(f'rank {rank()}, accuracy {accuracy(network):.3f}, weights '
          f'{hashlib.sha256(weights.numpy()).hexdigest()[:16]}')
    if distributed:
        torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main()
