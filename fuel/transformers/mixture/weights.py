"""Old module of the weights of a mixture; pickles import it from here."""
from fuel.schemes.mixing import MixtureWeights  # noqa: F401
