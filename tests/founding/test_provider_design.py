"""The design of PaddlePaddle's data provider, point by point."""
import functools
import itertools

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.interop.paddle import (
    ProviderDataset,
    as_provider,
    buffered,
    firstn,
    make_minibatch_generator,
    minibatches,
    to_feed,
    train,
)
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Cast, ScaleAndShift
from fuel.utils.signatures import signature_of


def mnist(count=6):
    """Return a stream of images and labels, in batches."""
    rng = numpy.random.RandomState(0)
    dataset = IndexableDataset({
        'pixel': rng.randint(0, 256, (count, 28, 28)).astype('uint8'),
        'label': (numpy.arange(count) % 10)[:, None]})
    stream = ScaleAndShift(
        DataStream(dataset, iteration_scheme=SequentialScheme(count, 4)),
        2 / 255, -1, which_sources=('pixel',))
    return Cast(stream, 'float32', which_sources=('pixel',))


def test_provider_needs_no_argument_and_returns_an_iterable():
    """Anything that a for loop takes."""
    provider = as_provider(mnist())
    signature_of(provider).bind()
    for entry in provider():
        assert entry is not None


def test_each_element_is_a_single_entry():
    """A list of its columns, in the order of the sources."""
    entry = next(iter(as_provider(mnist())()))
    assert isinstance(entry, list)
    assert 2 == len(entry)


def test_columns_have_supported_types():
    """Pixels are a float32 array of one dimension, the label an integer."""
    for entry in as_provider(mnist())():
        pixel, label = entry
        assert ('float32', (784,)) == (pixel.dtype, pixel.shape)
        assert -1 <= pixel.min() <= pixel.max() <= 1
        assert type(label) is int


def test_column_may_be_a_list_of_integers():
    """Such as the words of a sentence."""
    entries = as_provider(DataStream(
        IndexableDataset({'words': [[3, 1], [2]], 'label': [0, 1]}),
        iteration_scheme=SequentialScheme(2, 2)))
    assert [[[3, 1], 0], [[2], 1]] == list(entries())


def test_training_call_has_the_mapping_the_batch_size_and_the_passes():
    """As its arguments, in this order."""
    seen = []
    train(as_provider(mnist()), ['image', 'label'], 4, 2,
          lambda batch, mapping: seen.append((len(batch), mapping)))
    mapping = {'image': 0, 'label': 1}
    assert [(4, mapping), (2, mapping)] * 2 == seen


def test_provider_does_not_care_for_the_size_of_a_batch():
    """One is used with any, and no training code handles leftovers."""
    provider = as_provider(mnist())
    for size in (1, 4, 5, 6, 100):
        labels = [[label for _, label in batch]
                  for batch in minibatches(provider, size)]
        assert list(range(6)) == sum(labels, [])
        assert all(len(batch) == size for batch in labels[:-1])


def test_minibatches_end_without_an_error():
    """A shorter last one is a batch; after a full last one there is none."""
    assert [[[0], [1]], [[2]]] == list(
        minibatches(lambda: ([n] for n in range(3)), 2))
    assert [[[0], [1]]] == list(
        minibatches(lambda: ([n] for n in range(2)), 2))
    assert [] == list(minibatches(list, 2))


def test_custom_provider_is_a_generator_in_a_lambda(tmp_path):
    """It opens files, makes arrays of them, and yields an entry each."""
    images = numpy.random.RandomState(3).randint(
        0, 256, (5, 4)).astype('uint8')
    images.tofile(tmp_path / 'images')
    numpy.arange(5, dtype='uint8').tofile(tmp_path / 'labels')

    def image_provider(folder, n=5):
        with open(folder / 'images') as file:
            pixels = numpy.fromfile(file, 'ubyte', count=n * 4).reshape(
                (n, 4)).astype('float32')
        pixels = pixels / 255.0 * 2.0 - 1.0
        with open(folder / 'labels') as file:
            labels = numpy.fromfile(file, 'ubyte', count=n).astype('int')
        for i in range(n):
            yield [pixels[i, :], labels[i]]

    provider = lambda: image_provider(tmp_path)  # noqa: E731 (as there)
    feeds = []
    train(provider, ['image', 'label'], 3, 2, lambda batch, mapping:
          feeds.append(to_feed(batch, mapping)))
    assert [0, 1, 2, 3, 4] * 2 == sum(
        (feed['label'].tolist() for feed in feeds), [])
    assert numpy.allclose(images[:3] / 127.5 - 1, feeds[0]['image'],
                          atol=1e-6)
    stream = DataStream(ProviderDataset(provider, ('image', 'label')))
    for _ in range(2):
        assert [0, 1, 2, 3, 4] == [
            label for _, label in stream.get_epoch_iterator()]


def test_parameter_with_a_default_keeps_it(tmp_path):
    """A provider over several files binds the path of each in a lambda."""
    def provider(path):
        with open(path) as lines:
            for line in lines:
                yield [int(line)]

    for number in range(3):
        path = tmp_path / f'{number}.txt'
        path.write_text(f'{number}0\n{number}1\n')
        for bound in (lambda path=path: provider(path),
                      functools.partial(provider, path),
                      functools.partial(provider, path=path)):
            seen = []
            train(bound, ['number'], 3, 2,
                  lambda batch, mapping, seen=seen: seen.append(batch))
            assert [[[10 * number], [10 * number + 1]]] * 2 == seen


def test_iterable_is_anything_that_a_loop_takes():
    """An object with indices alone is an iterable, too."""
    class Entries:
        def __getitem__(self, index):
            return ([0, 1], [2, 3], [4, 5])[index]

    assert [[[0, 1], [2, 3]], [[4, 5]]] == list(minibatches(Entries, 2))
    seen = []
    train(Entries, ['a', 'b'], 2, 1,
          lambda batch, mapping: seen.append(to_feed(batch, mapping)['b']))
    assert [[1, 3], [5]] == [column.tolist() for column in seen]
    assert [(0, 1), (2, 3), (4, 5)] == list(DataStream(
        ProviderDataset(Entries, ('a', 'b'))).get_epoch_iterator())
    assert [[0, 1], [2, 3], [4, 5]] == list(firstn(Entries, 9)())


def test_training_loop_of_the_document_runs():
    """With its names, and a loop of one's own."""
    shapes = []

    def do_forward_backward(mini_batch, mapping):
        feed = to_feed(mini_batch, mapping)
        shapes.append((feed['image'].shape, feed['label'].shape))

    provider, mapping = as_provider(mnist()), ['image', 'label']
    for pass_idx in range(2):
        for mini_batch in make_minibatch_generator(provider(pass_idx), 4):
            do_forward_backward(mini_batch, mapping)
    assert [((4, 784), (4,)), ((2, 784), (2,))] * 2 == shapes


@pytest.mark.parametrize('reader, text', [
    (5, 'must be an iterable.* got 5'), (mnist, 'when it is called')])
def test_reader_that_is_not_iterable_is_refused(reader, text):
    """A provider must be called first."""
    with pytest.raises(TypeError, match=text):
        next(make_minibatch_generator(reader, 2))


def test_provider_is_called_once_for_each_pass():
    """With the number of the pass, where it takes one."""
    calls = []

    def provider(pass_idx):
        calls.append(pass_idx)
        yield [0]

    train(provider, ['a'], 1, 3, lambda *_: None)
    assert [0, 1, 2] == calls


def test_online_learning_never_ends():
    """An endless provider is trained on as long as one wants."""
    class Enough(Exception):  # noqa: N818 (not an error)
        pass

    seen = []

    def step(batch, mapping):
        seen.append(batch)
        if len(seen) == 50:
            raise Enough

    with pytest.raises(Enough):
        train(lambda: ([n] for n in itertools.count()), ['a'], 2, 1, step)
    assert [[98], [99]] == seen[-1]


def test_entries_may_be_prefetched():
    """The document leaves it open; here it is a decorator."""
    reader = buffered(as_provider(mnist()), 4)
    labels = []
    train(reader, ['image', 'label'], 4, 1, lambda batch, mapping:
          labels.extend(entry[1] for entry in batch))
    reader.close()
    assert list(range(6)) == labels
