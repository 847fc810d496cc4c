"""Train a small language model on blocks that are drawn from a file."""
import os

import numpy
import torch
from torch import nn
from torch.nn import functional

from fuel.datasets import IndexableDataset, Windows
from fuel.interop.torch import Loader
from fuel.streams import DataStream

BLOCK, BATCH, STEPS = 8, 4, 60


def open_loader():
    """Return batches of blocks; an epoch has each block once."""
    tokens = IndexableDataset({
        'tokens': numpy.memmap('train.bin', 'uint16', 'r')})
    blocks = Windows(tokens, BLOCK + 1, runs='all', stride=BLOCK)
    return Loader(DataStream(blocks, batch_size=BATCH, shuffle=True, seed=1))


def forever(loader):
    """Yield the batches of one epoch after the other."""
    while True:
        yield from loader


def main():
    """Train for a number of steps."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(257, 16), nn.Linear(16, 257))
    optimizer = torch.optim.AdamW(model.parameters(), .01)
    loader, first = open_loader(), 0
    if os.path.exists('checkpoint.pt'):
        saved = torch.load('checkpoint.pt')
        first = saved['step']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
    batches = forever(loader)
    for step in range(first, STEPS):
        block, = next(batches)
        inputs, targets = block[:, :-1].long(), block[:, 1:].long()
        loss = functional.cross_entropy(
            model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save({'step': step + 1, 'model': model.state_dict(),
                    'optimizer': optimizer.state_dict(),
                    'loader': loader.state_dict()}, 'checkpoint.new')
        os.replace('checkpoint.new', 'checkpoint.pt')
        print(f'step {step} loss {loss:.4f}', flush=True)
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
