"""Train a small language model, with the Trainer of Transformers."""
import os

import numpy
import torch
import transformers
from torch.utils.data import Dataset


class Blocks(Dataset):
    """Blocks of eight tokens of a file."""

    def __init__(self, path):
        self.blocks = numpy.memmap(path, 'uint16', 'r')[:640].reshape(-1, 8)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, number):
        block = torch.from_numpy(self.blocks[number].astype('int64'))
        return {'input_ids': block, 'labels': block}


def main():
    """Train for two epochs, from the last checkpoint on."""
    transformers.set_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=257, n_positions=8, n_embd=8, n_layer=1, n_head=2,
        attn_pdrop=0, embd_pdrop=0, resid_pdrop=0))
    os.makedirs('out', exist_ok=True)
    arguments = transformers.TrainingArguments(
        'out', num_train_epochs=2, per_device_train_batch_size=8,
        use_cpu=True, save_steps=1, save_total_limit=2, logging_steps=1,
        report_to=[], dataloader_num_workers=2)
    trainer = transformers.Trainer(
        model, arguments, train_dataset=Blocks('train.bin'))
    trainer.train(resume_from_checkpoint=bool(os.listdir('out')))
    torch.save(model.state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
