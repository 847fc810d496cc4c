"""Learn the next step of simulations of The Well."""
import os

import torch
from torch import nn
from torch.nn import functional

import fuel
from fuel.datasets import Windows
from fuel.interop.torch import Loader
from fuel.streams import DataStream


def main():
    """Train for two epochs."""
    torch.manual_seed(1)
    model = nn.Conv2d(2, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), .01)
    windows = Windows(fuel.load(
        'fluid', 'train', columns=['t0_fields/pressure']), 3)
    loader = Loader(DataStream(windows, batch_size=2, shuffle=True, seed=1))
    first = 0
    if os.path.exists('checkpoint.pt'):
        saved = torch.load('checkpoint.pt')
        first = saved['epoch']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
    for epoch in range(first, 2):
        for pressure, in loader:
            inputs, target = pressure[:, :2], pressure[:, 2:]
            loss = functional.mse_loss(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({'epoch': epoch, 'model': model.state_dict(),
                        'optimizer': optimizer.state_dict(),
                        'loader': loader.state_dict()}, 'checkpoint.new')
            os.replace('checkpoint.new', 'checkpoint.pt')
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
