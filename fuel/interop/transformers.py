"""A callback for the Trainer of Transformers that logs what the data take."""
from __future__ import annotations

from typing import Any

from fuel.export.flat import StepLog, flat_step
from fuel.typing import StreamLike
from fuel.utils.extras import from_extra

with from_extra('transformers', 'transformers', 'torch'):
    from transformers import Trainer, TrainerCallback

    from fuel.interop.torch import StreamIterable

__all__ = ['TransformersMonitor']


class TransformersMonitor(TrainerCallback):
    """A callback of Transformers that logs the measurements of training data.

    Every so many steps it calls ``trainer.log`` with what happened since:
    ``fuel.pipeline.stall.ratio``, the part of the time in which training
    waited for data, ``fuel.pipeline.examples_per_second``,
    ``fuel.stage.stall.ratio/...``, the same part by the stage that was waited
    for, and ``fuel.stage.queue.ratio/...``, how full queues are.  The numbers
    are those of the rank that logs.

    Parameters
    ----------
    trainer : transformers.Trainer
    stream : AbstractDataStream or StreamIterable, optional
        The training stream.  Defaults to None: that of
        :func:`~fuel.interop.torch.as_iterable` which the trainer's loader
        reads.
    every_n_steps : int, optional
        Defaults to None: as ``TrainingArguments(logging_steps=...)`` says.

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

        trainer.add_callback(TransformersMonitor(trainer))
        trainer.train()
    """

    def __init__(self, trainer: Trainer,
                 stream: StreamLike | StreamIterable | None = None,
                 every_n_steps: int | None = None) -> None:
        self._trainer = trainer
        self._given = stream
        self._log = StepLog(every_n_steps)

    def on_train_begin(self, args: Any, state: Any, control: Any,
                       train_dataloader: Any = None, **_: Any) -> None:
        """Measure from here on."""
        stream = train_dataloader.dataset if self._given is None else (
            self._given)
        if isinstance(stream, StreamIterable):
            stream = stream.stream
        elif self._given is None:
            raise ValueError(
                'TransformersMonitor finds no stream, since the loader does '
                'not read as_iterable(stream): pass the stream, '
                'TransformersMonitor(trainer, stream)')
        self._log.begin(stream, int(state.logging_steps))

    def on_step_end(self, args: Any, state: Any, control: Any,
                    **_: Any) -> None:
        """Log, if it is time."""
        found = self._log.step()
        if found is not None:
            self._trainer.log(flat_step(found))
