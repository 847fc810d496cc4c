"""Pickles name how an epoch is drawn in this module."""
from fuel.schemes.sampling import (  # noqa: F401
    BlockOrder, draw_balanced, draw_weighted)
