"""Clone the behaviour in demonstrations of robomimic."""
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
    policy = nn.Linear(3, 7)
    optimizer = torch.optim.Adam(policy.parameters(), .01)
    windows = Windows(fuel.load(
        'low_dim.hdf5', 'train', columns=['obs/robot0_eef_pos', 'actions']),
        4, pad='edge', pad_after=3)
    loader = Loader(DataStream(windows, batch_size=4, shuffle=True, seed=1),
                    as_dict='nested')
    first = 0
    if os.path.exists('checkpoint.pt'):
        saved = torch.load('checkpoint.pt')
        first = saved['epoch']
        policy.load_state_dict(saved['policy'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
    for epoch in range(first, 2):
        for batch in loader:
            position = batch['obs']['robot0_eef_pos'].float()
            loss = functional.mse_loss(
                policy(position), batch['actions'].float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({'epoch': epoch, 'policy': policy.state_dict(),
                        'optimizer': optimizer.state_dict(),
                        'loader': loader.state_dict()}, 'checkpoint.new')
            os.replace('checkpoint.new', 'checkpoint.pt')
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    torch.save(policy.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
