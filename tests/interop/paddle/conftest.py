"""PaddlePaddle warns of tools that it does not find when it is imported."""
import warnings

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import paddle  # noqa: F401
