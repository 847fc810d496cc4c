"""ILSVRC 2012 (ImageNet), whose archives need registration."""
from fuel.downloaders.base import filler_of

__all__ = ['fill_subparser']

fill_subparser = filler_of(
    'ilsvrc2012', 'ILSVRC2012_devkit_t12.tar.gz',
    'ILSVRC2012_img_train.tar', 'ILSVRC2012_img_val.tar',
    'ILSVRC2012_img_test.tar', prefix=True)
