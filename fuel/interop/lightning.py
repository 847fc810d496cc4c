"""A data module for Lightning, whose checkpoints hold the position, and a
callback that logs what the data take."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuel.export.flat import StepLog, flat_step
from fuel.typing import State, StreamLike
from fuel.utils.extras import from_extra

with from_extra('lightning', 'lightning', 'torch'):
    from lightning import Callback, LightningDataModule
    from lightning.pytorch.loggers import TensorBoardLogger, WandbLogger
    from torch.utils.data import DataLoader

    from fuel.interop.torch import StreamIterable, as_iterable

__all__ = ['DataModule', 'LightningMonitor']


class DataModule(LightningDataModule):
    """A data module of Lightning over streams of Fuel.

    Each rank reads its part, and workers make the batches.  A checkpoint of
    Lightning holds the position after the batches that were trained on, and
    ``fit(ckpt_path=...)`` goes on with the batch that follows, also with
    another number of workers or ranks.

    Parameters
    ----------
    train, val, test : AbstractDataStream or StreamIterable, optional
        Streams of batches; or what :func:`~fuel.interop.torch.as_iterable`
        makes of one, with options such as `uneven`.
    num_workers : int, optional
        Worker processes for each of them.  Defaults to 0.
    **options
        For each `DataLoader`, such as `pin_memory` or `persistent_workers`.

    Raises
    ------
    ValueError
        If one iterable is given twice; while it trains, if batches cannot
        be shared evenly by the ranks and `uneven` does not say how; see
        `as_iterable`.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(numpy.arange(6)), batch_size=4)
    >>> data = DataModule(train=stream, num_workers=2)
    >>> len(data.train_dataloader())
    2
    """

    def __init__(self, train: StreamLike | StreamIterable | None = None,
                 val: StreamLike | StreamIterable | None = None,
                 test: StreamLike | StreamIterable | None = None,
                 num_workers: int = 0, **options: Any) -> None:
        super().__init__()
        given = [one for one in (train, val, test)
                 if isinstance(one, StreamIterable)]
        if len(set(map(id, given))) < len(given):
            raise ValueError(
                'train, val and test must be different: a state is that of '
                'the epoch of an iterable that was begun last. Make an '
                'as_iterable(stream) for each of them')
        self._options = {
            'batch_size': None, 'num_workers': num_workers, **options}
        self._train = None if train is None else TrainingBatches(
            self, _as_iterable(train), self._options)
        self._val = val
        self._test = test

    def train_dataloader(self) -> Any:
        """Return the batches to train on; none if there is no stream.

        Raises
        ------
        ValueError
            If the trainer is to read the same batches again and again.
        """
        if self.trainer is not None and self.trainer.overfit_batches > 0:
            raise ValueError(
                'overfit_batches would read other batches in each epoch: '
                'leave it out, and pass a stream of these few examples, such '
                'as one with SequentialScheme(num_examples, batch_size)')
        return [] if self._train is None else self._train

    def val_dataloader(self) -> Any:
        """Return the loader of `val`; none if there is no stream."""
        return self._loader(self._val)

    def test_dataloader(self) -> Any:
        """Return the loader of `test`; none if there is no stream."""
        return self._loader(self._test)

    def _loader(self, stream: StreamLike | StreamIterable | None) -> Any:
        return [] if stream is None else DataLoader(
            _as_iterable(stream), **self._options)

    @property
    def train_stream(self) -> StreamLike | None:
        """What this rank is trained on, or None (AbstractDataStream)."""
        return None if self._train is None else self._train.stream

    def state_dict(self) -> State:
        """Return the position after the batches that were trained on."""
        return {} if self._train is None else self._train.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go on from a position."""
        if self._train is not None:
            self._train.load_state_dict(state)


class TrainingBatches:
    """The batches that Lightning trains on, counted by its own progress.

    It may read in advance, so what was read is not what was used.  Lightning
    restores a loader in mid-epoch only, and the data module always.

    `module`: its trainer has the progress.
    """

    def __init__(self, module: LightningDataModule, batches: StreamIterable,
                 options: dict[str, Any]) -> None:
        self._module = module
        self._batches = batches
        batches.reader_holds_back = True
        self._loader = DataLoader(batches, **options)
        # The loop that reads the pass, the number of its epoch, and how many
        # batches it had trained on before the pass.
        self._loop: Any = None
        self._epoch = self._trained_before = 0
        self._loaded: State | None = None

    @property
    def stream(self) -> StreamLike:
        """The stream, or this rank's part of it (AbstractDataStream)."""
        stream: StreamLike = self._batches.stream
        return stream

    def __len__(self) -> int:
        """Return the number of batches of an epoch, if it is known."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator whose epoch begins with its first batch."""
        if self._loaded is None and self._loop is not None and (
                not self._num_trained):
            # Lightning drops a pass whose first batch it has prefetched.
            self._batches.load_state_dict(self._batches.state_after(0))
        self._loaded = None
        self._loop = self._module.trainer.fit_loop
        self._trained_before = 0
        self._trained_before = self._num_trained
        self._epoch = self._epoch_of_loop
        for batch in self._loader:
            yield batch
            # The first one may be prefetched before the epoch is counted.
            self._epoch = self._epoch_of_loop

    @property
    def _num_trained(self) -> int:
        """How many batches of this pass were trained on (int)."""
        trained: int = self._loop.epoch_loop.batch_progress.total.processed
        return trained - self._trained_before

    @property
    def _epoch_of_loop(self) -> int:
        number: int = self._loop.epoch_progress.current.processed
        return number

    def _is_over(self) -> bool:
        """Return whether Lightning trains on nothing more of this pass."""
        progress = self._loop.epoch_loop.batch_progress
        done = progress.current.processed
        if done >= self._loop.max_batches or (
                progress.is_last_batch and done == progress.current.ready):
            return True
        # With more steps, Lightning goes on where these ended.
        is_cut = 0 <= self._loop.max_steps <= self._loop.epoch_loop.global_step
        return self._epoch_of_loop != self._epoch and not is_cut

    def state_dict(self) -> State:
        """Return the position after the batches that were trained on."""
        if self._loaded is not None:
            return self._loaded
        if self._loop is None:
            return {'batches': self._batches.state_dict()}
        trained = self._num_trained
        return {'batches': self._batches.state_after(
            None if trained and self._is_over() else trained)}

    def load_state_dict(self, state: State) -> None:
        """Go on from a position with the next iteration."""
        self._batches.load_state_dict(state['batches'])
        self._loaded = state


def _as_iterable(stream: StreamLike | StreamIterable) -> StreamIterable:
    """Return a stream as an iterable, unless it is one."""
    return (stream if isinstance(stream, StreamIterable)
            else as_iterable(stream))


class LightningMonitor(Callback):
    """A callback of Lightning that logs what training data take.

    Every so many steps it gives the loggers of the trainer what happened
    since: ``fuel.pipeline.stall.ratio``, the part of the time in which
    training waited for data, ``fuel.pipeline.examples_per_second``,
    ``fuel.stage.stall.ratio/...``, the same part by the stage that was waited
    for, and ``fuel.stage.queue.ratio/...``, how full queues are.
    TensorBoard and Weights & Biases get the name of the slowest stage too.
    The numbers are those of the rank that logs.

    Parameters
    ----------
    stream : AbstractDataStream or StreamIterable, optional
        What is trained on.  Defaults to None: the training stream of the
        :class:`DataModule`.
    every_n_steps : int, optional
        Defaults to None: as ``Trainer(log_every_n_steps=...)`` says, 50.

    Raises
    ------
    ValueError
        When training starts, if there is no stream to measure.

    Warns
    -----
    UserWarning
        If the batches are read by workers of a `DataLoader`, which are not
        measured, while those of Fuel's
        :class:`~fuel.transformers.MultiProcessing` are.

    Examples
    --------
    ::

        lightning.Trainer(callbacks=[LightningMonitor()]).fit(
            module, datamodule=DataModule(train=stream))
    """

    def __init__(self, stream: StreamLike | StreamIterable | None = None,
                 every_n_steps: int | None = None) -> None:
        self._given = stream
        self._log = StepLog(every_n_steps)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure from here on."""
        stream = self._given
        if stream is None and isinstance(trainer.datamodule, DataModule):
            stream = trainer.datamodule.train_stream
        if stream is None:
            raise ValueError(
                'LightningMonitor finds no stream, since there is no '
                'fuel.interop.lightning.DataModule to train on: pass the '
                'stream, LightningMonitor(stream)')
        if isinstance(stream, StreamIterable):
            stream = stream.stream
        self._log.begin(stream, trainer.log_every_n_steps)

    def on_train_batch_end(self, trainer: Any, *_: object) -> None:
        """Log, if it is time."""
        found = self._log.step()
        if found is None:
            return
        slowest = '' if found.slowest is None else found.slowest.name
        for logger in trainer.loggers:
            metrics: dict[str, Any] = dict(flat_step(found))
            if isinstance(logger, TensorBoardLogger):
                logger.experiment.add_text(
                    'fuel.pipeline.slowest', slowest, trainer.global_step)
            elif isinstance(logger, WandbLogger):
                metrics['fuel.pipeline.slowest'] = slowest
            logger.log_metrics(metrics, trainer.global_step)
