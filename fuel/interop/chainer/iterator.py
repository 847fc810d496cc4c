"""The interface of iterators, as Chainer defines it."""
from __future__ import annotations

import importlib
import importlib.util
import warnings
from contextlib import suppress
from typing import Any

from fuel.interop.chainer.serialization import Serializer


def _chainers_own() -> Any:
    """Return Chainer's base of iterators, which Chainer's updaters require.

    Without Chainer the result is `object`.
    """
    if importlib.util.find_spec('chainer') is not None:
        # Chainer does not run with all versions of NumPy, and warns of some.
        # If warnings are errors, one of them would end the import, and leave
        # Chainer unusable.
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return importlib.import_module('chainer.dataset').Iterator
    return object


_Base: Any = _chainers_own()


class Iterator(_Base):  # type: ignore[misc]
    """Base of the iterators over batches of examples.

    It derives from ``chainer.dataset.Iterator`` where Chainer is installed.
    Subclasses implement ``__next__``, and :meth:`serialize` if they can be
    resumed.

    Attributes
    ----------
    batch_size : int
        Number of examples of a batch. A batch may have fewer.
    epoch : int
        Number of complete sweeps over the data set.
    epoch_detail : float
        Number of sweeps, with the fraction of the present sweep: 2.5 in the
        middle of the third.
    previous_epoch_detail : float or None
        `epoch_detail` before the last batch. None before the first.
    is_new_epoch : bool
        Whether the last batch completed a sweep.
    """

    batch_size: int
    epoch: int
    epoch_detail: float
    previous_epoch_detail: float | None
    is_new_epoch: bool

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError(
            f'{type(self).__name__} must implement __next__')

    def next(self) -> Any:
        """Return the next batch."""
        return self.__next__()

    def finalize(self) -> None:
        """Release the iterator's resources, such as worker processes."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()

    def __del__(self) -> None:
        self.finalize()

    def serialize(self, serializer: Serializer) -> None:
        """Save the position in a snapshot, or restore it from one.

        Parameters
        ----------
        serializer : chainer.AbstractSerializer
            Or any function of a name and a value that behaves like one.
        """
