"""Train on pictures in folders, on the ranks that torchrun starts."""
from pathlib import Path

import numpy
import torch
from PIL import Image
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Pictures(Dataset):
    """The pictures in a folder for each class, flipped at random."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob('*/*.png'))
        names = sorted({path.parent.name for path in self.paths})
        self.classes = {name: number for number, name in enumerate(names)}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        path = self.paths[number]
        image = numpy.asarray(Image.open(path).convert('RGB'))
        if torch.rand(()) < .5:
            image = image[:, ::-1]
        image = torch.from_numpy(image.transpose(2, 0, 1) / 255).float()
        return image, self.classes[path.parent.name]


def main():
    """Train for two epochs."""
    distributed.init_process_group('gloo')
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 5)))
    optimizer = torch.optim.SGD(model.parameters(), .1, momentum=.9)
    dataset = Pictures('pictures')
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for images, targets in loader:
            loss = functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    if distributed.get_rank() == 0:
        torch.save(model.state_dict(), 'model.pt')
    distributed.destroy_process_group()


if __name__ == '__main__':
    main()
