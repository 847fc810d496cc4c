"""ILSVRC 2010 (ImageNet), whose archives need registration."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of(
    'ilsvrc2010', 'ILSVRC2010_test_ground_truth.txt',
    'ILSVRC2010_devkit-1.0.tar.gz', 'ILSVRC2010_images_train.tar',
    'ILSVRC2010_images_val.tar', 'ILSVRC2010_images_test.tar',
    'patch_images.tar', prefix=True)
