"""Classify texts, with Accelerate."""
import numpy
import torch
import transformers
from accelerate import Accelerator
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def padded(examples):
    """Return a batch of texts and their classes."""
    ids = [torch.from_numpy(text) for text, _ in examples]
    return {'input_ids': pad_sequence(ids, True, 0),
            'attention_mask': pad_sequence(
                [torch.ones(len(text)) for text in ids], True, 0),
            'labels': torch.tensor([label for _, label in examples])}


def main():
    """Train for two epochs."""
    accelerator = Accelerator(cpu=True)
    transformers.set_seed(1)
    with numpy.load('texts.npz', allow_pickle=True) as file:
        examples = list(zip(file['input_ids'], file['labels'].tolist(),
                            strict=True))
    loader = DataLoader(examples, batch_size=4, shuffle=True,
                        collate_fn=padded)
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=60, hidden_size=8, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=8,
            hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    optimizer = torch.optim.AdamW(model.parameters(), .01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(2):
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            accelerator.print(f'epoch {epoch} loss {loss:.4f}', flush=True)
    accelerator.save(accelerator.unwrap_model(model).state_dict(), 'model.pt')


if __name__ == '__main__':
    main()
