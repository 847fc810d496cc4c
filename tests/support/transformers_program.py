"""Train with the Trainer of Transformers; see tests/interop/trainers."""
import json
import os
import signal

import torch
import transformers
from torch.utils.data import DataLoader
from trainer_pipelines import EXAMPLES, Log, build, options

from fuel.interop.accelerate import prepare
from fuel.interop.torch import Loader, as_iterable
from fuel.interop.transformers import TransformersMonitor
from fuel.transformers import Filter


class Model(torch.nn.Module):
    """A model that writes down what it is trained on."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.log = self.epoch = None

    def forward(self, features, numbers):
        """Return a loss."""
        self.log.write(self.epoch, numbers)
        return {'loss': self.layer(features).mean()}


class Trainer(transformers.Trainer):
    """A trainer with the loader of the manual."""

    def get_train_dataloader(self):
        """Return a loader over this rank's part of a stream."""
        stream = build(self.examples)
        if self.unknown:
            stream = Filter(stream, bool)
        loader = (
            Loader(stream, self.workers, as_dict=True, uneven='drop')
            if self.is_own else DataLoader(
                as_iterable(stream, as_dict=True, uneven='drop'),
                batch_size=None, num_workers=self.workers))
        return prepare(self.accelerator, loader) if self.by_fuel else loader


class Watch(transformers.TrainerCallback):
    """Tells the model the epoch, and kills the run."""

    def __init__(self, model, kill_at):
        self.model, self.kill_at = model, kill_at

    def on_epoch_begin(self, args, state, control, **kwargs):
        """Take the number of the epoch."""
        self.model.epoch = int(state.epoch + 1e-6)

    def on_step_begin(self, args, state, control, **kwargs):
        """End the process before the first step, so that nothing is saved."""
        if self.kill_at == state.global_step == 0:
            self.end()

    def on_save(self, args, state, control, **kwargs):
        """End the process when its checkpoint was saved."""
        if state.global_step == self.kill_at:
            self.end()

    def end(self):
        """End the process once the other ranks are here."""
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        os.kill(os.getpid(), signal.SIGKILL)


def main(folder, workers=0, by_fuel=True, epochs=2, kill_at=None,
         resume=None, config=None, whole=False, unknown=False, max_steps=-1,
         examples=EXAMPLES, monitor=0, is_own=False):
    """Train, and write down what each rank got."""
    model = Model()
    arguments = transformers.TrainingArguments(
        folder, num_train_epochs=epochs, max_steps=max_steps,
        save_strategy='steps', save_steps=1,
        save_total_limit=2, report_to=[], use_cpu=True, disable_tqdm=True,
        logging_strategy='no', accelerator_config=config,
        remove_unused_columns=False, per_device_train_batch_size=4,
        ddp_find_unused_parameters=False)
    model.log = Log(folder, arguments.process_index)
    kind = transformers.Trainer if whole else Trainer
    kind.workers, kind.by_fuel = workers, by_fuel
    kind.unknown, kind.examples = unknown, examples
    kind.is_own = is_own
    trainer = kind(
        model, arguments, callbacks=[Watch(model, kill_at)],
        train_dataset=as_iterable(build(), as_dict=True, uneven='drop'))
    if monitor:
        trainer.add_callback(TransformersMonitor(
            trainer, every_n_steps=monitor))
    trainer.train(resume_from_checkpoint=resume and os.path.join(
        folder, resume))
    with open(os.path.join(folder, 'history'), 'w') as file:
        json.dump(trainer.state.log_history, file)


if __name__ == '__main__':
    main(**options())
