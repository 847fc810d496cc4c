"""Pickles name the class of splits in this module."""
from fuel.datasets.splits import ExampleSplits  # noqa: F401
