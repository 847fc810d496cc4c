"""The cache that makes files of many parts open at once."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.processes import environment, on_small_disk

from fuel import config
from fuel.datasets import Constant, Flat, HDF5Dataset, Rows
from fuel.datasets.columns import part_names, parts
from fuel.datasets.columns.parts import FileParts
from fuel.storage import linked_files
from fuel.storage.part_index import (
    KEPT, PartIndex, index_arrays, restored_index)

PARTS = 60
LENGTHS = numpy.arange(PARTS) % 4


def write(path, first=0):
    """Write many small groups; some lack an array."""
    with h5py.File(path, 'w', libver='latest') as file:
        for number, length in enumerate(LENGTHS.tolist()):
            part = file.create_group(f'data/demo_{number}')
            rows = first + number + numpy.arange(length)
            part['x'] = rows.astype('>i4')
            part.create_dataset(
                'zipped', data=numpy.stack([rows, rows], 1), chunks=(
                    2, 1), maxshape=(None, 2), compression='gzip')
            part.create_dataset('text', data=[f'é{row}' for row in rows],
                                shape=(length,), dtype=h5py.string_dtype())
            part['times'] = numpy.stack([rows, -rows], 1)[None]
            part['value'] = float(number)
            if number % 3:
                part['some'] = rows
        file['mask/train'] = [b'demo_59', b'demo_7']
    return path


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Keep what there is of so few parts."""
    for module in linked_files, parts:
        monkeypatch.setattr(module, 'FEWEST_KEPT', PARTS // 2)


@pytest.fixture
def path(tmp_path):
    """Return a file of many parts, with a cache of the test's own."""
    config.remote_cache_path = str(tmp_path / 'cache')
    return write(tmp_path / 'many.h5')


COLUMNS = ['x', 'zipped', 'text', Constant('value')]


def build(path, columns=COLUMNS, **kwargs):
    """Return the data set of the file."""
    return HDF5Dataset(path, columns, parts='data/demo_*', **kwargs)


@pytest.fixture
def asked(monkeypatch):
    """Return a list of the parts whose arrays are asked for."""
    numbers = []
    add, find = FileParts._add, FileParts._open

    def count_added(self, builder, number, path, *place):
        numbers.append((path, number))
        return add(self, builder, number, path, *place)

    def count_found(self, number, path):
        numbers.append((path, number))
        return find(self, number, path)

    monkeypatch.setattr(FileParts, '_add', count_added)
    monkeypatch.setattr(FileParts, '_open', count_found)
    return numbers


def contents(dataset):
    """Return all rows, and some in another order."""
    count = dataset.num_examples
    return [*dataset.get_data(None, slice(0, count)),
            *dataset.get_data(None, [count - 1, 0, count // 2])]


def assert_same(first, second):
    """Fail unless two data sets have the same rows."""
    for one, other in zip(contents(first), contents(second), strict=True):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
    assert first.runs.tolist() == second.runs.tolist()
    assert first.kept_arguments() == second.kept_arguments()


def test_second_opening_asks_hdf5_of_few_parts(path, asked, monkeypatch):
    """The second opening lists no groups, and has the same rows."""
    first = build(path, COLUMNS[:3])
    assert 3 * PARTS <= len(asked)
    asked.clear()

    def never(*_):
        raise AssertionError('a group was listed')

    monkeypatch.setattr(part_names, 'is_group', never)
    second = build(path, COLUMNS[:3])
    assert len(asked) < 20
    assert_same(first, second)
    rows = numpy.concatenate([number + numpy.arange(length) for
                              number, length in enumerate(LENGTHS)])
    assert_array_equal(rows, second.get_data(None, slice(0, len(rows)))[0])


@pytest.mark.parametrize('kwargs', [
    {'columns': COLUMNS}, {'columns': [Flat('times')]},
    {'columns': [Rows('x', start=1)]},
    {'columns': ['x', 'some'], 'missing': 'skip'},
    {'splits': 'mask', 'which_sets': ('train',)},
    {'columns': ['some', 'zipped'], 'missing': 'skip', 'splits': {
        'a': ['demo_3', 'demo_41', 'data/demo_2']}, 'which_sets': ('a',)}])
def test_data_sets_of_kept_parts_equal_the_first(path, kwargs):
    """Every kind of column is kept, with splits, and with parts left out."""
    first = build(path, **kwargs)
    assert_same(first, build(path, **kwargs))
    config.remote_cache_path = 'off'
    assert_same(first, build(path, **kwargs))


def test_what_was_kept_is_of_one_state_of_the_file(path, tmp_path):
    """A file that was replaced is asked anew."""
    build(path)
    write(tmp_path / 'new.h5', first=5000)
    os.replace(tmp_path / 'new.h5', path)
    assert 5001 == build(path).get_data(None, 0)[0]


def test_few_parts_are_not_kept(tmp_path):
    """HDF5 is asked in no time."""
    config.remote_cache_path = str(tmp_path / 'cache')
    with h5py.File(tmp_path / 'few.h5', 'w') as file:
        file['a/x'] = numpy.arange(3)
    HDF5Dataset(tmp_path / 'few.h5', parts='*')
    assert not (tmp_path / 'cache').exists()


def test_parts_in_files_that_links_lead_to_are_not_kept(path, tmp_path):
    """A linked file may change while this file stays what it is."""
    linked = tmp_path / 'linked.h5'
    with h5py.File(linked, 'w') as file:
        file['data'] = h5py.ExternalLink(path.name, '/data')
    build(linked)
    assert not (tmp_path / 'cache').exists()
    write(tmp_path / 'new.h5', first=5000)
    os.replace(tmp_path / 'new.h5', path)
    assert 5001 == build(linked).get_data(None, 0)[0]


def spoil(tmp_path, change):
    """Change each entry of the cache that has an array by its name."""
    for entry in (tmp_path / 'cache' / 'indexes').iterdir():
        with numpy.load(entry) as archive:
            arrays = dict(archive)
        if change(arrays):
            with zipfile.ZipFile(entry, 'w') as archive:
                for name, array in arrays.items():
                    with archive.open(f'{name}.npy', 'w') as member:
                        numpy.save(member, array)


def swap(name, place, value):
    """Return a function that puts a value into an array."""
    def change(arrays):
        if name not in arrays:
            return False
        arrays[name][place] = value
        return True
    return change


def drop(name):
    """Return a function that leaves out an array."""
    return lambda arrays: arrays.pop(name, None) is not None


def shorten(name):
    """Return a function that leaves out the last element of an array."""
    def change(arrays):
        if name in arrays:
            arrays[name] = arrays[name][:-1]
        return name in arrays
    return change


@pytest.mark.parametrize('change', [
    *[swap('addresses', place, value) for place in (0, 5, -1)
      for value in (1 << 40, -9)],
    swap('addresses', 0, 100), swap('addresses', -1, 100),
    swap('sizes', 5, 1 << 40), swap('sizes', 5, -1),
    swap('file', 3, 1), swap('file', 3, -1), swap('kind', 3, 7),
    swap('shape', 3, -2), swap('shape', 3, 1 << 40),
    swap('shape', (-1, 0), 1), swap('chunk_shape', 3, -1),
    swap('chunk_shape', 3, 1 << 60), swap('first_chunks', 0, 1),
    swap('first_chunks', -1, 1 << 30), swap('first_chunks', 9, 1 << 30),
    swap('is_chunked', 3, True), swap('examples', 0, PARTS),
    swap('name', 0, b'data/none'), swap('name', -1, b'mask'),
    *map(drop, [*KEPT, 'examples', 'name']),
    *map(shorten, [*KEPT, 'name', 'lacks'])])
def test_unsound_entry_is_made_again(path, tmp_path, change):
    """An entry never leads beyond a file, nor to wrong parts at its ends."""
    given = {'columns': ['x', 'some'], 'missing': 'skip'}
    first = build(path, **given)
    spoil(tmp_path, change)
    assert_same(first, build(path, **given))
    # The entry that was made again is kept.
    assert_same(first, build(path, **given))


def test_index_of_an_array_is_the_same_restored(tmp_path):
    """The restored index has everything that HDF5 said."""
    path = write(tmp_path / 'a.h5')
    with h5py.File(path) as file:
        for name in 'x', 'zipped', 'text':
            arrays = [file[f'data/demo_{number}/{name}']
                      for number in range(9)]
            index = PartIndex(arrays)
            found = restored_index(
                index_arrays(index, index.open_files()), index.open_files(),
                arrays)
            for each in KEPT:
                assert_array_equal(getattr(index, each),
                                   getattr(found, each))
            assert index.kinds == found.kinds
            # In other files than those that are known, nothing is kept.
            assert {} == index_arrays(index, [])


def test_arrays_that_are_asked_together_have_kinds_of_their_own(tmp_path):
    """Parts that were never written to, or have chunks, are not taken for
    parts like those before, and links are followed."""
    config.remote_cache_path = str(tmp_path / 'cache')
    rows = numpy.arange(3)
    with h5py.File(tmp_path / 'other.h5', 'w') as file:
        file['there'] = rows - 7
    with h5py.File(tmp_path / 'mixed.h5', 'w') as file:
        for number in range(PARTS):
            part = file.create_group(f'part_{number}')
            part['in/y'] = rows + number
            if number % 5 == 1:
                part.create_dataset('x', (3,), 'i8', fillvalue=number)
            elif number % 5 == 2:
                part.create_dataset('x', data=rows, chunks=(2,))
            elif number % 5 == 3:
                part['x'] = h5py.SoftLink('in/y')
            elif number % 5 == 4:
                part['x'] = h5py.ExternalLink('other.h5', 'there')
            else:
                part['x'] = -rows
    expected = [[-rows, numpy.full(3, number), rows, rows + number, rows - 7][
        number % 5] for number in range(PARTS)]
    dataset = HDF5Dataset(tmp_path / 'mixed.h5', ['in/y', 'x'],
                          parts='part_*')
    y, x = dataset.get_data(None, slice(0, 3 * PARTS))
    assert_array_equal(x, numpy.concatenate(expected))
    assert_array_equal(y, numpy.add.outer(numpy.arange(PARTS), rows).ravel())


@pytest.mark.parametrize('bad, error', [
    (None, "group 'part_50' has no array 'x'"),
    (numpy.zeros(3), 'all parts must have rows of one type'),
    (numpy.int64(3), "group 'part_50': 'x' is a single value")])
def test_error_names_the_source_that_was_asked_together(tmp_path, bad, error):
    """The error does not name the source that was opened first."""
    config.remote_cache_path = str(tmp_path / 'cache')
    with h5py.File(tmp_path / 'bad.h5', 'w') as file:
        for number in range(PARTS):
            file[f'part_{number}/y'] = numpy.arange(3)
            value = numpy.arange(3) if number != 50 else bad
            if value is not None:
                file[f'part_{number}/x'] = value
    with pytest.raises(ValueError, match=error) as caught:
        HDF5Dataset(tmp_path / 'bad.h5', ['y', 'x'], parts='part_*')
    assert "x'" in str(caught.value)
    assert "y'" not in str(caught.value).replace("it has 'y'", '')


def test_arrays_of_all_columns_are_asked_in_one_pass(path, asked):
    """HDF5 has forgotten the first of many parts when it comes to the
    last."""
    build(path, COLUMNS[:3])
    wanted = [(name, number) for number in range(PARTS)
              for name in COLUMNS[:3]]
    assert wanted == list(dict.fromkeys(asked))


def files_in(folder):
    """Return the files below a folder; check that each is whole."""
    found = [path for path in Path(folder).rglob('*') if path.is_file()]
    for path in found:
        assert '.npz' == path.suffix
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    return found


@pytest.mark.parametrize('share', [0, .1, .5, .9, .999, 1])
def test_disk_that_is_full_costs_no_rows(path, tmp_path, share, caplog):
    """An entry without room is not kept, not even in part. The next opening
    makes it again."""
    whole = build(path)
    cache = tmp_path / 'cache'
    most = max(file.stat().st_size for file in files_in(cache))
    shutil.rmtree(cache)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * most), hard))
    try:
        dataset = build(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert_same(whole, dataset)
    assert (share < 1) == ('cannot be kept' in caplog.text)
    assert all(file.stat().st_size <= share * most
               for file in files_in(cache))
    assert_same(whole, build(path))
    assert most == max(file.stat().st_size for file in files_in(cache))


OPEN = """
import os, sys, fuel
from fuel import config
path, config.remote_cache_path = sys.argv[1:]
for _ in range(2):
    with fuel.load(path) as dataset:
        rows = dataset.get_data(None, slice(0, len(dataset)))[0][:, 0]
        print(len(rows), int(rows.sum()))
print([name for _, _, names in os.walk(sys.argv[2]) for name in names
       if not name.endswith('.npz')])
"""


@pytest.mark.parametrize('options', ['size=1m', 'size=16k', 'ro'])
def test_recognised_file_opens_beside_a_disk_that_is_full(tmp_path, options):
    """A real one of a few pages, and one that cannot be written to."""
    private = on_small_disk(tmp_path / 'small', options)
    path, parts_there = str(tmp_path / 'demos.hdf5'), 1100
    with h5py.File(path, 'w', libver='latest') as file:
        for number in range(parts_there):
            demo = file.create_group(f'data/demo_{number}')
            demo.attrs['num_samples'] = 2
            demo['actions'] = numpy.full((2, 3), number)
    done = subprocess.run(
        [*private, sys.executable, '-c', OPEN, path, str(tmp_path / 'small')],
        env=environment(), capture_output=True, text=True, check=False,
        timeout=60)
    line = f'{2 * parts_there} {parts_there * (parts_there - 1)}\n'
    assert (0, 2 * line + '[]\n') == (done.returncode, done.stdout), (
        done.stderr)
    assert (options != 'size=1m') == ('cannot be kept' in done.stderr)
