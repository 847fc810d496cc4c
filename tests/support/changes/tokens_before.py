"""Train a small language model on blocks that are drawn from a file."""
import numpy
import torch
from torch import nn
from torch.nn import functional

BLOCK, BATCH, STEPS = 8, 4, 60


def get_batch(tokens):
    """Return inputs and targets at random places."""
    starts = torch.randint(len(tokens) - BLOCK, (BATCH,))
    rows = [torch.from_numpy(tokens[start:start + BLOCK + 1].astype('int64'))
            for start in starts.tolist()]
    block = torch.stack(rows)
    return block[:, :-1], block[:, 1:]


def main():
    """Train for a number of steps."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(257, 16), nn.Linear(16, 257))
    optimizer = torch.optim.AdamW(model.parameters(), .01)
    tokens = numpy.memmap('train.bin', 'uint16', 'r')
    for step in range(STEPS):
        inputs, targets = get_batch(tokens)
        loss = functional.cross_entropy(
            model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f'step {step} loss {loss:.4f}', flush=True)
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
