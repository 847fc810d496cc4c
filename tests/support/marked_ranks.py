"""A rank of PyTorch that trains on marked batches, and ends itself.

It sums the tokens of its batches over all ranks, by an all-reduce, and holds
them against those that the batch has.
"""
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed
from marked_pipelines import LENGTHS, balanced, check_marks

from fuel.export import log_examples
from fuel.interop.torch import Loader


def train(folder, workers, most):
    """Read an epoch from the saved state on; end before step `most`."""
    torch.distributed.init_process_group('gloo')
    rank = torch.distributed.get_rank()
    loader = Loader(log_examples(balanced(), folder / 'log'), workers,
                    uneven='drop')
    state = folder / 'state'
    first = 0
    if state.exists():
        saved = json.loads(state.read_text())
        first = saved['step']
        loader.load_state_dict(saved['loader'])
    for step, batch in enumerate(loader, first):
        if step == most:
            # Rank 0 holds what the other needs for its last barrier.
            (folder / f'ended-{most}-{rank}').touch()
            while not (folder / f'ended-{most}-1').exists():
                time.sleep(.01)
            os._exit(3)
        check_marks([batch])
        rows, _, tokens = batch
        total = torch.tensor(int(LENGTHS[rows.numpy()].sum()))
        torch.distributed.all_reduce(total)
        assert tokens.tolist() == [total.item()] * len(rows)
        saved = json.dumps({'step': step + 1, 'loader': loader.state_dict()})
        # Each of the others has read the state, or will not.
        torch.distributed.barrier()
        if rank == 0:
            Path(f'{state}.new').write_text(saved)
            os.replace(f'{state}.new', state)
        torch.distributed.barrier()
        with open(folder / f'rows-{rank}', 'a') as file:
            file.write(json.dumps(rows.tolist()) + '\n')
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    train(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
