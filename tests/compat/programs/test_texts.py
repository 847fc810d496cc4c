"""Programs over text: translation, language models, bucketing."""
import pickle

import numpy
import pytest

from fuel.datasets import TextFile
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Cache,
    Filter,
    Mapping,
    Merge,
    Padding,
    SortMapping,
    Unpack,
)
from fuel.transformers.sequences import NGrams, Window

LENGTHS = [3, 1, 7, 2, 5, 4, 1, 6, 2, 2, 3, 7, 1, 4]


@pytest.fixture
def corpus(tmp_path):
    """Write sentences in two languages, of equal number."""
    paths = []
    for language, extra in (('en', 0), ('fr', 1)):
        path = tmp_path / f'corpus.{language}'
        path.write_text('\n'.join(
            ' '.join(f'{language}{number % 9}'
                     for number in range(length + extra))
            for length in LENGTHS) + '\n', encoding='utf-8')
        paths.append(str(path))
    return paths


def vocabulary(language):
    """Return numbers for the words of a language."""
    words = {'<UNK>': 0, '<S>': 1, '</S>': 2}
    words.update({f'{language}{number}': number + 3 for number in range(9)})
    return words


def _length(sentence_pair):
    """Return the length of the target: sentences are sorted by it."""
    return len(sentence_pair[1])


class TooLong(object):
    """A predicate with a state, as they were written to be pickled."""

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, sentence_pair):
        return all(len(sentence) <= self.limit for sentence in sentence_pair)


class FlattenBatch(object):
    """Transposes what Padding gives, since time comes first."""

    def __call__(self, data):
        return tuple(part.T for part in data)


def translation(paths, sort=6, size=2):
    """Return the pipeline of a translation program."""
    streams = [DataStream(TextFile(
        [path], vocabulary(path[-2:]), bos_token=None, level='word'))
        for path in paths]
    stream = Merge(streams, ('source', 'target'))
    stream = Filter(stream, predicate=TooLong(8))
    stream = Batch(stream, iteration_scheme=ConstantScheme(sort))
    stream = Mapping(stream, SortMapping(_length))
    stream = Unpack(stream)
    stream = Batch(stream, iteration_scheme=ConstantScheme(size))
    return Mapping(Padding(stream, mask_dtype='float32'), FlattenBatch())


def test_translation_pipeline_sorts_within_chunks(corpus):
    """Each chunk of six sentences is sorted, then cut in batches of two."""
    stream = translation(corpus)
    assert ('source', 'source_mask', 'target', 'target_mask'
            ) == stream.sources
    kept = [length for length in LENGTHS if length + 2 <= 8]
    expected = []
    for start in range(0, len(kept), 6):
        expected += sorted(kept[start:start + 6])
    seen = []
    for source, source_mask, target, target_mask in (
            stream.get_epoch_iterator()):
        assert source.shape == source_mask.shape
        assert source.shape[1] == target.shape[1] <= 2
        assert (source_mask.sum(axis=0) + 1
                == target_mask.sum(axis=0)).all()
        seen += (source_mask.sum(axis=0) - 1).astype(int).tolist()
    assert expected == seen


@pytest.mark.parametrize('protocol', [2, pickle.HIGHEST_PROTOCOL])
def test_translation_goes_on_from_any_batch(corpus, protocol):
    """Files, chunk and rest: all are where they were."""
    expected = [[part.tolist() for part in batch]
                for batch in translation(corpus).get_epoch_iterator()]
    for count in range(len(expected) + 1):
        stream = translation(corpus)
        iterator = stream.get_epoch_iterator()
        for _ in range(count):
            next(iterator)
        stream, iterator = pickle.loads(
            pickle.dumps((stream, iterator), protocol))
        assert expected[count:] == [
            [part.tolist() for part in batch] for batch in iterator]
        assert len(expected) == len(list(stream.get_epoch_iterator()))


def test_cache_cuts_large_batches_of_sentences_in_small_ones(corpus):
    """Chunks of five are read, and given three at a time."""
    dataset = TextFile([corpus[0]], vocabulary('en'))
    stream = Cache(Batch(DataStream(dataset), ConstantScheme(5)),
                   ConstantScheme(3))
    (first,), *rest = stream.get_epoch_iterator()
    assert [3 + 2, 1 + 2, 7 + 2] == [len(sentence) for sentence in first]
    assert len(LENGTHS) == len(first) + sum(len(part) for part, in rest)
    padded = Padding(stream)
    assert ('features', 'features_mask') == padded.sources
    assert len(LENGTHS) == sum(
        len(part) for part, _ in padded.get_epoch_iterator())


def test_language_model_over_several_files(corpus):
    """Characters, in windows, in batches of arrays."""
    letters = {letter: number for number, letter in enumerate(
        'enfr 0123456789')}
    dataset = TextFile(corpus, dict(letters, **{'<UNK>': 15}),
                       bos_token=None, eos_token=None, level='character')
    stream = Batch(Window(1, 4, 4, True, DataStream(dataset)),
                   ConstantScheme(10), strictness=1)
    count = 0
    for source, target in stream.get_epoch_iterator():
        assert (10, 4) == numpy.shape(source) == numpy.shape(target)
        assert (numpy.asarray(source)[:, 1:]
                == numpy.asarray(target)[:, :-1]).all()
        count += 1
    assert count > 20


def test_ngrams_in_batches_with_a_dict(corpus):
    """The program reads batches by name."""
    dataset = TextFile([corpus[0]], vocabulary('en'), bos_token=None)
    stream = Batch(NGrams(3, DataStream(dataset), target_source='next'),
                   ConstantScheme(4))
    batch = next(stream.get_epoch_iterator(as_dict=True))
    assert ['features', 'next'] == list(batch)
    assert (4, 3) == numpy.shape(batch['features'])
    assert (4,) == numpy.shape(batch['next'])
    assert [3, 4, 5] == list(batch['features'][0])
    assert 2 == batch['next'][0]
