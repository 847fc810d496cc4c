"""With draws='example' an example gets the same draws wherever it comes."""
import itertools
import pickle
import random
from functools import partial

import numpy
import pytest
from numpy.random.bit_generator import ISeedSequence

from fuel.datasets import Dataset, IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.kernels.draws import example_shares, example_words
from fuel.schemes import (
    ConstantScheme, SequentialExampleScheme, SequentialScheme)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.testing import ReplayProcess, check_stream
from fuel.transformers import (
    Batch, Cache, Cast, Chain, Expand, Filter, FilterSources, Mapping,
    MarkExamples, Merge, Mix, MultiProcessing, MultiThreading,
    SeededTransformer, Take,
    Transformer, Unpack)
from fuel.transformers.image import (
    CutMix, ImagesFromBytes, MixUp, Random2DRotation, RandomFixedSizeCrop,
    RandomHorizontalFlip, RandomResizedCrop)
from fuel.transformers.noise import (
    Dropout, GaussianNoise, SaltAndPepper, UniformNoise)
from fuel.transformers.sequences import BucketBatch, Pack, Window
from fuel.transformers.shuffling import ShuffleBuffer

N = 29
IMAGES = numpy.random.RandomState(1).randint(
    1, 256, (N, 2, 6, 7)).astype('uint8')
LABELS = {'image': ('batch', 'channel', 'height', 'width'),
          'number': ('batch', 'id')}
IMAGE = {'which_sources': 'image'}


def numbers(dataset):
    """Return the numbers of a data set and of its rows."""
    return numpy.stack([numpy.full(N, dataset), numpy.arange(N)], axis=1)


def dataset(number=0, form='array'):
    """Return a data set of images, with their numbers."""
    images = {'array': IMAGES, 'floats': IMAGES / numpy.float32(255),
              'list': [image[:, :5 + place % 2] for place, image
                       in enumerate(IMAGES)]}[form]
    return IndexableDataset({'image': images, 'number': numbers(number)},
                            axis_labels=LABELS)


def batches(size=7, shuffle=True, form='array', number=0):
    """Return a stream of batches; the seed of their order is their size."""
    return DataStream(dataset(number, form), batch_size=size,
                      shuffle=shuffle, **{'seed': size} if shuffle else {})


def examples(form='array', number=0, seed=3):
    """Return a stream of examples."""
    return DataStream(dataset(number, form), shuffle=True, seed=seed)


def change(data):
    """Draw from all global generators."""
    image, number = data
    image = image.astype(float) * random.random() + numpy.random.rand()
    return image, number


class Jitter(SeededTransformer):
    """Draws for each row in each way that there is."""

    keeps_rows = True

    def __init__(self, data_stream, **kwargs):
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def transform_example(self, example):
        """Add three numbers to an image."""
        image, number = example
        factor, = self.draw_rows(1, lambda generator, count: (
            generator.random(count)), 5)
        return image * factor + self.generator().random() + (
            self.generator(2).integers(9)), number

    def transform_batch(self, batch):
        """Add three numbers to each image."""
        images, found = batch
        count = len(images)
        factors = self.draw_rows(count, lambda generator, count: (
            generator.random(count)), 5)
        more = [one.random() for one in self.generators(count)]
        last = [one.integers(9) for one in self.generators(count, 2)]
        return numpy.stack([
            image * factor + one + two for image, factor, one, two in zip(
                images, factors, more, last, strict=True)]), found


def stage_on(form, kind, *args, **kwargs):
    """Return the form of images that a stage takes, and a function that puts
    it on a stream."""
    return form, partial(
        _placed, kind, args, {'seed': 5, 'draws': 'example', **kwargs})


def _placed(kind, args, kwargs, stream):
    return kind(stream, *args, **kwargs)


STAGES = {
    'crop': stage_on('array', RandomFixedSizeCrop, (3, 4), **IMAGE),
    'crop of a list': stage_on(
        'list', RandomFixedSizeCrop, (3, 4), **IMAGE, stack=True),
    'part': stage_on('list', RandomResizedCrop, (4, 4), **IMAGE),
    'flip': stage_on('array', RandomHorizontalFlip, **IMAGE),
    'flip of a list': stage_on('list', RandomHorizontalFlip, **IMAGE),
    'rotation': stage_on('array', Random2DRotation, 2., **IMAGE),
    'GaussianNoise': stage_on('floats', GaussianNoise, .5, **IMAGE),
    'UniformNoise': stage_on('floats', UniformNoise, -1, 1, **IMAGE),
    'Dropout': stage_on('floats', Dropout, .3, **IMAGE),
    'SaltAndPepper': stage_on('array', SaltAndPepper, .3, **IMAGE),
    'noise of lists': stage_on('list', SaltAndPepper, .3, **IMAGE),
    'Jitter': stage_on('array', Jitter),
}


def is_odd(data):
    """Return whether Filter keeps an example."""
    return data[1][1] % 2 > 0


#: Streams that may come below the stage.
BELOW = {
    'batches of 1': lambda form: batches(1, form=form),
    'batches of 7': lambda form: batches(7, form=form),
    'batches of 64': lambda form: batches(64, form=form),
    'in sequence': lambda form: batches(4, False, form),
    'a scheme of ranges': lambda form: DataStream(
        dataset(form=form), iteration_scheme=SequentialScheme(N, 5)),
    'examples': examples,
    'Batch': lambda form: Batch(examples(form), batch_size=5),
    'Unpack': lambda form: Unpack(batches(form=form)),
    'ShuffleBuffer': lambda form: ShuffleBuffer(examples(form), 6),
    'Batch of ShuffleBuffer': lambda form: Batch(
        ShuffleBuffer(Unpack(batches(form=form)), 6), batch_size=5),
    'Cache': lambda form: Cache(batches(form=form), ConstantScheme(4)),
    'Merge': lambda form: FilterSources(Merge(
        (batches(form=form), batches(7, False)),
        ('image', 'number', 'x', 'y')), ('image', 'number')),
    'Filter': lambda form: Filter(examples(form), is_odd),
    'Take': lambda form: Take(batches(form=form), 3),
    'Mapping of examples': lambda form: Batch(
        Mapping(examples(form), tuple), batch_size=6),
    'Cast': lambda form: Cast(
        batches(form=form), 'int64', which_sources='number'),
    'BucketBatch': lambda form: BucketBatch(
        examples(form), 12, 'number', pool_size=9),
    'Chain': lambda form: Chain((
        batches(form=form), batches(3, form=form, number=1))),
    'Mix': lambda form: Mix((
        batches(form=form), batches(3, form=form, number=1)), stop='last'),
    'MultiThreading': lambda form: MultiThreading(batches(form=form)),
}


def rows_of(stream):
    """Yield the numbers of each row and its image, as bytes, of an epoch."""
    for item in stream.get_epoch_iterator():
        rows = [item] if stream.produces_examples else zip(*item, strict=True)
        for image, number in rows:
            yield (*number.tolist(),), (image.shape, image.tobytes())


_known = {}


def expected(name, epoch):
    """Return what each example becomes in an epoch, in batches of one in
    sequence on one rank."""
    if name not in _known:
        form, place = STAGES[name]
        stream = place(Chain([DataStream(
            dataset(number, form), batch_size=1, shuffle=False)
            for number in range(2)]))
        _known[name] = [dict(rows_of(stream)) for _ in range(3)]
    return _known[name][epoch]


def check(name, stream, epoch=0, epochs=2):
    """Assert that all rows of the next epochs are the expected ones."""
    count = 0
    for number in range(epoch, epoch + epochs):
        for key, image in rows_of(stream):
            assert expected(name, number)[key] == image
            count += 1
    return count


@pytest.mark.parametrize('name', STAGES)
def test_epochs_and_examples_are_drawn_for(name):
    """Each has draws of its own."""
    first, second = expected(name, 0), expected(name, 1)
    assert 2 * N == len(first)
    assert first != second
    # The data sets have the same images.
    assert any(first[0, row] != first[1, row] for row in range(N))


@pytest.mark.parametrize('below', BELOW)
@pytest.mark.parametrize('name', STAGES)
def test_an_example_is_drawn_for_alike_wherever_it_comes(name, below):
    """In batches of any size, in any order, below and above other stages."""
    form, place = STAGES[name]
    stream = BELOW[below](form)
    assert check(name, place(stream)) >= N - 1


@pytest.mark.parametrize('name', STAGES)
@pytest.mark.parametrize('count', [1, 2, 4])
def test_ranks_draw_alike(name, count):
    """They may share batches or examples, with padding too."""
    form, place = STAGES[name]
    for below, by, uneven in itertools.product(
            ('batches of 7', 'examples', 'Batch of ShuffleBuffer', 'Cache'),
            ('batch', 'example'), ('uneven', 'drop', 'pad')):
        try:
            shares = [place(BELOW[below](form)).shard(rank, count, by, uneven)
                      for rank in range(count)]
        except ValueError:
            assert by == 'example' or uneven == 'uneven'
            continue
        assert sum(check(name, share) for share in shares) >= N


@pytest.mark.parametrize('name', STAGES)
@pytest.mark.parametrize('kind, count', [
    (MultiThreading, {'num_threads': 3}),
    (MultiProcessing, {'num_workers': 2}),
    (MultiProcessing, {'num_workers': 1})])
def test_workers_and_threads_draw_alike(name, kind, count):
    """Above the stage; several workers share it."""
    form, place = STAGES[name]
    stream = place(BELOW[
        'Chain' if 1 in count.values() else 'batches of 7'](form))
    with kind(stream, **count) as stream:
        assert check(name, stream) >= 2 * N


@pytest.mark.parametrize('below', sorted(BELOW.keys() - {'MultiThreading'}))
@pytest.mark.parametrize('name', ['crop', 'Jitter'])
def test_draws_above_items_that_are_prefetched(name, below):
    """Threads run a pure stage ahead of the stage that draws."""
    form, place = STAGES[name]
    stream = Cast(BELOW[below](form), 'int64', which_sources='number')
    with MultiThreading(place(stream), num_threads=2) as stream:
        assert check(name, stream)


class Picky(Transformer):
    """Fails for some rows."""

    keeps_rows = pure = True

    def __init__(self, data_stream, row):
        super().__init__(data_stream, False)
        self.row = row

    def transform_batch(self, batch):
        """Return a batch without a row."""
        if (batch[1][:, 1] % 9 == self.row).any():
            raise ValueError('a bad row')
        return batch


@pytest.mark.parametrize('name', ['crop', 'Jitter'])
@pytest.mark.parametrize('on_top', [False, True])
def test_rows_that_threads_leave_out_change_no_draws(name, on_top):
    """Several stages leave out rows of a batch that was read ahead."""
    form, place = STAGES[name]
    stream = DataStream(dataset(form=form), batch_size=7, on_error='skip',
                        max_skipped=N)
    left_out = [3, 5, 6, 7][:3 + on_top]
    for row in left_out[:3]:
        stream = Picky(stream, row)
    stream = place(stream)
    for row in left_out[3:]:
        stream = Picky(stream, row)
    with MultiThreading(stream, num_threads=3) as stream:
        assert check(name, stream) == 2 * len([
            row for row in range(N) if row % 9 not in left_out])


@pytest.fixture(scope='module')
def another_process():
    """Return the process in which saved positions are continued."""
    with ReplayProcess() as process:
        yield process


def built(name, below):
    """Return a stage on a stream."""
    form, place = STAGES[name]
    return place(BELOW[below](form))


@pytest.mark.parametrize('below', [
    'batches of 7', 'Batch of ShuffleBuffer', 'Cache', 'Merge'])
def test_draws_go_on_in_another_process(below, another_process):
    """All promises of streams are kept."""
    check_stream(partial(built, 'Jitter', below),
                 another_process=another_process)


@pytest.mark.parametrize('below', sorted(
    BELOW.keys() - {'batches of 64', 'MultiThreading'}))
@pytest.mark.parametrize('name', ['crop', 'GaussianNoise', 'Jitter'])
def test_draws_go_on_from_a_state(name, below):
    """The state of an epoch that was not the first."""
    for read in (1, 3):
        stream = built(name, below)
        check(name, stream, epochs=1)
        iterator = stream.get_epoch_iterator()
        for _ in range(read):
            next(iterator)
        resumed = built(name, below)
        resumed.load_state_dict(stream.state_dict())
        check(name, resumed, epoch=1)


@pytest.mark.parametrize('name', ['flip', 'SaltAndPepper'])
def test_the_epoch_is_the_number_that_the_stream_counts(name):
    """Epochs that are left, skipped or restored count."""
    stream = built(name, 'batches of 7')
    next(stream.get_epoch_iterator())
    stream.get_epoch_iterator()
    check(name, stream, epoch=2, epochs=1)
    stream = built(name, 'batches of 7')
    check(name, stream, epochs=1)
    restored = built(name, 'batches of 7')
    restored.load_state_dict(stream.state_dict())
    check(name, restored, epoch=1)
    for images, found in built(name, 'batches of 7').iterate_from(
            position=(2, 14)):
        for image, number in zip(images, found, strict=True):
            assert expected(name, 2)[tuple(number)][1] == image.tobytes()


def test_a_function_is_called_with_the_draws_of_the_example():
    """In any order, by workers too, whatever comes above."""
    def build(stream):
        return Mapping(stream, change, seed=4, draws='example')

    one = build(DataStream(
        dataset(), iteration_scheme=SequentialExampleScheme(N)))
    epochs = [dict(rows_of(one)) for _ in range(2)]
    assert epochs[0] != epochs[1]
    for stream in (build(examples()), Batch(build(examples()), batch_size=7),
                   Batch(build(Unpack(batches(64))), batch_size=64),
                   build(ShuffleBuffer(examples(), 5))):
        for ours in (stream, *[stream.shard(rank, 3) for rank in range(3)]):
            for number in range(2):
                assert all(epochs[number][key] == image
                           for key, image in rows_of(ours))
    with MultiProcessing(build(examples()), num_workers=2) as stream:
        assert epochs == [dict(rows_of(stream)) for _ in range(2)]


def test_a_function_needs_a_seed_and_examples():
    """It draws for a batch otherwise."""
    with pytest.raises(ValueError, match='needs a seed: pass seed= too'):
        Mapping(examples(), change, draws='example')
    for seed in (None, 1):
        with pytest.raises(ValueError, match=(
                "draws must be 'item' or 'example', got 'banana'")):
            Mapping(examples(), change, seed=seed, draws='banana')
    with pytest.raises(ValueError, match='put Mapping before the stage that'):
        Mapping(batches(), change, seed=1, draws='example')


def test_rows_that_are_read_in_order_are_examples():
    """Their count in the epoch is their number, on all ranks."""
    def lines():
        return DataStream(IterableDataset(
            {'image': list(IMAGES / numpy.float32(255)),
             'number': list(numbers(0))}))

    name = 'GaussianNoise'
    _, place = STAGES[name]
    for stream in (place(lines()), Batch(place(lines()), batch_size=4),
                   place(Batch(lines(), batch_size=4)),
                   place(ShuffleBuffer(lines(), 4)),
                   *[place(lines()).shard(rank, 2) for rank in range(2)]):
        check(name, stream)


def test_sources_of_a_stage_get_the_same_draws():
    """An image and its mask stay aligned, whatever the batch."""
    pair = IndexableDataset(
        {'image': IMAGES, 'mask': IMAGES[:, :1].astype('int16')},
        axis_labels={'image': LABELS['image'], 'mask': LABELS['image']})
    for stream in (DataStream(pair, batch_size=5), DataStream(
            pair, iteration_scheme=SequentialExampleScheme(N))):
        for kind, *args in ((RandomHorizontalFlip,), (Random2DRotation,),
                            (RandomFixedSizeCrop, (3, 4))):
            for images, masks in kind(stream, *args, draws='example'):
                assert (images[..., :1, :, :] == masks).all()


@pytest.mark.parametrize('name', STAGES)
def test_examples_that_are_asked_for_by_number_are_drawn_for_alike(name):
    """One or several, in any order; the epoch is the first one."""
    for below in 'batches of 7', 'examples':
        data = built(name, below).as_dataset()
        place = data.sources.index('image')
        for number in (9, 2, N - 1):
            assert (expected(name, 0)[0, number][1]
                    == data[number][place].tobytes())
        for number, image in zip(
                (20, 3, 4), data[[20, 3, 4]][place], strict=True):
            assert expected(name, 0)[0, number][1] == image.tobytes()


class Failing(Transformer):
    """Fails at some examples."""

    keeps_rows = True

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_batch(self, batch):
        """Return the batch."""
        if (batch[1][:, 1] % 5 == 2).any():
            raise ValueError
        return batch


@pytest.mark.parametrize('name', ['flip', 'SaltAndPepper', 'Jitter'])
def test_rows_that_fail_do_not_change_the_draws_of_others(name):
    """Below the stage or above it."""
    _, place = STAGES[name]

    def build():
        return DataStream(dataset(), batch_size=7, shuffle=True, seed=1,
                          on_error='skip')

    for stream in (place(Failing(build())), Failing(place(build()))):
        assert 2 * (N - 6) == check(name, stream)
        assert stream.skipped_examples().count


# --- rows that are not known


class Rows(Transformer):
    """Does not say that it keeps the rows."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_batch(self, batch):
        """Return the batch in another order."""
        return tuple([part[::-1] for part in batch])

    transform_example = staticmethod(tuple)


class Twice(Expand):
    """Makes two examples of one."""

    def expand(self, item):
        """Return the pieces."""
        return [item, item]


class Reversed(Batch):
    """Moves rows, and does not say so."""

    def get_data(self, request=None):
        """Return a batch in another order."""
        return tuple([part[::-1] for part in super().get_data(request)])


class OwnRows(DataStream):
    """Reads rows that nobody knows."""

    def get_data(self, request=None):
        """Return the first rows."""
        return super().get_data(list(range(len(request))))


class Foreign:
    """A stream of another library's."""

    sources = ('image', 'number')
    produces_examples = False
    axis_labels = None
    iteration_scheme = None

    def get_epoch_iterator(self, as_dict=False):
        """Return an iterator."""
        return iter(())


def sequences():
    """Return a stream of sequences."""
    return DataStream(IndexableDataset({'x': [[1, 2, 3]] * 4}))


HIDING = {
    'Mapping': lambda: Mapping(batches(), tuple),
    'Rows': lambda: Rows(batches()),
    'Twice': lambda: Twice(examples(), True),
    'Reversed': lambda: Reversed(examples(), batch_size=3),
    'OwnRows': lambda: OwnRows(dataset(), batch_size=4),
    'Foreign': Foreign,
    'Window': lambda: Window(1, 2, 2, True, sequences()),
    'Pack': lambda: Pack(sequences(), 4),
}


@pytest.mark.parametrize('name', HIDING)
def test_stages_that_hide_examples_are_refused_at_once(name):
    """The error names the stage, and where to put this one."""
    for stream in HIDING[name], lambda: Take(HIDING[name](), 2):
        with pytest.raises(UnknownOrderError, match=(
                rf"Jitter\(draws='example'\) cannot tell which rows of an "
                rf'item of {name} .*put .* before that stage')):
            Jitter(stream(), draws='example')
        Jitter(stream())


class Crops(Expand, SeededTransformer):
    """Makes three numbers of each example."""

    def expand(self, item):
        """Yield the pieces."""
        drawn = self.generator()
        for _ in range(3):
            yield item[0] + drawn.random(), item[1]


def test_pieces_are_drawn_for_by_the_example_that_they_are_made_of():
    """A stage that makes them may draw; one after it may not."""
    def pieces(stream):
        found = {}
        for image, (_, number) in stream.get_epoch_iterator():
            found.setdefault(number, []).append(image.tolist())
        return found

    def build(seed):
        return Crops(examples(seed=seed), True, seed=5, draws='example')

    one, other = build(1), build(2)
    first = pieces(one)
    assert first == pieces(other)
    assert first != pieces(one) == pieces(other)
    for rank in range(2):
        # Ranks share the pieces, so a rank has some of an example.
        share = pieces(build(3).shard(rank, 2, uneven='uneven'))
        assert all(piece in first[number] for number, found in share.items()
                   for piece in found)
    with pytest.raises(UnknownOrderError, match='an item of Crops come from'):
        Jitter(build(1), draws='example')


def test_other_examples_of_these_stages_are_known():
    """An example that a function returns is that of its input."""
    for stream in Rows(examples()), Mapping(examples(), tuple):
        check('Jitter', Jitter(stream, seed=5, draws='example'))
    Jitter(ImagesFromBytes(examples()), draws='example')


def test_a_server_hides_examples():
    """The stage belongs into its process."""
    with Server(batches(), port=0) as server, pytest.raises(
            ValueError, match='cannot see the examples.*, in the server'):
        Jitter(ServerDataStream(('image', 'number'), port=server.port),
               draws='example')


def test_other_numbers_of_rows_are_refused_when_they_come():
    """A data set may return other rows than it is asked for."""
    class Doubled(Dataset):
        provides_sources = ('image', 'number')

        def get_data(self, state=None, request=None):
            return (numpy.repeat(request, 2),) * 2

    stream = Jitter(DataStream(
        Doubled(), iteration_scheme=SequentialScheme(4, 2)), draws='example')
    with pytest.raises(UnknownOrderError, match=(
            r"Jitter\(draws='example'\) reads a batch of 4 rows, but 2")):
        next(stream.get_epoch_iterator())


def test_a_generator_of_a_whole_batch_is_refused():
    """It belongs to no example."""
    class Whole(Jitter):
        def transform_batch(self, batch):
            self.generator()

    with pytest.raises(NotImplementedError, match=(
            r'draws by generator\(\) for a whole batch: draw for each row')):
        next(Whole(batches(), draws='example').get_epoch_iterator())


def test_arguments_are_checked():
    """Two values are known; an rng draws in order."""
    with pytest.raises(ValueError, match="must be 'item' or 'example', got"):
        RandomHorizontalFlip(batches(), draws='row')
    with pytest.raises(ValueError, match="draws='example' needs: pass one"):
        Random2DRotation(batches(), rng=numpy.random.RandomState(1),
                         draws='example')
    for kind in ShuffleBuffer, BucketBatch:
        with pytest.raises(TypeError, match="takes no argument 'draws'"):
            kind(examples(), 4, draws='example')


# --- states


def test_states_name_the_draws():
    """They agree in the position; those that say nothing draw by item."""
    states = []
    for draws in ('item', 'example'):
        stream = RandomHorizontalFlip(batches(), **IMAGE, seed=5, draws=draws)
        iterator = stream.get_epoch_iterator()
        next(iterator)
        states.append(stream.state_dict())
    ours, theirs = states
    assert 'example' == theirs['stream'].pop('draws')
    del ours['crc'], theirs['crc']
    assert ours == theirs
    other = RandomHorizontalFlip(batches(), **IMAGE, seed=5)
    with pytest.raises(StateMismatchError, match=(
            "draws was 'example', but here it is None")):
        other.load_state_dict(stream.state_dict())
    with pytest.raises(StateMismatchError, match=(
            "draws was None, but here it is 'example'")):
        stream.load_state_dict(other.state_dict())


def test_pickles_keep_the_draws():
    """So do copies of a stage that draws by item, and its states."""
    for build in (partial(_placed, Mapping, (tuple,), {}),
                  partial(_placed, Jitter, (), {'seed': 5}),
                  STAGES['Jitter'][1]):
        stream = build(examples())
        copied = pickle.loads(pickle.dumps(build(examples())))
        assert [*rows_of(stream)] == [*rows_of(copied)]
        stream.load_state_dict(copied.state_dict())
        copied.load_state_dict(stream.state_dict())
    iterator = built('Jitter', 'batches of 7').get_epoch_iterator()
    next(iterator)
    again = pickle.loads(pickle.dumps(iterator))
    for one, other in zip(iterator, again, strict=True):
        assert one[0].tobytes() == other[0].tobytes()


def test_item_draws_stay():
    """They are those of the number of the batch, as before."""
    stream = RandomHorizontalFlip(batches(), **IMAGE, seed=5)
    for number, (images, found) in enumerate(stream):
        key = stream._key
        flipped = numpy.random.default_rng([key, number]).random(
            len(images)) < .5
        for image, (_, row), mark in zip(images, found, flipped, strict=True):
            assert (image == IMAGES[row][..., ::-1 if mark else 1]).all()


# --- mixing


@pytest.mark.parametrize('kind', [MixUp, CutMix])
@pytest.mark.parametrize('probability', [1., .5])
def test_mixing_is_decided_by_example(kind, probability):
    """Its share is too; the partner comes from the batch."""
    shares = {}
    for size in (7, 10, N):
        stream = kind(
            MarkExamples(DataStream(IndexableDataset({
                'image': numpy.arange(1., N + 1)[:, None, None, None].repeat(
                    20, axis=3).repeat(20, axis=2),
                'targets': numpy.arange(N)}, axis_labels={
                    'image': LABELS['image'],
                    'targets': ('batch', 'index')}),
                batch_size=size, shuffle=True, seed=1)),
            N, which_sources='image', probability=probability, seed=2,
            draws='example')
        for images, targets, _, marks, partners in MarkExamples(
                stream, 'own', partner='other'):
            assert numpy.allclose(images.mean(axis=(1, 2, 3)),
                                  targets @ numpy.arange(1., N + 1))
            for target, (_, own), (_, other) in zip(
                    targets, marks, partners, strict=True):
                pair = {own} if other < 0 else {own, other}
                assert pair >= {*target.nonzero()[0]}
                assert numpy.isclose(target.sum(), 1)
                assert other in (-1, *marks[:, 1])
                if own != other:
                    shares.setdefault(own, set()).add(
                        None if other < 0 else float(target[own]))
    assert all(len(found) == 1 for found in shares.values())
    found = set().union(*shares.values())
    assert (probability == 1) != (None in found)
    assert len(found) > 5


# --- the numbers


class Words(ISeedSequence):
    """Gives the words that it got."""

    def __init__(self, words):
        self.words = words

    def generate_state(self, n_words, dtype=None):
        """Return the words."""
        return self.words


IDS = numpy.array([[0, 0], [0, 1], [1, 0], [3, 2 ** 40], [0, -1]])


def test_shares_are_those_of_numpys_generator():
    """SFC64, from the words of the example."""
    for key in (0, 1, 2 ** 63 - 1):
        for words, found in zip(example_words(key, IDS), example_shares(
                key, IDS, 50), strict=True):
            generator = numpy.random.Generator(
                numpy.random.SFC64(Words(words)))
            assert generator.random(50).tolist() == found.tolist()


def splitmix(number):
    """Return the first number that a SplitMix64 gives for a seed."""
    mask = 2 ** 64 - 1
    number = number + 0x9e3779b97f4a7c15 & mask
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9 & mask
    number = (number ^ number >> 27) * 0x94d049bb133111eb & mask
    return number ^ number >> 31


def test_words_are_those_of_splitmix64():
    """Computed by Python's integers."""
    assert 0xe220a8397b1dcdaf == splitmix(0)
    for key, more in ((0, ()), (2 ** 63 - 1, (3,)), (5, (1, 2))):
        other = 0
        for number in more:
            other = splitmix(other ^ splitmix(number))
        assert [[splitmix(row % 2 ** 64), splitmix(key),
                 splitmix(other ^ splitmix(dataset))]
                for dataset, row in IDS.tolist()] == (
            example_words(key, IDS, more).tolist())


def test_numbers_stay():
    """No release draws others."""
    assert [[int(share * 2 ** 53) for share in row] for row in example_shares(
        12345, IDS, 2)] == FROZEN_SHARES
    stream = RandomHorizontalFlip(DataStream(IndexableDataset(
        {'x': numpy.arange(2 * 24).reshape(24, 1, 1, 2)},
        axis_labels={'x': LABELS['image']}), batch_size=24), seed=7,
        draws='example')
    assert FROZEN_FLIPS == [''.join(
        str(int(left > right)) for left, right in batch[:, 0, 0])
        for _ in range(3) for batch, in stream]


FROZEN_SHARES = [
    [6939798118616065, 4117854132735003], [5281697127184489, 6476340308878541],
    [1917658419302756, 4822254504572742], [5640142503759315, 2129036411306610],
    [375425757575991, 5134972079520510]]
FROZEN_FLIPS = ['010110000010010011100010', '100011101010011010010111',
                '101010000111111010110111']


def test_numbers_are_uniform_and_independent():
    """Over rows, keys, data sets, and draws of one example: chi-square."""
    count = 2 ** 16
    rows = numpy.zeros((count, 2), int)
    rows[:, 1] = numpy.arange(count)
    sets = rows[:, ::-1].copy()
    drawn = example_shares(3, rows, 3)
    keys = numpy.concatenate([
        example_shares(key, rows[:1], 1) for key in range(4096)])
    for one, other in (
            (drawn[:, 0], drawn[:, 1]), (drawn[:, 1], drawn[:, 2]),
            (drawn[:-1, 0], drawn[1:, 0]),
            (drawn[:, 0], example_shares(4, rows, 1)[:, 0]),
            (drawn[:, 0], example_shares(3, sets, 1)[:, 0]),
            (keys[:-1, 0], keys[1:, 0])):
        table = numpy.histogram2d(
            one, other, 16, [[0, 1], [0, 1]])[0].ravel()
        wanted = len(one) / 256
        statistic = ((table - wanted) ** 2 / wanted).sum()
        # 255 degrees of freedom: within five standard deviations.
        assert abs(statistic - 255) < 5 * numpy.sqrt(2 * 255)
