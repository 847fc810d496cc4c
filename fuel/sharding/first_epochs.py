"""The former module of `FirstEpochs`, which pickles of mixtures name."""
from fuel.sharding.draws import FirstEpochs  # noqa: F401
