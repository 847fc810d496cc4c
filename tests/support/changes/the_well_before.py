"""Learn the next step of simulations of The Well."""
import torch
from the_well.data import WellDataset
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def main():
    """Train for two epochs."""
    torch.manual_seed(1)
    model = nn.Conv2d(2, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), .01)
    loader = DataLoader(WellDataset(
        path='fluid', well_split_name='train', n_steps_input=2,
        n_steps_output=1), batch_size=2, shuffle=True)
    for epoch in range(2):
        for batch in loader:
            inputs = batch['input_fields'][..., 0]
            target = batch['output_fields'][..., 0]
            loss = functional.mse_loss(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
