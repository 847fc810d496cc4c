"""Pickles name the beginnings of a mixture in this module."""
from fuel.sharding.draws import FirstEpochs  # noqa: F401
