"""Classify texts, with Accelerate."""
import os

import numpy
import torch
import transformers
from accelerate import Accelerator

from fuel.datasets import IndexableDataset
from fuel.interop.accelerate import prepare
from fuel.interop.torch import Loader
from fuel.streams import DataStream
from fuel.transformers import Padding, Rename


class Progress:
    """The number of the epoch, which Accelerate saves."""

    epoch = 0

    def state_dict(self):
        """Return what is saved."""
        return {'epoch': self.epoch}

    def load_state_dict(self, state):
        """Restore what was saved."""
        self.epoch = state['epoch']


def open_stream():
    """Return padded batches of texts and their classes."""
    with numpy.load('texts.npz', allow_pickle=True) as file:
        dataset = IndexableDataset(dict(file), sources=('input_ids', 'labels'))
    stream = Padding(DataStream(dataset, batch_size=4, shuffle=True, seed=1),
                     mask_sources='input_ids')
    return Rename(stream, {'input_ids_mask': 'attention_mask'})


def main():
    """Train for two epochs."""
    accelerator = Accelerator(cpu=True)
    transformers.set_seed(1)
    loader = prepare(accelerator, Loader(
        open_stream(), as_dict=True, uneven='drop'))
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=60, hidden_size=8, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=8,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    optimizer = torch.optim.AdamW(model.parameters(), .01)
    model, optimizer = accelerator.prepare(model, optimizer)
    progress = Progress()
    accelerator.register_for_checkpointing(progress, loader)
    if os.path.exists('saved'):
        accelerator.load_state('saved')
    for epoch in range(progress.epoch, 2):
        progress.epoch = epoch
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            accelerator.save_state('saved')
            accelerator.print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    accelerator.save(accelerator.unwrap_model(model).state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
