"""Chainer warns of Python and NumPy when it is imported."""
import warnings

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import chainer

# It compares the versions of packages that it does not need.
chainer.global_config.show = False
