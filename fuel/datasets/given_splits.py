"""Pickles refer to the class of splits by the name of this module."""
from fuel.datasets.splits import ExampleSplits  # noqa: F401
