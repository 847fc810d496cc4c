"""Train a small network on digits in an HDF5 file."""
import h5py
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    """The images and classes of one group of the file."""

    def __init__(self, path, split):
        self.path, self.split, self.file = path, split, None
        with h5py.File(path) as file:
            self.length = len(file[split]['targets'])

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        if self.file is None:  # each worker opens its own
            self.file = h5py.File(self.path)
        group = self.file[self.split]
        image = torch.from_numpy(group['features'][number]) / 255
        return image, int(group['targets'][number])


def main():
    """Train for three epochs, with a test after each."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    train = DataLoader(Digits('digits.h5', 'train'), batch_size=32,
                       shuffle=True, num_workers=2)
    test = DataLoader(Digits('digits.h5', 'test'), batch_size=100)
    for epoch in range(3):
        model.train()
        for images, targets in train:
            loss = functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
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
