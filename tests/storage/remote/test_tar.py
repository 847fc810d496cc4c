"""Tar archives on a server of byte ranges."""
import json
import re
import tarfile

import numpy
import pytest
from numpy.testing import assert_array_equal
from support.range_server import whole
from support.tar_files import digits, index_of, member, write_tar

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


@pytest.mark.parametrize('form, time, nbytes', [
    (tarfile.PAX_FORMAT, .5, 300_000), (tarfile.GNU_FORMAT, 0, 300_000),
    (tarfile.USTAR_FORMAT, 0, 2_500_000)])
def test_index_of_dali_takes_the_place_of_headers(
        folder, server, form, time, nbytes):
    """Only the headers of some members are read, besides the index: far fewer
    bytes, or far fewer requests if members are large."""
    members = [member(f'{number // 15}/{number:02}.BIN',
                      bytes([number]) * (nbytes + number), mtime=time)
               for number in range(30)]
    path = write_tar(folder / 'a.tar', [
        member('0', type=tarfile.DIRTYPE), *members[:15],
        member('1', type=tarfile.DIRTYPE), *members[15:]], form)
    assert 30 == len(TarDataset(server.url('a.tar')))
    assert len(server.log) > 30 or server.served_bytes() > 20 * nbytes
    path = path.rename(folder / 'b.tar')
    (folder / 'b.idx').write_text(index_of(path))
    del server.log[:]
    dataset = fuel.load(server.url('b.tar'))
    assert len(server.log) <= 14
    assert server.served_bytes() <= 14 * (128 << 10)
    for one, two in zip(TarDataset(path).get_data(None, [29, 3]),
                        dataset.get_data(None, [29, 3]), strict=True):
        assert_array_equal(one, two)


def replaced(old, new, count=-1):
    """Return a function that changes the text of an index."""
    def change(text):
        assert old in text
        return text.replace(old, new, count)
    return change


def overflowing(text):
    """Return an index whose places overflow twice, and are right again."""
    words = text.split()
    start, end = int(words[2 + 4 * 54 + 1]), int(words[2 + 4 * 57 + 1]) - 512
    most = (1 << 63) - 512
    for number, place in enumerate([
            (start, most), (start - (1 << 63), most), (start, end - start)]):
        first = 2 + 4 * (54 + number) + 1
        words[first:first + 2] = map(str, place)
    return f'v1.2 40\n{" ".join(words[2:])}\n'


@pytest.mark.parametrize('change', [
    overflowing, replaced('v1.2', 'v1.1'), lambda text: '',
    lambda text: 'v1.2 0\n', lambda text: text + 'jpg 512 3\n',
    lambda text: text[:-1], lambda text: text[:len(text) // 2],
    lambda text: re.sub(r' \S+$', '', text.replace(
        'v1.2', 'v1.1'), flags=re.MULTILINE),
    lambda text: text + text.splitlines()[1] + '\n',
    lambda text: 'v1.2 39\n' + text.split('\n', 2)[2],
    lambda text: 'v1.2 39\n' + text[8:text[:-1].rindex('\n') + 1],
    replaced('/00000.', '/0000 0.'), replaced('/00039.', '/00038.'),
    replaced('/00017.cls', '/00018.cls'),
    # Neither this one nor its neighbours are checked.
    replaced(' 0 part/00035', ' -1 part/00035'),
    replaced('/00033.cls', '/000\\063\\063.cls'),
    replaced(' 512 1 ', ' 512 2 '), replaced(' 512 1 ', ' -512 1 '),
    replaced(' 512 1 ', f' 512 {1 << 62} '), replaced('512', '9' * 30),
    replaced('512', '9' * 5000), replaced(' 512 1 ', ' 512 1.0 ')])
def test_index_of_dali_that_does_not_fit_is_not_used(folder, server, change):
    """The headers are read instead."""
    path = write_tar(folder / 'a.tar', digits(count=40), tarfile.USTAR_FORMAT)
    text = index_of(path)
    (folder / 'a.idx').write_text(change(text))
    dataset = TarDataset(server.url('a.tar'))
    for one, two in zip(TarDataset(path)[:], dataset[:], strict=True):
        assert_array_equal(one, two)


def test_index_of_dali_of_an_archive_that_changed_is_not_used(folder, server):
    """It got members at its end, or others with names of other lengths, or is
    another one."""
    path = write_tar(folder / 'a.tar', digits(count=40))
    (folder / 'a.idx').write_text(index_of(path))
    for members in (digits(count=41), digits(count=39), digits(100, 40), [
            *digits(count=20), ('z', b''), *digits(20, 20)]):
        write_tar(path, members)
        dataset = TarDataset(server.url('a.tar'))
        for one, two in zip(TarDataset(path)[:], dataset[:], strict=True):
            assert_array_equal(one, two)


def test_index_of_dali_does_not_cost_more_than_the_headers(folder, server):
    """It leaves out a large member, is of something else, or is too long."""
    for name, change in (
            ('a', str), ('b', lambda text: 'MMIDIDX' + '0' * (3 * MB)),
            ('c', lambda text: text + '\n' * (5 * MB))):
        path = write_tar(folder / f'{name}.tar', [
            ('a.x', b'1'), ('.hidden', bytes(4 * MB)), ('b.x', b'2')])
        path.with_suffix('.idx').write_text(change(index_of(path)))
        dataset = TarDataset(server.url(path.name))
        assert [b'1', b'2'] == dataset[:][0].tolist()
    assert server.served_bytes() <= 1 * MB


def test_long_index_of_dali_is_not_read(folder, server):
    """Its text would take ten times as much memory."""
    path = write_tar(folder / 'a.tar', digits(count=3))
    with path.open('r+b') as file:
        file.truncate(64 * MB)
    (folder / 'a.idx').write_text('v1.2 1\n' + 'x 512 1 a.x\n' * MB)
    assert 3 == len(TarDataset(server.url('a.tar')))
    assert server.served_bytes() <= 1 * MB


def test_links_that_an_index_of_dali_leaves_out_are_refused(folder, server):
    """As without the index."""
    first, *rest = digits(count=40)
    path = write_tar(folder / 'a.tar', [first, member(
        'a.x', linkname='b', type=tarfile.SYMTYPE), *rest])
    (folder / 'a.idx').write_text(index_of(path))
    with pytest.raises(ValueError, match="'a.x' is a link"):
        TarDataset(server.url('a.tar'))


def test_places_of_long_names_of_gnu_are_not_those_of_dali(folder, server):
    """GNU tar, which it asks for them, takes their headers for content."""
    path = write_tar(folder / 'a.tar', [
        (f'{number:0{100 + number % 2}}.x', b'%d' % number)
        for number in range(9)], tarfile.GNU_FORMAT)
    (folder / 'a.idx').write_text(re.sub(
        r'(?<=x )(\d+)(?= 1 \d{101})', lambda found: str(
            int(found[0]) - 1024), index_of(path)))
    dataset = TarDataset(server.url('a.tar'))
    assert [b'%d' % number for number in range(9)] == dataset[:][0].tolist()


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


@pytest.mark.parametrize('prefix', [
    'file://', 'FILE://', 'local://', 'simplecache::file://', 'memory://'])
def test_index_of_wids_on_a_server_lists_no_file_of_this_computer(
        folder, server, tmp_path, prefix):
    """A copy of it on this computer may."""
    path = write_tar(tmp_path / 'own.tar', digits(count=1))
    index = folder / 'set.json'
    index.write_text(json.dumps({
        '__kind__': 'wids-shard-index-v1', 'shardlist': [
            {'url': f'{prefix}{path}'}]}))
    with pytest.raises(ValueError, match=r'set\.json.*own\.tar.*on servers'):
        fuel.load(server.url('set.json'))
    if prefix == 'file://':
        assert 1 == len(fuel.load(index))


def test_index_of_wids_is_known_with_a_query(folder, server):
    """Its extension ends before the query, which the archives have too."""
    write_tar(folder / 'a.tar', digits(count=3))
    (folder / 'set.json').write_text(json.dumps({
        '__kind__': 'wids-shard-index-v1', 'shardlist': [{'url': 'a.tar'}]}))
    assert 3 == len(fuel.load(server.url('set.json?signature=secret')))
    assert {'set.json?signature=secret', 'a.tar?signature=secret'} <= {
        one[0].lstrip('/') for one in server.log}


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
