"""Pickles name the requests of an iterator in this module."""
from fuel.schemes.requests import (  # noqa: F401
    ConcatenatedRequests, CountedRequests, OneShotBatches)
