"""Pickles name the class of weights in this module."""
from fuel.schemes.mixing import MixtureWeights  # noqa: F401
