"""Programs that train with PyTorch alone, in the form in which they are
common; what is Fuel's in them is their loader. See tests/interop/trainers.
"""
import os
import signal

import numpy
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from trainer_pipelines import Log, options

import fuel
from fuel.datasets import IndexableDataset, Windows
from fuel.interop.torch import Loader
from fuel.streams import DataStream
from fuel.transformers import ScaleAndShift
from fuel.transformers.image import RandomFixedSizeCrop, RandomHorizontalFlip


def save(path, **parts):
    """Save a checkpoint, as a whole file."""
    torch.save(parts, f'{path}.new')
    os.replace(f'{path}.new', path)


def end(*_):
    """End the process once the other ranks are here."""
    if distributed.is_initialized():
        distributed.barrier()
    os.kill(os.getpid(), signal.SIGKILL)


def pictures(folder, split):
    """Return batches of the pictures that were converted."""
    dataset = fuel.load(os.path.join(folder, 'pictures.hdf5'), split=split,
                        flat_targets=True)
    stream = DataStream(dataset, batch_size=4, shuffle=split == 'train',
                        seed=1)
    if split == 'train':
        stream = RandomHorizontalFlip(RandomFixedSizeCrop(
            stream, (6, 6), seed=2, which_sources=('features',)), seed=3,
            which_sources=('features',))
    return ScaleAndShift(stream, 1 / 255, 0, dtype='float32',
                         which_sources=('features',))


def train_on_pictures(folder, workers=0, kill_at=None, resume=False,
                      epochs=2):
    """Train as programs do for ImageNet: on several ranks, with accuracies."""
    is_shared, rank = 'WORLD_SIZE' in os.environ, 0
    if is_shared:
        distributed.init_process_group('gloo')
        rank = distributed.get_rank()
    log = Log(folder, rank)
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 5))
    if is_shared:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), .1, momentum=.9)
    train = Loader(pictures(folder, 'train'), workers, uneven='drop')
    test = Loader(pictures(folder, 'test'), workers, uneven='uneven')
    path, first = os.path.join(folder, 'checkpoint.pt'), 0
    if resume:
        saved = torch.load(path, weights_only=True)
        first = saved['epoch']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        train.load_state_dict(saved['loader'])
    for epoch in range(first, epochs):
        model.train()
        for step, (images, targets) in enumerate(train, 1):
            log.write(epoch, (images.amax((1, 2, 3)) * 255).round().int())
            loss = nn.functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0:
                save(path, epoch=epoch, model=model.state_dict(),
                     optimizer=optimizer.state_dict(),
                     loader=train.state_dict())
            if kill_at == [epoch, step]:
                end()
        model.eval()
        seen = torch.zeros(())
        with torch.no_grad():
            for images, targets in test:
                # A model that is always right.
                seen += targets.eq(targets).sum() + 0 * model(images).sum()
        if is_shared:
            distributed.all_reduce(seen)
        assert seen == len(test.dataset)
    if rank == 0:
        torch.save(model.state_dict(), os.path.join(folder, 'weights.pt'))
    if is_shared:
        distributed.destroy_process_group()


def train_on_tokens(folder, workers=0, kill_at=None, resume=False, steps=40):
    """Train as nanoGPT does: without epochs, and with the next batch at hand
    while the present one is trained on."""
    tokens = numpy.arange(257, dtype='uint16')
    log = Log(folder, 0)

    def batches_of(split):
        # As many tokens as a block and the one that follows it.
        return Loader(DataStream(Windows(
            IndexableDataset({'tokens': tokens}), 9, runs='all', stride=8),
            batch_size=2, shuffle=True, seed=len(split)), workers)

    def forever(loader):
        while True:
            yield from loader

    loaders = {split: batches_of(split) for split in ('train', 'val')}
    path, number = os.path.join(folder, 'checkpoint.pt'), 0
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(257, 4), nn.Linear(4, 257))
    optimizer = torch.optim.AdamW(model.parameters(), .1)
    if resume:
        saved = torch.load(path, weights_only=True)
        number = saved['number']
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loaders['train'].load_state_dict(saved['loader'])
    reading = {split: forever(loader) for split, loader in loaders.items()}

    def get_batch(split):
        nonlocal position
        if split == 'train':
            # The batch that comes is trained on after the next checkpoint.
            position = loaders['train'].state_dict()
        block, = next(reading[split])
        block = block.long()
        return block[:, :-1], block[:, 1:]

    position = None
    inputs, targets = get_batch('train')
    while number < steps:
        if number % 3 == 0:
            with torch.no_grad():
                model(get_batch('val')[0])
        save(path, number=number, model=model.state_dict(),
             optimizer=optimizer.state_dict(), loader=position)
        if kill_at == number:
            end()
        loss = nn.functional.cross_entropy(
            model(inputs).flatten(0, 1), targets.flatten())
        log.write(0, inputs[:, 0])
        inputs, targets = get_batch('train')
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        number += 1
    torch.save(model.state_dict(), os.path.join(folder, 'weights.pt'))


if __name__ == '__main__':
    chosen = options()
    torch.set_num_threads(1)
    {'pictures': train_on_pictures, 'tokens': train_on_tokens}[
        chosen.pop('what')](**chosen)
