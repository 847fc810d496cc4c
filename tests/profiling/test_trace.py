"""A profile writes a trace in Chrome's format, true to what happened."""
import json
import logging
import os
import threading
import time
from collections import defaultdict
from dataclasses import replace

import numpy
import pytest
from support.process_pipelines import NAP, slow

import fuel
from fuel.datasets import IndexableDataset
from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import MOST_SPANS
from fuel.profiling import Profile
from fuel.profiling.measurements import StageSpans, this_process
from fuel.profiling.report import as_trace
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Cast, Flatten, Mapping, MultiProcessing
from fuel.transformers import MultiThreading

N, SIZE = 200, 10
METADATA = {'process_name': 'name', 'thread_name': 'name',
            'process_sort_index': 'sort_index',
            'thread_sort_index': 'sort_index'}


def step(batch):
    """Train."""
    time.sleep(NAP / 2)


def build(function=slow, **kwargs):
    """Return a stream of 20 batches an epoch."""
    stream = DataStream(IndexableDataset({
        'x': numpy.zeros((N, 2, 3), 'uint8'), 'y': numpy.arange(N)}),
        batch_size=SIZE)
    return Flatten(Mapping(stream, function, **kwargs), which_sources='x')


def checked(path):
    """Return the trace of a file, if it is one by the format's document.

    Returns: Complete events by (process, thread), and names of rows.
    """
    trace = json.loads(path.read_text('ascii'))
    # The format's JSON object; all keys but the first are optional.
    assert {'traceEvents', 'displayTimeUnit', 'otherData'} == set(trace)
    assert trace['displayTimeUnit'] in ('ms', 'ns')
    assert isinstance(trace['otherData'], dict)
    rows, names = defaultdict(list), {}
    for event in trace['traceEvents']:
        assert type(event['name']) is str
        assert type(event['pid']) is int is type(event['tid'])
        assert event['ph'] in ('X', 'M')
        row = event['pid'], event['tid']
        if event['ph'] == 'M':
            assert {'name', 'ph', 'pid', 'tid', 'args'} == set(event)
            kind = METADATA[event['name']]
            assert type(event['args'][kind]) is (
                str if kind == 'name' else int)
            assert (event['name'], row) not in names
            names[event['name'], row] = event['args'][kind]
            continue
        assert {'name', 'cat', 'ph', 'ts', 'dur', 'pid', 'tid',
                'args'} == set(event)
        assert event['cat'] in ('stage', 'wait', 'step')
        # Microseconds, which may have a fraction.
        assert 0 <= event['ts'] < 1e9
        assert 0 <= event['dur'] < 1e9
        assert type(event['args'].get('item', 0)) is int
        rows[row].append(event)
    for row, events in rows.items():
        assert ('thread_name', row) in names
        assert ('process_name', (row[0], 0)) in names
        check_nesting(events)
    return rows, names


def check_nesting(events):
    """See that the spans of a row lie in one another, or apart."""
    begins = [event['ts'] for event in events]
    assert begins == sorted(begins)
    ends = []
    for event in events:
        # Nanoseconds.
        begin = round(event['ts'] * 1e3)
        end = begin + round(event['dur'] * 1e3)
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1], event
        ends.append(end)


def by_name(events):
    """Return the events of a row by their names."""
    found = defaultdict(list)
    for event in events:
        found[event['name']].append(event)
    return found


def traced(stream, path, batches=25, **kwargs):
    """Profile a stream, and return the rows of its trace."""
    fuel.profile(stream, batches, step=step, **kwargs).trace(path)
    return checked(path)


def test_spans_of_stages_lie_in_one_another(tmp_path):
    """Those of the consumer do, too, each with the number of its item."""
    rows, names = traced(build(), tmp_path / 'run.json')
    (row, events), = rows.items()
    assert (os.getpid(), threading.get_native_id()) == row
    assert {'training', 'MainThread', 0} == set(names.values())
    found = by_name(events)
    assert {'wait', 'step', 'Flatten', 'Mapping(slow)',
            'DataStream'} == set(found)
    # Two warm up, without a step; the end of the first epoch is not an item.
    assert list(range(2, 27)) == [
        each['args']['item'] for each in found['step']]
    assert list(range(27)) == [each['args']['item']
                               for each in found['wait']]
    for name in 'Flatten', 'Mapping(slow)', 'DataStream':
        items = [each['args'].get('item') for each in found[name]]
        assert [*range(20), None, *range(20, 27)] == items
    for outer, inner in zip(found['Flatten'], found['Mapping(slow)'],
                            strict=True):
        assert outer['ts'] <= inner['ts']
        assert outer['dur'] >= inner['dur']
    slept = [each for each in found['Mapping(slow)'] if each['args']]
    assert all(each['dur'] >= NAP * 1e6 for each in slept)
    assert all(each['dur'] >= NAP / 2 * 1e6
               for each in found['step'])


@pytest.mark.parametrize('start_method', ['fork', 'spawn'])
def test_each_worker_has_a_row(tmp_path, start_method):
    """It has the spans of the batches that came from it."""
    with MultiProcessing(build(), num_workers=2,
                         start_method=start_method) as workers:
        # As they are before the profile ends them.
        iterator = iter(workers)
        next(iterator)
        pids = workers.worker_pids
        rows, names = traced(Cast(workers, 'float32', which_sources='x'),
                             tmp_path / 'run.json')
        del iterator
    for number, pid in enumerate(pids, 1):
        assert f'MultiProcessing: worker {number}' == names[
            'process_name', (pid, 0)]
        assert number == names['process_sort_index', (pid, 0)]
        found = by_name(rows[pid, pid])
        assert {'Flatten', 'Mapping(slow)', 'DataStream'} == set(found)
        made = [each for each in found['Mapping(slow)'] if each['args']]
        assert 12 <= len(made) <= 40
        assert list(range(len(made))) == [
            each['args']['item'] for each in made]
    ours = by_name(rows[os.getpid(), threading.get_native_id()])
    assert {'wait', 'step', 'Cast', 'MultiProcessing'} == set(ours)
    # One clock: what a worker made came later.
    first = min(rows[pids[0], pids[0]], key=lambda each: each['ts'])
    wait = ours['wait'][0]
    assert first['ts'] + first['dur'] < wait['ts'] + wait['dur']


def test_pure_stages_have_the_rows_of_their_threads(tmp_path):
    """Several threads may make the items at a time."""
    with MultiThreading(build(pure=True), num_threads=3) as stream:
        rows, names = traced(stream, tmp_path / 'run.json')
    assert {pid for pid, _ in rows} == {os.getpid()}
    threads = {names['thread_name', row]: by_name(events)
               for row, events in rows.items()}
    assert {'wait', 'step', 'MultiThreading'} == set(
        threads.pop('MainThread'))
    assert {'DataStream'} == set(threads.pop('fuel-Flatten-0'))
    assert 2 <= len(threads) <= 3
    items = []
    for name, found in threads.items():
        assert name.startswith('fuel-Flatten-pure-')
        assert {'Mapping(slow)', 'Flatten'} == set(found)
        items += [each['args']['item'] for each in found['Mapping(slow)']]
    assert list(range(len(items))) == sorted(items)
    assert len(items) >= 27


def test_threads_of_workers_have_rows(tmp_path):
    """They are in the worker's process."""
    with MultiProcessing(MultiThreading(build(pure=True), num_threads=2),
                         start_method='fork') as stream:
        _, names = traced(stream, tmp_path / 'run.json', batches=10)
    processes = {pid for (kind, (pid, _)), name in names.items()
                 if kind == 'process_name' and name != 'training'}
    assert 1 == len(processes)
    inside = {name for (kind, (pid, _)), name in names.items()
              if kind == 'thread_name' and pid in processes}
    assert {'MainThread', 'fuel-Flatten-0', 'fuel-Flatten-pure-0'} <= inside


def test_a_stage_that_raises_and_hostile_names(tmp_path):
    """A name may be any text; an error does not count as an item."""
    def odd(batch):
        if batch[1][0] == 30:
            raise ValueError
        return batch

    odd.__name__ = '"},{"ph":"\\\n</script>\x1b\ud800\N{SNOWMAN}'
    dataset = IndexableDataset({'x': numpy.zeros((N, 2)),
                                'y': numpy.arange(N)})
    stream = Mapping(DataStream(dataset, batch_size=SIZE, on_error='skip'),
                     odd)
    rows, _ = traced(stream, tmp_path / 'run.json', warm_up=0, batches=10)
    (events,) = rows.values()
    found = by_name(events)[f'Mapping({odd.__name__})']
    items = [each['args'].get('item') for each in found]
    # Of the fourth batch, copies make each example.
    assert [0, 1, 2, None] == items[:3] + items[4:5]
    assert list(range(10)) == [item for item in items if item is not None]


def test_stages_of_a_server_are_left_out(tmp_path):
    """Its clock may be that of another machine; the wait for it is there."""
    with Server(build(), port=0) as server, ServerDataStream(
            ('x', 'y'), port=server.port) as client:
        rows, _ = traced(client, tmp_path / 'run.json', batches=10)
    (events,) = rows.values()
    assert {'wait', 'step', 'ServerDataStream'} == set(
        by_name(events))


def test_processes_of_other_machines_and_containers(tmp_path, caplog):
    """One with another clock is left out; one with a number that is taken
    gets another."""
    here = this_process()
    ours = StageSpans((0,), 'RayWorkers', 'stage', here, here.pid, 'main',
                      [(0, 10, 90)], num_left_out=3)
    inside = ours._replace(path=(0, 0), name='Cast', spans=[(0, 20, 30)],
                           num_left_out=0)
    far = inside._replace(process=here._replace(clock='other', token='far'))
    near = inside._replace(process=here._replace(token='near'))
    profile = replace(fuel.profile(build(), batches=1),
                      spans=[ours, far, near])
    with caplog.at_level(logging.WARNING):
        profile.trace(tmp_path / 'run.json')
    assert '1 spans of other machines' in caplog.text
    assert '3 spans after the first ones were left out' in caplog.text
    rows, names = checked(tmp_path / 'run.json')
    assert 2 == len(rows)
    (one, _), (two, _) = rows
    assert one == here.pid != two
    assert 'RayWorkers: worker 1' == names['process_name', (two, 0)]


def test_number_of_spans_is_bounded():
    """The first ones are kept, of all stages, and the others counted."""
    count = MOST_SPANS // 2 + 1000
    stream = Mapping(DataStream(IndexableDataset(
        numpy.zeros((count, 2))), batch_size=1), lambda batch: batch)
    profile = fuel.profile(stream, batches=count, warm_up=0)
    stages = [each for each in profile.spans if each.kind == 'stage']
    # Streams of other tests may keep some.
    assert MOST_SPANS - 100 < sum(
        len(each.spans) for each in stages) <= MOST_SPANS
    trace = as_trace(profile.spans)
    events = [event for event in trace['traceEvents'] if event['ph'] == 'X']
    assert MOST_SPANS == len(events)
    # Three of each item, with its wait.
    assert trace['otherData']['spans_left_out'] == 3 * count - MOST_SPANS
    # The memory of the kept spans is free again.
    del stages, events, trace
    again = fuel.profile(build(), batches=5)
    assert not any(each.num_left_out for each in again.spans)


def test_nothing_is_kept_but_in_a_profile():
    """A run of weeks would fill the memory."""
    stream = build()
    fuel.profile(stream, batches=5)
    for _ in stream:
        pass
    for stage in stream, stream.data_stream:
        meter = stage_of(stage).meter
        assert (None, [], 0) == (
            meter.spans, meter.spans_below, meter.num_left_out)


def test_a_trace_is_not_among_the_data(tmp_path):
    """The trace can be written only of a profile that has spans."""
    profile = fuel.profile(build(), batches=5)
    assert profile.spans
    assert 'spans' not in profile.as_dict()
    assert 'spans' not in repr(profile)
    with pytest.raises(ValueError, match='no spans to trace'):
        replace(profile, spans=[]).trace(tmp_path / 'run.json')
    assert Profile([], 1., 0., 0, 0, '').spans == []
    assert as_trace(profile.spans)['traceEvents']
