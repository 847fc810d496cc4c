"""Clone the behaviour in demonstrations of robomimic."""
import torch
from robomimic.utils.dataset import SequenceDataset
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def main():
    """Train for two epochs."""
    torch.manual_seed(1)
    policy = nn.Linear(3, 7)
    optimizer = torch.optim.Adam(policy.parameters(), .01)
    loader = DataLoader(SequenceDataset(
        'low_dim.hdf5', ('robot0_eef_pos',), ('actions',), seq_length=4,
        filter_by_attribute='train', load_next_obs=False),
        batch_size=4, shuffle=True)
    for epoch in range(2):
        for batch in loader:
            position = batch['obs']['robot0_eef_pos'].float()
            loss = functional.mse_loss(
                policy(position), batch['actions'].float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    torch.save(policy.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
