"""From a text to a language model
===============================

A text file becomes shuffled batches of padded sentences. A small language
model learns which word follows which. The run is interrupted in the middle of
an epoch and resumed: its weights end bit for bit the same as those of a run
without the interruption.
"""
# %%
# The text
# --------
#
# The reference manual of the Python language comes with every Python, under
# its licence. Its sentences are written to two files, one sentence a line;
# every tenth is held out.

import json
import re
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import numpy
from numpy.typing import NDArray

from fuel.datasets import TextFile
from fuel.datasets.vocabulary import build_vocabulary
from fuel.schemes import ConstantScheme
from fuel.streams import AbstractDataStream, DataStream
from fuel.transformers import Batch, Padding
from fuel.transformers.shuffling import ShuffleBuffer

scratch = tempfile.TemporaryDirectory()
train_file = Path(scratch.name, 'train.txt')
test_file = Path(scratch.name, 'test.txt')

words_of = [re.findall('[a-z]+', sentence.lower())
            for name in sorted(topics)
            for sentence in re.split(r'[.:;]\s', topics[name])]
sentences = [' '.join(words) for words in words_of if 4 <= len(words) <= 30]
train_file.write_text('\n'.join(
    line for number, line in enumerate(sentences) if number % 10) + '\n')
test_file.write_text('\n'.join(sentences[::10]) + '\n')
print(len(sentences), 'sentences, such as', repr(sentences[11]))

# %%
# The vocabulary
# --------------
#
# It numbers the most frequent words; all others become ``<UNK>``.

vocabulary = build_vocabulary([str(train_file)], size=300)
words = vocabulary.dictionary
vocabulary

# %%
# The stream
# ----------
#
# ``TextFile`` reads a file of any size and makes numbers of the words, with a
# mark for the start and the end of each sentence. A file cannot be read at
# random, so ``ShuffleBuffer`` draws each sentence from a buffer. ``Padding``
# makes one array of a batch and adds a mask that is 1 where there are words.


def open_stream(path: Path) -> AbstractDataStream:
    """Return shuffled batches of padded sentences, and their masks."""
    stream = DataStream(TextFile([str(path)], words))
    shuffled = ShuffleBuffer(stream, buffer_size=1000, seed=1)
    batches = Batch(shuffled, iteration_scheme=ConstantScheme(32))
    return Padding(batches, mask_dtype='int8')


stream = open_stream(train_file)
stream

# %%
# A batch of 32 sentences is as wide as the longest of them:

features, mask = next(iter(open_stream(train_file)))
names = list(words)
print(features.shape, features.dtype, mask.shape, mask.dtype)
print(*(names[number] for number in features[0][mask[0] > 0]))

# %%
# The model
# ---------
#
# A vector for each word predicts the next word, by a softmax over the
# vocabulary.

Floats = NDArray[numpy.float32]
Integers = NDArray[numpy.int64]


class NextWord:
    """A log-bilinear model of pairs of words, trained by Adagrad."""

    def __init__(self, num_words: int, width: int = 16) -> None:
        rng = numpy.random.default_rng(1)
        self.weights = [
            rng.normal(0, 0.1, shape).astype('float32')
            for shape in ((num_words, width), (width, num_words))]
        self.squares = [numpy.full_like(part, 1e-8) for part in self.weights]

    def pairs(self, features: Integers, mask: NDArray[numpy.int8]
              ) -> tuple[Integers, Integers]:
        """Return words, and those that follow them."""
        inside = mask[:, 1:] > 0
        return features[:, :-1][inside], features[:, 1:][inside]

    def probabilities(self, before: Integers) -> Floats:
        """Return those of all words, after each of some words."""
        scores = self.weights[0][before] @ self.weights[1]
        scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        result: Floats = scores / scores.sum(axis=1, keepdims=True)
        return result

    def update(self, features: Integers, mask: NDArray[numpy.int8]) -> None:
        """Take one step down the gradient of the cross-entropy."""
        before, after = self.pairs(features, mask)
        error = self.probabilities(before)
        error[numpy.arange(len(after)), after] -= 1
        error /= len(after)
        embedded = numpy.zeros_like(self.weights[0])
        numpy.add.at(embedded, before, error @ self.weights[1].T)
        gradients = [embedded, self.weights[0][before].T @ error]
        for place, gradient in enumerate(gradients):
            self.squares[place] += gradient ** 2
            self.weights[place] -= (
                0.1 * gradient / numpy.sqrt(self.squares[place]))

    def perplexity(self, stream: AbstractDataStream) -> float:
        """Return between how many words it hesitates, on average."""
        surprise = [-numpy.log(self.probabilities(before)[
            numpy.arange(len(after)), after]) for before, after in (
                self.pairs(*batch) for batch in stream)]
        return float(numpy.exp(numpy.concatenate(surprise).mean()))


# %%
# Training
# --------

NUM_EPOCHS = 3
model = NextWord(len(words))
print(f'perplexity before: {model.perplexity(open_stream(test_file)):.0f}')
for _ in range(NUM_EPOCHS):
    for features, mask in stream:
        model.update(features, mask)
print(f'perplexity after:  {model.perplexity(open_stream(test_file)):.0f}')

for word in ('the', 'can', 'python'):
    likely = model.probabilities(numpy.array([words[word]]))[0].argsort()
    followers = [names[number] for number in likely[::-1]]
    print(word, '->', *list(filter(str.isalpha, followers))[:5])

# %%
# An interruption
# ---------------
#
# The same run again, but it ends after 30 batches of the second epoch. What is
# kept is the model, and a position in the data: a few numbers, as JSON, also
# in the middle of the shuffle buffer.

interrupted = NextWord(len(words))
stream = open_stream(train_file)
for features, mask in stream:
    interrupted.update(features, mask)
for number, (features, mask) in enumerate(stream, 1):
    interrupted.update(features, mask)
    if number == 30:
        saved = json.dumps(stream.state_dict())
        break
print(len(saved), 'characters:', saved[:70], '...')

# %%
# In a new process one would load the model, open the stream again, and load
# its position. The first loop then delivers what was left of the second epoch,
# so two more loops end the run.

stream = open_stream(train_file)
stream.load_state_dict(json.loads(saved))
for _ in range(NUM_EPOCHS - 1):
    for features, mask in stream:
        interrupted.update(features, mask)
same = all(numpy.array_equal(one, other) for one, other in zip(
    interrupted.weights, model.weights, strict=True))
print('the same weights as without the interruption:', same)

# %%
# Where to go on: :doc:`/sequences` has buckets of similar lengths, windows and
# n-grams, :doc:`/mixing` packs several sentences into a row and mixes corpora
# by weights, and :doc:`/resuming` says what a position holds.

scratch.cleanup()
# sphinx_gallery_thumbnail_path = 'pictures/buckets.png'
