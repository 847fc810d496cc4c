"""A loop over a loader that ends itself; see tests/interop/torch."""
import itertools
import json
import multiprocessing
import os
import signal
import sys
import time

from torch_pipelines import shuffled

from fuel.interop.torch import Loader


def batches_of(loader, loop):
    """Yield the batches of a pass, as programs read them."""
    if loop == 'for':
        yield from loader
    elif loop == 'enumerate':
        for _, batch in enumerate(loader, 100):
            yield batch
    elif loop == 'islice':
        yield from itertools.islice(loader, 1000)
    elif loop == 'zip':
        for batch, _ in zip(loader, itertools.count(), strict=False):
            yield batch
    else:
        reading = iter(loader)
        while True:
            try:
                batch = next(reading)
            except StopIteration:
                return
            yield batch


def save(loader, path):
    """Save the state, as a whole file."""
    with open(f'{path}.new', 'w') as file:
        json.dump(loader.state_dict(), file)
    os.replace(f'{path}.new', f'{path}.state')


def wait_for_end_of_program(worker):
    """Start the second worker when the program has ended."""
    while worker == 1 and (
            os.getppid() == multiprocessing.parent_process().pid):
        time.sleep(0.01)


def main(path, loop, workers, prefetch, stop=None, is_late=False):
    """Read two epochs, and write each batch down; end at batch `stop`.

    `is_late`: whether the second worker starts when the program has ended.
    """
    loader = Loader(
        shuffled(100, 5), workers, prefetch_factor=prefetch,
        worker_init_fn=wait_for_end_of_program if is_late else None)
    first = 0
    if os.path.exists(f'{path}.state'):
        with open(f'{path}.state') as file:
            loader.load_state_dict(json.load(file))
    elif stop == 0:
        save(loader, path)
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(first, 2):
        for count, batch in enumerate(batches_of(loader, loop), 1):
            with open(path, 'a') as file:
                file.write(json.dumps(batch[0].tolist()) + '\n')
            if count == stop:
                save(loader, path)
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == '__main__':
    main(**json.loads(sys.argv[1]))
