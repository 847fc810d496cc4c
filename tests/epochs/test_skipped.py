"""Examples that cannot be made are left out of their epoch."""
import errno
import gc
import io
import json
import logging
import os
import pickle
import socket
import ssl
import subprocess
import sys
import weakref
from contextlib import suppress
from functools import partial
from http.client import BadStatusLine
from itertools import islice
from pathlib import Path
from urllib.error import HTTPError, URLError

import h5py
import numpy
import pytest
from PIL import Image
from support import bad_records, processes
from support.bad_records import Noise, Refusing, Spoiling, plan, source
from support.resuming import assert_resumes, plain

import fuel
from fuel.datasets import HDF5Dataset, IndexableDataset, IterableDataset
from fuel.epochs.skipped import Skipped, SkippedExample, SkipLimit
from fuel.exceptions import (
    BadRecordsError,
    DamagedFileError,
    StateMismatchError,
    WorkerError,
)
from fuel.schemes import (
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Batch,
    Cache,
    Filter,
    Mapping,
    Merge,
    MultiProcessing,
    MultiThreading,
    ScaleAndShift,
    Unpack,
)
from fuel.transformers.image import ImagesFromBytes, Resize

NUMBERS = range(12)


def numbers_of(batches):
    """Return the numbers of the examples of batches."""
    return [number for batch in batches for number in batch[0].tolist()]


def failing(bad, size=20, batch_size=4, error=ValueError, **kwargs):
    """Return a pipeline whose function fails for some examples."""
    def fail(batch):
        if not bad.isdisjoint(batch[0].tolist()):
            raise error('it fails')
        return batch

    kwargs.setdefault('max_skipped', 10)
    return Mapping(DataStream(
        IndexableDataset(numpy.arange(size)), batch_size=batch_size,
        on_error='skip', **kwargs), fail)


class FailsFirst(IndexableDataset):
    """A data set whose first reads fail."""

    left = 0

    def get_data(self, state=None, request=None):
        if FailsFirst.left:
            FailsFirst.left -= 1
            raise ValueError('not yet')
        return super().get_data(state, request)


@pytest.mark.parametrize('count', [1, 2])
def test_error_that_comes_once_is_of_no_example(count):
    """The error is raised, as with ``on_error='raise'``."""
    stream = DataStream(FailsFirst(numpy.arange(8)), batch_size=4,
                        on_error='skip')
    FailsFirst.left = count
    epoch = stream.get_epoch_iterator()
    with pytest.raises(ValueError, match='not yet'):
        next(epoch)
    assert [4, 5, 6, 7] == numbers_of(epoch)
    assert 0 == stream.skipped_examples().count


@pytest.mark.parametrize('number', NUMBERS)
def test_batches_are_those_without_faults_less_what_fails(number):
    """Random draws for the other examples stay the same, too."""
    found = plan(number)
    stream = found.build()
    for _ in range(2):
        batches = list(stream)
        skipped = stream.skipped_examples()
        assert skipped.count == len(found.all_bad)
        assert {each.example for each in skipped.examples} == found.all_bad
        assert len(skipped.examples) == skipped.count
    reference = found.build(faults=False)
    for _ in range(2):
        expected = [found.rest_of(batch) for batch in reference]
    assert plain(batches) == plain(expected)


@pytest.mark.parametrize('number', NUMBERS)
def test_stage_that_fails_is_named(number):
    """The report names the first of the stages that would fail."""
    found = plan(number)
    stream = found.build()
    list(stream)
    for each in stream.skipped_examples().examples:
        place, = [place for place, bad in found.bad.items()
                  if each.example in bad]
        stage = 'DataStream' if place == 'dataset' else {
            'noise': 'Noise'}.get(found.stages[place], 'Mapping')
        assert each.stage == stage
        assert each.error.startswith({
            'DataStream': 'OSError: a record', 'Noise': 'ValueError: no noise',
            'Mapping': f'ValueError: cannot make [{each.example}]'}[stage])


@pytest.mark.parametrize('number', NUMBERS[:6])
def test_epoch_is_resumed_at_each_step(number):
    """The resumed epoch leaves out the same examples."""
    assert_resumes(partial(bad_records.build, number))


def test_epoch_of_examples_is_resumed_at_each_step():
    """A state is right also where examples wait for their batch."""
    assert_resumes(bad_records.of_examples)


@pytest.mark.parametrize('build', [
    partial(bad_records.build, 2), bad_records.of_examples])
def test_report_is_the_same_after_a_resume(build):
    """The report may be resumed from any step."""
    whole = build()
    steps = len(list(whole))
    expected = whole.skipped_examples()
    assert expected.count
    for step in range(steps + 1):
        stream = build()
        iterator = iter(stream)
        list(islice(iterator, step))
        state = json.loads(json.dumps(stream.state_dict()))
        before = stream.skipped_examples()
        resumed = build()
        resumed.load_state_dict(state)
        assert resumed.skipped_examples().count <= before.count
        again = pickle.loads(pickle.dumps(iterator))
        list(resumed)
        assert resumed.skipped_examples() == expected
        list(again)
        assert again.data_stream.skipped_examples() == expected
        list(iterator)
        state = stream.state_dict()
        assert state['epoch'] == 'finished'
        resumed = build()
        resumed.load_state_dict(json.loads(json.dumps(state)))
        assert resumed.skipped_examples() == expected


@pytest.mark.parametrize('num_ranks', [2, 3])
@pytest.mark.parametrize('number', NUMBERS[:4])
def test_ranks_leave_out_the_same(number, num_ranks):
    """Each reports its own, and makes as many steps as without faults."""
    found = plan(number)
    reported = set()
    for rank in range(num_ranks):
        stream = found.build().shard(rank, num_ranks)
        assert plain(list(stream)) == plain(found.expected((rank, num_ranks)))
        mine = {each.example for each in stream.skipped_examples().examples}
        assert not mine & reported
        reported |= mine
    assert reported == found.all_bad


@pytest.mark.parametrize('number', NUMBERS[:4])
def test_other_ranks_take_up_a_state(number):
    """A whole stream has saved the state."""
    found = plan(number)
    stream = found.build()
    list(islice(iter(stream), 2))
    state = stream.state_dict()
    rest = found.expected()[2:]
    for rank in range(2):
        ours = found.build().shard(rank, 2)
        ours.load_state_dict(state)
        assert plain(list(ours)) == plain(rest[rank::2])


@pytest.mark.parametrize('number', NUMBERS[:3])
@pytest.mark.parametrize('run', [
    MultiProcessing, partial(MultiProcessing, num_workers=2),
    partial(MultiThreading, num_threads=2)])
def test_workers_leave_out_the_same(run, number):
    """Workers report the same in the same order, after a resume too."""
    found = plan(number)
    plain_stream = found.build()
    expected = plain(list(plain_stream))
    report = plain_stream.skipped_examples()
    with run(found.build()) as stream:
        assert plain(list(stream)) == expected
        assert stream.skipped_examples() == report
        iterator = iter(stream)
        list(islice(iterator, 3))
        state = stream.state_dict()
    resumed = found.build()
    resumed.load_state_dict(state)
    rest = list(resumed)
    plain_stream = found.build()
    list(plain_stream)
    assert plain(rest) == plain(list(plain_stream)[3:])
    assert resumed.skipped_examples() == plain_stream.skipped_examples()


def test_examples_that_fail_do_not_come_into_batches():
    """Batches are full, and draws for the others are as without faults."""
    bad = {3, 8, 9}
    stream = bad_records.examples(bad)
    batches = list(stream)
    assert [len(batch[0]) for batch in batches] == [4] * 5
    whole = list(Unpack(bad_records.examples()))
    expected = [example for example in whole if example[0] not in bad]
    assert plain(list(zip(*map(numpy.concatenate, zip(
        *batches, strict=True)), strict=True))) == plain(expected)
    assert {each.example for each in stream.skipped_examples().examples
            } == bad
    assert {each.stage for each in stream.skipped_examples().examples
            } == {'DataStream', 'Mapping'}


@pytest.mark.parametrize('run', [
    MultiProcessing, partial(MultiThreading, num_threads=2)])
def test_one_worker_leaves_out_examples(run):
    """The stream has single examples."""
    expected = bad_records.of_examples()
    batches = plain(list(expected))
    with run(bad_records.of_examples()) as stream:
        assert plain(list(stream)) == batches
        assert stream.skipped_examples() == expected.skipped_examples()


def test_several_workers_do_not_share_examples_of_which_some_go():
    """Several workers are refused for single examples with on_error='skip'."""
    stream = DataStream(source(9), iteration_scheme=ShuffledExampleScheme(9),
                        on_error='skip')
    with pytest.raises(ValueError, match="on_error='skip' leaves out some"):
        MultiProcessing(stream, num_workers=2)


def test_examples_of_ranks_are_left_out():
    """Each rank takes its own of the order."""
    seen = []
    for rank in range(2):
        stream = bad_records.of_examples().shard(rank, 2)
        seen += numbers_of(stream)
    assert sorted(seen) == sorted(set(range(23)) - {3, 8, 9})


def test_examples_that_are_read_in_order_are_left_out_by_stages():
    """The data set goes on."""
    def fail(example):
        if example[0] in (1, 4):
            raise KeyError('no')
        return example

    stream = Mapping(DataStream(
        IterableDataset(list(range(6))), on_error='skip'), fail)
    assert [number for number, in stream] == [0, 2, 3, 5]
    assert [each.example for each in stream.skipped_examples().examples
            ] == [1, 4]


def test_data_set_that_is_read_in_order_is_not_trusted_after_an_error():
    """A generator that has raised has ended."""
    def numbers():
        yield (1,)
        raise ValueError('broken')

    class Generated(IterableDataset):
        def open(self):
            return numbers()

    stream = DataStream(Generated([1]), on_error='skip')
    iterator = iter(stream)
    next(iterator)
    with pytest.raises(ValueError, match='broken') as caught:
        next(iterator)
    assert 'read in order' in ''.join(caught.value.__notes__)


def test_stages_above_make_batches_of_what_is_left():
    """A stage may make batches of other sizes, or single examples."""
    bad = {0, 5, 6, 13}
    left = [number for number in range(20) if number not in bad]
    assert numbers_of(Cache(failing(bad), ConstantScheme(3))) == left
    assert [number for number, in Unpack(failing(bad))] == left


@pytest.mark.parametrize('outer', [
    partial(Cache, iteration_scheme=ConstantScheme(3)), Unpack])
def test_stages_that_keep_rows_resume(outer):
    """A stage that keeps rows resumes within a short batch, too."""
    assert_resumes(lambda: outer(bad_records.build(4)), num_epochs=1)


def test_batch_of_which_each_example_fails_is_an_error():
    """The stage may be at fault; the original error says more."""
    stream = failing({4, 5, 6, 7})
    iterator = iter(stream)
    next(iterator)
    with pytest.raises(ValueError, match='it fails') as caught:
        next(iterator)
    assert 'each example of the batch fails' in ''.join(
        caught.value.__notes__)
    assert stream.skipped_examples().count == 0
    # As after any error, the next call goes on behind it.
    assert next(iterator)[0].tolist() == [8, 9, 10, 11]


def with_rest(bad=(5, 12), damaged=()):
    """Return a pipeline whose last batch has one example."""
    stream = DataStream(source(13, damaged), batch_size=4, on_error='skip')
    return Mapping(Noise(Mapping(stream, Spoiling(bad)), seed=1), Spoiling(),
                   pure=True)


@pytest.mark.parametrize('options', [{}, {'bad': {5}, 'damaged': {12}}])
@pytest.mark.parametrize('run', [
    lambda stream: stream, MultiProcessing,
    partial(MultiProcessing, num_workers=2),
    partial(MultiProcessing, num_workers=3),
    partial(MultiThreading, num_threads=2)])
def test_epoch_ends_where_one_bad_example_is_its_last_batch(run, options):
    """The example is left out and counted in each epoch."""
    reference = with_rest({5})
    with run(with_rest(**options)) as stream:
        for _ in range(2):
            assert plain(list(stream)) == plain(list(reference)[:3])
            skipped = stream.skipped_examples()
            assert [5, 12] == [each.example for each in skipped.examples]
            assert ['Mapping', 'DataStream' if options else 'Mapping'] == [
                each.stage for each in skipped.examples]


@pytest.mark.parametrize('build', [
    with_rest, lambda: Unpack(with_rest()),
    lambda: Cache(with_rest(), ConstantScheme(3))])
def test_epoch_that_ends_with_a_bad_example_is_resumed(build):
    """The epoch is resumed at each step, and at its end."""
    assert_resumes(build)


def test_bad_examples_of_other_batches_of_one_are_errors():
    """The error says that each example of the batch fails."""
    ones = Mapping(DataStream(
        source(4), batch_size=1, on_error='skip'), Spoiling({3}))
    of_ranks = with_rest().shard(1, 2)
    for stream in ones, of_ranks:
        with pytest.raises(ValueError, match='cannot make') as caught:
            list(stream)
        assert 'each example of the batch fails' in ''.join(
            caught.value.__notes__)


def test_error_is_looked_into_once():
    """The stage that failed looks into it, and those above do not."""
    stream = Mapping(Mapping(failing({4, 5, 6, 7}), list), list)
    with pytest.raises(ValueError, match='it fails') as caught:
        list(stream)
    assert 1 == len([note for note in caught.value.__notes__
                     if 'does not leave it out' in note])


def test_batch_whose_examples_pass_alone_is_an_error():
    """The examples of such a batch may not fit together."""
    def join(batch):
        if len(batch[0]) > 1:
            raise ValueError('shapes differ')
        return batch

    stream = Mapping(DataStream(IndexableDataset(numpy.arange(6)),
                                batch_size=3, on_error='skip'), join)
    with pytest.raises(ValueError, match='shapes differ') as caught:
        list(stream)
    assert 'alone is made without an error' in ''.join(
        caught.value.__notes__)


@pytest.mark.parametrize('error', [
    NameError, NotImplementedError, MemoryError, WorkerError,
    DamagedFileError, ConnectionResetError, ImportError, TimeoutError,
    URLError, socket.gaierror, ssl.SSLError, BadStatusLine,
    partial(OSError, errno.ENETUNREACH)])
def test_errors_that_are_not_of_the_data_are_raised(error):
    """Such errors say nothing of an example."""
    with pytest.raises(type(error('it fails'))):
        list(failing({3}, error=error))


class AnswerError(HTTPError):
    """An answer of a server that is an error."""

    def __init__(self, code):
        super().__init__(
            'http://localhost/3.png', code, 'no', None, io.BytesIO())
        # Python 3.14 warns of an answer that was not closed.
        self.close()


@pytest.mark.parametrize('code, is_of_example', [
    (404, True), (410, True), (403, False), (429, False), (500, False)])
def test_address_that_is_not_found_is_of_the_example(code, is_of_example):
    """A server that is overloaded, or wants a password, is not."""
    stream = failing({3}, error=lambda _: AnswerError(code))
    if is_of_example:
        list(stream)
        assert 1 == stream.skipped_examples().count
    else:
        with pytest.raises(HTTPError):
            list(stream)


@pytest.mark.parametrize('module, name', [
    ('requests.exceptions', 'ConnectionError'),
    ('requests.exceptions', 'Timeout'), ('httpx', 'TransportError'),
    ('aiohttp.client_exceptions', 'ClientConnectionError'),
    ('urllib3.exceptions', 'PoolError')])
def test_network_errors_of_other_libraries_are_raised(module, name):
    """The classes of such errors derive from nothing that tells."""
    error = type(name, (Exception,), {'__module__': module})
    with pytest.raises(error):
        list(failing({3}, error=type('Derived', (error,), {})))


def test_error_that_an_error_of_the_network_has_caused_is_raised():
    """A function may raise an error that names the address."""
    def fail(example):
        try:
            raise URLError('no route')
        except URLError as error:
            raise ValueError('no picture') from error

    with pytest.raises(ValueError, match='no picture'):
        list(Mapping(DataStream(source(3), shuffle=True, on_error='skip'),
                     fail))


@pytest.mark.parametrize('error', [OSError, ValueError])
def test_machine_that_has_no_more_files_leaves_out_nothing(error):
    """An error that a function raises from it is raised, too."""
    def fail(example):
        lacking = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if error is OSError:
            raise lacking
        raise error('no picture') from lacking

    stream = Mapping(DataStream(
        source(3), shuffle=True, on_error='skip'), fail)
    with pytest.raises(error):
        list(stream)
    assert stream.skipped_examples() == Skipped()


@pytest.mark.parametrize('error', [
    ValueError, TypeError, OSError, KeyError, ZeroDivisionError])
def test_errors_that_may_be_of_the_data_are_not(error):
    """Errors that a function may raise of a damaged record are skipped."""
    assert numbers_of(failing({3}, error=error)) == [0, 1, 2, *range(4, 20)]


@pytest.mark.parametrize('max_skipped, most', [
    (2, 2), (.1, 2), (None, 10)])
def test_more_than_the_limit_is_an_error(max_skipped, most):
    """The error names the first of the skipped examples."""
    bad = set(range(0, 40, 3))
    stream = failing(bad, size=20, max_skipped=max_skipped, batch_size=4)
    if most < 7:
        with pytest.raises(BadRecordsError, match=(
                f'{most + 1} examples of the epoch could not be made, and '
                f'max_skipped is {most}: example 0 in stage Mapping: '
                'ValueError: it fails; example 3')) as caught:
            list(stream)
        assert isinstance(caught.value.__cause__, ValueError)
    else:
        assert len(numbers_of(stream)) == 13
        with pytest.raises(BadRecordsError, match='11 examples'):
            list(failing(bad, size=40, max_skipped=None))


@pytest.mark.parametrize('run', [
    MultiProcessing, partial(MultiProcessing, num_workers=3),
    partial(MultiThreading, num_threads=2)])
def test_limit_is_that_of_all_workers(run):
    """The error comes in the place of the same batch."""
    stream = Mapping(DataStream(
        source(20), batch_size=4, on_error='skip', max_skipped=3),
        Refusing({0, 5, 9, 13, 18}))
    with run(stream) as stream:
        iterator = iter(stream)
        assert [len(batch[0]) for batch in islice(iterator, 3)] == [3, 3, 3]
        with pytest.raises(BadRecordsError, match=(
                '4 examples of the epoch .* max_skipped is 3: example 0 in')):
            next(iterator)


def test_part_of_an_unknown_number_is_refused():
    """A number of examples is wanted."""
    def numbers():
        yield from range(3)

    dataset = IterableDataset(numbers())
    with pytest.raises(ValueError, match='is not known: pass a number'):
        DataStream(dataset, on_error='skip', max_skipped=.5)


def test_part_of_a_few_is_one():
    """At least one example may be skipped, whatever the part."""
    assert len(numbers_of(failing({3}, 20, max_skipped=.01))) == 19


def test_default_limit_is_a_hundredth_of_a_large_data_set():
    """The limit of a thousand is ten, and of three thousand thirty."""
    bad = set(range(0, 3000, 100))
    assert len(numbers_of(failing(bad, 3000, 50, max_skipped=None))) == 2970
    with pytest.raises(BadRecordsError, match='31 examples'):
        list(failing(bad | {2999}, 3000, 50, max_skipped=None))


def test_limit_counts_all_stages_and_what_was_left_out_before_a_resume():
    """The count starts anew in each epoch."""
    def build():
        return Mapping(failing({0, 9}, max_skipped=3), Spoil({5, 17}))

    class Spoil:
        def __init__(self, bad):
            self.bad = bad

        def __call__(self, batch):
            if not self.bad.isdisjoint(batch[0].tolist()):
                raise ValueError('it fails')
            return batch

    stream = build()
    iterator = iter(stream)
    list(islice(iterator, 3))
    assert stream.skipped_examples().count == 3
    state = stream.state_dict()
    with pytest.raises(BadRecordsError, match='4 examples'):
        list(iterator)
    resumed = build()
    resumed.load_state_dict(state)
    with pytest.raises(BadRecordsError, match='4 examples'):
        list(resumed)
    again = Mapping(failing({0, 9}, max_skipped=3), Spoil({5}))
    for _ in range(3):
        list(again)
        assert again.skipped_examples().count == 3


def test_epoch_of_which_nothing_is_left_is_an_error():
    """An epoch of five examples that all fail raises at its end."""
    def fail(example):
        raise ValueError('no')

    stream = Mapping(DataStream(
        IndexableDataset(list(range(5))), on_error='skip',
        iteration_scheme=ShuffledExampleScheme(5)), fail)
    with pytest.raises(BadRecordsError, match='nothing is left'):
        list(stream)
    with pytest.raises(BadRecordsError, match='nothing is left'):
        list(Batch(stream, batch_size=2))


def test_filter_may_leave_nothing():
    """An empty epoch of a filter is not a failure."""
    stream = Filter(failing({3}), lambda batch: False)
    assert list(stream) == []


def test_first_examples_are_logged(caplog):
    """Each is logged with its number, whatever the cause."""
    with caplog.at_level(logging.WARNING, 'fuel'):
        list(Mapping(failing({3, 9, 11}), Refusing({2})))
    assert {record.getMessage() for record in caplog.records} == {
        f"on_error='skip' leaves out example {number} in stage Mapping: "
        f'{error}' for number, error in (
            (3, 'ValueError: it fails'), (9, 'ValueError: it fails'),
            (11, 'ValueError: it fails'), (2, "KeyError: 'two'"))}


def test_later_examples_are_logged_once_for_each_cause(caplog):
    """A run that leaves out many is not drowned."""
    limit = SkipLimit(100)
    with caplog.at_level(logging.WARNING, 'fuel'):
        for number in range(50):
            error = 'KeyError: 5' if number > 40 else f'ValueError: {number}'
            limit.add([SkippedExample(0, number, 'Mapping', error)])
    assert [record.getMessage().split()[4] for record in caplog.records] == [
        *map(str, range(20)), '41']


def test_stage_that_makes_no_item_of_one_raises():
    """The error says that it is not covered."""
    def fail(batch):
        raise ValueError('no')

    stream = Filter(failing(set()), fail)
    with pytest.raises(ValueError, match='no') as caught:
        list(stream)
    assert "on_error='skip' does not leave it out: Filter" in ''.join(
        caught.value.__notes__)
    batches = Batch(DataStream(IterableDataset([1, 2, 3]), on_error='skip'),
                    batch_size=2)
    with pytest.raises(ValueError, match='no') as caught:
        list(Mapping(batches, fail))
    assert 'let that make the batches' in ''.join(caught.value.__notes__)


def test_streams_that_are_read_together_must_not_leave_out():
    """Their examples would not fit together."""
    one = failing({3})
    with pytest.raises(ValueError, match='would not fit together'):
        Merge([one, one], ('a', 'b'))


@pytest.mark.parametrize('arguments, text', [
    ({'on_error': 'ignore'}, "on_error must be 'raise' or 'skip'"),
    ({'max_skipped': 3}, "max_skipped limits what on_error='skip'"),
    ({'on_error': 'skip', 'max_skipped': 0}, 'must be a positive number'),
    ({'on_error': 'skip', 'max_skipped': 1.}, 'must be a positive number'),
    ({'on_error': 'skip', 'max_skipped': True}, 'must be a positive number')])
def test_arguments_are_checked(arguments, text):
    """The constructor of the stream raises the error."""
    with pytest.raises(ValueError, match=text):
        DataStream(IndexableDataset([1, 2]), batch_size=1, **arguments)


def test_batches_are_not_split_over_ranks():
    """The rest of a rank's part of a batch may be empty."""
    stream = DataStream(source(8), batch_size=4, on_error='skip')
    with pytest.raises(ValueError, match="use by='batch'"):
        stream.shard(0, 2, by='example')


def test_state_of_a_run_that_raised_is_taken_up():
    """A program that stopped at a damaged record goes on behind a change."""
    found = plan(1)
    stream = found.build(on_error='raise')
    iterator, step = iter(stream), 0
    with pytest.raises((ValueError, OSError)):
        for _ in iterator:
            step += 1
            state = stream.state_dict()
    if not step:
        state = found.build(on_error='raise').state_dict()
    resumed = found.build()
    resumed.load_state_dict(state)
    assert plain(list(resumed)) == plain(found.expected()[step:])


@pytest.mark.parametrize('damaged', [
    3, {}, {'count': 0, 'examples': []}, {'count': 2, 'examples': []},
    {'count': 1, 'examples': [[0, 1, 2, 3]]},
    {'count': 1, 'examples': [[0, 1, 'Mapping']]},
    {'count': True, 'examples': [[0, 1, 'Mapping', 'ValueError']]}])
def test_damaged_report_in_a_state_is_refused(damaged):
    """The report of a state comes from a file."""
    stream = failing({3})
    next(iter(stream))
    state = stream.state_dict()
    assert state['skipped']['count'] == 1
    state['skipped'] = damaged
    del state['crc']
    with pytest.raises(StateMismatchError, match='skipped'):
        failing({3}).load_state_dict(state)


def test_data_set_of_a_pipeline_raises():
    """Examples that are asked for cannot be left out."""
    view = failing({3}).as_dataset()
    assert view[[4, 5]][0].tolist() == [4, 5]
    with pytest.raises(ValueError, match='it fails'):
        view[[3]]


def test_epochs_at_once_report_their_own():
    """The stream shows that of the last."""
    stream = failing({3, 9})
    one = iter(stream)
    list(islice(one, 3))
    assert stream.skipped_examples().count == 2
    other = iter(stream)
    assert stream.skipped_examples().count == 0
    next(other)
    assert stream.skipped_examples().count == 1
    assert numbers_of(one) == list(range(12, 20))


def test_conversions_of_the_reader_are_done_for_short_batches():
    """A batch that is made again is converted as the others are."""
    stream = ScaleAndShift(DataStream(
        source(12, {5}), iteration_scheme=SequentialScheme(12, 4),
        on_error='skip'), 2., 1., which_sources='value')
    values = numpy.concatenate([batch[1] for batch in stream])
    assert values.tolist() == [
        number * 20. + 1 for number in range(12) if number != 5]


def test_seeded_stage_that_fails_draws_the_same():
    """The draws for the examples that are left are the same."""
    def build(bad=()):
        return Noise(DataStream(source(12), batch_size=4, on_error='skip'),
                     bad, seed=2)

    expected = [tuple([part[batch[0] != 5] for part in batch])
                for batch in build()]
    assert plain(list(build({5}))) == plain(expected)


def test_draws_for_rows_that_a_stage_in_between_has_made():
    """Each row that is left draws as in a whole batch."""
    def double(batch):
        return tuple([numpy.concatenate([part, part]) for part in batch])

    stream = Noise(Mapping(Mapping(DataStream(
        source(8), batch_size=4, on_error='skip'), Spoiling({5})), double))
    whole, short = list(stream)
    assert whole[0].tolist() == [0, 1, 2, 3] * 2
    assert short[0].tolist() == [4, 6, 7] * 2
    assert stream.skipped_examples().count == 1


def test_draws_of_batches_have_their_own_numbers():
    """The numbers hold also where a stage in between leaves out batches."""
    def build(bad=()):
        return Noise(Filter(Mapping(DataStream(
            source(20), batch_size=4, on_error='skip'), Refusing({*bad})),
            lambda batch: batch[0][0] != 4), seed=2)

    # A batch of three gets other draws.
    whole, found = list(build()), list(build({9}))
    assert [batch[0].tolist() for batch in found] == [
        [0, 1, 2, 3], [8, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
    assert plain(whole[2:]) == plain(found[2:])


@pytest.mark.parametrize('bad', [{21}, {17, 22}])
def test_draws_are_the_same_where_threads_read_to_the_end(bad):
    """A stage above knows what was left out of the last batches."""
    def build():
        stream = Mapping(DataStream(
            source(24, bad), iteration_scheme=SequentialScheme(24, 4),
            on_error='skip'), Spoiling())
        return Noise(Mapping(stream, Spoiling(), pure=True), seed=2)

    expected = plain(list(build()))
    with MultiThreading(build(), num_threads=2) as stream:
        assert plain(list(stream)) == expected


def test_nothing_is_left_out_by_default():
    """An error is raised."""
    stream = DataStream(source(8, {3}), batch_size=4)
    with pytest.raises(OSError, match='damaged'):
        list(stream)
    assert stream.skipped_examples() == Skipped()
    assert 'skipped' not in stream.state_dict()


def test_spoiled_data_are_read_again():
    """A function may have changed its batch before it failed."""
    stream = Mapping(DataStream(source(8), batch_size=4, on_error='skip'),
                     Spoiling({2}))
    assert [batch[1].tolist() for batch in stream] == [
        [1., 11., 31.], [41., 51., 61., 71.]]


RESUME = """
import json, sys
sys.path.insert(0, sys.argv[2])
from support import bad_records
from support.resuming import plain
stream = bad_records.build(int(sys.argv[1]))
stream.load_state_dict(json.load(sys.stdin))
items = [batch[0].tolist() for batch in stream]
skipped = stream.skipped_examples()
print(json.dumps([items, skipped.count, skipped.examples]))
"""


def test_new_process_leaves_out_the_same():
    """The new process has only the state."""
    found = plan(3)
    stream = found.build()
    list(islice(iter(stream), 2))
    state = json.dumps(stream.state_dict())
    done = subprocess.run(
        [sys.executable, '-c', RESUME, '3', Path(__file__).parents[1]],
        env=processes.environment(), input=state.encode(),
        capture_output=True, check=False, timeout=100)
    assert not done.returncode, done.stderr.decode()
    items, count, listed = json.loads(done.stdout)
    list(found.build())
    whole = found.build()
    batches = list(whole)
    assert items == [batch[0].tolist() for batch in batches[2:]]
    assert count == len(found.all_bad)
    assert listed == [
        list(each) for each in whole.skipped_examples().examples]


def test_clients_of_a_server_report_what_it_left_out():
    """The batches are those of the stream itself."""
    found = plan(5)
    stream = found.build()
    expected, report = plain(list(stream)), stream.skipped_examples()
    with Server(found.build(), port=0) as server, ServerDataStream(
            ('number', 'value'), port=server.port, timeout=20) as client:
        assert plain(list(client)) == expected
        assert client.skipped_examples() == report


def test_profile_counts_what_was_left_out():
    """The profile counts over all epochs that it has read."""
    found = fuel.profile(failing({3, 9}), batches=9, warm_up=1)
    assert found.skipped == 4
    assert '4 examples could not be made and were left out' in str(found)
    assert found.as_dict()['skipped'] == 4
    assert 'left out' not in str(fuel.profile(failing(set()), batches=5))


def test_pictures_that_cannot_be_decoded_are_left_out():
    """Three pictures of a folder are left out, with their labels."""
    rng = numpy.random.default_rng(0)
    files = []
    for _ in range(30):
        file = io.BytesIO()
        Image.fromarray(rng.integers(
            0, 256, (9, 8, 3), numpy.uint8)).save(file, 'PNG')
        files.append(file.getvalue())
    bad = {4: b'', 11: files[11][:80], 29: b'no picture'}
    files = [bad.get(place, file) for place, file in enumerate(files)]
    stream = Resize(ImagesFromBytes(DataStream(
        IndexableDataset({'image': files, 'label': numpy.arange(30)}),
        batch_size=8, shuffle=True, on_error='skip'),
        which_sources='image'), (4, 4), which_sources='image')
    batches = list(stream)
    assert sorted(label for batch in batches for label in batch[1]) == [
        label for label in range(30) if label not in bad]
    assert [batch[0].shape[1:] for batch in batches] == [(3, 4, 4)] * 4
    skipped = stream.skipped_examples()
    assert {each.example for each in skipped.examples} == set(bad)
    assert {each.stage for each in skipped.examples} == {'ImagesFromBytes'}
    # Nothing of a batch of one, and no advice to leave them out.
    errors = {each.example: each.error for each in skipped.examples}
    assert errors[29] == (
        "UndecodableImageError: the image of 'image' (10 bytes, beginning "
        "with b'no pictu') cannot be decoded: it is not an image, or Pillow "
        'cannot read its format')


def test_of_long_errors_the_beginning_is_kept():
    """The dots at the end show that it was cut."""
    stream = failing({3}, error=lambda text: ValueError(text * 99))
    list(stream)
    error = stream.skipped_examples().examples[0].error
    assert error.endswith(' ...')
    assert 190 < len(error) <= 200


def test_rows_of_a_file_are_left_out(tmp_path):
    """Chunks are read ahead, and files closed."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        file.create_dataset('x', data=numpy.arange(40), chunks=(8,),
                            compression='gzip')
    num_open = []
    with Mapping(DataStream(
            HDF5Dataset(tmp_path / 'x.hdf5', ['x']), batch_size=8,
            on_error='skip'), Refusing({5, 30})) as stream:
        for _ in range(4):
            assert numbers_of(stream) == [
                number for number in range(40) if number not in (5, 30)]
            num_open.append(sum(
                'x.hdf5' in os.readlink(path) for path in Path(
                    '/proc/self/fd').iterdir() if path.is_symlink()))
    assert num_open[-1] == num_open[0]


def test_started_workers_leave_out_the_same():
    """Workers that are not forked leave out the same examples."""
    found = plan(6)
    expected = plain(list(found.build()))
    with MultiProcessing(found.build(), num_workers=2,
                         start_method='spawn') as stream:
        assert plain(list(stream)) == expected
        assert stream.skipped_examples().count == len(found.all_bad)


class SharedState(IndexableDataset):
    """Has one state for all epochs, which may not be closed meanwhile."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.handle = ['open']

    def open(self):
        """Return the one state."""
        return self.handle

    def close(self, state):
        """Close it."""
        state[0] = 'closed'

    def get_data(self, state=None, request=None):
        """Return examples while it is open."""
        assert state == ['open']
        return super().get_data(None, request)


def test_state_of_the_data_set_stays_open():
    """The state stays open where a copy of the pipeline shares it."""
    stream = Mapping(DataStream(
        SharedState(numpy.arange(12)), batch_size=4, on_error='skip'),
        Refusing({1, 5}))
    assert numbers_of(stream) == [0, 2, 3, 4, *range(6, 12)]


@pytest.mark.parametrize('on_error', ['raise', 'skip'])
def test_error_is_gone_when_it_was_handled(on_error):
    """Nothing of the traceback holds it, or the batch, any longer."""
    class CountedError(ValueError):
        pass

    def fail(batch):
        raise failures.pop()

    failures = [CountedError() for _ in range(9)]
    alive = [weakref.ref(failure) for failure in failures]
    stream = Mapping(DataStream(source(12), batch_size=4, on_error=on_error),
                     fail)
    iterator = iter(stream)
    gc.disable()
    try:
        with suppress(CountedError):
            next(iterator)
        del failures[:]
        assert not any(failure() for failure in alive)
    finally:
        gc.enable()
