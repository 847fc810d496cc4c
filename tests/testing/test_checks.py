"""The checks of users' objects find what breaks a promise, and name it."""
import itertools
import logging
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy
import pytest
from support import pipelines

from fuel.datasets import Dataset, IndexableDataset
from fuel.describe import SourceType
from fuel.schemes import (
    BatchScheme,
    IndexScheme,
    IterationScheme,
    SequentialScheme,
    ShuffledScheme,
)
from fuel.streams import DataStream
from fuel.testing import (
    DATASET_PROMISES,
    SCHEME_PROMISES,
    STAGE_PROMISES,
    STREAM_PROMISES,
    BrokenPromiseError,
    ReplayProcess,
    check_dataset,
    check_scheme,
    check_stage,
    check_stream,
)
from fuel.testing.stages import batches as stage_batches
from fuel.transformers import Mapping, Transformer

COUNTER = itertools.count()


class Stage(Transformer):
    """A stage that passes on what it reads."""

    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)

    def transform_example(self, example):
        return self.change(example)

    def transform_batch(self, batch):
        return self.change(batch)

    def change(self, data):
        return data


class OnePart(Stage):
    def change(self, data):
        return data[:1]


class TypeOfTheDay(Stage):
    def change(self, data):
        return (data[0].astype('f4' if 3 in data[1] else 'f8'), data[1])


class Flattened(Stage):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.axis_labels = data_stream.axis_labels

    def change(self, data):
        return (data[0].reshape(len(data[0]), -1), data[1])


class Nameless(Stage):
    def get_epoch_iterator(self, as_dict=False):
        return super().get_epoch_iterator()


class Longer(Stage):
    def __len__(self):
        return 100


class Keeping(Stage):
    kept = None

    def change(self, data):
        if self.kept is None:
            self.kept = numpy.zeros((4, 3, 2), 'uint8')
        return (self.kept[:len(data[0])], data[1])


class ReadOnly(Stage):
    def change(self, data):
        data[0].flags.writeable = False
        return data


class Forgetful(Stage):
    """Keeps what belongs to an epoch with the stream."""

    def get_epoch_iterator(self, **kwargs):
        self.left = 2
        return super().get_epoch_iterator(**kwargs)

    def get_data(self, request=None):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return super().get_data(request)


class Counting(Stage):
    """Draws for all epochs together."""

    def change(self, data):
        self.count = getattr(self, 'count', 0) + 1
        return (data[0], data[1] + self.count)


class OnceClosed(Stage):
    closed = False

    def close(self):
        if self.closed:
            raise ValueError('closed already')
        self.closed = True


class ByTheClock(Stage):
    def change(self, data):
        return (data[0], data[1] + next(COUNTER))


class Restless(Stage):
    """Its epochs begin anew at their end."""

    def get_epoch_iterator(self, **kwargs):
        items = list(super().get_epoch_iterator(**kwargs))
        return Again(items)


class Again:
    def __init__(self, items):
        self.items = items
        self.place = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.place += 1
        if self.place == len(self.items) + 1:
            raise StopIteration
        return self.items[(self.place - 1) % len(self.items)]


class Bulky(Stage):
    def get_leftover(self):
        return list(range(10000))

    def set_leftover(self, leftover):
        pass


class Unpicklable(Stage):
    def __init__(self, data_stream):
        super().__init__(data_stream)
        self.function = lambda: None


class Odd(Stage):
    """Its state says nothing of what it remembers."""

    epoch_attributes = (*Stage.epoch_attributes, 'count')

    def get_epoch_iterator(self, **kwargs):
        self.count = 0
        return super().get_epoch_iterator(**kwargs)

    def change(self, data):
        self.count += 1
        return (data[0], data[1] + self.count)


BROKEN_STREAMS = {
    'items': (OnePart, '1 parts for the sources'),
    'equal': (ByTheClock, 'In epoch 0 of the second stream that was built'),
    'types': (TypeOfTheDay, "Source 'x' came as"),
    'labels': (Flattened, 'but item 0 has 2 axes'),
    'names': (Nameless, r"Expected the names .* got <class 'tuple'>"),
    'end': (Restless, 'After its end an epoch went on'),
    'length': (Longer, r'len\(\) is 100, but 4 came'),
    'ownership': (Keeping, 'when each item is overwritten'),
    'arrays': (ReadOnly, 'Read-only in item 0'),
    'interleaved epochs': (Forgetful, 'Read in turns'),
    'threads': (ByTheClock, 'Read in a thread'),
    'abandoned epoch': (Counting, 'After leaving an epoch'),
    'closing': (OnceClosed, 'closed already'),
    'by hand': (ByTheClock, r'Read by next\(\)'),
    'state in another process': (
        Odd, 'Saved in epoch 0 at item 1 of 4: in the rest of the epoch'),
    'pickle in another process': (Unpicklable, 'pickle'),
    'plain state': (Bulky, 'bytes: it holds data'),
    'restored again': (Odd, 'Restored before each item, item 1'),
    'states of interleaved epochs': (Odd, 'From the state of one of two'),
    'iterator alone': (Unpicklable, 'pickle'),
    'stream alone': (Unpicklable, 'pickle'),
}


@pytest.mark.parametrize('promise', STREAM_PROMISES)
def test_broken_promise_of_a_stream_is_named(promise):
    """Each promise can be broken, and the error says how."""
    stage, text = BROKEN_STREAMS[promise]
    with pytest.raises(BrokenPromiseError, match=f'^{promise}: .*{text}'):
        check_stream(lambda: stage(pipelines.batches()),
                     promises=[promise], another_process=False)


@pytest.mark.parametrize('dtype', ['>f4', [('a', '>f4')], [('a', '>f4', 2)]])
def test_foreign_byte_order_is_named(dtype):
    """NumPy calls the type of a record native whose fields are arrays."""
    class Foreign(Stage):
        def change(self, data):
            return (numpy.zeros(len(data[0]), dtype), data[1])

    with pytest.raises(BrokenPromiseError, match='Foreign byte order in item'):
        check_stream(lambda: Foreign(pipelines.batches()),
                     promises=['arrays'], another_process=False)


class Letters(IterationScheme):
    """Knows no kind of its requests."""

    def get_request_iterator(self):
        return iter('abc')


class Listing(IndexScheme):
    def get_request_iterator(self):
        return [1, 2]


class Once(IndexScheme):
    def __init__(self, examples):
        super().__init__(examples)
        self.requests = iter(range(examples))

    def get_request_iterator(self):
        return self.requests


class Global(IndexScheme):
    def get_request_iterator(self):
        return iter([next(COUNTER), 1])


class SameList(BatchScheme):
    batch = None

    def get_request_iterator(self):
        self.batch = self.batch or [1, 2]
        return iter([self.batch, self.batch])


class Shorter(SequentialScheme):
    num_requests = 2


class Held(IndexScheme):
    def __init__(self, examples):
        super().__init__(examples)
        self.function = lambda: None

    def get_request_iterator(self):
        return (index for index in range(3))


class WrongState(ShuffledScheme):
    def get_request_iterator(self):
        return super().get_request_iterator()

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


BROKEN_SCHEMES = {
    'kind': (Letters, 'requests_examples is None'),
    'iterator': (lambda: Listing(3), 'returned a list'),
    'epochs': (lambda: Once(3), 'The second has 0 requests, and the first 3'),
    'equal': (lambda: Global(3), 'In epoch 0 one made'),
    'side by side': (lambda: Once(4), 'Read in turns'),
    'ownership': (lambda: SameList(4, 2), 'In epoch 0'),
    'length': (lambda: Shorter(9, 2), 'num_requests is 2, but there were 5'),
    'pickle': (lambda: Held(3), 'pickle'),
    'pickled requests': (lambda: Held(3), "pickle 'generator' object"),
    'state': (lambda: WrongState(9, 2), r'Before epoch 1 it was \{\}'),
}


@pytest.mark.parametrize('promise', SCHEME_PROMISES)
def test_broken_promise_of_a_scheme_is_named(promise):
    """Each promise can be broken, and the error says how."""
    build, text = BROKEN_SCHEMES[promise]
    with pytest.raises(BrokenPromiseError, match=f'^{promise}: .*{text}'):
        check_scheme(build, promises=[promise])


class Growing(BatchScheme):
    """Changes an argument, and saves it."""

    def get_request_iterator(self):
        size = self.batch_size
        self.batch_size += 1
        return iter([list(range(start, min(start + size, 9)))
                     for start in range(0, 9, size)])

    num_requests = None

    def state_dict(self):
        return {'size': self.batch_size}

    def load_state_dict(self, state):
        self.batch_size = state['size']


class Declared(Growing):
    unsaved_arguments = ('batch_size',)


def test_scheme_whose_state_no_stream_takes_up_is_found():
    """A stream finds it, since it saves more than the hooks return."""
    with pytest.raises(BrokenPromiseError, match=(
            '^state: .*batch_size was 3, but here it is 2.*unsaved_arg')):
        check_scheme(lambda: Growing(9, 2), promises=['state'])
    check_scheme(lambda: Declared(9, 2), promises=['state'])


class Hookless(BatchScheme):
    def get_request_iterator(self):
        return iter([[0, 1], [2, 3]])


class Silent(ShuffledScheme):
    """Its hooks, which it inherits, know nothing of its requests."""

    def get_request_iterator(self):
        return iter([[1, 2], [0]])


@pytest.mark.parametrize('scheme', [Hookless, Silent])
def test_scheme_without_a_state_is_found(scheme):
    """No stream that uses it saves a state."""
    with pytest.raises(BrokenPromiseError, match=(
            f'^state: .*{scheme.__name__} cannot be saved.* hooks state_dict'
            '.*leave this promise out')):
        check_scheme(lambda: scheme(4, 2))
    check_scheme(lambda: scheme(4, 2), promises=SCHEME_PROMISES.keys() - {
        'state', 'length'})


class Numbers(IndexableDataset):
    """A data set to break."""

    def __init__(self, **kwargs):
        super().__init__(numpy.arange(9), **kwargs)


class Mismatched(Dataset):
    provides_sources = ('one',)

    def get_data(self, state=None, request=None):
        return ([1], [2])


class Sorting(Numbers):
    def get_data(self, state=None, request=None):
        if isinstance(request, list):
            request.sort()
        return super().get_data(state, request)


class Sequential(Dataset):
    """Keeps its position itself."""

    provides_sources = ('number',)
    position = 0
    function = staticmethod(len)

    def __init__(self):
        super().__init__()
        self.function = lambda: None

    def open(self):
        return 'state'

    def get_data(self, state=None, request=None):
        self.position += 1
        return (self.position,)


class View(Dataset):
    """Gives away views of its data."""

    provides_sources = ('number',)
    example_iteration_scheme = None

    def __init__(self):
        super().__init__()
        self.numbers = numpy.arange(9)

    def get_data(self, state=None, request=None):
        return (self.numbers[request[0]:request[-1] + 1],)


BROKEN_DATASETS = {
    'sources': (Mismatched, r'get_data\(\) gave 2 parts for'),
    'labels': (lambda: Numbers(axis_labels={'data': (1, 2)}),
               r"The labels of 'data' are \(1, 2\)"),
    'requests': (Sorting, "Source 'data' has"),
    'states': (Sequential, 'With one state .* came, and with two'),
    'pickle': (Sequential, 'pickle'),
    'streams': (View, 'ownership: '),
}


@pytest.mark.parametrize('promise', DATASET_PROMISES)
def test_broken_promise_of_a_dataset_is_named(promise):
    """Each promise can be broken, and the error says how."""
    build, text = BROKEN_DATASETS[promise]
    schemes = [SequentialScheme(9, 3)] if build is View else None
    with pytest.raises(BrokenPromiseError, match=f'^{promise}: .*{text}'):
        check_dataset(build, promises=[promise], schemes=schemes,
                      another_process=False)


class Eager(Stage):
    def get_data(self, request=None):
        return next(self.child_epoch_iterator)


class Open(Stage):
    def close(self):
        pass


class Half(Stage):
    one_to_one = True

    def get_data(self, request=None):
        next(self.child_epoch_iterator)
        return next(self.child_epoch_iterator)


class SaysPure(Stage):
    pure = True
    number = 0

    def transform_batch(self, batch):
        self.number += 1
        return (*batch[:-1], batch[-1] + self.number)


class Centred(Stage):
    """Each row depends on the others of its batch."""

    keeps_rows = True

    def transform_batch(self, batch):
        return (batch[0] - batch[0].mean(axis=0), batch[1])


class Turned(Stage):
    """Rows change their places."""

    keeps_rows = True

    def transform_batch(self, batch):
        return tuple([part[::-1].copy() for part in batch])


class Thinned(Stage):
    """Some rows are left out."""

    keeps_rows = True

    def transform_batch(self, batch):
        return tuple([part[batch[1] % 2 > 0] for part in batch])


class Narrowed(Stage):
    keeps = frozenset({'dtype', 'shape'})

    def change(self, data):
        return (data[0].astype('f4'), data[1])


class Cropped(Stage):
    keeps = frozenset({'dtype', 'shape', 'axes'})

    def change(self, data):
        return (data[0][..., :1], data[1])


class Averaged(Stage):
    keeps = frozenset({'dtype', 'axes'})

    def change(self, data):
        return (data[0].mean(axis=-1), data[1])


class Described(Stage):
    """Says a type, which tests replace."""

    known = None

    def known_types(self):
        return self.known


@pytest.mark.parametrize('stage, text', [
    (Centred, 'Row 0 of item 0 is another one where 2 ranks'),
    (Turned, 'Row 0 of item 0'),
    (Thinned, r'Batches of \[4, 4, 3\] rows became batches of')])
def test_false_keeps_rows_is_found(stage, text):
    """Ranks that read some rows would have others."""
    with pytest.raises(BrokenPromiseError,
                       match=f'^rows: .*{text}.*leave out keeps_rows'):
        check_stage(stage, promises=['rows'])
    other = type('Other', (stage,), {'keeps_rows': False})
    check_stage(other, promises=['rows'])


@pytest.mark.parametrize('stage, text', [
    (Narrowed, "'features' came with dtype .*float32"),
    (Cropped, r"'features' came with shape \[\(3, 1\)\] of \[\(3, 2\)\]"),
    (Averaged, r"'features' came with axes \[1\] of \[2\]")])
def test_false_keeps_is_found(stage, text):
    """By what comes of what was read."""
    with pytest.raises(BrokenPromiseError, match=f'^kept: .*{text}'):
        check_stage(stage, promises=['kept'])


@pytest.mark.parametrize('known, text', [
    ({'features': SourceType(numpy.dtype('f4'))}, 'float32'),
    ({'features': SourceType(None, (4, 3))}, r'\(4, 3\)'),
    ({'features': SourceType(None, (2, 3, 2))}, r'\(2, 3, 2\)'),
    ({'features': SourceType(None, (4, 3, 5))}, r'\(4, 3, 5\)'),
    ({'targets': SourceType(None, (4,), True)}, 'is_sparse=True'),
    ({'others': SourceType(None)}, r"names \['others'\], and the sources")])
def test_false_known_types_are_found(known, text, monkeypatch):
    """A wrong type, number of axes, length, kind and name are found."""
    monkeypatch.setattr(Described, 'known', known)
    with pytest.raises(BrokenPromiseError, match=f'^known types: .*{text}'):
        check_stage(Described, promises=['known types'])
    monkeypatch.setattr(Described, 'known', {
        'features': SourceType(numpy.dtype('f8'), (4, None, 2)),
        'targets': SourceType(None)})
    check_stage(Described, promises=['known types'],
                over=[stage_batches])


BROKEN_STAGES = {
    'parts': (OnePart, 'The stage gives 1 parts for 2 sources, .* item 0'),
    'refused requests': (Eager, r'get_data\(3\) returned'),
    'closing': (Open, r'close\(\) of the stage did not'),
    'one-to-one': (Half, '1 items came of 3'),
    'pure': (SaysPure, 'gives other items in another order'),
    'rows': (Centred, 'leave out keeps_rows'),
    'kept': (Narrowed, 'leave .dtype. out of keeps'),
    'known types': (Narrowed, 'says SourceType'),
    'stream': (Counting, 'interleaved epochs: '),
}


@pytest.mark.parametrize('promise', STAGE_PROMISES)
def test_broken_promise_of_a_stage_is_named(promise):
    """Each promise can be broken, and the error says how."""
    build, text = BROKEN_STAGES[promise]
    with pytest.raises(BrokenPromiseError, match=f'^{promise}: .*{text}'):
        check_stage(build, promises=[promise], another_process=False)


class Bare(Stage):
    def change(self, data):
        return data[0]


def test_wrong_number_of_parts_is_found_first():
    """Not by an error of what else is checked."""
    with pytest.raises(BrokenPromiseError, match='^parts: An item is a tuple '
                       '.* gives 1 parts for 2 sources.*names of those'):
        check_stage(OnePart)
    with pytest.raises(BrokenPromiseError, match='^parts: .*is of ndarray'):
        check_stage(Bare)


SCRIPT = """
import sys
from fuel.testing import check_stage, check_stream, ReplayProcess
from fuel.testing.stages import batches
from fuel.transformers import Transformer

class Doubled(Transformer):
    def __init__(self, data_stream):
        super().__init__(data_stream, data_stream.produces_examples)
    def transform_batch(self, batch):
        return tuple([2 * part for part in batch])

resumed = ['state in another process']
check_stage(Doubled, another_process=False, promises=['parts'])
check_stage(Doubled, over=[batches])
print('checked', __name__)

class Tripled(Doubled):
    def transform_batch(self, batch):
        return tuple([3 * part for part in batch])

def build():
    return Tripled(batches())

with ReplayProcess() as process:
    check_stream(build, promises=resumed, another_process=process)
    def again():
        return Doubled(batches())
    check_stream(again, promises=resumed, another_process=process)
print('trains', __name__)
"""


def test_script_without_a_main_guard_can_check(tmp_path):
    """The other process runs it up to the check, and not what follows."""
    script = tmp_path / 'script.py'
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True,
        timeout=100, check=False)
    assert (0, '') == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert ['checked __main__', 'trains __main__'] == [
        line for line in lines if '__main__' in line]
    assert {'checked __mp_main__'} == {
        line for line in lines if '__main__' not in line}


GUARDED = """
from fuel.testing import check_stream
from fuel.testing.stages import batches

if __name__ == '__main__':
    check_stream(batches, another_process=False)
    check_stream(batches, promises=['state in another process'])
    print('checked')
else:
    print('imported')
"""


def test_script_with_a_main_guard_can_check(tmp_path):
    """The other process runs all of it but what is guarded."""
    script = tmp_path / 'script.py'
    script.write_text(GUARDED)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True,
        timeout=100, check=False)
    assert (0, '') == (done.returncode, done.stderr)
    assert ['checked', 'imported'] == sorted(done.stdout.splitlines())


def double(data):
    """Return twice the data."""
    return tuple(2 * part for part in data)


def mapped(stream):
    """Return a stage that keeps all promises."""
    return Mapping(stream, double)


def test_stage_that_keeps_all_promises_passes():
    """Over batches and over examples."""
    check_stage(mapped, another_process=False)


def test_stage_for_batches_alone_is_tried_on_batches():
    """Examples, for which it is not made, are left out."""
    class Batches(Stage):
        transform_example = Transformer.transform_example

    check_stage(Batches, promises=['one-to-one'], another_process=False)


def test_stage_that_takes_neither_is_refused():
    """The error says what to pass."""
    with pytest.raises(ValueError, match='pass streams as over='):
        check_stage(lambda stream: Transformer(
            stream, stream.produces_examples))


def test_unknown_promise_is_refused():
    """The error names those that there are."""
    with pytest.raises(ValueError, match=r"'itmes': choose among \('items'"):
        check_stream(pipelines.batches, promises=['itmes'])


def test_positions_are_continued_in_another_process():
    """It is started once for several checks, and ends with its block."""
    with ReplayProcess() as process:
        for _ in range(2):
            check_stream(pipelines.batches, another_process=process,
                         promises=['state in another process'])
            pid = process.process.pid
        assert process.process.is_alive()
        assert pid == process.process.pid
    assert not process.process.is_alive()


def test_build_that_does_not_pickle_is_refused():
    """The error says what can be done."""
    with pytest.raises(BrokenPromiseError, match='another_process=False'):
        check_stream(lambda: pipelines.batches(),
                     promises=['state in another process'])


def fails_elsewhere(home=__name__):
    """Return a stream, but not in another process."""
    if logging.getLogger('support').disabled:
        return pipelines.batches()
    raise OSError('not here')


def test_failure_in_another_process_is_shown(monkeypatch):
    """The error has the traceback from there."""
    monkeypatch.setattr(logging.getLogger('support'), 'disabled', True)
    with pytest.raises(BrokenPromiseError, match='not here'):
        check_stream(fails_elsewhere, promises=['state in another process'])


@pytest.mark.parametrize('check, built', [
    (check_stream, pipelines.batches()), (check_stage, 3),
    (check_dataset, pipelines.arrays()), (check_scheme, None)])
def test_build_must_be_a_function(check, built):
    """One that makes what is checked."""
    with pytest.raises(TypeError, match='build must be a function that makes'):
        check(built)
    with pytest.raises((TypeError, BrokenPromiseError),
                       match='build must return a .* returned 3'):
        check(lambda *_: 3)


class Endless(Stage):
    def get_data(self, request=None):
        return (numpy.zeros((1, 3, 2)), numpy.zeros(1))


def test_epoch_without_end_is_noticed():
    """Not waited for."""
    with pytest.raises(BrokenPromiseError, match='has to raise StopIteration'):
        check_stream(lambda: Endless(pipelines.batches()))


def slow_batches():
    """Return a stream that another process is slow to build."""
    if multiprocessing.parent_process() is not None:
        threading.Event().wait(60)
    return pipelines.batches()


def dies_elsewhere():
    """Return a stream, but end another process."""
    if multiprocessing.parent_process() is not None:
        os._exit(3)
    return pipelines.batches()


def test_answer_that_is_late_is_not_that_to_the_next_question(monkeypatch):
    """The next check has another process, as after one that died."""
    promises = ['state in another process']
    with ReplayProcess() as process:
        with pytest.raises(BrokenPromiseError, match='process died'):
            check_stream(dies_elsewhere, promises=promises,
                         another_process=process)
        with monkeypatch.context() as patch:
            patch.setattr('fuel.testing.replay.TIMEOUT', .1)
            with pytest.raises(BrokenPromiseError, match='not answered in'):
                check_stream(slow_batches, promises=promises,
                             another_process=process)
        check_stream(pipelines.batches, promises=promises,
                     another_process=process)


def test_stream_over_a_dataset_that_is_shared_can_be_checked():
    """Counting its requests leaves nothing behind."""
    dataset = pipelines.arrays()
    check_stream(lambda: DataStream(
        dataset, iteration_scheme=SequentialScheme(14, 4)),
        another_process=False)
    assert 'get_data' not in vars(dataset)
