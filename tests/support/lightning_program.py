"""Train with Lightning; see tests/interop/trainers."""
import os
import signal

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader
from trainer_pipelines import Log, build, options

from fuel.interop.lightning import DataModule, LightningMonitor
from fuel.interop.torch import Loader, as_iterable, to_torch
from fuel.transformers import Filter


class ReadsAnother(lightning.Callback):
    """Reads a loader of its own within each step, and checks its states."""

    def __init__(self):
        self.loader = Loader(build())
        self.order = [numbers.tolist() for _, numbers in Loader(build())]
        self.reading = iter(self.loader)

    def on_train_batch_end(self, trainer, *_):
        """Read two batches, and compare the rest with that of their state."""
        if len(self.reading) < 2:
            return
        next(self.reading), next(self.reading)
        other = Loader(build())
        other.load_state_dict(self.loader.state_dict())
        rest = [numbers.tolist() for _, numbers in other]
        assert rest == self.order[len(self.order) - len(self.reading):]


class Model(lightning.LightningModule):
    """A model that writes down what it is trained on."""

    def __init__(self, folder, kill_at, saves_before=False):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.folder, self.kill_at = folder, kill_at
        self.saves_before = saves_before

    def configure_optimizers(self):
        """Return an optimizer."""
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, number):
        """Return a loss."""
        features, numbers = batch
        Log(self.folder, self.global_rank).write(self.current_epoch, numbers)
        return self.layer(features).mean()

    def validation_step(self, batch, number):
        """Write down what is validated."""
        Log(self.folder, f'{self.global_rank}-val').write(
            self.current_epoch, batch[1])

    def on_train_batch_start(self, batch, number):
        """End the process before the step after the one to be saved."""
        if self.saves_before:
            self.trainer.save_checkpoint(
                os.path.join(self.folder, 'last.ckpt'))
        if self.kill_at == [self.current_epoch, number]:
            if torch.distributed.is_initialized():
                torch.distributed.barrier()
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder, source='module', workers=0, devices=1, epochs=2,
         kill_at=None, resume=None, save_every=1, unknown=False,
         settings=None, save_at_end=False, same=False,
         saves_before=False, monitor=0, names_stream=False,
         reads_another=False, load_options=None):
    """Train, and write down what each rank got."""
    stream = build()
    if unknown:
        stream = Filter(stream, bool)
    batches = as_iterable(stream, uneven='drop', load_options=load_options)
    data = {
        'module': lambda: DataModule(
            batches,
            val=batches if same else as_iterable(build(), uneven='uneven'),
            num_workers=workers),
        'loader': lambda: DataLoader(
            batches, batch_size=None, num_workers=workers),
        'own': lambda: Loader(stream, workers, uneven='drop',
                              load_options=load_options),
        'iterable': lambda: batches,
        'stage': lambda: to_torch(stream)}[source]()
    model = Model(folder, kill_at, saves_before)
    when = ({'every_n_train_steps': save_every} if save_every
            else {'save_on_train_epoch_end': True})
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator='cpu', devices=devices,
        strategy='ddp' if devices > 1 else 'auto', logger=[
            CSVLogger(folder, 'csv', ''),
            TensorBoardLogger(folder, 'board', '')] if monitor else False,
        enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, callbacks=[ModelCheckpoint(
            folder, save_last=True, **when), *([LightningMonitor(
                batches if names_stream else None, monitor)]
                if monitor else []), *[ReadsAnother()] * reads_another],
        **settings or {})
    keywords = ({'datamodule': data} if source == 'module'
                else {'train_dataloaders': data})
    trainer.fit(model, **keywords, ckpt_path=resume and os.path.join(
        folder, resume))
    if save_at_end:
        trainer.save_checkpoint(os.path.join(folder, 'last.ckpt'))


if __name__ == '__main__':
    main(**options())
