"""Train on pictures in folders, on the ranks that torchrun starts."""
import os

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import fuel
from fuel.interop.torch import Loader
from fuel.streams import DataStream
from fuel.transformers.image import (
    CenterCrop, ImagesFromBytes, Normalize, RandomHorizontalFlip)


def pictures():
    """Return batches of pictures, flipped at random."""
    stream = DataStream(fuel.load('pictures', sources=['image', 'label']),
                        batch_size=4, shuffle=True, seed=1)
    stream = ImagesFromBytes(stream, which_sources='image')
    stream = CenterCrop(stream, (8, 8), which_sources='image')
    stream = RandomHorizontalFlip(stream, seed=2, which_sources='image')
    return Normalize(stream, scale=1 / 255, dtype='float32',
                     which_sources='image')


def main():
    """Train for two epochs."""
    distributed.init_process_group('gloo')
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 5)))
    optimizer = torch.optim.SGD(model.parameters(), .1, momentum=.9)
    loader = Loader(pictures(), num_workers=1, uneven='drop')
    first = 0
    if os.path.exists('checkpoint.pt'):
        saved = torch.load('checkpoint.pt')
        first = saved['epoch']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
    for epoch in range(first, 2):
        for images, targets in loader:
            loss = functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if distributed.get_rank() == 0:
                # The position of all ranks together.
                torch.save({'epoch': epoch, 'model': model.state_dict(),
                            'optimizer': optimizer.state_dict(),
                            'loader': loader.state_dict()}, 'checkpoint.new')
                os.replace('checkpoint.new', 'checkpoint.pt')
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    if distributed.get_rank() == 0:
        torch.save(model.state_dict(), 'model.pt')
    distributed.destroy_process_group()


if __name__ == '__main__':
    main()
