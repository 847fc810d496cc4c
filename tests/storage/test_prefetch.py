"""Prefetching: what is prepared, how much, and what it leaves alone."""
import gc
import os
import pickle
import threading
import time

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import wait_until

from fuel.datasets import H5PYDataset, HDF5Dataset
from fuel.datasets.epoch_readers import (
    BytePrefetcher, RequestPrefetcher, prefetcher_of)
from fuel.schemes import (
    BlockShuffledScheme, ConcatenatedScheme, SequentialScheme, ShuffledScheme)
from fuel.storage import paging
from fuel.storage.chunk_cache import Ahead, ChunkCache
from fuel.utils.background import Background
from fuel.storage.chunks import DecodedReader
from fuel.storage.file_bytes import PROBES, JoinedFile, RawFile, raw_file_at
from fuel.streams import DataStream

CHUNK = 8 * 1000


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with 20 compressed chunks, and the same
    data contiguous."""
    target = tmp_path / 'hdf5'
    data = (numpy.arange(160 * 1000).reshape(160, 1000) // 256).astype('u1')
    with h5py.File(target, 'w') as file:
        file.create_dataset('x', data=data, chunks=(8, 1000),
                            compression='gzip')
        file['y'] = data
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 160), 'y': (0, 160)}})
    return target


def stream_of(path, source, scheme, **options):
    """Return a stream over one source."""
    return DataStream(H5PYDataset(path, ('train',), sources=(source,),
                                  **options), iteration_scheme=scheme)


def store_of(stream):
    """Return the decoded chunks of a stream's source."""
    dataset = stream.dataset
    return dataset._access.open().reader(
        'x', cache_bytes=dataset.cache_bytes).store


def test_next_chunks_are_decoded_while_the_consumer_works(path):
    """After one batch, chunks of the next nine are cached, then more."""
    stream = stream_of(path, 'x', SequentialScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    store = store_of(stream)
    wait_until(lambda: store.num_decoded == 10)
    next(epoch)
    wait_until(lambda: store.num_decoded == 19)
    for _ in epoch:
        pass
    assert 20 == store.num_decoded


def test_closed_file_can_be_written_at_once(path, monkeypatch):
    """Closing waits for the chunks that are being decoded ahead."""
    plain, begun = DecodedReader.decode, threading.Event()

    def decode(self, chunks, outs):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            time.sleep(0.02)
        return plain(self, chunks, outs)

    monkeypatch.setattr(DecodedReader, 'decode', decode)
    with h5py.File(path, 'a') as file:
        del file.attrs['split']
    stream = DataStream(HDF5Dataset(path, ['x']),
                        iteration_scheme=SequentialScheme(160, 8))
    next(stream.get_epoch_iterator())
    assert begun.wait(30)
    stream.dataset.close(None)
    with h5py.File(path, 'a') as file:
        file['x'][:] = 1


def test_chunks_are_decoded_in_the_order_in_which_they_are_needed(
        path, monkeypatch):
    """A chunk that later requests need too does not have to wait for them."""
    monkeypatch.setenv('FUEL_NUM_THREADS', '1')
    begun, go_on, decoded = threading.Event(), threading.Event(), []
    plain = DecodedReader.decode

    def decode(reader, chunks, outs):
        begun.set()
        assert go_on.wait(30)
        decoded.extend(chunks)
        plain(reader, chunks, outs)

    monkeypatch.setattr(DecodedReader, 'decode', decode)
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        reader = dataset._access.open().reader('x', cache_bytes=None)
        reader.prefetch(numpy.array([40]), 20 * CHUNK)
        assert begun.wait(30)
        reader.prefetch(numpy.array([16, 31]), 20 * CHUNK)
        reader.prefetch(numpy.array([8, 16]), 20 * CHUNK)
        go_on.set()
        wait_until(lambda: len(decoded) == 4)
    assert [5, 2, 3, 1] == decoded


@pytest.fixture
def waiting(path, monkeypatch):
    """Return a reader whose thread waits for the event that comes with it,
    and a list of what is decoded together."""
    monkeypatch.setenv('FUEL_NUM_THREADS', '1')
    begun, go_on, together = threading.Event(), threading.Event(), []
    plain = DecodedReader.decode

    def decode(reader, chunks, outs):
        begun.set()
        assert go_on.wait(30)
        together.append(list(chunks))
        plain(reader, chunks, outs)

    monkeypatch.setattr(DecodedReader, 'decode', decode)
    with H5PYDataset(path, ('train',), sources=('x',)) as dataset:
        reader = dataset._access.open().reader('x', cache_bytes=None)
        reader.prefetch(numpy.array([40]), 20 * CHUNK)
        assert begun.wait(30)
        yield reader, go_on, together
        go_on.set()


def values_of(path, rows):
    """Return rows of the same data, contiguous."""
    with h5py.File(path, 'r') as file:
        return file['y'][...][rows]


def test_chunks_that_wait_are_decoded_together(waiting, path, monkeypatch):
    """A core's cache bounds their number, and a single one is decoded at once;
    one call reads neighbours in the file."""
    reader, go_on, together = waiting
    read, plain = [], RawFile.read_into

    def note(file, buffer, address):
        read.append(len(buffer))
        return plain(file, buffer, address)

    monkeypatch.setattr(RawFile, 'read_into', note)
    reader.prefetch(numpy.array([0, 8, 16, 24, 100, 120]), 20 * CHUNK)
    go_on.set()
    wait_until(lambda: reader.store.num_decoded == 7)
    assert [[5], [0, 1, 2, 3], [12, 15]] == together
    sizes = reader._index.sizes
    assert [sizes[5], sizes[:4].sum(), sizes[12], sizes[15]] == read
    rows = numpy.array([0, 31, 9, 127, 40])
    assert (values_of(path, rows) == reader.read(rows)).all()


def test_chunks_together_have_few_bytes(waiting, monkeypatch):
    """One more than fits at most."""
    reader, go_on, together = waiting
    monkeypatch.setattr('fuel.storage.chunks.TOGETHER', 2 * CHUNK)
    reader.prefetch(numpy.arange(64, 160, 8), 20 * CHUNK)
    go_on.set()
    wait_until(lambda: reader.store.num_decoded == 13)
    assert 2 == max(map(len, together))


def test_chunks_together_may_be_cut_or_damaged(waiting, path, monkeypatch):
    """The good ones are read, and the bad one is the error."""
    reader, go_on, together = waiting
    with open(path, 'r+b') as file:
        file.seek(int(reader._parts.addresses[2]))
        file.write(b'\xff' * 16)
    monkeypatch.setattr(RawFile, 'check', lambda _: None)
    reader.prefetch(numpy.array([0, 8, 16, 24]), 20 * CHUNK)
    go_on.set()
    wait_until(lambda: [0, 1, 2] in [one[:3] for one in together])
    rows = numpy.array([0, 8, 24])
    assert (values_of(path, rows) == reader.read(rows)).all()
    with pytest.raises(OSError, match="source 'x', row 16"):
        reader.read(numpy.array([0, 16]))


@pytest.mark.skipif(not hasattr(os, 'preadv'), reason='uses preadv')
def test_chunks_together_are_read_one_by_one_if_the_file_is_cut(
        waiting, path, monkeypatch):
    """All chunks that the file still has are decoded."""
    reader, go_on, together = waiting
    plain = os.preadv
    end = int(reader._parts.addresses[3])
    monkeypatch.setattr(os, 'preadv', lambda descriptor, buffers, offset: (
        plain(descriptor, [buffers[0][:max(0, end - offset)]], offset)))
    reader.prefetch(numpy.array([0, 8, 16, 24]), 20 * CHUNK)
    go_on.set()
    wait_until(lambda: len(together) > 1)
    rows = numpy.array([0, 8, 16])
    assert (values_of(path, rows) == reader.read(rows)).all()
    with pytest.raises(OSError, match='the disk gave 0 of the'):
        reader.read(24)


@pytest.mark.parametrize('chunks', [0, 1, 2, 5, 20])
def test_reading_ahead_stays_within_half_of_the_budget(path, chunks):
    """A prepared chunk is not forgotten before it is used."""
    stream = stream_of(path, 'x', SequentialScheme(160, 8),
                       cache_bytes=chunks * CHUNK)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    store = store_of(stream)
    expected = 1 + min(9, chunks // 2)
    wait_until(lambda: store.num_decoded == expected)
    for _ in epoch:
        pass
    assert 20 == store.num_decoded


def test_large_chunks_are_decoded_as_far_ahead_as_there_is_a_budget(
        tmp_path):
    """Each counts once, though each of sixty requests needs it."""
    path = tmp_path / 'large.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=numpy.arange(6000, dtype='i8'),
                            chunks=(600,), compression='gzip')
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 6000)}})
    stream = stream_of(path, 'x', BlockShuffledScheme(
        6000, 10, block_size=600, window=1), cache_bytes=8 * 8 * 600)
    epoch = stream.get_epoch_iterator()
    rows = [next(epoch)[0] for _ in range(20)]
    store = store_of(stream)
    wait_until(lambda: store.num_decoded >= 4)
    for batch in epoch:
        rows.append(batch[0])
        ahead = store.num_decoded - len(rows) // 60
        assert ahead <= 5
    assert 10 == store.num_decoded
    assert list(range(6000)) == sorted(numpy.concatenate(rows).tolist())


@given(requests=st.lists(st.tuples(
    st.integers(1, 3), st.lists(st.sets(st.integers(0, 4)), min_size=2,
                                max_size=2)), max_size=12),
    budget=st.integers(0, 60), data=st.data())
def test_chunks_that_requests_ahead_need_count_once(requests, budget, data):
    """Compared with the union of what they need, by store."""
    sizes = numpy.array([1, 2, 4, 8, 16])
    cache, ahead = ChunkCache(0), Ahead()
    stores = [cache.store(name, sizes) for name in 'xy']
    model, costs, spent = [], [], 0
    for length, needs in requests:
        while model and data.draw(st.booleans()):
            del model[0]
            spent -= ahead.release(costs.pop(0))
        found = []
        for store, chunks in zip(stores, needs, strict=True):
            cost = ahead.need(store, sorted(chunks),
                              budget - spent - sum(found))
            if cost is None:
                break
            found.append(cost)
        if len(found) < 2:
            ahead.undo()
        else:
            ahead.end_group(length)
            model.extend([needs] * length)
            costs.extend([0] * (length - 1) + [sum(found)])
            spent += sum(found)
        assert spent <= budget
        assert spent == sum(
            int(sizes[chunk]) for place in range(2)
            for chunk in set().union(*[each[place] for each in model]))


@pytest.mark.parametrize('source', 'xy')
@pytest.mark.parametrize('cold', [False, True])
@pytest.mark.parametrize('share', [0, 1])
def test_batches_are_the_same_with_and_without(
        path, source, cold, share, monkeypatch):
    """Batches do not depend on whether the file is in memory, or fits."""
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: not cold)
    monkeypatch.setattr(paging, 'SHARE', share)
    with h5py.File(path, 'r') as file:
        data = file['y'][...]
    scheme = ShuffledScheme(160, 16)
    stream = stream_of(path, source, scheme)
    plain = ShuffledScheme(160, 16)
    for _ in range(2):
        for batch, request in zip(stream.get_epoch_iterator(),
                                  plain.get_request_iterator(), strict=True):
            assert (data[request] == batch[0]).all()


@pytest.mark.parametrize('cold', [0, 75, 149])
def test_few_of_many_files_are_probed(tmp_path, cold, monkeypatch):
    """Probes go from the first to the last, so that half of the files, if they
    are not in memory, are noticed."""
    for number in range(150):
        (tmp_path / f'{number}').write_bytes(bytes(10))
    files = [raw_file_at(str(tmp_path / f'{number}'))
             for number in range(150)]
    probed = []

    def is_resident(file, first, end, probes):
        probed.append(file)
        assert (0, 10, 1) == (first, end, probes)
        return not cold <= files.index(file) < cold + 75

    joined = JoinedFile(files)
    monkeypatch.setattr(RawFile, 'is_resident', is_resident)
    assert (cold == 149) == joined.is_resident(0, joined.size)
    assert len(probed) <= PROBES


def test_nothing_of_many_files_is_in_memory(tmp_path):
    """A range without bytes asks none of them."""
    for number in range(2):
        (tmp_path / f'{number}').write_bytes(bytes(10))
    assert JoinedFile([raw_file_at(str(tmp_path / f'{number}'))
                       for number in range(2)]).is_resident(0, 0)


def test_cold_source_that_does_not_fit_has_its_rows_asked_for(
        path, monkeypatch):
    """Rows of the next batches are requested; neighbours are one request."""
    asked = []
    monkeypatch.setattr(paging, 'SHARE', 0)
    monkeypatch.setattr(paging, 'NEAR', 0)
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: False)
    monkeypatch.setattr(RawFile, 'advise',
                        lambda _, *piece: asked.append(piece))
    with h5py.File(path, 'r') as file:
        start = file['y'].id.get_offset()
    examples = [9, 3, 100, 101, 50, 70, 71, 72]
    stream = stream_of(path, 'y', SequentialScheme(examples, 2))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    rows = [(100, 2), (50, 1), (70, 1), (71, 2)]
    wait_until(lambda: len(asked) == 4)
    assert [(start + row * 1000, count * 1000)
            for row, count in rows] == asked
    list(epoch)
    assert 4 == len(asked)


@pytest.mark.parametrize('source', ['y', 'z'])
def test_source_that_does_not_fit_is_read_by_rows(path, monkeypatch, source):
    """A fault of a map would read megabytes around each row."""
    with h5py.File(path, 'r+') as file:
        # Rows in several chunks, some of them never written.
        z = file.create_dataset('z', (160, 1000), 'u1', chunks=(8, 400))
        z[8:] = file['y'][8:]
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'y': (0, 160), 'z': (0, 160)}})
        wanted = file[source][...]
    read = []
    plain = RawFile.read

    def note(self, address, nbytes):
        read.append((address, nbytes))
        return plain(self, address, nbytes)

    monkeypatch.setattr(paging, 'SHARE', 0)
    monkeypatch.setattr(paging, 'NEAR', 0)
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: False)
    stream = stream_of(path, source, SequentialScheme([9, 3, 100, 101], 4))
    monkeypatch.setattr(RawFile, 'read', note)
    batch, = next(stream.get_epoch_iterator())
    assert (wanted[[9, 3, 100, 101]] == batch).all()
    if source == 'y':
        assert [1000, 1000, 2000] == [nbytes for _, nbytes in read]
    assert read == sorted(read) and read
    with pytest.raises(IndexError, match="'.': rows must lie in 0 to 159"):
        stream.dataset._access.open().reader(
            source, cache_bytes=None).read(numpy.array([5, 160]))


def prefetches(dataset):
    """Tell whether an epoch of a data set would prefetch anything."""
    return prefetcher_of(
        lambda number: None, dataset.open_sources(), dataset.num_examples
    ) is not None


def test_warm_source_is_left_alone(path, monkeypatch):
    """A file in memory costs no background work."""
    def refuse(*_):
        raise AssertionError('nothing should be asked for')

    monkeypatch.setattr(RawFile, 'advise', refuse)
    monkeypatch.setattr(RawFile, 'is_resident', lambda *_: True)
    stream = stream_of(path, 'y', ShuffledScheme(160, 8))
    dataset = stream.dataset
    assert not prefetches(dataset)
    assert 20 == len(list(stream.get_epoch_iterator()))


def test_remembered_source_is_left_alone(path):
    """All chunks are decoded, so there is nothing to do."""
    stream = stream_of(path, 'x', ShuffledScheme(160, 8))
    assert prefetches(stream.dataset)
    for _ in stream.get_epoch_iterator():
        pass
    assert not prefetches(stream.dataset)


@pytest.mark.parametrize('rows', [range(20, 160), [*range(150, 160, 2)]])
def test_chunks_of_a_part_that_are_remembered_are_left_alone(path, rows):
    """The chunks before it were never read."""
    stream = stream_of(path, 'x', ShuffledScheme(160, 8))
    part = H5PYDataset(path, ('train',), sources=('x',), subset=(
        slice(rows[0], rows[-1] + 1) if isinstance(rows, range) else rows))
    assert prefetches(part)
    for _ in DataStream(part, iteration_scheme=ShuffledScheme(
            len(rows), 8)).get_epoch_iterator():
        pass
    assert not prefetches(part)
    assert prefetches(stream.dataset)


def test_bad_request_raises_when_it_is_made(path):
    """Prefetching it raises nothing."""
    stream = stream_of(path, 'x', SequentialScheme([0, 1, 2, 999], 1))
    epoch = stream.get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    with pytest.raises(ValueError, match='999'):
        next(epoch)


def test_damage_met_ahead_is_told_when_it_is_reached(path):
    """The batches before it are good."""
    with h5py.File(path, 'r') as file:
        address = file['x'].id.get_chunk_info(3).byte_offset
    with open(path, 'r+b') as file:
        file.seek(address)
        file.write(b'\xff' * 16)
    stream = stream_of(path, 'x', SequentialScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    with pytest.raises(OSError, match="source 'x', row 24"):
        next(epoch)


def test_subclass_that_reads_in_its_own_way_is_left_alone(path):
    """A hook that is overridden gets the ordinary path."""
    class Own(H5PYDataset):
        def _out_of_memory_get_data(self, state=None, request=None):
            return [self._file_handle['x'][request]], None

    stream = DataStream(Own(path, ('train',), sources=('x',)),
                        iteration_scheme=SequentialScheme(8, 8))
    batch, = next(stream.get_epoch_iterator())
    with h5py.File(path, 'r') as file:
        assert (file['x'][:8] == batch).all()

    class Other(H5PYDataset):
        def get_data(self, state=None, request=None):
            return (numpy.zeros(len(request)),)

        def make_reader(self, requests, options, state):
            raise AssertionError

    class Third(Other):
        def get_data(self, state=None, request=None):
            return (numpy.ones(len(request)),)

    stream = DataStream(Third(path, ('train',), sources=('x',)),
                        iteration_scheme=SequentialScheme(8, 8))
    assert 1 == next(stream.get_epoch_iterator())[0][0]


def test_requests_that_are_not_known_beforehand_are_read(path):
    """Concatenated schemes and one-shot iterators are read."""
    parts = [SequentialScheme(8, 4), SequentialScheme(iter([3, 4]), 1)]
    stream = stream_of(path, 'x', ConcatenatedScheme(parts))
    assert 4 == len(list(stream.get_epoch_iterator()))


def test_iterator_pickles_while_it_reads_ahead(path):
    """The copy goes on, and reads ahead too."""
    stream = stream_of(path, 'x', ShuffledScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    copy = pickle.loads(pickle.dumps(epoch))
    for (mine,), (theirs,) in zip(epoch, copy, strict=True):
        assert (mine == theirs).all()


def test_fork_while_reading_ahead_is_safe(path):
    """The parent does not wait for all of it; both go on."""
    stream = stream_of(path, 'x', ShuffledScheme(160, 8))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if len(list(epoch)) == 19 else 2
        finally:
            os._exit(code)
    assert 19 == len(list(epoch))
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_requests_are_looked_at_once_and_in_order():
    """Costs come back when their request is past; one that was refused is
    looked at again then, and not before."""
    looked, asked = [], []

    def expect(requests, room):
        request, = requests
        asked.append(request)
        if request * 10 > room:
            return None
        looked.append(request)
        return request * 10

    look = RequestPrefetcher(lambda number: number if number < 6 else None,
                         expect, 45)
    look(0)
    look(0)
    assert [1, 2] == looked
    assert [1, 2, 3] == asked
    look(1)
    assert [1, 2] == looked
    look(2)
    assert [1, 2, 3] == looked
    look(4)
    assert [1, 2, 3] == looked
    look(5)
    assert [1, 2, 3] == looked


def test_requests_of_a_group_are_looked_at_together():
    """Their number depends on the budget; others follow when half of it is
    free."""
    looked = []

    def expect(requests, room):
        if 10 * len(requests) > room:
            return None
        looked.append(requests)
        return 10 * len(requests)

    look = BytePrefetcher(lambda number: number if number < 14 else None,
                          expect, 85)
    look(0)
    assert [[0, 1, 2, 3, 4, 5, 6], [7]] == looked
    for position in (1, 2, 3):
        look(position)
        assert [7] == looked[-1]
    look(7)
    assert [8, 9, 10, 11, 12, 13] == looked[-1]


def test_background_does_tasks_in_order_and_survives_errors():
    """One that raises does not stop the others; a forgotten one ends."""
    background = Background()
    done = []
    finished = threading.Event()

    def fail():
        raise OSError('no luck')

    background.add(fail)
    for number in range(20):
        background.add(lambda number=number: done.append(number))
    background.add(finished.set)
    assert finished.wait(30)
    wait_until(lambda: len(done) == 20)
    assert set(range(20)) == set(done)
    background.stop()
    background.add(fail)
    assert not background._tasks
    background.go_on()
    del background
    gc.collect()


def test_background_starts_no_more_threads_than_there_are_tasks(monkeypatch):
    """Each task may be done before the next thread is started."""
    started, done = [], []

    def start(work):
        assert len(started) < 3
        started.append(work)
        work()

    monkeypatch.setattr('fuel.utils.background.start', start)
    background = Background()
    background.add(*(lambda number=number: done.append(number)
                     for number in range(3)))
    assert [0, 1, 2] == done
    assert background.is_idle
