"""Pickles name the class of a mixture's position in this module."""
from fuel.transformers.mixture.order import Mixture  # noqa: F401
