"""A callback for the Trainer of Transformers that logs measurements."""
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

    Every `every_n_steps` steps it calls ``trainer.log`` with the measurements
    since the last log: ``fuel.pipeline.stall.ratio``, the part of the time in
    which training waited for data; ``fuel.pipeline.examples_per_second``;
    ``fuel.stage.stall.ratio/...``, the part of the time in which training
    waited for each stage; and ``fuel.stage.queue.ratio/...``, how full each
    queue is.  The numbers are those of the rank that logs.

    Parameters
    ----------
    trainer : transformers.Trainer
    stream : AbstractDataStream or StreamIterable, optional
        The training stream.  Defaults to None: the stream that the trainer's
        loader reads through :func:`~fuel.interop.torch.as_iterable`.
    every_n_steps : int, optional
        Number of steps between logs.  Defaults to None: the number in
        ``TrainingArguments(logging_steps=...)``.

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
        """Start to measure."""
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
        """Log the measurements after every `every_n_steps` steps."""
        found = self._log.step()
        if found is not None:
            self._trainer.log(flat_step(found))
