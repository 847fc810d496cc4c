"""Programs with Accelerate and Transformers in the form in which they are
common, with small models. See tests/interop/trainers.
"""
import os
import signal

import numpy
import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import set_seed
from trainer_pipelines import Log, options

from fuel.datasets import IndexableDataset
from fuel.interop.accelerate import prepare
from fuel.interop.torch import Loader, as_map
from fuel.streams import DataStream
from fuel.transformers import Padding, Rename


def texts(count):
    """Return texts of several lengths, whose first token is their number."""
    found = numpy.empty(count, dtype=object)
    for number in range(count):
        found[number] = numpy.arange(number, number + 2 + number % 5) % 60
    return found


class Progress:
    """Saved by a program beside its loader."""

    epoch = 0

    def state_dict(self):
        """Return the epoch."""
        return {'epoch': self.epoch}

    def load_state_dict(self, state):
        """Go on in an epoch."""
        self.epoch = state['epoch']


def classify(folder, workers=0, kill_at=None, resume=False, epochs=2):
    """Train as the complete example of Accelerate for texts does."""
    accelerator = Accelerator(cpu=True)
    set_seed(1)
    log = Log(folder, accelerator.process_index)

    def loader_of(count, uneven, **how):
        data = IndexableDataset({
            'input_ids': texts(count), 'labels': (
                numpy.arange(count) % 2).astype('int8')})
        stream = Rename(
            Padding(DataStream(data, batch_size=4, **how),
                    mask_sources=('input_ids',)),
            {'input_ids_mask': 'attention_mask'})
        return prepare(accelerator, Loader(
            stream, workers, as_dict=True, uneven=uneven))

    train = loader_of(58, 'drop', shuffle=True, seed=1)
    test = loader_of(10, 'uneven')
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=60, hidden_size=8, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=8, num_labels=2,
            # A loader of PyTorch draws a number where it begins to read.
            hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    optimizer = torch.optim.AdamW(model.parameters(), .01)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, 3, len(train) * epochs)
    model, optimizer, schedule = accelerator.prepare(
        model, optimizer, schedule)
    progress, path = Progress(), os.path.join(folder, 'saved')
    accelerator.register_for_checkpointing(progress, train)
    if resume:
        accelerator.load_state(path)
    for epoch in range(progress.epoch, epochs):
        model.train()
        for step, batch in enumerate(train, 1):
            log.write(epoch, batch['input_ids'][:, 0])
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if kill_at == [epoch, step]:
                progress.epoch = epoch
                accelerator.save_state(path)
                accelerator.wait_for_everyone()
                os.kill(os.getpid(), signal.SIGKILL)
        model.eval()
        seen = torch.zeros(())
        with torch.no_grad():
            for batch in test:
                model(**batch)
                seen += len(batch['labels'])
        assert accelerator.reduce(seen) == len(test.dataset)
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(),
                   os.path.join(folder, 'weights.pt'))
    accelerator.end_training()


class Language(transformers.GPT2LMHeadModel):
    """A small model that writes down the texts that it is trained on."""

    log = None

    def forward(self, input_ids=None, **others):
        """Return what the model does."""
        self.log.write(0, input_ids[:, 0])
        return super().forward(input_ids=input_ids, **others)


def padded(examples):
    """Return a batch of examples."""
    rows = [torch.as_tensor(one['input_ids']) for one in examples]
    return {'input_ids': torch.nn.utils.rnn.pad_sequence(rows, True, 0),
            'labels': torch.nn.utils.rnn.pad_sequence(rows, True, -100)}


class End(transformers.TrainerCallback):
    """Ends the run where a checkpoint was saved."""

    def __init__(self, kill_at):
        self.kill_at = kill_at

    def on_save(self, args, state, control, **kwargs):
        """End the process once the other ranks are here."""
        if state.global_step == self.kill_at:
            if torch.distributed.is_initialized():
                torch.distributed.barrier()
            os.kill(os.getpid(), signal.SIGKILL)


def balance(folder, kill_at=None, resume=False, epochs=2):
    """Train with batches that Transformers balances by their lengths."""
    model = Language(transformers.GPT2Config(
        vocab_size=60, n_positions=16, n_embd=8, n_layer=1, n_head=2,
        bos_token_id=0, eos_token_id=0, attn_pdrop=0, embd_pdrop=0,
        resid_pdrop=0))
    arguments = transformers.TrainingArguments(
        os.path.join(folder, 'out'), num_train_epochs=epochs,
        per_device_train_batch_size=4, learning_rate=.01, use_cpu=True,
        train_sampling_strategy='batch_rebalance', save_strategy='steps',
        save_steps=1, save_total_limit=2, report_to=[], disable_tqdm=True,
        logging_strategy='no', remove_unused_columns=False,
        ddp_find_unused_parameters=False)
    model.log = Log(folder, arguments.process_index)
    trainer = transformers.Trainer(
        model, arguments, data_collator=padded, callbacks=[End(kill_at)],
        train_dataset=as_map(
            IndexableDataset({'input_ids': texts(58)}), as_dict=True))
    trainer.train(resume_from_checkpoint=resume)
    if trainer.is_world_process_zero():
        torch.save(model.state_dict(), os.path.join(folder, 'weights.pt'))


if __name__ == '__main__':
    chosen = options()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    {'classify': classify, 'balance': balance}[chosen.pop('what')](**chosen)
