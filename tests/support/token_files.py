"""Texts, a tokenizer of them, and a conversion that is killed."""
import json
import os
import random
import signal
import sys
from pathlib import Path

WORDS = ['the', 'cat', 'sat', 'on', 'a', 'mat;', 'naïve', 'façade', '東京',
         '😀', "don't", '3.14', '\t']
END = '<|end|>'


def make_texts(count, seed=0):
    """Return random documents, of several lines and paragraphs."""
    chosen = random.Random(seed)
    return ['\n\n'.join('\n'.join(
        ' '.join(chosen.choices(WORDS, k=chosen.randrange(1, 12)))
        for _ in range(chosen.randrange(1, 4)))
        for _ in range(chosen.randrange(1, 4))) for _ in range(count)]


def write_json_lines(path, texts, field='text'):
    """Write texts as JSON lines; return the path."""
    path.write_text(''.join(json.dumps({'id': number, field: text}) + '\n'
                            for number, text in enumerate(texts)))
    return path


def train_tokenizer(path, texts):
    """Train a BPE of bytes, and save it; return it."""
    from tokenizers import (
        Tokenizer, decoders, models, pre_tokenizers, trainers)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(str(path))
    return tokenizer


def convert_and_be_killed(folder, count):
    """Convert ``texts.jsonl`` in small pieces; end by SIGKILL after some."""
    from fuel.converters import tokens
    tokens.PIECE = 200
    encode, left = tokens.Encoder.encode, iter(range(count))

    def killed(self, texts):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(self, texts)

    tokens.Encoder.encode = killed
    tokens.convert_tokens(folder, folder, ['texts.jsonl'],
                          str(Path(folder, 'tokenizer.json')))


if __name__ == '__main__':
    convert_and_be_killed(sys.argv[1], int(sys.argv[2]))
