"""Streams of Fuel whose data are tensors."""
import pickle
import sys
from functools import partial

import numpy
import pytest
import torch
from support.torch_pipelines import copied_ahead, examples, ordered, shuffled

from fuel.datasets import IndexableDataset
from fuel.interop.torch import ToTorch, to_torch
from fuel.interop.torch.stage import DeviceCopier
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.testing import check_stage
from fuel.transformers import Padding


def of(column, batch_size=2):
    """Return a stream of batches in order."""
    return DataStream(IndexableDataset(column),
                      iteration_scheme=SequentialScheme(
                          len(column), batch_size))


class Recording(IndexableDataset):
    """A data set that remembers where its batches were."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.addresses, self.read = [], 0

    def get_data(self, state=None, request=None):
        data = super().get_data(state, request)
        self.addresses.append(data[0].ctypes.data)
        self.read += 1
        return data


@pytest.mark.parametrize('stage', [
    to_torch, partial(to_torch, dtype='bfloat16'), copied_ahead],
    ids=['plain', 'cast', 'copied'])
def test_stage_keeps_the_promises(stage, another_process):
    """The promises are about epochs, states, pickles and other processes."""
    check_stage(stage, another_process=another_process)


def test_batches_of_arrays_take_no_function_of_python():
    """A Python function between two updates of a model would run from cold
    caches."""
    epoch = to_torch(DataStream(
        IndexableDataset({'x': numpy.ones((8, 2)), 'y': numpy.arange(8)}),
        iteration_scheme=SequentialScheme(8, 2))).get_epoch_iterator()
    next(epoch)
    called, before = [], sys.getprofile()
    sys.setprofile(lambda frame, event, _: called.append(
        frame.f_code.co_name) if event == 'call' else None)
    try:
        x, y = next(epoch)
    finally:
        sys.setprofile(before)
    assert [] == called
    assert [2, 3] == y.tolist()
    assert (2, 2) == x.shape


class Doubled(ToTorch):
    """A stage with a method of its own."""

    def transform_any(self, data):
        return tuple([2 * part for part in super().transform_any(data)])


def test_methods_that_are_overridden_make_the_tensors(monkeypatch):
    """They are overridden in a subclass, on an instance, and in the class
    itself."""
    stream = of(numpy.arange(4))

    def batches(stage):
        return [batch.tolist() for batch, in stage.get_epoch_iterator()]
    assert [[0, 2], [4, 6]] == batches(Doubled(stream))
    stage = to_torch(stream)
    assert [[0, 1], [2, 3]] == batches(stage)
    stage.transform_any = lambda data: (torch.ones(1),)
    assert [[1], [1]] == batches(stage)
    monkeypatch.setattr(
        ToTorch, 'transform_any', lambda self, data: (torch.zeros(1),))
    assert [[0], [0]] == batches(to_torch(stream))


def test_items_of_arrays_and_others_become_tensors():
    """Arrays of another layout are converted as other objects are."""
    scheme = SequentialScheme(4, 2)
    for column, dtype in [([1, 2, 3, 4], torch.int64),
                          (numpy.arange(1, 5, dtype='>i4'), torch.int32)]:
        batches = list(to_torch(DataStream(
            IndexableDataset({'x': numpy.arange(4.), 'y': column}),
            iteration_scheme=scheme),
            targets='as stored').get_epoch_iterator())
        assert [[1, 2], [3, 4]] == [y.tolist() for _, y in batches]
        assert {dtype} == {y.dtype for _, y in batches}


def test_tensors_are_over_the_memory_of_the_arrays():
    """Nothing is copied."""
    dataset = Recording(numpy.arange(12.))
    stream = to_torch(DataStream(
        dataset, iteration_scheme=SequentialScheme(12, 4)))
    batches = [batch for batch, in stream.get_epoch_iterator()]
    assert dataset.addresses == [batch.data_ptr() for batch in batches]
    for batch in batches:
        batch.zero_()
    assert list(range(12)) == torch.cat(
        [batch for batch, in stream.get_epoch_iterator()]).tolist()


@pytest.mark.parametrize('dtype', [
    'bool', 'uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32',
    'int64', 'float16', 'float32', 'float64', 'complex64', 'complex128'])
def test_types_stay_what_they_are(dtype):
    """Every type of numbers that both have."""
    array = numpy.arange(4).astype(dtype)
    (batch,), _ = to_torch(
        of(array), targets='as stored').get_epoch_iterator()
    assert dtype == str(batch.dtype).removeprefix('torch.')
    assert numpy.array_equal(array[:2], batch.numpy())


@pytest.mark.parametrize('array', [
    numpy.arange(6, dtype='>i4').reshape(3, 2), numpy.arange(6)[::-1],
    numpy.broadcast_to(numpy.float32(3), (3, 2))], ids=[
        'byte order', 'reversed', 'read-only'])
def test_unusual_arrays_are_copied(array):
    """A user's stage may return arrays that PyTorch would not take."""
    class Whole(IndexableDataset):
        def get_data(self, state=None, request=None):
            return (array,)
    stream = to_torch(DataStream(
        Whole(array), iteration_scheme=SequentialScheme(3, 3)))
    (batch,), = stream.get_epoch_iterator()
    assert numpy.array_equal(array, batch.numpy())
    batch.zero_()


def test_examples_become_tensors_too():
    """Numbers become tensors without axes."""
    numbers = [number for number, in to_torch(
        examples()).get_epoch_iterator()]
    assert all(() == number.shape for number in numbers)
    assert [number for number, in examples().get_epoch_iterator()] == numbers


def test_lists_of_numbers_and_of_equal_shapes_become_tensors():
    """Fuel returns lists for data that are lists."""
    (batch,), _ = to_torch(of([1, 2, 3])).get_epoch_iterator()
    assert torch.equal(torch.tensor([1, 2]), batch)
    rows = [numpy.ones(2), numpy.zeros(2)]
    (batch,), = to_torch(of(rows)).get_epoch_iterator()
    assert torch.equal(torch.tensor([[1., 1.], [0., 0.]]).double(), batch)


def test_padded_batches_become_tensors():
    """Ragged batches are refused, and the error names Padding."""
    ragged = of([numpy.ones(2), numpy.ones(3)])
    with pytest.raises(TypeError, match=r"'data'.*transformers\.Padding"):
        next(to_torch(ragged).get_epoch_iterator())
    batch, mask = next(to_torch(Padding(ragged)).get_epoch_iterator())
    assert (2, 3) == batch.shape == mask.shape


@pytest.mark.parametrize('column, text', [
    (['a', 'b'], 'strings.*encode them'),
    (numpy.array(['a', 'b'], object), 'strings'),
    (numpy.array([b'a', b'b']), 'strings'),
    (numpy.array([b'a', b'bc'], object), 'bytes.*ImagesFromBytes'),
    ([b'a', b'bc'], 'bytes.*ImagesFromBytes'),
    (numpy.array([None, 1]), 'Python objects'),
    (numpy.array([(1, 2.)] * 2, [('a', int), ('b', float)]),
     r"Rows\('data', field='a'\)"),
    (numpy.zeros(2, 'timedelta64[s]'), 'cast it to int64')])
def test_data_that_no_tensor_holds_are_refused(column, text):
    """The source and the type are named; as they are, they may stay."""
    with pytest.raises(TypeError, match=f"source 'data'.*{text}"):
        next(to_torch(of(column)).get_epoch_iterator())
    kept, = next(to_torch(of(column), which_sources=()
                          ).get_epoch_iterator())
    assert not isinstance(kept, torch.Tensor)


def test_floating_numbers_are_cast_on_the_way():
    """Other sources stay as they are, unless a dict says otherwise."""
    rows, numbers = next(to_torch(
        ordered(), dtype=torch.bfloat16).get_epoch_iterator())
    assert (torch.bfloat16, torch.int64) == (rows.dtype, numbers.dtype)
    rows, numbers = next(to_torch(
        ordered(), dtype={'numbers': 'float32'}).get_epoch_iterator())
    assert (torch.float64, torch.float32) == (rows.dtype, numbers.dtype)


def test_batches_have_names_if_asked():
    """Any stream can name them."""
    batch = next(to_torch(ordered()).get_epoch_iterator(as_dict=True))
    assert ['rows', 'numbers'] == list(batch)
    assert isinstance(batch['rows'], torch.Tensor)


def test_next_batch_is_copied_while_this_one_is_used():
    """Only one batch is copied in advance."""
    dataset = Recording(numpy.arange(10.))
    stream = to_torch(DataStream(
        dataset, iteration_scheme=SequentialScheme(10, 4)), device='meta')
    epoch = stream.get_epoch_iterator()
    assert 0 == dataset.read
    for number in (2, 3, 3):
        batch, = next(epoch)
        assert 'meta' == batch.device.type
        assert number == dataset.read
    assert [] == list(epoch)


@pytest.mark.parametrize('step', [0, 1, 5, 6, 7])
def test_state_beside_a_device_is_that_without(step):
    """A batch that was copied in advance counts as not read."""
    ahead, plain = copied_ahead(shuffled()), to_torch(shuffled())
    for stream in (ahead, plain):
        epoch = stream.get_epoch_iterator()
        for _ in range(step):
            next(epoch)
        stream.kept = epoch
    assert plain.state_dict() == ahead.state_dict()
    expected = [batch.tolist() for batch, in plain.kept]
    restored = to_torch(shuffled())
    restored.load_state_dict(ahead.state_dict())
    assert expected == [
        batch.tolist() for batch, in restored.get_epoch_iterator()]
    assert len(expected) == len(list(ahead.kept))


@pytest.mark.parametrize('build', [to_torch, copied_ahead])
def test_iterator_dropped_before_its_first_item_is_not_an_epoch(build):
    """The next iterator has it; two alive at a time are two epochs."""
    stream = build(shuffled())

    def read(iterator):
        """Return which epoch of the stream an iterator reads, all of it."""
        assert 7 == sum(1 for _ in iterator)
        plain, states = to_torch(shuffled()), []
        for _ in range(4):
            list(plain)
            states.append(plain.state_dict())
        return states.index(stream.state_dict())
    iter(stream)
    assert 7 == len(stream)
    assert 0 == read(stream)
    one, other = iter(stream), iter(stream)
    del one
    assert 1 == read(other)
    one, other = iter(stream), iter(stream)
    assert [2, 3] == [read(one), read(other)]


def test_error_of_the_stream_is_raised_in_its_turn():
    """It is not raised while the batch before it is returned."""
    class Failing(IndexableDataset):
        def get_data(self, state=None, request=None):
            if 4 in request:
                raise ArithmeticError('no four')
            return super().get_data(state, request)
    stream = copied_ahead(DataStream(
        Failing(numpy.arange(8)), iteration_scheme=SequentialScheme(8, 2)))
    epoch = stream.get_epoch_iterator()
    next(epoch), next(epoch)
    with pytest.raises(ArithmeticError, match='no four'):
        next(epoch)
    assert 1 == len(list(epoch))


def test_copies_on_cuda_wait_for_each_other(monkeypatch):
    """The copy runs in a stream of its own; the model's waits for it."""
    calls = []

    class Stream:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            calls.append(f'enter {self.name}')

        def __exit__(self, *_):
            calls.append(f'leave {self.name}')

        def wait_stream(self, other):
            calls.append(f'{self.name} waits for {other.name}')

    class Tensor(torch.Tensor):
        def to(self, device, non_blocking):
            calls.append(f'copy {non_blocking}')
            return self

        def pin_memory(self):
            calls.append('pin')
            return self

        def record_stream(self, stream):
            calls.append(f'record {stream.name}')
    monkeypatch.setattr(torch.cuda, 'Stream', lambda device: Stream('side'))
    monkeypatch.setattr(torch.cuda, 'stream', lambda stream: stream)
    monkeypatch.setattr(
        torch.cuda, 'current_stream', lambda device: Stream('main'))
    copier = DeviceCopier(torch.device('cuda'), True)
    tensor = torch.zeros(1).as_subclass(Tensor)
    batch = copier.start((tensor, 'name'))
    assert ['enter side', 'pin', 'copy True', 'leave side'] == calls
    assert batch == copier.finish(batch)
    assert ['main waits for side', 'record main'] == calls[4:]


def test_pickle_and_repr():
    """A copy makes anew what belongs to the process."""
    stream = copied_ahead(shuffled())
    next(stream.get_epoch_iterator())
    copy = pickle.loads(pickle.dumps(stream))
    assert 7 == len(list(copy.get_epoch_iterator()))
    assert "to_torch(DataStream, device='meta')" == repr(copy)
    assert "to_torch(DataStream, dtype='bfloat16', which_sources=('rows',))" \
        == repr(to_torch(ordered(), dtype='bfloat16',
                         which_sources=('rows',)))


@pytest.mark.parametrize('options, error, text', [
    ({'device': 'cuda:99'}, ValueError, r"is there \(cpu.*got 'cuda:99'"),
    ({'device': 'sundial'}, ValueError, "got 'sundial'"),
    ({'dtype': 'sundial'}, ValueError, "got 'sundial'"),
    ({'dtype': 'int32'}, ValueError, 'floating numbers.*pass a dict'),
    ({'dtype': {'row': 'int32'}}, ValueError, "meant 'rows'|did you mean"),
    ({'which_sources': ('row',)}, ValueError, "'rows'")])
def test_invalid_arguments_are_refused(options, error, text):
    """The call of `to_torch` raises the error."""
    with pytest.raises(error, match=text):
        to_torch(ordered(), **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason='a GPU is there')
def test_page_locked_memory_without_an_accelerator_is_refused():
    """The text says that it needs one."""
    with pytest.raises(ValueError, match='needs an accelerator'):
        to_torch(ordered(), pin_memory=True)


@pytest.mark.parametrize('stage', [to_torch, copied_ahead])
def test_state_of_a_rank_is_that_of_the_whole_order(stage):
    """Any number of ranks resumes, whether batches were copied to a device in
    advance or not."""
    rank = stage(shuffled().shard(1, 2))
    epoch = rank.get_epoch_iterator()
    for _ in range(2):
        next(epoch)
    restored = stage(shuffled())
    restored.load_state_dict(rank.state_dict())
    assert 7 - 4 == len(list(restored.get_epoch_iterator()))


def test_print_of_a_stage_of_tensors_is_the_tree_of_the_pipeline():
    """Every stream prints its tree; the short form is the call that makes
    it."""
    stream = to_torch(ordered(), dtype='float32')
    lines = str(stream).splitlines()
    assert ['ToTorch', '  DataStream', '    IndexableDataset'] == [
        line.partition(':')[0] for line in lines]
    assert str(stream).endswith(str(stream.data_stream).splitlines()[-1])
    assert repr(stream) == "to_torch(DataStream, dtype='float32')"
