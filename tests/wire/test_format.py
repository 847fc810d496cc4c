"""The wire format as ``docs/format/wire.rst`` says it, read by other code.

Nothing of Fuel's own decoder or client is used here: what these few lines
understand is what the page promises.
"""
import json
from pathlib import Path

import numpy
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from support.process_pipelines import assert_same, build
from support.sparse_rows import sparse_batches

from fuel.server import Server
from fuel.utils.sparse import to_dense
from fuel.wire import encode

PAGE = Path(__file__).parents[2] / 'docs' / 'format' / 'wire.rst'
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5),
    st.binary(max_size=5), st.floats(allow_nan=False))
ARRAYS = st.builds(
    lambda name, shape, order: numpy.arange(
        numpy.prod(shape, dtype=int)).astype(name).reshape(shape, order=order),
    st.sampled_from(['<f4', '>i2', '<c16', '?', 'S3', '<U2', '<M8[s]']),
    st.lists(st.integers(0, 3), max_size=3), st.sampled_from('CF'))
STRUCTURED = numpy.zeros(3, [('a', '<i2'), ('b', '>f4', (2,))])


def read_dtype(described):
    """Return a dtype as the page describes it."""
    if isinstance(described, str):
        return numpy.dtype(described)
    if isinstance(described, list):
        return numpy.dtype((read_dtype(described[0]), tuple(described[1])))
    return numpy.dtype({
        **described, 'formats': list(map(read_dtype, described['formats']))})


def read_array(item, frames):
    """Return an array."""
    dtype, shape = read_dtype(item['dtype']), item['shape']
    data = b'' if 0 in shape else bytes(next(frames))
    return numpy.frombuffer(data, dtype).reshape(shape, order=item['order'])


def read_numbers(frames):
    """Return a frame of ``<i8``."""
    return numpy.frombuffer(bytes(next(frames)), '<i8')


def read_strings(item, frames):
    """Return a list of bytes or texts."""
    lengths, data = read_numbers(frames), bytes(next(frames))
    assert len(lengths) == item['count']
    ends = numpy.cumsum(lengths)
    parts = [data[end - length:end]
             for end, length in zip(ends, lengths, strict=True)]
    return parts if item['of'] == 'bytes' else [
        part.decode() for part in parts]


def read_ragged(item, frames):
    """Return a list of arrays."""
    shapes = read_numbers(frames).reshape(item['count'], item['dimensions'])
    data = numpy.frombuffer(bytes(next(frames)), read_dtype(item['dtype']))
    ends = numpy.cumsum(shapes.prod(1))
    return [data[end - shape.prod():end].reshape(shape)
            for end, shape in zip(ends, shapes, strict=True)]


def read(item, frames):
    """Return the data of one source."""
    kind = item['type']
    if kind == 'array':
        return read_array(item, frames)
    if kind == 'scalar':
        return read_array(item, frames)[()]
    if kind == 'csr':
        data, indices, indptr = (read_array(item[name], frames) for name in (
            'data', 'indices', 'indptr'))
        return csr_array((data, indices, indptr), item['shape'])
    if kind == 'bytes':
        return bytes(next(frames))
    if kind == 'value':
        return item['value']
    if kind == 'float':
        return float.fromhex(item['value'])
    if kind == 'list':
        return [read(one, frames) for one in item['items']]
    if kind == 'strings':
        return read_strings(item, frames)
    if kind == 'ragged':
        return read_ragged(item, frames)
    assert kind == 'objects'
    elements = read(item['items'], frames)
    array = numpy.empty(len(elements), object)
    array[:] = elements
    return array.reshape(item['shape'])


def read_all(items, buffers):
    """Return the data of all sources; every frame is described."""
    frames = iter(buffers)
    data = [read(item, frames) for item in items]
    assert next(frames, None) is None
    return data


@given(st.lists(st.one_of(PLAIN, ARRAYS), max_size=4))
def test_page_describes_values_and_arrays(data):
    """Each is read back as it was."""
    items, buffers = encode(data)
    read_back = read_all(json.loads(json.dumps(items)), buffers)
    for expected, actual in zip(data, read_back, strict=True):
        assert type(expected) is type(actual)
        if isinstance(expected, numpy.ndarray):
            assert expected.dtype == actual.dtype
            assert expected.tobytes() == actual.tobytes()
            assert expected.shape == actual.shape
        else:
            assert expected == actual


@pytest.mark.parametrize('data', [
    [b'ab', b''], ['ä', ''], [numpy.arange(2), numpy.arange(3)],
    [numpy.ones((2, 3)), numpy.ones((1, 0))], [1, None, 'x'],
    numpy.float32(2), STRUCTURED,
    numpy.array([[1, 'x'], [None, b'y']], object)],
    ids=lambda data: type(data).__name__)
def test_page_describes_the_other_types(data):
    """They are lists of every kind, scalars, structures and objects."""
    items, buffers = encode([data])
    (actual,) = read_all(json.loads(json.dumps(items)), buffers)
    assert type(data) is type(actual)
    assert repr(data) == repr(actual)


@given(sparse_batches())
def test_page_describes_sparse_batches(batch):
    """It describes their three arrays."""
    items, buffers = encode([batch])
    (actual,) = read_all(json.loads(json.dumps(items)), buffers)
    assert_array_equal(to_dense(batch), to_dense(actual))


class Client:
    """Speaks what the page says, and no more."""

    def __init__(self, context, server):
        self.socket = context.socket(zmq.DEALER)
        self.socket.linger = 1000
        self.socket.connect(server.address)

    def say(self, **fields):
        """Send a header."""
        self.socket.send(b'FUEL' + json.dumps(fields).encode())

    def hear(self):
        """Return the next message that is not a ping."""
        while True:
            assert self.socket.poll(20000)
            header, *frames = self.socket.recv_multipart()
            assert header[:4] == b'FUEL'
            fields = json.loads(header[4:])
            if fields['type'] != 'ping':
                return fields, frames


def test_page_is_enough_for_a_client():
    """It reads two epochs, counts what is under way, and says goodbye."""
    reference = build()
    with Server(build(), port=0) as server, zmq.Context() as context:
        client = Client(context, server)
        with client.socket:
            client.say(type='hello', version=3, client='other', sources=2,
                       examples=False, hwm=2, rank=None, shared_memory=False)
            welcome, _ = client.hear()
            assert 'welcome' == welcome['type']
            assert ['features', 'targets'] == welcome['sources']
            client.say(type='ready', proof='')
            for join in (1, 2):
                client.say(type='join', join=join, resume=None)
                joined, _ = client.hear()
                assert ('joined', join) == (joined['type'], joined['join'])
                batches = []
                while (message := client.hear())[0]['type'] == 'batch':
                    fields, frames = message
                    assert fields['index'] == len(batches)
                    batches.append(read_all(fields['items'], frames))
                    client.say(type='handed', join=join, release=[],
                               indices=[fields['index']])
                assert 'end' == message[0]['type']
                assert_same(reference.get_epoch_iterator(), batches)
            client.say(type='bye')


def test_page_names_each_field_of_the_answers():
    """The page names the fields of the messages of a server, and the fields
    about a client in its status."""
    text = PAGE.read_text('utf-8')
    with Server(build(), port=0) as server, zmq.Context() as context:
        client = Client(context, server)
        with client.socket:
            client.say(type='hello', version=3, client='other', sources=2,
                       examples=False, hwm=2, rank=None, shared_memory=False)
            answers = [client.hear()[0]]
            for kind in 'stacks', 'status', 'measure':
                client.say(type=kind, is_exact=False)
                answers.append(client.hear()[0])
                assert kind == answers[-1]['type']
            client.say(type='join', join=1, resume=None)
            answers += client.hear()[0], client.hear()[0]
            client.say(type='bye')
    (about,) = answers[2]['status']['connections']
    assert ['joined', 'batch'] == [fields['type'] for fields in answers[-2:]]
    names = {*about}.union(*answers)
    assert set() == {name for name in names if f'``{name}``' not in text}
