"""Train with Accelerate; see tests/interop/trainers."""
import os
import signal

from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader
from trainer_pipelines import Log, build, options

from fuel.interop.accelerate import prepare
from fuel.interop.torch import Loader, as_iterable, as_map


class Position:
    """The state that Accelerate saves: the used batches."""

    def __init__(self, batches, length):
        self.batches, self.length = batches, length
        self.epoch = self.step = 0

    def state_dict(self):
        """Return the epoch, and the position in it."""
        if not self.step:
            return {'epoch': self.epoch, 'batches': self.batches.state_dict()}
        # Accelerate refuses to go on with an epoch that has no batch left.
        is_over = self.step == self.length
        return {'epoch': self.epoch + is_over,
                'batches': self.batches.state_after(
                    None if is_over else self.step)}

    def load_state_dict(self, state):
        """Go on from a position."""
        self.epoch = state['epoch']
        self.batches.load_state_dict(state['batches'])


class Progress:
    """The state that a program saves beside a loader that saves itself."""

    epoch = step = 0

    def state_dict(self):
        """Return the epoch."""
        return {'epoch': self.epoch}

    def load_state_dict(self, state):
        """Go on in an epoch."""
        self.epoch = state['epoch']


def main(folder, config=None, source='iterable', by_fuel=True, workers=0,
         epochs=2, kill_at=None, resume=None, loader_options=None,
         skip=0, leave_at=None, uneven='uneven'):
    """Read some epochs, and write down what each rank got."""
    accelerator = Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(**config or {}))
    log = Log(folder, accelerator.process_index)
    position = None
    loader_options = dict(loader_options or {})
    if source == 'iterable':
        batches = as_iterable(build(), uneven=uneven)
        loader = DataLoader(batches, **{'batch_size': None, **loader_options},
                            num_workers=workers)
        position = Position(batches, len(loader))
        accelerator.register_for_checkpointing(position)
    elif source == 'own':
        loader = Loader(build(), workers, uneven=uneven)
        # Of a loader that Accelerate reads itself, the program counts.
        position = Progress() if by_fuel else Position(
            loader.dataset, len(loader))
    else:
        loader = DataLoader(as_map(build().dataset), **{
            'batch_size': 4, **loader_options}, num_workers=workers)
    length = len(loader)
    loader = (prepare(accelerator, loader) if by_fuel
              else accelerator.prepare(loader))
    if source == 'own':
        assert (len(loader), len(loader.dataset)) == (length, 65)
        accelerator.register_for_checkpointing(
            position, *[loader] * by_fuel)

    def save_and_end(epoch, step):
        if position is not None:
            position.epoch, position.step = epoch, step
            accelerator.save_state(path)
        accelerator.wait_for_everyone()
        os.kill(os.getpid(), signal.SIGKILL)

    path = os.path.join(folder, 'saved')
    if resume == 'state':
        accelerator.load_state(path)
    first = position.epoch if position is not None else 0
    if skip:
        loader = skip_first_batches(loader, skip)
        first = 1
    if first and resume != 'state':
        loader.set_epoch(first)
    for epoch in range(first, epochs):
        if kill_at == [epoch, 0]:
            save_and_end(epoch, 0)
        for step, (_, numbers) in enumerate(loader, 1):
            log.write(epoch, numbers)
            if leave_at == [epoch, step]:
                break
            if kill_at == [epoch, step]:
                save_and_end(epoch, step)


if __name__ == '__main__':
    main(**options())
