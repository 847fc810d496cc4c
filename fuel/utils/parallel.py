"""The import path of :func:`producer_consumer` in Fuel 0.2.0."""
from fuel.workers.producer_consumer import producer_consumer

__all__ = ['producer_consumer']

# Pickles and the manual name the public path.
producer_consumer.__module__ = __name__
