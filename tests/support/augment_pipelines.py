"""Pipelines whose images other libraries change at random.

They live in a module of their own, so that other processes can import it.
"""
import random

import albumentations
import numpy
import torch
# The first of these lets the others be imported.
from support import torchvision_operators  # noqa: F401
from torchvision import tv_tensors
from torchvision.transforms import v2

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledExampleScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Mapping

COUNT = 10
CHANGED_BY_TORCHVISION = v2.Compose([
    v2.RandAugment(),
    v2.ColorJitter(.4, .4, .4, .1),
    v2.RandomAffine(15, translate=(.1, .1)),
    v2.GaussianBlur(3),
    v2.RandomErasing(.3)])
CHANGED_BY_ALBUMENTATIONS = albumentations.Compose([
    albumentations.RandomBrightnessContrast(p=.8),
    albumentations.HueSaturationValue(p=.5),
    albumentations.Affine(rotate=(-15, 15), p=.7),
    albumentations.ElasticTransform(p=.3),
    albumentations.GaussNoise(p=.5),
    albumentations.GaussianBlur(p=.3)])
# Their masks are moved as they are.
MOVED = albumentations.Compose([
    albumentations.RandomCrop(12, 10),
    albumentations.HorizontalFlip(),
    albumentations.Affine(rotate=(-40, 40))])


def pictures():
    """Return a data set of images, their masks and numbers."""
    images = numpy.random.RandomState(1).randint(
        0, 256, (COUNT, 3, 16, 14)).astype('uint8')
    return IndexableDataset(
        {'image': images, 'mask': images[:, :1] // 64,
         'number': numpy.arange(COUNT)},
        axis_labels={'image': ('batch', 'channel', 'height', 'width')})


def batches():
    """Return a stream of shuffled batches."""
    return DataStream(pictures(), batch_size=3, shuffle=True)


def examples():
    """Return a stream of shuffled examples."""
    return DataStream(
        pictures(), iteration_scheme=ShuffledExampleScheme(COUNT))


def by_torchvision(batch):
    """Return a batch of images, each changed by itself."""
    images, *others = batch
    changed = [CHANGED_BY_TORCHVISION(torch.from_numpy(image)).numpy()
               for image in images]
    return numpy.stack(changed), *others


def pair_by_torchvision(example):
    """Return an image and its mask, moved alike."""
    image, mask, number = example
    move = v2.Compose([v2.RandomCrop((12, 10)), v2.RandomHorizontalFlip(),
                       v2.RandomRotation(40)])
    image, mask = move(tv_tensors.Image(torch.from_numpy(image)),
                       tv_tensors.Mask(torch.from_numpy(mask)))
    return image.numpy(), mask.numpy(), number


def by_albumentations(batch):
    """Return a batch of images, each changed by itself."""
    CHANGED_BY_ALBUMENTATIONS.set_random_seed(random.getrandbits(32))
    images, *others = batch
    changed = [CHANGED_BY_ALBUMENTATIONS(image=image)['image']
               for image in images.transpose(0, 2, 3, 1)]
    return numpy.stack(changed).transpose(0, 3, 1, 2).copy(), *others


def without_its_seed(batch):
    """Return a batch changed by a generator that no seed has set."""
    images, *others = batch
    changed = [CHANGED_BY_ALBUMENTATIONS(image=image)['image']
               for image in images.transpose(0, 2, 3, 1)]
    return numpy.stack(changed).transpose(0, 3, 1, 2).copy(), *others


def pair_by_albumentations(example):
    """Return an image and its mask, moved alike."""
    MOVED.set_random_seed(random.getrandbits(32))
    image, mask, number = example
    moved = MOVED(image=image.transpose(1, 2, 0), mask=mask[0])
    return moved['image'].transpose(2, 0, 1).copy(), moved['mask'], number


PIPELINES = {
    'torchvision': lambda: Mapping(batches(), by_torchvision, seed=3),
    'torchvision pairs': lambda: Batch(
        Mapping(examples(), pair_by_torchvision, seed=3), batch_size=4),
    'albumentations': lambda: Mapping(batches(), by_albumentations, seed=3),
    'albumentations pairs': lambda: Batch(
        Mapping(examples(), pair_by_albumentations, seed=3), batch_size=4),
}


def build(name):
    """Return a new pipeline."""
    return PIPELINES[name]()
