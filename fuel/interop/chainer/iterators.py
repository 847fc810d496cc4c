"""The iterators of ``chainer.iterators``, which sweep over data sets."""
from __future__ import annotations

import operator
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator as Iterates
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.stage_reader import note_request
from fuel.exceptions import WorkerError
from fuel.interop.chainer.examples import Example, ExampleSet, read_examples
from fuel.interop.chainer.iterator import Iterator
from fuel.interop.chainer.reading import ExampleBatches, ThreadedBatches
from fuel.interop.chainer.serialization import Serializer
from fuel.interop.chainer.sweeps import (
    OrderSampler, Sampler, ShuffleOrderSampler, Sweeps, SweepScheme,
    copy_of_sampler)
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.utils.checks import not_negative, positive
from fuel.utils.threads import number_of_threads

__all__ = ['MultiprocessIterator', 'MultithreadIterator', 'OrderSampler',
           'SerialIterator', 'ShuffleOrderSampler']


def _of_sweeps(name: str, text: str) -> Any:
    """Return a property that reads an attribute of an iterator's position.

    `name`: name of the attribute of :class:`Sweeps`.
    `text`: docstring of the property.
    """
    return property(operator.attrgetter(f'_sweeps.{name}'), doc=text)


#: The examples of a batch, and their indices.
Read: TypeAlias = 'tuple[list[Example], NDArray[Any]]'


class SweepIterator(Iterator):
    """Base of the iterators over sweeps of a data set.

    The parameters are those of :class:`SerialIterator`.
    """

    def __init__(self, dataset: ExampleSet, batch_size: int,
                 repeat: bool = True, shuffle: bool | None = None,
                 order_sampler: Sampler | None = None) -> None:
        if shuffle is not None and order_sampler is not None:
            raise ValueError(
                'shuffle and order_sampler cannot both be given, got '
                f'shuffle={shuffle!r}: leave it out, or None')
        if order_sampler is None and shuffle is not False:
            order_sampler = ShuffleOrderSampler()
        self.dataset = dataset
        self._sweeps = Sweeps(
            len(dataset), positive('batch_size', batch_size), bool(repeat),
            order_sampler)
        if repeat and not self._sweeps.size:
            raise ValueError(
                'a data set without examples cannot be repeated: pass '
                'repeat=False')

    order_sampler: Sampler | None = _of_sweeps(
        'sampler', 'Returns the order of each sweep (callable), or None.')
    repeat: bool = _of_sweeps(
        'repeat', 'Whether another sweep follows (bool).')
    epoch: int = _of_sweeps(
        'epoch', 'How many sweeps are complete (int).')
    current_position: int = _of_sweeps(
        'position',
        'How many examples of the present sweep were delivered (int).')
    epoch_detail: float = _of_sweeps(
        'epoch_detail', 'Sweeps, with the part of the present one (float).')
    previous_epoch_detail: float | None = _of_sweeps(
        'previous_epoch_detail',
        '`epoch_detail` before the last batch (float), or None.')
    is_new_epoch: bool = _of_sweeps(
        'is_new_epoch', 'Whether the last batch completed a sweep (bool).')

    @property
    def batch_size(self) -> int:
        """Number of examples of a batch (int)."""
        return self._sweeps.batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self._sweeps.batch_size = positive('batch_size', batch_size)
        self._drop_prefetched()

    @property
    def shuffle(self) -> bool:
        """Whether the order is shuffled, or chosen by a sampler (bool)."""
        return self.order_sampler is not None

    @abstractmethod
    def __next__(self) -> list[Example]:
        """Return the next batch."""

    def reset(self) -> None:
        """Start again with a first sweep, in a new order."""
        self._drop_prefetched()
        self._sweeps.reset()

    def _drop_prefetched(self) -> None:
        """Drop prefetched batches."""

    def serialize(self, serializer: Serializer) -> None:
        """Save the position in a snapshot, or restore it from one.

        The position is the place in the sweep, the order of the sweep, and
        the state of the sampler's generator. After restoring, the batches are
        those that would have followed. A snapshot of Chainer's own iterators
        can be restored too; it has no generator, so the orders of later
        sweeps depend on the seed.

        Parameters
        ----------
        serializer : chainer.AbstractSerializer

        Raises
        ------
        fuel.exceptions.StateMismatchError
            If the snapshot is damaged, or belongs to another data set.
        """
        if self._sweeps.serialize(serializer):
            self._drop_prefetched()

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__getstate__())
        other._sweeps = self._sweeps.copy()
        return other

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __repr__(self) -> str:
        return (f'<{type(self).__name__} over {len(self.dataset)} examples, '
                f'batch_size={self.batch_size}, epoch_detail='
                f'{self.epoch_detail:.4g}>')


class SerialIterator(SweepIterator):
    """Reads each batch when the program requests it.

    Parameters
    ----------
    dataset : indexable
        A data set with a length and examples by index.
    batch_size : int
    repeat : bool, optional
        Whether another sweep follows the last example. A batch may then hold
        examples of two sweeps. Defaults to True. If False, the last batch may
        have fewer examples.
    shuffle : bool, optional
        Whether the order is shuffled for each sweep. Defaults to None:
        shuffled, unless `order_sampler` is given.
    order_sampler : callable, optional
        Returns the order of each sweep; see :class:`OrderSampler`.

    Raises
    ------
    ValueError
        If both `shuffle` and `order_sampler` are given, or if `repeat` is
        true and the data set is empty.

    Examples
    --------
    >>> iterator = SerialIterator([10, 20, 30], 2, shuffle=False)
    >>> iterator.next(), iterator.epoch_detail, iterator.is_new_epoch
    ([10, 20], 0.6666666666666666, False)
    >>> iterator.next(), iterator.epoch_detail, iterator.is_new_epoch
    ([30, 10], 1.3333333333333333, True)
    """

    def __next__(self) -> list[Example]:
        indices = self._sweeps.advance().tolist()
        try:
            return read_examples(self.dataset, indices)
        except Exception as error:
            note_request(error, indices)
            raise


class PrefetchingIterator(SweepIterator):
    """Base of the iterators that prefetch batches.

    The reader that makes the batches has a copy of the iterator's position.
    The copy is ahead by the number of prefetched batches.
    """

    _batches: Iterates[Read] | None = None

    def __init__(self, dataset: ExampleSet, batch_size: int,
                 repeat: bool = True, shuffle: bool | None = None,
                 order_sampler: Sampler | None = None) -> None:
        # The position and its copy each need a generator of their own.
        super().__init__(dataset, batch_size, repeat, shuffle,
                         copy_of_sampler(order_sampler))

    @abstractmethod
    def _open(self) -> Iterates[Read]:
        """Return an iterator over the next batches."""

    def __next__(self) -> list[Example]:
        if self._sweeps.is_over:
            raise StopIteration
        read = self._read()
        if read is None:
            self._drop_prefetched()
            self._sweeps.prepare()
            self._batches = self._open()
            read = self._read()
        assert read is not None, 'the batches ended before the sweeps'
        examples, indices = read
        if not numpy.array_equal(indices, self._sweeps.advance()):
            self._drop_prefetched()
            raise RuntimeError(
                f'order_sampler {self.order_sampler!r:.200} gave another '
                'order where batches are prefetched: its generator must not '
                'be seeded or drawn from elsewhere')
        return examples

    def _read(self) -> Read | None:
        """Return the next prefetched batch; None if no reader is open."""
        try:
            return None if self._batches is None else next(
                self._batches, None)
        except WorkerError:
            self._drop_prefetched()
            raise
        except Exception:
            # The reader left the failed batch out: leave it out here too.
            self._sweeps.advance()
            raise
        except BaseException:
            self._drop_prefetched()
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_batches': None}


class MultithreadIterator(PrefetchingIterator):
    """Reads the examples of the next batch in threads.

    Parameters
    ----------
    dataset, batch_size, repeat, shuffle, order_sampler
        See :class:`SerialIterator`. Threads save time if the data set waits
        for files or releases the GIL.
    n_threads : int, optional
        Number of threads of Fuel's pool to use. Defaults to 1.

    Examples
    --------
    >>> with MultithreadIterator(range(5), 3, shuffle=False,
    ...                          n_threads=2) as iterator:
    ...     next(iterator), next(iterator)
    ([0, 1, 2], [3, 4, 0])
    """

    def __init__(self, dataset: ExampleSet, batch_size: int,
                 repeat: bool = True, shuffle: bool | None = None,
                 n_threads: int = 1,
                 order_sampler: Sampler | None = None) -> None:
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)
        self.n_threads = positive('n_threads', n_threads)

    def _open(self) -> Iterates[Read]:
        return ThreadedBatches(
            self.dataset, self._sweeps.ahead(), self.n_threads)

    def _drop_prefetched(self) -> None:
        self._batches = None

    def finalize(self) -> None:
        """Drop the batch that was prefetched."""
        self._drop_prefetched()


class TimeoutWarning(RuntimeWarning):
    """Warns that a batch took longer than `dataset_timeout`."""


class MultiprocessIterator(PrefetchingIterator):
    """Reads batches in other processes.

    Parameters
    ----------
    dataset, batch_size, repeat, shuffle, order_sampler
        See :class:`SerialIterator`. If processes are not forked, the data set
        must pickle.
    n_processes : int, optional
        Number of processes. Defaults to ``config.num_threads``, which is the
        number of cores.
    n_prefetch : int, optional
        Number of prefetched batches that may wait, in addition to the batch
        that each process makes. Defaults to 1.
    shared_mem : int, optional
        Bytes of shared memory for each example. Batches of larger examples
        take longer. Defaults to None: the memory that
        ``config.shared_memory_bytes`` allows.
    dataset_timeout : float, optional
        Seconds to wait for a batch before a warning. Defaults to 30; None
        for no warning. After ``config.stall_timeout`` seconds there is an
        error.
    maxtasksperchild : int, optional
        Accepted without effect: processes are not replaced.

    Raises
    ------
    fuel.exceptions.WorkerError
        By the iteration, if a process dies or stalls. No batch is lost: the
        next call starts new processes.

    Notes
    -----
    :class:`~fuel.transformers.MultiProcessing` runs the processes. Each
    process makes whole batches and sends them through shared memory. The
    processes start with the first batch and end with :meth:`finalize`.
    """

    TimeoutWarning = TimeoutWarning

    def __init__(self, dataset: ExampleSet, batch_size: int,
                 repeat: bool = True, shuffle: bool | None = None,
                 n_processes: int | None = None, n_prefetch: int = 1,
                 shared_mem: int | None = None,
                 order_sampler: Sampler | None = None,
                 dataset_timeout: float | None = 30.0,
                 maxtasksperchild: int | None = None) -> None:
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)
        self.n_processes = number_of_threads() if n_processes is None \
            else positive('n_processes', n_processes)
        self.n_prefetch = not_negative('n_prefetch', n_prefetch)
        self.shared_mem = None if shared_mem is None else positive(
            'shared_mem', shared_mem)
        self.dataset_timeout = dataset_timeout
        if maxtasksperchild is not None:
            positive('maxtasksperchild', maxtasksperchild)
        self.maxtasksperchild = maxtasksperchild

    _stream: MultiProcessing | None = None
    _is_finalized = False

    def _open(self) -> Iterates[Read]:
        waiting = self.n_prefetch + self.n_processes
        self._stream = MultiProcessing(
            DataStream(ExampleBatches(self.dataset),
                       iteration_scheme=SweepScheme(self._sweeps)),
            waiting, num_workers=self.n_processes,
            max_bytes=self.shared_mem and (
                self.shared_mem * self.batch_size * waiting))
        batches: Iterates[Read] = self._stream.get_epoch_iterator()
        return batches

    def __next__(self) -> list[Example]:
        start = time.monotonic()
        batch = super().__next__()
        seconds = time.monotonic() - start
        if self.dataset_timeout is not None \
                and seconds > self.dataset_timeout:
            warnings.warn(
                f'a batch of {type(self.dataset).__name__} took '
                f'{seconds:.1f} s, longer than dataset_timeout='
                f'{self.dataset_timeout}', TimeoutWarning, stacklevel=2)
        return batch

    def _drop_prefetched(self) -> None:
        self._batches = None
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def finalize(self) -> None:
        """End the processes, and drop the prefetched batches."""
        self._drop_prefetched()
        self._is_finalized = True

    def reset(self) -> None:
        """Start again with a first sweep, in a new order.

        Raises
        ------
        NotImplementedError
            After :meth:`finalize`, as Chainer does.
        """
        if self._is_finalized:
            raise NotImplementedError(
                'a MultiprocessIterator that was finalized cannot be reset: '
                'make another one, or reset before finalize()')
        super().reset()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_stream': None,
                '_is_finalized': False}
