"""Exporters give the measured numbers and disturb nobody."""
import dataclasses
import os
import re
import socket
import subprocess
import sys
import threading
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.waiting import wait_until

import fuel
from fuel.datasets import IndexableDataset
from fuel.epochs.stage import stage_of
from fuel.export.prometheus import MetricsServer, Sample, text_of
from fuel.profiling import StageMeasurements
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import Cast, Mapping, MultiProcessing

N, SIZE = 40, 10


def build(count=N):
    """Return a stream of batches of numbers."""
    dataset = IndexableDataset({
        'x': numpy.arange(count * SIZE), 'y': numpy.arange(count * SIZE)})
    return DataStream(dataset, batch_size=SIZE)


def read(server):
    """Return the values of a page by name and labels."""
    with urlopen(server.address, timeout=20) as answer:
        assert answer.headers['Content-Type'].startswith(
            'text/plain; version=0.0.4')
        return parse(answer.read().decode())


def parse(text):
    """Return what Prometheus' parser makes of a text."""
    found, names = {}, []
    for family in text_string_to_metric_families(text):
        names.append(family.name)
        assert family.type in ('counter', 'gauge')
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            assert (family.type == 'counter') == sample.name.endswith('_total')
            found[key] = sample.value
    assert len(set(names)) == len(names) > 0
    return found


def of(found, name, **labels):
    """Return the only value with a name and at least these labels."""
    value, = [value for (key, given), value in found.items()
              if key == name and labels.items() <= given]
    return value


def test_import_of_fuel_loads_no_exporter():
    """The exporters themselves do not load a package."""
    program = ('import sys, fuel; assert "fuel.export" not in sys.modules; '
               'assert "http.server" not in sys.modules; '
               'assert fuel.export.as_flat; '
               'assert "prometheus_client" not in sys.modules')
    subprocess.run([sys.executable, '-c', program], check=True)


def test_flat_names_suit_loggers():
    """They are only numbers, under names whose characters all loggers take."""
    stream = MultiProcessing(Mapping(build(), lambda batch: batch),
                             num_workers=1, max_store=4)
    try:
        assert N == len(list(stream))
        measured = stream.measurements()
    finally:
        stream.close()
    flat = fuel.export.as_flat(measured)
    for name, value in flat.items():
        assert re.fullmatch(r'fuel(\.[a-z_]+)+(/[\w.-]+)?', name, re.ASCII)
        assert type(value) in (int, float)
    assert flat['fuel.pipeline.items'] == N
    assert flat['fuel.pipeline.examples'] == N * SIZE
    assert flat['fuel.pipeline.stall.ratio'] == measured.stall_share
    place, = [name for name in flat if name.startswith(
        'fuel.stage.work.seconds/') and 'Mapping' in name]
    assert place == 'fuel.stage.work.seconds/0-0.Mapping_lambda'
    assert flat[place] == measured.stages[1].work_seconds
    assert flat['fuel.stage.queue.size/0.MultiProcessing'] == 4
    assert 0 <= flat['fuel.stage.queue.ratio/0.MultiProcessing'] <= 1
    assert sum(value for name, value in flat.items() if name.startswith(
        'fuel.stage.stall.ratio/')) == pytest.approx(measured.stall_share)


def test_flat_interval_is_what_happened_in_it():
    """It is a record like others."""
    stream = build()
    list(stream)
    # The first has none, and a training loop asks all the same.
    assert {} == fuel.export.as_flat(stream.measurements().interval)
    epoch = stream.get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    flat = fuel.export.as_flat(stream.measurements().interval)
    assert flat['fuel.pipeline.items'] == 3


def test_every_sum_is_a_counter():
    """All other fields, which go up and down, are gauges."""
    kinds = {metric.field: metric.grows
             for metric in fuel.export.flat.OF_STAGES}
    values = {field.name: 5 for field in dataclasses.fields(StageMeasurements)
              if field.name in kinds}
    stage = StageMeasurements((0,), 'x', 0, 'here', **values)
    rest = stage - stage
    assert {name: getattr(rest, name) == 0 for name in kinds} == kinds
    numbers = {field.name for field in dataclasses.fields(StageMeasurements)
               if field.type in ('int', 'float')}
    assert numbers - set(kinds) == {'depth'}


def test_prometheus_reads_the_stages():
    """Names, labels, values; sums never fall."""
    stream = Cast(build(), 'float32', which_sources='x')
    with fuel.export.serve_metrics({'train': stream}, port=0) as server:
        list(stream)
        first = read(server)
        list(stream)
        second = read(server)
    labels = {'stream': 'train', 'stage': 'Cast', 'path': '0',
              'runs_in': 'this process'}
    assert of(first, 'fuel_pipeline_items_total', stream='train') == N
    assert of(second, 'fuel_stage_items_total', **labels) == 2 * N
    assert of(second, 'fuel_stage_work_seconds_total', **labels) > of(
        first, 'fuel_stage_work_seconds_total', **labels) > 0
    assert of(first, 'fuel_stage_processes', **labels) == 1
    assert of(first, 'fuel_stage_read_bytes_total', **labels) == 0
    assert first.keys() == second.keys()
    for (name, given), value in first.items():
        if name.endswith('_total'):
            assert second[name, given] >= value
    with pytest.raises(OSError, match='refused'):
        urlopen(server.address)


def test_ranks_are_labels():
    """A sharded stream has its own rank; another one is given a rank."""
    with fuel.export.serve_metrics(build().shard(1, 4), port=0) as one, \
            fuel.export.serve_metrics(build(), port=0, rank=3) as other, \
            fuel.export.serve_metrics(build(), port=0) as alone:
        ranks = [{dict(labels).get('rank') for _, labels in read(server)}
                 for server in (one, other, alone)]
    assert ranks == [{'1'}, {'3'}, {None}]


def test_streams_are_told_apart_by_name():
    """No value comes twice."""
    streams = {'train': build(), 'valid': build()}
    list(streams['valid'])
    with fuel.export.serve_metrics(streams, port=0) as server:
        found = read(server)
    assert [of(found, 'fuel_pipeline_items_total', stream=name)
            for name in streams] == [0, N]


@pytest.mark.parametrize('name', [
    'a"b', 'back\\slash', 'line\nfuel_stage_items_total 5\n', '\\"}\n',
    'é{}=,', '\udc80', 'x' * 10_000])
def test_hostile_names_stay_labels(name):
    """No name of a stage or stream can add a line, or break one."""
    def function(batch):
        return batch
    function.__name__ = name
    stream = Mapping(build(), function)
    with fuel.export.serve_metrics({name: stream}, port=0) as server:
        found = read(server)
    shown = name.encode(errors='replace').decode()
    stages = {dict(labels)['stage'] for key, labels in found
              if 'stage' in dict(labels)}
    assert stages == {'DataStream', f'Mapping({shown})'[:200]}
    assert {dict(labels)['stream'] for _, labels in found} == {shown[:200]}


def test_reading_leaves_the_interval_alone():
    """That of the training loop is between its own calls."""
    stream = build()
    stream.measurements()
    with fuel.export.serve_metrics(stream, port=0) as server:
        list(stream)
        read(server)
        list(stream)
        read(server)
    assert stream.measurements().interval.items == 2 * N


def test_reading_waits_for_no_lock_of_a_stream():
    """An epoch holds the lock for as long as a batch takes."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(batch):
        begun.set()
        assert go_on.wait(60)
        return batch
    stream = Mapping(build(), wait)
    thread = threading.Thread(target=list, args=(stream,))
    with fuel.export.serve_metrics(stream, port=0) as server:
        thread.start()
        try:
            assert begun.wait(20)
            assert not stage_of(stream).lock.acquire(blocking=False)
            assert of(read(server), 'fuel_stage_items_total', path='1') == 1
            assert 1 == stream.measurements().stages[1].items
        finally:
            go_on.set()
            thread.join()


def test_several_threads_may_ask_at_once():
    """Each gets whole records; their intervals begin with some call."""
    stream, failures, stop = build(2000), [], threading.Event()

    def ask():
        try:
            while not stop.is_set():
                found = stream.measurements()
                if found.interval is not None:
                    assert 0 <= found.interval.items <= found.items
        except BaseException as error:  # noqa: BLE001 - the test shows it
            failures.append(error)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    list(stream)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert stream.measurements().items == 2000


def test_port_in_use_is_told():
    """The error says what to do, and no thread is left."""
    with fuel.export.serve_metrics(build(), port=0) as server:
        count = threading.active_count()
        with pytest.raises(OSError, match=(
                f'cannot serve metrics at port {server.port} of 127.0.0.1 '
                r'\(Address already in use\): choose another port, 0 for')):
            fuel.export.serve_metrics(build(), port=server.port)
        assert threading.active_count() == count
    with pytest.raises(OSError, match='and a host of this machine'):
        fuel.export.serve_metrics(build(), port=0, host='192.0.2.1')
    server.close()


def test_only_this_host_is_served():
    """Another host must be given to serve it."""
    with fuel.export.serve_metrics(build(), port=0) as server:
        assert server.address == f'http://127.0.0.1:{server.port}/metrics'
        assert server._server.server_address[0] == '127.0.0.1'
    with fuel.export.serve_metrics(build(), port=0, host='') as server:
        assert server._server.server_address[0] == '0.0.0.0'
        read(server)


@pytest.mark.parametrize('method, path, status', [
    ('GET', '/', 404), ('GET', '/metrics/../etc/passwd', 404),
    ('POST', '/metrics', 501), ('HEAD', '/metrics', 501),
    ('GET', '/metrics?x=1', 200)])
def test_nothing_else_is_answered(method, path, status):
    """One page can be read."""
    with fuel.export.serve_metrics(build(), port=0) as server:
        request = Request(f'http://127.0.0.1:{server.port}{path}',
                          method=method)
        try:
            with urlopen(request) as answer:
                found = answer.status
        except HTTPError as error:
            with error:
                found = error.code
    assert found == status


def test_peers_that_say_nothing_are_cut(monkeypatch):
    """Those beyond the eighth are cut at once; the others answer again
    soon."""
    monkeypatch.setattr('fuel.export.prometheus._REQUEST_SECONDS', .5)
    with fuel.export.serve_metrics(build(), port=0) as server:
        peers = [socket.create_connection(('127.0.0.1', server.port))
                 for _ in range(12)]
        # Drip bytes, so that no single read takes long.
        deadline = time.monotonic() + 20
        while peers and time.monotonic() < deadline:
            for peer in list(peers):
                try:
                    peer.send(b'x')
                except OSError:
                    peers.remove(peer)
                    peer.close()
            time.sleep(.05)
        assert not peers
        assert read(server)


def test_failure_is_answered_and_logged(caplog):
    """A failure does not end the service."""
    def collect():
        if not failed:
            failed.append(True)
            raise RuntimeError('odd')
        yield Sample('fuel.x', False, {}, 1)
    failed = []
    with MetricsServer(collect, 0, '127.0.0.1') as server:
        with pytest.raises(HTTPError, match='500') as caught:
            urlopen(server.address)
        caught.value.close()
        assert list(read(server).values()) == [1]
    assert 'the metrics cannot be read' in caplog.text


def test_child_does_not_keep_the_port():
    """A worker that outlives its parent, say."""
    ended, end = os.pipe()
    began, begin = os.pipe()
    server = fuel.export.serve_metrics(build(), port=0)
    child = os.fork()
    if not child:
        try:
            server.close()
            os.write(begin, b'x')
            os.read(ended, 1)
        finally:
            os._exit(0)
    try:
        # On a busy machine the child closes the port some time later.
        assert os.read(began, 1) == b'x'
        read(server)
        server.close()
        with fuel.export.serve_metrics(build(), port=server.port) as again:
            read(again)
    finally:
        os.write(end, b'x')
        os.waitpid(child, 0)
        for pipe in (ended, end, began, begin):
            os.close(pipe)


def test_killed_process_frees_the_port():
    """It is free at once, for the next process."""
    program = ('import time, fuel; from fuel.streams import DataStream; '
               'from fuel.datasets import IndexableDataset as D; '
               'server = fuel.export.serve_metrics('
               'DataStream(D([1]), batch_size=1), port=0); '
               'print(server.port, flush=True); time.sleep(100)')
    with subprocess.Popen([sys.executable, '-c', program],
                          stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        urlopen(f'http://127.0.0.1:{port}/metrics').read()
        process.kill()
        process.wait()
    with fuel.export.serve_metrics(build(), port=port) as server:
        read(server)


def test_server_tells_prometheus_of_its_clients():
    """The server also exports the stages of its pipeline while it serves."""
    with Server(build(), port=0, metrics_port=0) as server:
        with ServerDataStream(('x', 'y'), port=server.port) as client:
            epoch = client.get_epoch_iterator()
            for _ in range(5):
                next(epoch)

            def found():
                with urlopen(server.metrics_address) as answer:
                    return parse(answer.read().decode())
            wait_until(lambda: of(
                found(), 'fuel_server_client_batches_total') >= 4,
                'acknowledgements')
            values = found()
        assert of(values, 'fuel_server_clients') == 1
        assert of(values, 'fuel_server_batches_total') >= 5
        assert of(values, 'fuel_stage_items_total', stage='DataStream') >= 5
        assert of(values, 'fuel_server_client_hwm') == 10
        address = server.metrics_address
    with pytest.raises(OSError, match='refused'):
        urlopen(address)


def test_server_whose_port_for_metrics_is_taken_does_not_start():
    """Its own port is free again."""
    with fuel.export.serve_metrics(build(), port=0) as other:
        server = Server(build(), port=0, metrics_port=other.port)
        with pytest.raises(OSError, match='cannot serve metrics at port'):
            server.start()
        with Server(build(), port=0, metrics_port=0):
            pass


def test_clients_of_one_name_are_one_line():
    """Names are cut, and invalid text is replaced."""
    samples = [Sample('fuel.x', True, {'client': name}, place)
               for place, name in enumerate(['\udc80', '\udc81', 'y' * 300,
                                             'y' * 301])]
    assert list(parse(text_of(samples).decode()).values()) == [0, 2]
