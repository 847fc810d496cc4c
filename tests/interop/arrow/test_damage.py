"""Damaged files of tables: an error that names them, never the process."""
import json
import os

import pyarrow
import pyarrow.ipc
import pytest
from support import damaged_tables
from support.processes import run_python

from fuel.exceptions import DamagedFileError
from fuel.interop.arrow import ArrowDataset

KINDS = ['file', 'stream', 'file zstd', 'stream lz4', 'parquet',
         'parquet snappy']


def read_damaged(kind, folder, count):
    """Read damaged copies in another process; return what it found."""
    status, output, errors = run_python(
        damaged_tables.__file__, str(folder), kind, '3', str(count))
    assert not status, (status, errors[-2000:].decode())
    return json.loads(output)


@pytest.mark.parametrize('kind', KINDS)
def test_damaged_file_is_refused_or_has_the_same_structure(kind, tmp_path):
    """Bits, bytes and ends are damaged at random places; no signal ends the
    process."""
    found = read_damaged(kind, tmp_path, 25)
    assert 25 == found['refused'] + found['read']
    assert found['refused']
    assert 'silent' not in found


@pytest.mark.full
@pytest.mark.parametrize('kind', [*KINDS, 'file lz4', 'stream zstd'])
def test_many_damaged_files_are_refused_or_have_the_same_structure(
        kind, tmp_path):
    """The test is the long form of the one above."""
    found = read_damaged(kind, tmp_path, 500)
    assert 'silent' not in found


@pytest.mark.parametrize('kind', ['file', 'stream'])
def test_damaged_offsets_are_an_error_that_names_file_and_column(
        kind, tmp_path):
    """Other columns, and other batches, are read."""
    path = tmp_path / 'data.arrow'
    data = pyarrow.table({'number': range(6),
                          'text': ['first'] * 3 + ['other'] * 3})
    make = pyarrow.ipc.new_file if kind == 'file' else pyarrow.ipc.new_stream
    with make(str(path), data.schema) as writer:
        for batch in data.to_batches(max_chunksize=3):
            writer.write_batch(batch)
    content = bytearray(path.read_bytes())
    offsets = b''.join(each.to_bytes(4, 'little') for each in (0, 5, 10, 15))
    place = content.rindex(offsets)
    content[place + 4:place + 8] = b'\xff\xff\xff\x7f'
    path.write_bytes(content)
    dataset = ArrowDataset(path)
    text = dataset.readers['text']
    assert ['first', 'first'] == text.read(slice(0, 2)).tolist()
    assert [5] == dataset.readers['number'].read(slice(5, 6)).tolist()
    for _ in range(2):
        with pytest.raises(DamagedFileError) as caught:
            text.read(4)
        assert f"{path}, column 'text'" in str(caught.value)


@pytest.mark.parametrize('kind', ['stream', 'stream lz4'])
def test_stream_that_was_cut_between_batches_is_refused(kind, tmp_path):
    """A file without the mark of its end may have lost batches."""
    path = tmp_path / 'data.arrow'
    damaged_tables.write(path, kind)
    content = path.read_bytes()
    for cut in (content[:-8], content + content):
        path.write_bytes(cut)
        with pytest.raises(DamagedFileError, match='mark of its end'):
            ArrowDataset(path)


@pytest.mark.parametrize('kind', KINDS)
def test_file_that_is_cut_while_in_use_is_an_error(kind, tmp_path):
    """Rows that were decoded before fail too; the process goes on."""
    path = tmp_path / 'data'
    damaged_tables.write(path, kind)
    dataset = ArrowDataset(path, sources=('int', 'text'))
    dataset.get_data(None, [0])
    with open(path, 'r+b') as file:
        file.truncate(100)
    for row in (39, 0):
        with pytest.raises(DamagedFileError, match='cut or overwritten'):
            dataset.get_data(None, [row])


@pytest.mark.parametrize('kind', KINDS)
def test_file_that_is_overwritten_in_use_is_an_error(kind, tmp_path):
    """Its size is as before."""
    path = tmp_path / 'data'
    damaged_tables.write(path, kind)
    os.utime(path, ns=(1, 1))
    dataset = ArrowDataset(path, sources=('int', 'text'))
    dataset.get_data(None, slice(0, 40))
    path.write_bytes(path.read_bytes()[::-1])
    for row in (39, 0):
        with pytest.raises(DamagedFileError, match='was written to'):
            dataset.get_data(None, [row])
    damaged_tables.write(path, kind)
    assert ArrowDataset(path).readers['int'].read(3) == 3
