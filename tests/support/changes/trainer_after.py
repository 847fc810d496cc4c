"""Train a small language model, with the Trainer of Transformers."""
import os

import numpy
import torch
import transformers

from fuel.datasets import IndexableDataset
from fuel.interop.accelerate import prepare
from fuel.interop.torch import Loader
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping


def with_labels(batch):
    """Return the labels of a batch: its tokens."""
    return batch


def blocks(path):
    """Return batches of blocks of eight tokens of a file."""
    tokens = numpy.memmap(path, 'uint16', 'r')[:640].reshape(-1, 8)
    stream = DataStream(IndexableDataset({'input_ids': tokens}),
                        batch_size=8, shuffle=True, seed=1)
    return Mapping(Cast(stream, 'int64'), with_labels,
                   add_sources=('labels',))


class Trainer(transformers.Trainer):
    """Reads the batches of Fuel."""

    def get_train_dataloader(self):
        """Return the loader."""
        return prepare(self.accelerator, Loader(
            blocks('train.bin'), num_workers=2, as_dict=True, uneven='drop'))


def main():
    """Train for two epochs, from the last checkpoint on."""
    transformers.set_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=257, n_positions=8, n_embd=8, n_layer=1, n_head=2,
        attn_pdrop=0, embd_pdrop=0, resid_pdrop=0))
    os.makedirs('out', exist_ok=True)
    arguments = transformers.TrainingArguments(
        'out', num_train_epochs=2, use_cpu=True, save_steps=1,
        save_total_limit=2, logging_steps=1, report_to=[])
    trainer = Trainer(model, arguments)
    trainer.train(resume_from_checkpoint=bool(os.listdir('out')))
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
