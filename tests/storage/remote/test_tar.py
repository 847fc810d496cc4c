"""Tar archives on a server of byte ranges."""
import json
import tarfile

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.range_server import whole
from support.tar_files import digits, member, write_tar

import fuel
from fuel import config
from fuel.datasets import TarDataset
from fuel.streams import DataStream

MB = 1 << 20


def write_large(path, count, nbytes, first=0):
    """Write an archive of large members, whose bytes are their numbers."""
    return write_tar(path, [(f'{number:04}.bin', bytes([number]) * nbytes)
                            for number in range(first, first + count)])


def test_shards_are_those_on_disk(folder, server):
    """Any order, and all fields; a second opening asks for no header."""
    paths = [write_tar(folder / f's-{number}.tar', digits(
        300 * number, 300)) for number in range(3)]
    local = TarDataset(paths)
    url = server.url('s-{0..2}.tar')
    dataset = fuel.load(url)
    rows = numpy.random.permutation(900)
    for one, two in zip(local.get_data(None, rows),
                        dataset.get_data(None, rows), strict=True):
        assert_array_equal(one, two)
    stream = DataStream(dataset, batch_size=50, shuffle=True, seed=1)
    labels = [label for batch in stream.get_epoch_iterator()
              for label in batch[0].tolist()]
    assert list(range(900)) == sorted(labels)
    assert labels != sorted(labels)
    del server.log[:]
    assert 900 == len(TarDataset([server.url(path.name) for path in paths]))
    assert 3 >= len(server.log)
    assert server.url('s-1.tar') == dataset.place_of_row(301).file


def test_small_members_are_read_with_their_headers(folder, server):
    """There are far fewer requests than members."""
    path = write_tar(folder / 'a.tar', [
        (f'{number}.x', bytes(5000)) for number in range(2000)])
    dataset = TarDataset(server.url('a.tar'))
    assert 2000 == len(dataset)
    # Blocks of 64 KB to 4 MB: 7 of growing size, and one more for each 4 MB.
    assert len(server.log) <= 9 + path.stat().st_size // (4 * MB)
    assert server.served_bytes() <= 1.1 * path.stat().st_size


def test_large_members_are_skipped(folder, server):
    """A header costs one request, and a page of the cache."""
    write_large(folder / 'a.tar', 10, 3 * MB)
    dataset = TarDataset(server.url('a.tar'))
    assert len(server.log) <= 13
    assert server.served_bytes() <= 13 * (128 << 10)
    del server.log[:]
    found, key = dataset[7]
    assert (bytes([7]) * 3 * MB, '0007') == (found, key)
    # Its first page came with the header.
    assert 2.8 * MB <= server.served_bytes() <= 3.2 * MB


def test_epoch_fetches_each_member_once(folder, server):
    """In the order of the epoch, and with nothing but the members."""
    config.remote_cache_path, config.remote_memory_bytes = 'off', 64 * MB
    for shard in range(2):
        write_large(folder / f'{shard}.tar', 20, 2 * MB, 20 * shard)
    dataset = TarDataset([server.url(f'{shard}.tar') for shard in range(2)],
                         ['bin'])
    stream = DataStream(dataset, batch_size=4, shuffle=True, seed=2)
    del server.log[:]
    order = [content[0] for batch, in stream.get_epoch_iterator()
             for content in batch]
    assert list(range(40)) == sorted(order)
    assert 75 * MB <= server.served_bytes() <= 85 * MB
    starts = dataset.table.fields['bin'][0]
    fetched = list(dict.fromkeys(
        20 * int(path[1]) + int(starts[:20].searchsorted(first, 'right')) - 1
        for path, first, last, _ in server.log if last))
    # Several connections fetch at once.
    assert all(abs(place - order.index(number)) <= 20
               for place, number in enumerate(fetched))


def test_resumes_on_ranks(folder, server):
    """The rest of the epoch, on another number of ranks."""
    write_tar(folder / 'a.tar', digits(count=120))

    def build():
        return DataStream(TarDataset(server.url('a.tar'), ['cls']),
                          batch_size=4, shuffle=True, seed=5)

    whole_epoch = [label for batch, in build().get_epoch_iterator()
                   for label in batch.tolist()]
    ranks = [build().shard(rank, 2) for rank in range(2)]
    seen = []
    for rank in ranks:
        epoch = rank.get_epoch_iterator()
        seen += [label for _ in range(3) for label in next(epoch)[0].tolist()]
    state = ranks[0].state_dict()
    for rank in range(3):
        stream = build().shard(rank, 3)
        stream.load_state_dict(state)
        seen += [label for batch, in stream.get_epoch_iterator()
                 for label in batch.tolist()]
    assert sorted(whole_epoch) == sorted(seen) == list(range(120))


def test_server_without_ranges_is_an_error(folder, server):
    """As for other files, and before anything is read from the archive."""
    write_tar(folder / 'a.tar', digits(count=2000))
    server.plan += [whole] * 20
    with pytest.raises(OSError, match=r'a\.tar.*range'):
        TarDataset(server.url('a.tar'))


def test_wrong_archives_name_the_url(folder, server):
    """A compressed one, and one that is cut short."""
    with tarfile.open(folder / 'a.tar.gz', 'w:gz') as archive:
        archive.addfile(member('a.x')[0])
    with pytest.raises(ValueError, match=r'a\.tar\.gz.*gunzip'):
        fuel.load(server.url('a.tar.gz'))
    path = write_tar(folder / 'b.tar', digits(count=20))
    path.write_bytes(path.read_bytes()[:8000])
    with pytest.raises(OSError, match=r'http.*b\.tar.*cut short'):
        fuel.load(server.url('b.tar'))


def test_index_of_wids_lists_archives(folder, server):
    """Beside it or elsewhere; the lengths may be left out."""
    (folder / 'data').mkdir()
    for number in range(2):
        path = write_tar(folder / 'data' / f'{number}.tar', digits(number, 1))
    index = folder / 'data' / 'set.json'
    shards = [{'url': '1.tar', 'nsamples': 1,
               'filesize': path.stat().st_size},
              {'url': server.url('data/0.tar'), 'nsamples': 1}]
    index.write_text(json.dumps({
        '__kind__': 'wids-shard-index-v1', 'wids_version': 1,
        'shardlist': shards}))
    for path in (index, server.url('data/set.json')):
        assert [1, 0] == fuel.load(path)[:][0].tolist()
    index.write_text(json.dumps({
        '__kind__': 'wids-shard-index-v1', 'shardlist': [{}]}))
    with pytest.raises(ValueError, match=r'set\.json.*"url" for each'):
        fuel.load(index)


@pytest.mark.parametrize('stated, error', [
    ({'filesize': 3}, r'1\.tar must have 3 bytes .*, and has 10240'),
    ({'nsamples': 7}, r'1\.tar must have 7 samples .*, and has 2'),
    ({'nsamples': None}, None), ({'nsamples': '2'}, r"must have '2' samples")])
def test_index_of_wids_of_other_archives_is_refused(
        folder, server, stated, error):
    """Each length that it states must be that of the archive."""
    for number in range(2):
        write_tar(folder / f'{number}.tar', digits(2 * number, 2))
    index = folder / 'set.json'
    index.write_text(json.dumps({
        '__kind__': 'wids-shard-index-v1', 'shardlist': [
            {'url': '0.tar', 'nsamples': 2, 'filesize': 10240},
            {'url': '1.tar', **stated}]}))
    for path in (index, server.url('set.json')):
        if error is None:
            assert 4 == len(fuel.load(path))
            continue
        with pytest.raises(ValueError, match=error):
            fuel.load(path)
