"""A profile names the stage that is known to take the time."""
import json
import os
import pickle
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager
from dataclasses import asdict

import numpy
import pytest
from support.process_pipelines import Unloadable
from support.waiting import wait_until

import fuel
from fuel.client.measures import take_stages, take_took
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import ServerError
from fuel.epochs.stage import stage_of
from fuel.profiling import Profile, StageMeasurements, StageProfile
from fuel.profiling import remedies
from fuel.profiling.bottleneck import describe_bottleneck, with_shares
from fuel.profiling.remedies import remedy
from fuel.schemes import ConstantScheme
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Batch,
    Cast,
    Flatten,
    Mapping,
    Merge,
    MultiProcessing,
    Unpack,
)
from fuel.wire import WireError

NAP = .004
N = 200


def slow(batch):
    """Take long, whatever the machine does."""
    time.sleep(NAP)
    return batch


def copied(batch):
    """Return new arrays."""
    return tuple(part.copy() for part in batch)


@pytest.fixture
def several_cores(monkeypatch):
    """Let remedies name threads and workers on a machine of one core, too."""
    monkeypatch.setattr(remedies, 'cores', lambda: 2)


class SlowDataset(IndexableDataset):
    """A data set that takes long."""

    def get_data(self, state=None, request=None):
        """Return data after a while."""
        time.sleep(NAP)
        return super().get_data(state, request)


def build(dataset=IndexableDataset, **kwargs):
    """Return a stream of 20 batches an epoch."""
    return DataStream(dataset({
        'x': numpy.zeros((N, 2, 3), 'uint8'), 'y': numpy.arange(N)}),
        batch_size=10, shuffle=True, **kwargs)


def named(profile):
    """Return the stages of a profile by name."""
    return {stage.name: stage for stage in profile.stages}


@pytest.mark.usefixtures('several_cores')
def test_slow_function_is_the_bottleneck():
    """The profile has its name, the remedy, and the other stages in the
    list."""
    stream = Flatten(Mapping(Mapping(build(), copied), slow),
                     which_sources='x')
    profile = fuel.profile(stream, batches=30)
    assert ['Flatten', 'Mapping(slow)', 'Mapping(copied)', 'DataStream'] == [
        stage.name for stage in profile.stages]
    assert [0, 1, 2, 3] == [stage.depth for stage in profile.stages]
    found = named(profile)['Mapping(slow)']
    assert found.share > .5
    assert 30 * NAP <= found.seconds <= profile.seconds
    assert abs(sum(stage.share for stage in profile.stages) - 1) < 1e-6
    assert (30, 300) == (profile.batches, profile.examples)
    assert (30, 300) == (found.items, found.examples)
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'MultiProcessing(stream, num_workers=...)' in profile.bottleneck
    assert found.examples_per_second < 10 / NAP


def test_bytes_that_are_written_are_counted():
    """Bytes that a stage passes on are not."""
    stream = Mapping(Mapping(build(), copied), slow)
    stages = named(fuel.profile(stream, batches=20))
    size = 10 * (6 + 8)
    assert {'Mapping(slow)': 0, 'Mapping(copied)': 20 * size,
            'DataStream': 20 * size} == {
        name: stage.written for name, stage in stages.items()}
    flat = named(fuel.profile(Flatten(
        build(), which_sources='x'), batches=20))
    assert 0 == flat['Flatten'].written
    cast = named(fuel.profile(Cast(
        Mapping(build(), copied), 'float64', which_sources='x'), batches=20))
    assert 20 * 10 * 6 * 8 == cast['Cast'].written


def test_slow_reading_is_the_bottleneck():
    """The remedy is one for reading."""
    profile = fuel.profile(Cast(build(SlowDataset), 'float32'), batches=10)
    assert named(profile)['DataStream'].share > .5
    assert profile.bottleneck.startswith('DataStream takes ')
    assert 'load_in_memory' in profile.bottleneck


def test_examples_one_by_one_are_the_bottleneck():
    """They are of a data set that is read in order."""
    def lines():
        for number in range(20):
            time.sleep(NAP)
            yield number

    class Lines:
        def __iter__(self):
            return lines()

    stream = Batch(DataStream(IterableDataset(Lines())), ConstantScheme(5))
    profile = fuel.profile(stream, batches=8, warm_up=0)
    assert 'read one example at a time' in profile.bottleneck
    assert (8, 40) == (profile.batches, profile.examples)


def test_training_step_is_the_bottleneck():
    """Then the data are not."""
    profile = fuel.profile(build(), batches=10,
                           step=lambda batch: time.sleep(NAP))
    assert profile.bottleneck.startswith('The training step takes ')
    assert profile.step_seconds >= 10 * NAP
    assert 'training step' in str(profile)


@pytest.mark.usefixtures('several_cores')
@pytest.mark.parametrize('num_workers', [1, 2])
def test_stages_in_workers_are_measured_there(num_workers):
    """Waiting is that of this process, work that of the workers."""
    workers = MultiProcessing(
        Mapping(build(), slow), 4, num_workers=num_workers,
        start_method='fork')
    stream = Flatten(workers, which_sources='x')
    before = json.dumps(stream.state_dict())
    profile = fuel.profile(stream, batches=30)
    assert ['Flatten', 'MultiProcessing', 'Mapping(slow)', 'DataStream'] == [
        stage.name for stage in profile.stages]
    where = 'workers' if num_workers > 1 else 'worker'
    assert ['this process'] + [f'{num_workers} {where}'] * 3 == [
        stage.runs_in for stage in profile.stages]
    found = named(profile)
    assert found['Mapping(slow)'].share > .5
    assert found['Mapping(slow)'].items >= 30
    assert 0 < found['MultiProcessing'].waiting <= profile.seconds
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'more workers' in profile.bottleneck
    # The pipeline is as before, and no process is left.
    assert stream.data_stream is workers
    assert [] == workers.worker_pids
    assert before == json.dumps(stream.state_dict())
    assert 20 == len(list(stream))
    workers.close()


@pytest.mark.usefixtures('several_cores')
def test_slow_stage_above_workers_is_the_bottleneck():
    """The workers have stages too, but nobody waits for those."""
    stream = Mapping(MultiProcessing(build(), start_method='fork'), slow)
    profile = fuel.profile(stream, batches=15)
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'MultiProcessing(stream' in profile.bottleneck
    assert 'in 1 worker' not in profile.bottleneck
    stream.data_stream.close()


def test_running_workers_are_measured_and_stay():
    """They are measured in the middle of an epoch, which goes on as before."""
    stream, expected = MultiProcessing(
        Mapping(build(), slow), start_method='fork'), list(build())
    iterator = iter(stream)
    found = [next(iterator) for _ in range(5)]
    pids = stream.worker_pids
    profile = fuel.profile(stream, batches=10, warm_up=0)
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    found += list(iterator)
    assert pids == stream.worker_pids
    assert [y.tolist() for _, y in expected] == [
        y.tolist() for _, y in found]
    stream.close()


@contextmanager
def served(stream, **kwargs):
    """Serve a stream, and yield server and client."""
    with Server(stream, port=0, **kwargs) as server, ServerDataStream(
            ('x', 'y'), port=server.port, shared_memory=False) as client:
        yield server, client


@pytest.mark.usefixtures('several_cores')
def test_stages_of_a_server_are_measured_there():
    """They stand below the client, which waits for them."""
    with served(Flatten(Mapping(build(), slow), which_sources='x')) as (
            server, client):
        profile = fuel.profile(client, batches=30)
        server_place = f'server localhost:{server.port}'
    assert ['ServerDataStream', 'Flatten', 'Mapping(slow)', 'DataStream'] == [
        stage.name for stage in profile.stages]
    assert [0, 1, 2, 3] == [stage.depth for stage in profile.stages]
    assert {server_place} == {stage.runs_in for stage in profile.stages}
    reader, _, worst, _ = profile.stages
    assert 0 < reader.waiting <= reader.seconds
    assert worst.share > .5
    # The server's numbers arrive a batch or two later.
    assert worst.items >= 25
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert f'in {server_place}' in profile.bottleneck
    assert 'MultiProcessing(stream, num_workers=...)' in profile.bottleneck


@pytest.mark.usefixtures('several_cores')
def test_workers_of_a_server_are_measured_too(monkeypatch):
    """Their stages stand below the stage of the server that waits."""
    # Longer than a busy machine takes to send a batch.
    monkeypatch.setitem(globals(), 'NAP', 5 * NAP)
    workers = MultiProcessing(Mapping(build(), slow), num_workers=2,
                              start_method='fork')
    with served(workers) as (server, client):
        # They report some ten times a second.
        profile = fuel.profile(client, batches=40)
    assert ['ServerDataStream', 'MultiProcessing', 'Mapping(slow)',
            'DataStream'] == [stage.name for stage in profile.stages]
    assert f'2 workers of server localhost:{server.port}' == (
        profile.stages[2].runs_in)
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'use more workers' in profile.bottleneck
    workers.close()


def test_slow_client_is_the_bottleneck():
    """The server is not."""
    with served(build()) as (_, client):
        profile = fuel.profile(Mapping(client, slow), batches=15)
    assert profile.bottleneck.startswith('Mapping(slow) takes ')
    assert 'server' not in profile.bottleneck


def test_server_times_each_item_only_while_it_is_asked():
    """A client may ask in mid-epoch; the epoch goes on unchanged."""
    stream = Mapping(build(), slow)
    with served(stream) as (server, client):
        iterator = iter(client)
        found = [next(iterator) for _ in range(5)]
        pipeline = server.service.pipeline
        stage_of(client).time_all(is_exact=True)
        wait_until(lambda: pipeline._is_exact)
        found += [next(iterator) for _ in range(3)]
        stage_of(client).time_all(is_exact=False)
        wait_until(lambda: not pipeline._is_exact)
        found += list(iterator)
        stages = client.measurements().stages
        assert ['ServerDataStream', 'Mapping(slow)', 'DataStream'] == [
            stage.name for stage in stages]
        assert 0 < stages[1].items <= 20
    assert [y.tolist() for _, y in build()] == [
        y.tolist() for _, y in found]


def test_server_forgets_a_client_that_measured():
    """It need not say that it has gone."""
    with served(build()) as (server, client):
        client.connect()
        stage_of(client).time_all(is_exact=True)
        scheduler = server.service.scheduler
        wait_until(lambda: scheduler.pipeline._is_exact)
        client.close()
        wait_until(lambda: not scheduler.connections
                   and not scheduler.pipeline._is_exact)


@pytest.mark.parametrize('changes, text', [
    ({'work_seconds': -1.}, 'took -1.0 seconds'),
    ({'stall_seconds': 'long'}, "'stall_seconds' must be of type float"),
    ({'name': '\x1b[2J'}, 'not the text'),
    ({'remedy': 'x' * 2000}, 'not the text'),
    ({'depth': -1}, "'depth' must be of type int"),
    ({'depth': 2 ** 40}, 'at the depth'),
    ({'items': True}, "'items' must be of type int"),
    ({'path': []}, 'not the place'), ({'path': [-1]}, 'not the place'),
    ({'path': [1] * 100}, 'not the place')], ids=lambda one: str(
        one).encode('ascii', 'backslashreplace').decode()[:12])
def test_measures_of_a_hostile_server_are_refused(changes, text):
    """They are printed in a terminal."""
    honest = asdict(StageMeasurements((0,), 'Cast', 0, 'this process'))
    honest['path'] = [0]
    assert 'Cast' == take_stages([honest])[0].name
    with pytest.raises(WireError, match=text):
        take_stages([{**honest, **changes}])


@pytest.mark.parametrize('took', [
    [], [[0], 'long'], [[0], -1.], [[0], float('inf')], [[], 1.],
    [['x'], 1.], [0, 1.], [[0], 10 ** 400]])
def test_time_of_a_batch_of_a_hostile_server_is_refused(took):
    """Nothing of it is counted."""
    assert ((0, 1), 2.) == take_took({'took': [[0, 1], 2.]})
    assert (None, 0.) == take_took({})
    with pytest.raises(WireError):
        take_took({'took': took})


def test_number_of_stages_of_a_hostile_server_is_bounded():
    """A server may send fewer than 1000 stages, and each is an object."""
    with pytest.raises(WireError, match='1000 stages'):
        take_stages([{}] * 1000)
    with pytest.raises(WireError, match='are an object'):
        take_stages([5])


def test_merged_streams_are_measured_apart():
    """Each branch of the tree is."""
    stream = Merge((build(), Mapping(build(), slow)), tuple('abcd'))
    profile = fuel.profile(stream, batches=10)
    assert ['Merge', 'DataStream', 'Mapping(slow)', 'DataStream'] == [
        stage.name for stage in profile.stages]
    assert profile.bottleneck.startswith('Mapping(slow)')


def test_order_is_the_same_after_a_profile():
    """The generators are put back, if no epoch was running."""
    stream = build()
    fuel.profile(stream, batches=30)
    assert [y.tolist() for _, y in build()] == [
        y.tolist() for _, y in stream]


def test_running_epoch_goes_on():
    """A profile reads epochs of its own."""
    stream, reference = build(), build()
    iterator, expected = iter(stream), iter(reference)
    next(iterator), next(expected)
    fuel.profile(stream, batches=5)
    assert [y.tolist() for _, y in expected] == [
        y.tolist() for _, y in iterator]


def test_profile_over_several_epochs_and_of_nothing():
    """It begins as many as it takes, and ends where there are none."""
    profile = fuel.profile(Unpack(build()), batches=450, warm_up=0)
    assert 450 == profile.batches == profile.examples
    empty = fuel.profile(DataStream(IterableDataset([])), batches=3)
    assert (0, 'There were no batches to measure.') == (
        empty.batches, empty.bottleneck)
    str(empty), empty.svg()
    with pytest.raises(ValueError, match='batches must be a positive'):
        fuel.profile(build(), batches=0)


def test_error_in_a_stage_leaves_the_pipeline_whole():
    """The exception is the pipeline's own."""
    def fail(batch):
        raise KeyError('mine')

    workers = MultiProcessing(Mapping(build(), fail), start_method='fork')
    with pytest.raises(KeyError, match='mine'):
        fuel.profile(workers, batches=3)
    assert type(workers.data_stream) is Mapping
    workers.close()


@pytest.mark.parametrize('method', ['spawn', 'forkserver'])
def test_stream_that_does_not_load_in_the_worker_is_told(method):
    """The error is the one that its class raises there, each time."""
    with MultiProcessing(Mapping(build(), Unloadable()),
                         start_method=method) as workers:
        for _ in range(2):
            with pytest.raises(ValueError, match='something bad'):
                fuel.profile(workers, batches=3)
        with pytest.raises(ValueError, match='something bad'):
            next(workers.get_epoch_iterator())
        with pytest.raises(ValueError, match='something bad'):
            fuel.profile(workers, batches=3)


def profile_of(*stages):
    """Return a profile of stages with given seconds."""
    return Profile([StageProfile(name, depth, 'this process', seconds, wait,
                                 seconds, 3, 30, 5_000_000)
                    for depth, (name, seconds, wait) in enumerate(stages)],
                   1., 0., 3, 30, 'Cast <takes> all.')


def test_profile_as_data_text_and_picture(tmp_path):
    """It has JSON, a table, and a bar for each stage."""
    profile = profile_of(('Cast', .25, 0.), ('MultiProcessing', .75, .5))
    assert 'Cast' == json.loads(json.dumps(
        profile.as_dict()))['stages'][0]['name']
    lines = str(profile).splitlines()
    assert ['3 batches, 30 examples in 1.000 s: 30 examples/s',
            'Cast <takes> all.'] == [lines[0], lines[-1]]
    assert [['stage', 'runs', 'in', 'seconds', 'share', 'waiting',
             'examples/s', 'written'],
            ['Cast', 'this', 'process', '0.250', '25%', '0.000', '120',
             '5.0', 'MB'],
            ['MultiProcessing', 'this', 'process', '0.750', '75%', '0.500',
             '40', '5.0', 'MB']] == [line.split() for line in lines[1:-1]]
    assert lines[3].startswith('  Multi')
    picture = ElementTree.fromstring(profile.svg())
    bars = [float(one.get('width')) for one in picture
            if one.tag.endswith('rect') and one.get('height') == '15']
    assert bars[0] == pytest.approx(2 * bars[3] / 3 * .75, abs=.2)
    assert bars[1] == 0
    assert '&lt;takes&gt;' in profile._repr_html_()
    assert profile.bottleneck == ' '.join(
        one.text for one in picture if one.get('y') and float(
            one.get('y')) > 26 * 3 + 8 and one.tag.endswith('text'))
    profile.save(tmp_path / 'profile.svg')
    profile.save(tmp_path / 'profile.json')
    assert profile.as_dict() == json.loads(
        (tmp_path / 'profile.json').read_text())
    for name in ('profile.png', 'svg', 'profile.svg.gz'):
        with pytest.raises(ValueError, match=r'\.svg, \.txt, \.json'):
            profile.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    profile.save(tmp_path / 'profile.txt')
    assert profile.svg() == (tmp_path / 'profile.svg').read_text()
    assert f'{profile}\n' == (tmp_path / 'profile.txt').read_text()
    assert profile == pickle.loads(pickle.dumps(profile))


def stage(name, depth, runs_in, seconds, waiting=0., items=100, **kwargs):
    """Return the profile of a stage."""
    return StageProfile(name, depth, runs_in, seconds, waiting, .9, items,
                        10 * items, 0, **kwargs)


def test_fast_workers_that_are_waited_for_are_not_the_bottleneck():
    """Sending takes the time, and more workers do not help."""
    stages = [stage('MultiProcessing', 0, '2 workers', .9, .9, processes=2),
              stage('DataStream', 1, '2 workers', .2, remedy='more')]
    assert describe_bottleneck(stages, 1., 0.) == (
        'MultiProcessing waits 90% of the time for the 2 workers, which could '
        'make 10 times as many batches: sending them takes longer than making '
        'them, so do the work in this process, or more of it there')


def test_parts_are_of_the_time_with_the_step():
    """The step comes first if it takes most; no part is of another whole."""
    remedy = 'cast less'
    stages = with_shares([stage('Cast', 0, 'this process', .2, remedy=remedy),
                          stage('DataStream', 1, 'this process', .1)], .7)
    assert [.2, .1] == pytest.approx([one.share for one in stages])
    assert describe_bottleneck(stages, 1., .7) == (
        'The training step takes 70% of the time, so faster data would help '
        'little. Next, Cast takes 20% of the time: cast less')
    stages = with_shares([stage('Cast', 0, 'this process', .6, remedy=remedy)],
                         .4)
    assert describe_bottleneck(stages, 1., .4) == (
        'Cast takes 60% of the time: cast less')
    assert 'help little' in describe_bottleneck(stages, 1., .7, 1.05)
    # A step that is slower while data are made says nothing.
    assert 'help little' not in describe_bottleneck(stages, 1., .7, 1.5)
    stages = [stage('MultiProcessing', 0, '2 workers', .3, .3, processes=2),
              stage('Cast', 1, '2 workers', .9, remedy='more')]
    assert describe_bottleneck(stages, 1., .7) == (
        'The training step takes 70% of the time, so faster data would help '
        'little. Next, Cast takes 90% of the time in 2 workers, and 30% of '
        'the time is spent in waiting for that: more')


def test_server_of_several_clients_is_not_faster_than_for_one():
    """Clients share a server's work: it is busy, though one gets little."""
    place = 'server here:1'
    stages = [stage('ServerDataStream', 0, place, .9, .9, items=25),
              stage('Cast', 1, place, .9, remedy='leave it out')]
    assert describe_bottleneck(stages, 1., 0.) == (
        'Cast takes 90% of the time in server here:1, and 90% of the time is '
        'spent in waiting for that: leave it out')


def test_stages_that_could_not_be_measured():
    """The server may be a new one, or an actor gone."""
    stages = [stage('ServerDataStream', 0, 'server here:1', .9, .9)]
    assert 'were not measured' in describe_bottleneck(stages, 1., 0.)


class Chunked:
    """A data set that says it lies in chunks."""

    takes_requests = True

    def __init__(self, layout):
        self.layout = layout

    def details(self):
        """Return the layout."""
        return ['file.hdf5', self.layout]


@pytest.mark.parametrize('layout, text', [
    ('chunks of 64, gzip', 'BlockShuffledScheme'),
    ('in memory', 'smaller types'), ('contiguous', 'faster disk')])
def test_remedies_of_reading(layout, text):
    """The remedy depends on the layout."""
    class Stream:
        dataset = Chunked(layout)

    assert text in remedy(Stream())


def test_remedy_of_reading_from_memory_is_not_to_load_it():
    """It is there."""
    assert 'smaller types' in remedy(build())
    assert 'load_in_memory' not in remedy(build())
    assert 'convert it to HDF5' in remedy(
        DataStream(IterableDataset([1])))


@pytest.mark.usefixtures('several_cores')
def test_remedy_that_is_in_use_is_not_named():
    """Images may be decoded to a smaller size already."""
    decoding = type('ImagesFromBytes', (), {})
    assert 'shrink_to' in remedy(decoding())
    decoding.shrink_to = (32, 32)
    assert 'shrink_to' not in remedy(decoding())
    assert 'config.num_threads' in remedy(decoding())


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'),
                    reason='cores cannot be chosen on this platform')
def test_remedies_on_one_core_need_no_other():
    """Neither threads nor workers help there, in a worker either."""
    available = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(available)})
    try:
        for name in ('ImagesFromBytes', 'Mapping', 'Own'):
            text = remedy(type(name, (), {})())
            assert 'this process may run on one only' in text
            assert 'num_workers' not in text
            assert 'num_threads' not in text
        small = type('ImagesFromBytes', (), {'shrink_to': (32, 32)})()
        assert remedy(small).startswith('use another core')
        with MultiProcessing(Mapping(build(), slow),
                             start_method='fork') as workers:
            found = fuel.profile(workers, batches=20).bottleneck
    finally:
        os.sched_setaffinity(0, available)
    assert 'more workers' not in found
    assert 'another core' in found


@pytest.mark.usefixtures('several_cores')
@pytest.mark.parametrize('name, text', [
    ('Cast', 'right on the DataStream'),
    ('ImagesFromBytes', 'config.num_threads'), ('Own', 'MultiProcessing')])
def test_remedies_of_stages(name, text):
    """The remedy depends on the stage."""
    assert text in remedy(type(name, (), {})())


def test_profile_costs_nothing_before_it_is_used():
    """`import fuel` does not load it; completion shows it."""
    code = ('import sys, fuel; print("profile" in dir(fuel), '
            '"fuel.profiling" in sys.modules)')
    printed = subprocess.run([sys.executable, '-c', code], check=True,
                             capture_output=True, text=True, timeout=60)
    assert 'True False' == printed.stdout.strip()


def test_profile_of_a_server_that_is_not_there_is_its_error():
    """The workers that were started for it end."""
    workers = MultiProcessing(build(), start_method='fork')
    client = ServerDataStream(('x', 'y'), False, port=1, timeout=.2)
    stream = Merge((workers, client), tuple('abcd'))
    with pytest.raises(ServerError, match='no server answers'):
        fuel.profile(stream, batches=3)
    assert [] == workers.worker_pids
    stream.close()
