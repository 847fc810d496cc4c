"""Mixtures of several streams by weights."""
from fuel.transformers.mixture.mix import Mix as Mix
