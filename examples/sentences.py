"""From a file of sentences to a trained language model, stopped and resumed.

    python examples/sentences.py

The model counts which word follows which. It is saved with the position in the
text in the middle of the first epoch, and continues from there.
"""
import json
import tempfile
from pathlib import Path

import numpy

from fuel.datasets.text import TextFile
from fuel.datasets.vocabulary import build_vocabulary
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Padding
from fuel.transformers.shuffling import ShuffleBuffer

SUBJECTS = ('the cat', 'the dog', 'an owl', 'a mouse')
VERBS = ('sees', 'hears', 'follows')


def write_sentences(path: Path) -> None:
    """Write every sentence of a small language, a sentence a line."""
    path.write_text('\n'.join(
        f'{subject} {verb} {other}' for subject in SUBJECTS for verb in VERBS
        for other in SUBJECTS if subject != other) + '\n')


def open_stream(path: Path, words: dict[str, int]) -> Padding:
    """Return shuffled batches of padded sentences, and their masks."""
    stream = DataStream(TextFile([str(path)], words))
    shuffled = ShuffleBuffer(stream, buffer_size=20, seed=1)
    batches = Batch(shuffled, iteration_scheme=ConstantScheme(4))
    return Padding(batches, mask_dtype='int8')


def main() -> None:
    """Count pairs of words, with an interruption, and print what is likely."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, 'sentences.txt')
        write_sentences(path)
        words = build_vocabulary([str(path)], size=20).dictionary
        counts = numpy.zeros((len(words), len(words)), 'int64')
        first = open_stream(path, words)
        epoch = iter(first)
        for _ in range(3):
            sentences, mask = next(epoch)
            numpy.add.at(counts, (sentences[:, :-1], sentences[:, 1:]),
                         mask[:, 1:])
        # A position, not data: a few numbers, as JSON.
        saved = json.dumps(first.state_dict())

        resumed = open_stream(path, words)
        resumed.load_state_dict(json.loads(saved))
        for sentences, mask in resumed:
            numpy.add.at(counts, (sentences[:, :-1], sentences[:, 1:]),
                         mask[:, 1:])
    names = list(words)
    after_the = counts[words['the']]
    likely = sorted(names[place] for place in after_the.argsort()[-2:])
    print(f'pairs counted: {counts.sum()}')
    print(f'after "the" comes {" or ".join(likely)}')


if __name__ == '__main__':
    main()
