"""Old module of the draws of an epoch, which pickles import from here."""
from fuel.schemes.sampling import (  # noqa: F401
    BlockOrder, draw_balanced, draw_weighted)
