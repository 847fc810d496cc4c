"""A data module for Lightning, and a callback that logs measurements.

Checkpoints of Lightning hold the position of the data module.
"""
from __future__ import annotations

from typing import Any, Unpack

from fuel.export.flat import StepLog, flat_step
from fuel.streams.arguments import LoadOptions
from fuel.typing import State, StreamLike
from fuel.utils.extras import from_extra

with from_extra('lightning', 'lightning', 'torch'):
    from lightning import Callback, LightningDataModule
    from lightning.pytorch.loggers import TensorBoardLogger, WandbLogger

    from fuel.interop.torch import Loader, StreamIterable

__all__ = ['DataModule', 'LightningMonitor']


class DataModule(LightningDataModule):
    """A data module of Lightning over streams of Fuel.

    Each rank reads its part, and workers make the batches.  A checkpoint of
    Lightning holds the position after the last batch that was trained on.
    ``fit(ckpt_path=...)`` resumes with the next batch, also with another
    number of workers or ranks.

    Parameters
    ----------
    train, val, test, predict : AbstractDataStream or StreamIterable, optional
        Streams of batches.  To set options such as `uneven`, pass results of
        :func:`~fuel.interop.torch.as_iterable` instead.
    num_workers : int, optional
        Number of worker processes of each loader.  Defaults to 0.
    **options
        Further arguments of each :class:`~fuel.interop.torch.Loader`, such
        as `pin_memory`, `persistent_workers` or `load_options`.

    Raises
    ------
    ValueError
        If one iterable is given twice.  During training, if the ranks cannot
        share the batches evenly and `uneven` is not given; see
        `as_iterable`.

    Examples
    --------
    This needs the extra ``lightning``.

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
                 num_workers: int = 0, *,
                 predict: StreamLike | StreamIterable | None = None,
                 **options: Any) -> None:
        super().__init__()
        given = [one for one in (train, val, test, predict)
                 if isinstance(one, StreamIterable)]
        if len(set(map(id, given))) < len(given):
            raise ValueError(
                'train, val, test and predict must be different iterables: '
                'the state of an iterable belongs to its epoch that was begun '
                'last. Make an as_iterable(stream) for each of them')
        self._options = {'num_workers': num_workers, **options}
        self._train = None if train is None else Loader(
            train, **self._options)
        self._val = val
        self._test = test
        self._predict = predict

    def train_dataloader(self) -> Any:
        """Return the loader of `train`; an empty list if it is not given.

        Raises
        ------
        ValueError
            If `overfit_batches` of the trainer is set: each epoch would read
            other batches.
        """
        if self.trainer is not None and self.trainer.overfit_batches > 0:
            raise ValueError(
                'overfit_batches would read other batches in each epoch: '
                'leave it out, and pass a stream of these few examples, such '
                'as one with SequentialScheme(num_examples, batch_size)')
        return [] if self._train is None else self._train

    def val_dataloader(self) -> Any:
        """Return a loader of `val`; an empty list if it is not given."""
        return self._loader(self._val)

    def test_dataloader(self) -> Any:
        """Return a loader of `test`; an empty list if it is not given."""
        return self._loader(self._test)

    def predict_dataloader(self) -> Any:
        """Return a loader of `predict`; an empty list if it is not given."""
        return self._loader(self._predict)

    def _loader(self, stream: StreamLike | StreamIterable | None) -> Any:
        return [] if stream is None else Loader(stream, **self._options)

    @property
    def train_stream(self) -> StreamLike | None:
        """The training stream of this rank, or None (AbstractDataStream)."""
        return None if self._train is None else self._train.dataset.stream

    def state_dict(self) -> State:
        """Return the position after the last batch that was trained on."""
        return {} if self._train is None else {
            'batches': self._train.state_dict()}

    def load_state_dict(self, state: State,
                        **options: Unpack[LoadOptions]) -> None:
        """Resume from a position that `state_dict` returned.

        `options`: see :meth:`fuel.interop.torch.Loader.load_state_dict`.
        """
        if self._train is not None:
            self._train.load_state_dict(state, **options)


class LightningMonitor(Callback):
    """A callback of Lightning that logs the measurements of training data.

    Every `every_n_steps` steps it logs the measurements since the last log:
    ``fuel.pipeline.stall.ratio``, the part of the time in which training
    waited for data; ``fuel.pipeline.examples_per_second``;
    ``fuel.stage.stall.ratio/...``, the part of the time in which training
    waited for each stage; and ``fuel.stage.queue.ratio/...``, how full each
    queue is.  TensorBoard and Weights & Biases also receive the name of the
    slowest stage.  The numbers are those of the rank that logs.

    Parameters
    ----------
    stream : AbstractDataStream or StreamIterable, optional
        The training stream.  Defaults to None: the training stream of the
        :class:`DataModule`.
    every_n_steps : int, optional
        Number of steps between logs.  Defaults to None: the number in
        ``Trainer(log_every_n_steps=...)``, which is 50 by default.

    Raises
    ------
    ValueError
        When training starts, if there is no stream to measure.

    Warns
    -----
    UserWarning
        If workers of a `DataLoader` read the batches.  They are not measured;
        workers of :class:`~fuel.transformers.MultiProcessing` are.

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
        """Start to measure."""
        stream = self._given
        if stream is None and isinstance(trainer.datamodule, DataModule):
            stream = trainer.datamodule.train_stream
        if isinstance(stream, Loader):
            stream = stream.dataset
        if stream is None:
            raise ValueError(
                'LightningMonitor finds no stream, since there is no '
                'fuel.interop.lightning.DataModule to train on: pass the '
                'stream, LightningMonitor(stream)')
        if isinstance(stream, StreamIterable):
            stream = stream.stream
        self._log.begin(stream, trainer.log_every_n_steps)

    def on_train_batch_end(self, trainer: Any, *_: object) -> None:
        """Log the measurements after every `every_n_steps` steps."""
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
