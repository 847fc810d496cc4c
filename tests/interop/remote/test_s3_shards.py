"""Shards and raw files as objects in S3, over its protocol."""
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import traceback

import numpy
import pytest
from support.mds_files import write_mds
from support.resuming import plain
from support.tar_files import digits, write_tar
from support.tfrecord_files import example, record, write_tfrecord

import fuel
from fuel import config
from fuel.datasets import FilesDataset
from fuel.exceptions import DamagedFileError
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

KINDS = ('tar', 'tfrecord', 'mds', 'mds gz', 'raw', 'megatron')
COLUMNS = {'label': ('int', 8), 'text': ('str', None)}
# Restores a state in another process, with credentials of its environment.
PROGRAM = """
import json, sys
import fuel
from fuel import config
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from support.resuming import plain
cache, runs = json.load(sys.stdin)
config.remote_cache_path = cache
for url, arguments, state in runs:
    dataset = fuel.load(url, **arguments)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(
        len(dataset), 4, seed=3))
    stream.load_state_dict(state)
    print(list(map(plain, stream.get_epoch_iterator())))
"""


def write_shards(kind, folder):
    """Write 30 records in three files; return their names, a pattern of
    them, and the arguments that they need."""
    for part, first in enumerate((0, 10, 20)):
        numbers = range(first, first + 10)
        stem = folder / f's-{part}'
        if kind == 'tar':
            write_tar(folder / f's-{part}.tar', digits(first))
        elif kind == 'tfrecord':
            write_tfrecord(folder / f's-{part}.tfrecord', [
                example(a=[number], b=[b'%d' % number, b'x'])
                for number in numbers])
        elif kind.startswith('mds'):
            write_mds(stem, COLUMNS, [
                [(struct.pack('<q', number), b'text %d' % number)
                 for number in some] for some in (numbers[:4], numbers[4:])],
                compression='gz' if kind.endswith('gz') else None)
        else:
            numpy.arange(10 * first, 10 * first + 100).astype(
                'uint16').tofile(folder / f's-{part}.bin')
        if kind == 'megatron':
            (folder / f's-{part}.idx').write_bytes(struct.pack(
                '<9sQBQQ10i10q3q', b'MMIDIDX\0\0', 1, 8, 10, 3, *[10] * 10,
                *range(0, 200, 20), 0, 4, 10))
    ending = '/index.json' if kind.startswith('mds') else '.bin' if kind in (
        'raw', 'megatron') else f'.{kind}'
    return ([f's-{part}{ending}' for part in range(3)], f's-{{0..2}}{ending}',
            {'dtype': '(10,)u2'} if kind == 'raw' else {})


def upload(client, bucket, folder, prefix=''):
    """Put the files of a folder into a bucket."""
    for path in folder.rglob('*'):
        if path.is_file():
            client.put_object(
                Bucket=bucket, Body=path.read_bytes(),
                Key=prefix + path.relative_to(folder).as_posix())


def assert_shows_no_secret(options, shown):
    """Assert that a text, bytes or an error has no credentials."""
    if isinstance(shown, BaseException):
        shown = ''.join(traceback.format_exception(shown))
    shown = shown if isinstance(shown, bytes) else shown.encode()
    for secret in (options['key'], options['secret']):
        assert secret.encode() not in shown


def open_shards(kind, folder, client, bucket, options):
    """Write shards, on disk and in a bucket; return the data set on disk,
    that of the bucket, its URL and its arguments."""
    folder.mkdir()
    names, pattern, arguments = write_shards(kind, folder)
    upload(client, bucket, folder, f'{kind}/')
    local = fuel.load([folder / name for name in names], **arguments)
    url = f's3://{bucket}/{kind}/{pattern}'
    dataset = fuel.load(url, storage_options=options, **arguments)
    listed = fuel.load([f's3://{bucket}/{kind}/{name}' for name in names],
                       storage_options=options, **arguments)
    assert plain(listed[:]) == plain(dataset[:])
    return local, dataset, url, arguments


@pytest.mark.parametrize('kind', KINDS)
def test_shards_are_those_on_disk(client, bucket, options, tmp_path, kind):
    """By a list or a pattern; nothing that is kept has credentials."""
    local, dataset, url, _ = open_shards(
        kind, tmp_path / 'local', client, bucket, options)
    assert type(local) is type(dataset)
    assert 30 == len(local)
    assert plain(local[:]) == plain(dataset[:])
    assert plain(local.get_data(None, [29, 3, 29])) == plain(
        dataset.get_data(None, [29, 3, 29]))
    if kind == 'megatron':
        assert local.runs.tolist() == dataset.runs.tolist()
    assert dataset.place_of_row(15).file.startswith(
        url.replace('{0..2}', '1').removesuffix('/index.json'))
    kept = [path.read_bytes() for path in (tmp_path / 'cache').rglob('*')
            if path.is_file()]
    assert kept
    for shown in repr(dataset), str(dataset), pickle.dumps(dataset), *kept:
        assert_shows_no_secret(options, shown)


def test_epochs_are_resumed_in_another_process(
        client, bucket, options, tmp_path, monkeypatch):
    """The order is that of files on disk."""
    runs, rest = [], []
    for kind in KINDS:
        local, dataset, url, arguments = open_shards(
            kind, tmp_path / kind, client, bucket, options)
        streams = [DataStream(one, iteration_scheme=ShuffledScheme(
            30, 4, seed=3)) for one in (local, dataset)]
        expected, found = [stream.get_epoch_iterator() for stream in streams]
        for _ in range(3):
            assert plain(next(expected)) == plain(next(found))
        runs.append((url, arguments, streams[1].state_dict()))
        rest.append(str(list(map(plain, expected))))
    monkeypatch.setenv('AWS_ACCESS_KEY_ID', options['key'])
    monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', options['secret'])
    monkeypatch.setenv('AWS_ENDPOINT_URL', options['endpoint_url'])
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(sys.path))
    state = json.dumps([str(tmp_path / 'cache'), runs])
    assert_shows_no_secret(options, state)
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], text=True, check=False,
        capture_output=True, timeout=60, input=state)
    assert 0 == done.returncode, done.stderr
    assert rest == done.stdout.splitlines()
    assert_shows_no_secret(options, done.stderr)


def test_folder_of_mds_is_found_by_its_index(
        client, bucket, options, tmp_path):
    """The file system need not list it."""
    write_shards('mds', tmp_path)
    upload(client, bucket, tmp_path)
    local = fuel.load(tmp_path / 's-1')
    for ending in '', '/', '/index.json':
        dataset = fuel.load(f's3://{bucket}/s-1{ending}',
                            storage_options=options)
        assert plain(local[:]) == plain(dataset[:])


def write_large(kind, path):
    """Write a file of 30 records of 200 KB, whose bytes are all 7."""
    data = b'\7' * 200_000
    if kind == 'tar':
        write_tar(path, [(f'{number}.x', data) for number in range(30)])
    elif kind == 'tfrecord':
        path.write_bytes(record(data) * 30)
    elif kind == 'mds':
        write_mds(path.parent, {'x': ('bytes', None)}, [[(data,)] * 30])
    else:
        path.write_bytes(data * 30)


@pytest.mark.parametrize('kind, name', [
    ('tar', 'x.tar'), ('tfrecord', 'x.tfrecord'), ('mds', 'shard.00000.mds'),
    ('raw', 'x.bin')])
def test_only_the_records_of_a_batch_are_requested(
        client, bucket, options, tmp_path, asked, kind, name):
    """Without a cache; an object that is replaced then is an error."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 0
    write_large(kind, tmp_path / name)
    upload(client, bucket, tmp_path)
    url = f's3://{bucket}/{name}'
    dataset = fuel.load(
        url.replace(name, 'index.json') if kind == 'mds' else url,
        storage_options=options,
        **{'dtype': '200000u1'} if kind == 'raw' else {})
    assert 30 == len(dataset)
    asked.clear()
    found = dataset.get_data(None, [20, 3])[0]
    assert [b'\7' * 200_000] * 2 == [bytes(one) for one in found]
    size, slack = (tmp_path / name).stat().st_size, 1 << 17
    ranges = [tuple(map(int, re.findall(r'\d+', wanted)))
              for path, wanted in asked if path.endswith(name)]
    assert len(ranges) == len(asked) <= 8
    for start, last in ranges:
        assert any(
            number * size // 30 - slack <= start <= last
            < (number + 1) * size // 30 + slack for number in (3, 20))
    assert sum(last + 1 - start for start, last in ranges) <= (
        400_000 + 4 * slack)

    client.put_object(Bucket=bucket, Key=name, Body=(
        tmp_path / name).read_bytes().replace(b'\7\7', b'\7\6'))
    with pytest.raises(DamagedFileError, match=(
            f'{url}.*changed while it was in use')) as caught:
        dataset.get_data(None, [10])
    assert_shows_no_secret(options, caught.value)


@pytest.mark.parametrize('name', ['pets', 'pets/', 'pets/train', ''])
def test_folder_that_is_not_listed_is_an_error(
        client, bucket, options, name):
    """It says what to do; so does a bucket alone, and at once."""
    for key in 'pets/', 'pets/train/cat/1.png', 'pets/train/s.tar':
        client.put_object(Bucket=bucket, Key=key, Body=b'')
    url = f's3://{bucket}/{name}'.removesuffix('/' * (not name))
    with pytest.raises(FileNotFoundError, match=(
            f'{url}.*folder at a URL is not listed: list the URLs')) as caught:
        fuel.load(url, storage_options=options)
    assert_shows_no_secret(options, caught.value)
    with pytest.raises(ValueError, match='of local files.*tar archives'):
        FilesDataset(url)


def test_signs_of_patterns_are_refused(bucket, options):
    """Braces take their place."""
    with pytest.raises(ValueError, match='patterns are for local files.*braces'
                       ) as caught:
        fuel.load(f's3://{bucket}/*.tar', storage_options=options)
    assert_shows_no_secret(options, caught.value)


def test_missing_shard_is_an_error(client, bucket, options, tmp_path):
    """It names the URL of the one that is missing."""
    names, pattern, _ = write_shards('tar', tmp_path)
    (tmp_path / names[1]).unlink()
    upload(client, bucket, tmp_path)
    with pytest.raises(FileNotFoundError, match=(
            f's3://{bucket}/s-1.tar: there is no such file')) as caught:
        fuel.load(f's3://{bucket}/{pattern}', storage_options=options)
    assert_shows_no_secret(options, caught.value)
