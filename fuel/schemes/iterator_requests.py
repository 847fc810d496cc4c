"""Old module of some request iterators, which pickles import from here."""
from fuel.schemes.requests import (  # noqa: F401
    ConcatenatedRequests, CountedRequests, OneShotBatches)
