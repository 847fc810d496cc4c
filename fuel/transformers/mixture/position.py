"""Old module of the position in a mixture; pickles import it from here."""
from fuel.transformers.mixture.order import Mixture  # noqa: F401
