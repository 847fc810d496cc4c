"""Train a small network on digits in an HDF5 file."""
import os

import torch
from torch import nn
from torch.nn import functional

import fuel
from fuel.interop.torch import Loader
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift


def digits(split, **order):
    """Return batches of images and classes of one group of the file."""
    stream = DataStream(fuel.load('digits.h5', split), **order)
    return ScaleAndShift(stream, 1 / 255, 0, dtype='float32',
                         which_sources='features')


def main():
    """Train for three epochs, with a test after each."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    train = Loader(digits('train', batch_size=32, shuffle=True, seed=1),
                   num_workers=2)
    test = Loader(digits('test', batch_size=100))
    first = 0
    if os.path.exists('checkpoint.pt'):
        saved = torch.load('checkpoint.pt')
        first = saved['epoch']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        train.load_state_dict(saved['loader'])
    for epoch in range(first, 3):
        model.train()
        for images, targets in train:
            loss = functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({'epoch': epoch, 'model': model.state_dict(),
                        'optimizer': optimizer.state_dict(),
                        'loader': train.state_dict()}, 'checkpoint.new')
            os.replace('checkpoint.new', 'checkpoint.pt')
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
        model.eval()
        right = 0
        with torch.no_grad():
            for images, targets in test:
                right += (model(images).argmax(1) == targets).sum().item()
        print(f'accuracy {right}/{len(test.dataset)}', flush=True)
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
