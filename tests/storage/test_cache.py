"""Decoded chunks: decoded once while remembered, within a budget."""
import contextlib
import gc
import linecache
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import wait_until

from fuel import config
from fuel.storage import chunk_cache, choose_reader
from fuel.storage.buffers import SLAB, Buffers, Scratch, buffer_nbytes
from fuel.storage.chunk_cache import ChunkCache, default_budget
from fuel.storage.chunks import DecodedReader

CHUNK = 8 * 1000


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with 20 chunks of 8 rows of 1000 bytes."""
    target = tmp_path / 'cached.hdf5'
    data = numpy.arange(160 * 1000).reshape(160, 1000) // 256
    with h5py.File(target, 'w') as file:
        for name in ('x', 'y'):
            file.create_dataset(name, data=data.astype('u1'),
                                chunks=(8, 1000), compression='gzip')
    return target


@pytest.fixture
def file(path):
    """Return the file, open for reading."""
    with h5py.File(path, 'r') as opened:
        yield opened


def test_chunk_is_decoded_once_while_it_is_remembered(file):
    """Three shuffled epochs of a file that fits decode each chunk once."""
    reader = choose_reader(file['x'], 20 * CHUNK)
    rng = numpy.random.RandomState(0)
    whole = file['x'][...]
    for _ in range(3):
        order = rng.permutation(160)
        for start in range(0, 160, 16):
            rows = order[start:start + 16]
            assert (whole[rows] == reader.read(rows)).all()
    assert 20 == reader.store.num_decoded
    assert 20 * CHUNK == reader.store.used_bytes


def test_batch_decodes_a_chunk_once_even_without_a_budget(file):
    """A batch that comes back to a chunk has it decoded once."""
    reader = choose_reader(file['x'], 0)
    rows = numpy.array([0, 100, 1, 101, 0, 7])
    assert (file['x'][...][rows] == reader.read(rows)).all()
    assert 2 == reader.store.num_decoded
    reader.read(slice(None))
    assert 22 == reader.store.num_decoded
    assert 0 == reader.store.used_bytes


def test_readers_of_one_file_share_chunks_and_budget(path, file):
    """Two handles of one file, and two of its data sets."""
    first = choose_reader(file['x'], 10 * CHUNK)
    with h5py.File(path, 'r') as again:
        second = choose_reader(again['x'], 10 * CHUNK)
        first.read(slice(0, 40))
        second.read(slice(0, 40))
        assert 5 == second.store.num_decoded
        other = choose_reader(again['y'], 4 * CHUNK)
        other.read(slice(0, 80))
        assert first.store.cache is other.store.cache
        assert 10 * CHUNK >= first.store.cache.used
        assert 10 * CHUNK == first.store.cache.budget


def test_files_without_a_budget_share_one(tmp_path):
    """A program with many files remembers no more than with one."""
    config.chunk_cache_bytes = 10 * 40
    readers = []
    with contextlib.ExitStack() as files:
        for number in range(6):
            name = tmp_path / f'{number}.h5'
            with h5py.File(name, 'w') as file:
                file.create_dataset('x', data=numpy.arange(
                    100, dtype='i4'), chunks=(10,), compression='gzip')
            readers.append(choose_reader(files.enter_context(
                h5py.File(name, 'r'))['x']))
            assert numpy.arange(100).tolist() == readers[-1].read(
                slice(None)).tolist()
        caches = {reader.store.cache for reader in readers}
        assert 1 == len(caches)
        assert 10 * 40 >= caches.pop().used > 0


def test_cache_ends_with_its_last_reader(path):
    """Nothing is remembered for files that nobody reads."""
    with h5py.File(path, 'r') as file:
        reader = choose_reader(file['x'])
        reader.read(slice(None))
        del reader
        gc.collect()
        reader = choose_reader(file['x'])
        reader.read(3)
        assert 1 == reader.store.num_decoded


def test_what_was_not_used_for_longest_is_forgotten(file):
    """A chunk that is used again and again stays."""
    reader = choose_reader(file['x'], 4 * CHUNK)
    for row in range(0, 160, 8):
        reader.read(0)
        reader.read(row)
    assert 20 == reader.store.num_decoded
    assert reader.store.slots[0] is not None
    assert reader.store.slots[19] is not None
    assert 4 * CHUNK >= reader.store.cache.used


def test_threads_that_want_one_chunk_decode_it_once(file, monkeypatch):
    """The second one waits for the first."""
    decode = DecodedReader.decode

    def slow(self, chunks, outs):
        wait_until(lambda: len(started) == 6)
        decode(self, chunks, outs)

    monkeypatch.setattr(DecodedReader, 'decode', slow)
    reader = choose_reader(file['x'])
    whole = file['x'][...]
    right, started = [], []

    def read():
        started.append(threading.get_ident())
        right.append((whole[:16] == reader.read(slice(0, 16))).all())

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [True] * 6 == right
    assert 2 == reader.store.num_decoded


def test_threads_with_a_small_budget_get_right_rows(file):
    """Many threads that make each other forget."""
    reader = choose_reader(file['x'], 3 * CHUNK)
    whole = file['x'][...]
    wrong = []

    def read(seed):
        rng = numpy.random.RandomState(seed)
        for _ in range(50):
            rows = rng.randint(0, 160, 20)
            if not (whole[rows] == reader.read(rows)).all():
                wrong.append(rows)

    threads = [threading.Thread(target=read, args=(seed,))
               for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    assert 3 * CHUNK >= reader.store.cache.used
    assert reader.store.cache.used == sum(
        CHUNK for decoded in reader.store.slots if decoded is not None)


def test_buffers_are_used_again_when_nobody_holds_them():
    """A chunk that is forgotten while it is copied keeps its bytes."""
    buffers, half = Buffers(), SLAB // 2
    first, second = buffers.take(half), buffers.take(half)
    place = first.ctypes.data
    buffers.give_back(first)
    third = buffers.take(half)
    assert third.ctypes.data not in (place, second.ctypes.data)
    del first
    buffers.give_back(third)
    del third
    assert place in (buffers.take(half).ctypes.data,
                     buffers.take(half).ctypes.data)


@given(nbytes=st.integers(1, 1 << 40))
def test_buffers_for_chunks_of_many_sizes_have_few(nbytes):
    """None is too small, and none half as large again."""
    size = buffer_nbytes(nbytes)
    assert nbytes <= size <= max(nbytes + 63, 1.25 * nbytes)
    assert len({buffer_nbytes(one) for one in range(1 << 12, 1 << 13)}) == 5


@pytest.mark.parametrize('is_large', [False, True])
def test_chunks_of_many_sizes_are_remembered_within_the_budget(is_large):
    """The sizes of the buffers count."""
    rng = numpy.random.RandomState(0)
    sizes = rng.randint(1, 5000, 50)
    cache = ChunkCache(1 << 20 if is_large else 10000)
    store = cache.store('x', sizes)
    for chunk in rng.randint(0, 50, 1000).tolist():
        store.slots.last_used[chunk] = cache.clock.tick()
        found = store.get(chunk, fill_with_numbers)
        assert (found[:sizes[chunk]] == chunk).all()
        assert cache.used <= cache.budget
        assert cache.used == sum(
            buffer.nbytes for buffer in store.slots if buffer is not None)
    assert not is_large or store.num_decoded == store.slots.num_held


def fill_with_numbers(chunks, outs):
    """Decode: each byte of a chunk is its number."""
    for chunk, out in zip(chunks, outs, strict=True):
        out.fill(chunk)


@given(budget=st.integers(0, 6), wanted=st.lists(st.integers(0, 9)))
def test_cache_is_like_a_list_in_order_of_use(budget, wanted):
    """A model shows which chunks fit: the most recent ones stay."""
    cache = ChunkCache(budget)
    store = cache.store('x', numpy.ones(10, numpy.int64))
    model = []
    for chunk in wanted:
        store.slots.last_used[chunk] = cache.clock.tick()
        store.get(chunk, fill_with_numbers)
        model = ([chunk] + [one for one in model if one != chunk])[:budget]
        assert sorted(model) == store.slots.held().tolist()
        assert len(model) == cache.used


@pytest.mark.skipif(not hasattr(os, 'preadv'), reason='uses preadv')
def test_chunk_is_read_by_as_many_calls_as_the_system_needs(
        file, monkeypatch):
    """A call may give fewer bytes than were asked for."""
    preadv = os.preadv
    monkeypatch.setattr(os, 'preadv', lambda descriptor, buffers, offset: (
        preadv(descriptor, [buffers[0][:7]], offset)))
    assert (file['x'][5] == choose_reader(file['x']).read(5)).all()


def test_failed_decoding_leaves_its_buffer_to_others():
    """Repeated failures use the same memory."""
    cache = ChunkCache(1 << 20)
    store = cache.store('x', numpy.full(3, 1000))
    found = []

    def fail(chunks, outs):
        found.append(outs[0].__array_interface__['data'])
        raise OSError('no luck')

    for _ in range(5):
        with pytest.raises(OSError, match='no luck'):
            store.get(0, fail)
    assert 1 == len(set(found))


def test_chunks_that_are_filled_together_are_remembered_if_all_fit():
    """Chunks that are cached, or that another thread decodes, are left out."""
    cache = ChunkCache(3000)
    store = cache.store('x', numpy.full(9, 1000))
    asked = []

    def note(chunks, outs):
        asked.append(list(chunks))
        if chunks == [1]:
            # Another call has it under way.
            store.fill([0, 1, 2], note)
        fill_with_numbers(chunks, outs)

    store.get(1, note)
    assert [[1], [0, 2]] == asked
    assert [(0, 1000), (1, 1000), (2, 1000)] == [
        (int(store.slots[chunk][0]), store.slots[chunk].nbytes)
        for chunk in range(3)]
    store.fill([0, 1, 2], note)
    store.fill([3, 4, 5, 6], note)
    assert 2 == len(asked)
    store.fill([3, 4], note)
    assert [3, 4] == asked[2]
    assert 3000 == cache.used == store.slots.held_nbytes
    assert 5 == store.num_decoded


def test_chunks_that_are_decoded_at_once_are_within_the_budget():
    """Chunks that are being decoded cannot be dropped, so others are not
    cached."""
    cache = ChunkCache(2500)
    store = cache.store('x', numpy.full(9, 1000))
    store.get(8, fill_with_numbers)
    used = []

    def decode(chunks, outs):
        fill_with_numbers(chunks, outs)
        if chunks[0] < 3:
            # Another thread has the next one under way.
            assert chunks[0] + 1 == store.get(chunks[0] + 1, decode)[0]
        store.fill([6, 7], decode)
        used.append(cache.used)

    assert 0 == store.get(0, decode)[0]
    assert [2000] * 4 == used
    assert [0, 1] == store.slots.held().tolist()


@pytest.mark.parametrize('length, is_held', [(28, True), (29, False)])
def test_objects_and_what_they_refer_to_are_within_the_budget(
        length, is_held):
    """Together they fit; neither the objects nor their targets exceed it."""
    cache = ChunkCache(10 * (8 + chunk_cache.OBJECT_BYTES + 28))
    store = cache.store('x', numpy.full(1, 80), has_buffers=False)

    def decode(_, outs):
        outs[0] = numpy.array(['x' * length] * 10, object)

    assert ['x' * length] * 10 == store.get(0, decode).tolist()
    assert is_held is (store.slots[0] is not None)
    assert (cache.budget if is_held else 0) == cache.used


@pytest.mark.parametrize('element', [
    ['x' * 1000], ('x' * 1000,), {'key': 'x' * 1000},
    [[{'key': ['x' * 1000]}]], numpy.array(['x' * 1000], object),
    numpy.zeros(125), b'x' * 1000])
def test_objects_in_objects_are_counted(element):
    """They are counted at any depth, where they take the most memory."""
    rows = numpy.empty(10, object)
    for place in range(10):
        rows[place] = element
    assert 10_000 <= chunk_cache.referred_nbytes(rows) <= 15_000


def test_chunk_that_is_asked_for_twice_is_filled_once():
    """Several requests need it."""
    store = ChunkCache(3000).store('x', numpy.full(9, 1000))
    store.fill([1, 0, 1], fill_with_numbers)
    assert [0, 1] == store.slots.held().tolist()
    assert 2 == store.num_decoded


@pytest.mark.parametrize('error', [OSError, KeyboardInterrupt])
def test_chunks_whose_decoding_failed_together_are_decoded_later(error):
    """Their memory is released, and they do not count as being decoded."""
    cache = ChunkCache(3000)
    store = cache.store('x', numpy.full(9, 1000))

    def fail(chunks, outs):
        raise error

    for _ in range(5):
        with pytest.raises(error):
            store.fill([0, 1, 2], fail)
        assert 0 == cache.used
    store.fill([0, 1, 2], fill_with_numbers)
    assert [0, 1, 2] == store.slots.held().tolist()


def test_room_for_several_chunks_is_made_at_once():
    """Up to an eighth of the budget is freed before it is needed."""
    cache = ChunkCache(32 * 1000)
    store = cache.store('x', numpy.full(99, 1000))
    held = []
    for chunk in range(99):
        store.slots.last_used[chunk] = cache.clock.tick()
        store.get(chunk, fill_with_numbers)
        held.append(store.slots.num_held)
    assert 32 == max(held)
    assert 29 == min(held[31:])


def test_failed_decoding_is_tried_again(file, monkeypatch):
    """An error of one read is not remembered."""
    reader = choose_reader(file['x'])
    with monkeypatch.context() as patch:
        patch.setattr(DecodedReader, 'decode', _fail)
        with pytest.raises(OSError, match='no luck'):
            reader.read(5)
    assert (file['x'][5] == reader.read(5)).all()


def test_thread_that_waits_for_a_chunk_gets_it_if_decoding_fails(
        file, monkeypatch):
    """The waiting thread decodes the chunk after Ctrl-C in the other one."""
    decode, threads, found = DecodedReader.decode, [], []
    reader = choose_reader(file['x'])

    def waits():
        frame = sys._current_frames().get(threads[0].ident)
        return frame is not None and (
            frame.f_code is chunk_cache.ChunkStore.get.__code__)

    def interrupted(self, chunks, outs):
        monkeypatch.setattr(DecodedReader, 'decode', decode)
        threads.append(threading.Thread(
            target=lambda: found.append(reader.read(5)), daemon=True))
        threads[0].start()
        wait_until(waits)
        raise KeyboardInterrupt

    monkeypatch.setattr(DecodedReader, 'decode', interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.read(5)
    threads[0].join(20)
    assert (file['x'][5] == found[0]).all()


def _fail(self, chunks, outs):
    raise OSError('no luck')


def test_scratch_memory_is_used_again_when_nobody_holds_it():
    """A part of a part holds the memory too."""
    scratch = Scratch()
    held = scratch.take(100)[10:20]
    held[:] = 1
    other = scratch.take(100)
    assert not numpy.shares_memory(held.base, other)
    other[:] = 2
    assert (held == 1).all()
    place = held.base.ctypes.data
    del held
    assert place == scratch.take(50).ctypes.data


@pytest.mark.parametrize('nbytes', [1, Scratch.LARGEST + 1])
def test_scratch_memory_is_bounded(nbytes):
    """Large arrays, and too many at once, are not kept for later use."""
    scratch = Scratch()
    held = [scratch.take(nbytes) for _ in range(Scratch.MOST + 10)]
    for number, array in enumerate(held):
        assert nbytes == array.nbytes
        array[:] = number
    assert [number for number, _ in enumerate(held)] == [
        int(array[0]) for array in held]
    kept = sum(array.base is not None for array in held)
    assert kept == (0 if nbytes > 1 else Scratch.MOST)


def test_budget_comes_from_the_settings():
    """The default is a share of the memory; the setting wins."""
    assert 0 < default_budget() <= 2 << 30
    config.chunk_cache_bytes = 12345
    assert 12345 == default_budget()


def test_forked_child_reads_what_its_parent_had_open(file):
    """Threads of the parent, which the child lacks, keep it from nothing."""
    reader = choose_reader(file['x'])
    mapped = choose_reader(file['x'], 0)
    whole = file['x'][...]
    busy, forked = threading.Event(), threading.Event()

    def hold():
        with reader.store.cache.lock:
            busy.set()
            forked.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    busy.wait()
    child = os.fork()
    if not child:
        code = 1
        try:
            right = (whole == reader.read(slice(None))).all()
            right = right and (whole == mapped.read(slice(None))).all()
            code = 0 if right else 2
        finally:
            os._exit(code)
    forked.set()
    holder.join()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert (whole == reader.read(slice(None))).all()


def test_thousand_openings_leak_nothing(path):
    """File descriptors and maps end with their readers."""
    def descriptors():
        # Those of the file alone: what else this process has may end.
        links = [os.path.realpath(entry) for entry in
                 Path('/proc/self/fd').iterdir()]
        return sum('cached.hdf5' in link for link in links)

    def maps():
        with open('/proc/self/maps', encoding='utf-8') as lines:
            return sum('cached.hdf5' in line for line in lines)

    with h5py.File(path, 'a') as file:
        file['plain'] = numpy.arange(10)
    for _ in range(1000):
        with h5py.File(path, 'r') as file:
            for name in ('x', 'plain'):
                choose_reader(file[name], 0).read(3)
    gc.collect()
    assert (0, 0) == (descriptors(), maps())


def test_spawned_child_reads_for_itself(path):
    """Nothing of the parent is needed but the path."""
    script = textwrap.dedent("""
        import sys
        import h5py
        from fuel.storage import chunk_cache, choose_reader
        with h5py.File(sys.argv[1], 'r') as file:
            whole = file['x'][...]
            assert (whole == choose_reader(file['x']).read(slice(None))).all()
        print('right')
    """)
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, '-c', script, path], capture_output=True, text=True,
        env=environment, timeout=60, check=False)
    assert ('', 'right\n') == (done.stderr, done.stdout)


def test_memory_stays_within_the_budget_over_epochs(tmp_path):
    """Twenty epochs with room for a quarter of 32 MB."""
    def private():
        with open('/proc/self/status', encoding='ascii') as lines:
            return sum(int(line.split()[1]) * 1024 for line in lines
                       if line.startswith(('RssAnon', 'RssShmem')))

    rng = numpy.random.RandomState(0)
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file.create_dataset('x', (512, 1 << 16), 'u1', chunks=(4, 1 << 16),
                            compression='gzip', compression_opts=1)
        for row in range(0, 512, 4):
            file['x'][row:row + 4] = rng.randint(0, 9, (4, 1 << 16))
    with h5py.File(tmp_path / 'a.hdf5', 'r') as file:
        reader = choose_reader(file['x'], 8 << 20)
        levels = []
        for _ in range(20):
            for start in range(0, 512, 8):
                reader.read(numpy.arange(start, start + 8))
            levels.append(private())
    assert max(levels[3:]) - levels[2] < 8 << 20


class InterruptError(Exception):
    """The interruption of a step."""


def interrupted(function, number):
    """Call a function and interrupt it before its line of that number;
    return whether it has so many."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename != chunk_cache.__file__:
            return None
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        # Locks are released by C, which no signal comes between.
        if event == 'line' and not source.lstrip().startswith('with '):
            if seen == number:
                seen += 1
                raise InterruptError
            seen += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except InterruptError:
        pass
    finally:
        sys.settrace(before)
    return seen > number


@pytest.mark.parametrize('budget', [0, CHUNK, 3 * CHUNK])
def test_interrupt_at_any_step_leaves_the_cache_in_order(file, budget):
    """Other threads go on, and the budget is what it was."""
    number, is_long_enough = 0, True
    while is_long_enough:
        reader = choose_reader(file['x'], budget)
        is_long_enough = interrupted(lambda: reader.read(5), number)  # noqa: B023
        done = threading.Event()

        def read():
            reader.read(5)  # noqa: B023
            done.set()  # noqa: B023

        threading.Thread(target=read, daemon=True).start()
        assert done.wait(10)
        for row in range(0, 160, 8):
            reader.read(row)
        held = sum(one is not None for one in reader.store.slots)
        assert budget == held * CHUNK == reader.store.cache.used
        del reader
        number += 1
    assert number > 5


def test_lack_of_memory_leaves_the_budget_as_it_was(file, monkeypatch):
    """A chunk that could not be remembered does not count."""
    reader = choose_reader(file['x'], 4 * CHUNK)
    with monkeypatch.context() as patch:
        patch.setattr(Buffers, 'take', _lack)
        for row in range(0, 160, 8):
            with pytest.raises(MemoryError):
                reader.read(row)
    assert 0 == reader.store.cache.used
    reader.read(slice(None))
    assert 4 * CHUNK == reader.store.cache.used
    assert 4 == len(reader.store.slots.held())


def _lack(self, nbytes):
    raise MemoryError
