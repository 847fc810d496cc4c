"""Tar archives: what is read, what is refused, and that nothing hangs."""
import gzip
import io
import tarfile
import time

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import raw_data

from fuel.bin import fuel_convert
from fuel.converters.base import BadInputFile
from fuel.converters.raw.tar import open_tar


def archive_of(name, kind=tarfile.REGTYPE, size=0, linkname=''):
    """Return a tar archive with one odd member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as archive:
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, size, linkname
        archive.addfile(info, io.BytesIO(bytes(size)))
    return out.getvalue()


MEMBERS = [
    (archive_of('../../pwned'), 'would leave the folder'),
    (archive_of('/etc/passwd'), 'would leave the folder'),
    (archive_of('a/../../b'), 'would leave the folder'),
    (archive_of('C:\\b'), 'would leave the folder'),
    (archive_of('a', tarfile.SYMTYPE, linkname='/etc/passwd'), 'is a link'),
    (archive_of('a', tarfile.LNKTYPE, linkname='b'), 'is a link'),
    (archive_of('a', tarfile.CHRTYPE), 'or a device'),
    (archive_of('a', tarfile.FIFOTYPE), 'or a device'),
    (archive_of('a', size=3000), 'more than 2000')]


def with_size(size):
    """Return an archive whose member claims a size, with a right sum."""
    header = bytearray(archive_of('a', size=5))
    header[124:136] = size.ljust(12, b'\0')
    header[148:156] = b' ' * 8
    header[148:156] = b'%06o\0 ' % sum(header[:512])
    return bytes(header)


def contents(content, in_order=False):
    """Return names and contents of an archive."""
    with open_tar(io.BytesIO(content), in_order) as archive:
        if in_order:
            return [(member.name, archive.read(member))
                    for member in archive.walk()]
        return [(member.name, archive.read(member))
                for member in archive.members()]


@pytest.mark.parametrize('size', [b'-1', b'-1000', b'1_0', b'+5', b'9'])
@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_sizes_that_are_not_numbers_are_refused(size, pack):
    """A negative size would lead back, to the same member for ever."""
    with pytest.raises(BadInputFile, match='in the place of a number'):
        contents(pack(with_size(size)))


@pytest.mark.parametrize('content, text', MEMBERS)
@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_odd_members_are_refused(content, text, pack):
    """Names that lead out, links, devices and giants are refused."""
    with (open_tar(io.BytesIO(pack(content))) as archive,
          pytest.raises(BadInputFile, match=text)):
        list(archive.walk(max_size=2000))


@pytest.mark.parametrize('mode', ['w', 'w:gz', 'w:bz2', 'w:xz'])
@pytest.mark.parametrize('layout', [tarfile.USTAR_FORMAT,
                                    tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize('name', ['a/b.txt', 'd/' * 60 + 'x', 'é.txt', 'BZh'])
def test_archives_are_read_as_tarfile_wrote_them(mode, layout, name):
    """Plain or packed, with long or foreign names, in order or not."""
    out = io.BytesIO()
    rng = numpy.random.RandomState(0)
    expected = []
    with tarfile.open(fileobj=out, mode=mode, format=layout) as archive:
        for i, size in enumerate((0, 1, 512, 513, 2000)):
            info = tarfile.TarInfo(f'{name}{i}')
            info.size = size
            content = rng.bytes(size)
            archive.addfile(info, io.BytesIO(content))
            expected.append((info.name, content))
    assert expected == contents(out.getvalue())
    assert expected == contents(out.getvalue(), in_order=True)


def test_members_in_binary_sizes_and_signed_sums_are_read():
    """Sizes beyond eight gigabytes are binary numbers, and some programs
    sum up signed bytes."""
    content = bytearray(raw_data.tar([('a', b'x' * 700)]))
    header = content[:512]
    header[0] = 0xe9
    header[124:136] = b'\x80' + (700).to_bytes(11, 'big')
    header[148:156] = b' ' * 8
    signed = sum(byte - 256 * (byte > 127) for byte in header)
    header[148:156] = b'%06o\0 ' % signed
    content[:512] = header
    assert [b'x' * 700] == [data for _, data in contents(bytes(content))]


@pytest.mark.parametrize('stop', [300, 512, 1000, 1500, 2048])
@pytest.mark.parametrize('in_order', [False, True])
@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_archive_cut_short_raises(stop, in_order, pack):
    """A part of an archive is not taken for a smaller one."""
    content = raw_data.tar([('a', bytes(400)), ('b', b'x' * 600)])[:stop]
    with pytest.raises(BadInputFile, match='cut short'):
        contents(pack(content), in_order)


def test_damaged_header_raises():
    """A header's check sum is checked."""
    content = bytearray(raw_data.tar([('a', b'x'), ('b', b'y')]))
    content[1024 + 3] ^= 1
    with pytest.raises(BadInputFile, match='check sum'):
        contents(bytes(content))


def extended(kind, record, size=None):
    """Return an archive whose first header is extended."""
    out = io.BytesIO()
    info = tarfile.TarInfo('PaxHeader')
    info.type = kind
    info.size = len(record) if size is None else size
    out.write(info.tobuf(tarfile.USTAR_FORMAT))
    out.write(record + bytes(-len(record) % 512))
    out.write(raw_data.tar([('a', b'x')]))
    return out.getvalue()


@pytest.mark.parametrize('kind, record, text', [
    (b'x', b'0' * (3 << 20), 'more than 65536'),
    (b'x', b'1' * (1 << 16), 'wrong extended header'),
    (b'x', b'1 ' * (1 << 15), 'wrong extended header'),
    (b'x', b'9 a' * 1000, 'wrong extended header'),
    (b'g', b'0' * (3 << 20), 'more than 65536'),
    (b'L', b'a' * (3 << 20), 'more than 65536'),
    (b'x', b'11 size=-5\n', "'-5' bytes"),
    (b'g', b'10 size=1\n', 'for all members'),
    (b'x', b'22 GNU.sparse.major=1\n', 'sparse')])
def test_hostile_extended_headers_are_refused_at_once(kind, record, text):
    """No header of a few kilobytes, packed, takes more than a moment."""
    packed = gzip.compress(extended(kind, record))
    begin = time.monotonic()
    with pytest.raises(BadInputFile, match=text):
        contents(packed)
    assert time.monotonic() - begin < 5


def test_convert_cifar10_with_a_hostile_header_ends(tmp_path, monkeypatch,
                                                    capsys):
    """An archive of 5 KB kept the command busy for minutes."""
    monkeypatch.chdir(tmp_path)
    packed = gzip.compress(extended(b'x', b'0' * (4 << 20)))
    assert len(packed) < 6000
    (tmp_path / 'cifar-10-python.tar.gz').write_bytes(packed)
    begin = time.monotonic()
    with pytest.raises(SystemExit):
        fuel_convert.main(['cifar10'])
    assert time.monotonic() - begin < 10
    assert 'more than 65536' in capsys.readouterr().err


@settings(max_examples=200, deadline=2000)
@given(data=st.data())
def test_any_bytes_in_a_header_are_read_or_refused(data):
    """A header of any bytes with a right check sum is read in bounded time, or
    is refused with `BadInputFile`."""
    header = bytearray(raw_data.tar([('a', b'x' * 600)])[:512])
    for start, stop in data.draw(st.lists(st.sampled_from(
            [(0, 100), (124, 136), (156, 157), (257, 263), (345, 500)]),
            max_size=3)):
        header[start:stop] = data.draw(st.binary(
            min_size=stop - start, max_size=stop - start))
    header[148:156] = b' ' * 8
    header[148:156] = b'%06o\0 ' % sum(header)
    body = data.draw(st.binary(max_size=1500))
    content = bytes(header) + body + bytes(-len(body) % 512 + 1024)
    for pack in (bytes, gzip.compress):
        try:
            found = contents(pack(content))
        except BadInputFile:
            continue
        assert all(not name.startswith('/') and '..' not in name.split('/')
                   for name, _ in found)


@settings(max_examples=100, deadline=2000)
@given(content=st.binary(max_size=3000))
def test_any_bytes_as_an_archive_are_refused_or_empty(content):
    """The bytes are of any kind, plain or behind the magic number of a
    packer."""
    for magic in (b'', b'\x1f\x8b\x08', b'BZh91AY&SY', b'\xfd7zXZ\0'):
        try:
            assert [] == contents(magic + content)
        except BadInputFile:
            continue
