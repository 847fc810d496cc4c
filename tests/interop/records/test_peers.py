"""Files of the writers of other libraries, compared with their readers."""
import base64
import io
import json
from pathlib import Path

import pytest
import torch
import wids
from PIL import Image
from support.processes import run_python, start_python
from support.record_peers import (
    PEERS, pixels_of, plain, plain_rows, samples_of, stream_over)
from torch.utils.data import DataLoader

import fuel
from fuel.interop.torch import as_iterable
from fuel.server import Server
from fuel.streams import ServerDataStream
from fuel.transformers import MultiProcessing
from fuel.transformers.image import ImagesFromBytes

TESTS = Path(__file__).resolve().parents[2]
COUNT = 46
WRITE = """
import sys
sys.path.append(sys.argv[1])
from support.record_peers import main
main(*sys.argv[2:])
"""
RESUME = """
import json, sys
sys.path.append(sys.argv[1])
from support.record_peers import rest_of_ranks
for line in sys.stdin:
    print(json.dumps(rest_of_ranks(*json.loads(line))), flush=True)
"""


@pytest.fixture(scope='module', params=PEERS)
def name(request):
    """Return the name of each library."""
    return request.param


@pytest.fixture(scope='module')
def folder(name, tmp_path_factory):
    """Return a folder of files by the writer of the library, which runs in
    another process: it may start threads, or have settings of its own."""
    path = tmp_path_factory.mktemp('written')
    status, _, errors = run_python(
        '-c', WRITE, str(TESTS), str(path), str(COUNT), name)
    assert 0 == status, errors.decode()
    return path / name


@pytest.fixture
def wanted(folder):
    """Return the samples of the library's reader."""
    return json.loads(folder.with_suffix('.json').read_text('utf-8'))


@pytest.fixture
def source(name):
    """Return a source that is another one for each sample."""
    return PEERS[name].source


def in_order(batches, wanted, source):
    """Return the samples of batches in the order of those that are wanted."""
    places = {sample[source]: place for place, sample in enumerate(wanted)}
    return sorted((sample for batch in batches for sample in batch),
                  key=lambda sample: places[sample[source]])


def test_all_samples_are_those_of_the_reader(folder, wanted, source):
    """In their order, and shuffled on any number of ranks."""
    dataset = fuel.load(folder)
    assert COUNT == len(wanted) == len(dataset)
    assert wanted == plain_rows(dataset.sources, dataset[:])
    whole = samples_of(stream_over(folder))
    assert wanted != [sample for batch in whole for sample in batch]
    assert wanted == in_order(whole, wanted, source)
    for ranks in (2, 4):
        shares = [samples_of(stream_over(folder).shard(rank, ranks))
                  for rank in range(ranks)]
        assert whole == [share[step] for step in range(len(whole))
                         for share in shares if step < len(share)]


@pytest.mark.parametrize('name', ['webdataset'], indirect=True)
def test_index_of_wids_lists_the_samples(folder, wanted, tmp_path):
    """They are those of its own reader."""
    dataset = fuel.load(folder / 'set.json')
    assert wanted == plain_rows(dataset.sources, dataset[:])
    listed = wids.ShardListDataset(
        str(folder / 'set.json'), cache_dir=str(tmp_path), transformations=[])
    assert [(sample['key'], sample['jpg']) for sample in wanted] == [
        (sample['__key__'], plain(sample['.jpg'].read())) for sample in listed]


@pytest.fixture(scope='module')
def elsewhere():
    """Return a function that is `rest_of_ranks` in another process."""
    process = start_python('-c', RESUME, str(TESTS), stdin=True)

    def rest(*arguments):
        process.stdin.write(json.dumps(arguments).encode() + b'\n')
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, process.stderr.read()
        return json.loads(line)

    yield rest
    process.communicate()
    assert 0 == process.returncode


@pytest.mark.parametrize('before, after', [(1, 2), (2, 4), (4, 1), (4, 2)])
def test_epoch_goes_on_elsewhere_on_other_ranks(
        folder, wanted, source, elsewhere, before, after):
    """No sample is lost, and none comes twice."""
    streams = [stream_over(folder).shard(rank, before)
               for rank in range(before)]
    first = [batch for stream in streams for batch in samples_of(stream, 2)]
    state = streams[0].state_dict()
    shares = elsewhere(str(folder), after, state)
    rest = [batch for share in shares for batch in share]
    assert 2 * before == len(first)
    assert wanted == in_order(first + rest, wanted, source)


def decoded(image):
    """Return the pixels of the file of an image, by Pillow."""
    content = io.BytesIO(base64.b64decode(image['bytes']))
    return plain(pixels_of(Image.open(content)))


def test_workers_decode_images(folder, wanted, source):
    """The pixels are those of Pillow."""
    stream = stream_over(folder)
    names = [name for name in stream.sources if name in ('image', 'jpg')]
    with MultiProcessing(stream.apply(
            ImagesFromBytes, which_sources=names), num_workers=2) as workers:
        found = in_order(samples_of(workers), wanted, source)
    assert [{**sample, **{name: decoded(sample[name]) for name in names}}
            for sample in wanted] == found


def test_server_sends_the_same_batches(folder):
    """They come from another process; it sends no dicts, as of JSON, and no
    decimal numbers, and a list of arrays of one shape as an array."""
    names = [name for name in stream_over(folder).sources
             if name not in ('json', 'meta', 'parts', 'price')]
    stream = stream_over(folder, names)
    with (Server(stream_over(folder, names), port=0) as server,
          ServerDataStream(stream.sources, port=server.port) as client):
        assert samples_of(stream) == samples_of(client)


@pytest.mark.parametrize('saved, resumed', [(0, 2), (2, 0)])
def test_loaders_of_pytorch_go_on_in_mid_epoch(
        folder, source, saved, resumed):
    """With workers and without, on another number of them."""
    def samples(batch):
        return plain_rows(names, [
            part.numpy() if isinstance(part, torch.Tensor) else part
            for part in batch])

    names = stream_over(folder).sources
    numbers = tuple({'age', 'cls', 'label'}.intersection(names))
    whole = samples_of(stream_over(folder))
    batches = as_iterable(stream_over(folder), which_sources=numbers)
    epoch = iter(DataLoader(batches, batch_size=None, num_workers=saved))
    first = [samples(next(epoch)) for _ in range(5)]
    state = batches.state_after(5)
    assert whole == first + list(map(samples, epoch))
    batches = as_iterable(stream_over(folder), which_sources=numbers)
    batches.load_state_dict(state)
    rest = DataLoader(batches, batch_size=None, num_workers=resumed)
    assert whole[5:] == list(map(samples, rest))
