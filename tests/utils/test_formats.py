"""Text is text and bytes are bytes, compressed or not."""
import bz2
import gzip
import io
import lzma
import os
import tarfile

import pytest

from fuel.utils.formats import CheckedArchive, open_, tar_open

WRITERS = {'a.txt': open, 'a.txt.gz': gzip.open, 'a.txt.bz2': bz2.open,
           'a.txt.xz': lzma.open, 'A.TXT.GZ': gzip.open}
TEXT = 'a b\nzażółć\n'


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    """Write a file of two lines with the standard library."""
    with WRITERS[request.param](tmp_path / request.param, 'wb') as file:
        file.write(TEXT.encode('utf-16'))
    return tmp_path / request.param


def test_open_gives_text_of_compressed_files(path):
    """Text comes as text, with an encoding too."""
    for mode in ('r', 'rt'):
        with open_(path, mode, encoding='utf-16') as file:
            assert TEXT.splitlines(keepends=True) == list(file)
    with open_(str(path), encoding='utf-16') as file:
        assert TEXT == file.read()


def test_default_encoding_gives_text(tmp_path):
    """A call without an encoding gives text, too."""
    for name, opener in WRITERS.items():
        with opener(tmp_path / name, 'wb') as file:
            file.write(b'a b\n')
        with open_(tmp_path / name) as file:
            assert ['a b\n'] == list(file)


def test_open_binary_gives_bytes(path):
    """A ``b`` in the mode means bytes."""
    with open_(path, 'rb') as file:
        assert TEXT.encode('utf-16') == file.read()


def test_open_writes_what_it_reads(path):
    """Writing compresses too."""
    with open_(path, 'w', encoding='utf-8') as file:
        file.write('ż' * 10000)
    with open_(path, encoding='utf-8') as file:
        assert 'ż' * 10000 == file.read()
    assert (path.stat().st_size < 1000) is (path.suffix != '.txt')


def test_open_encoding_of_bytes_raises(path):
    """An encoding in binary mode is a mistake."""
    with pytest.raises(ValueError, match="'utf-8'.*'rb' is binary"):
        open_(path, 'rb', encoding='utf-8')


def test_open_damaged_file_raises_when_read(tmp_path):
    """A plain file under a compressed name is not read as garbage."""
    (tmp_path / 'a.gz').write_text('plain')
    with (open_(tmp_path / 'a.gz') as file,
          pytest.raises(OSError, match='Not a gzipped file')):
        file.read()


@pytest.fixture(params=['w', 'w:gz'])
def archive_bytes(request):
    """Return an archive with a harmless and a hostile member."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=request.param) as archive:
        for name in ('a.txt', '../../escaped.txt'):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b'data'))
    return file.getvalue()


def test_tar_open_reads_paths_and_files(tmp_path, archive_bytes):
    """A name, a path or an open file give the same archive."""
    path = tmp_path / 'a.tar'
    path.write_bytes(archive_bytes)
    for given in (path, str(path), io.BytesIO(archive_bytes)):
        with tar_open(given) as archive:
            assert ['a.txt', '../../escaped.txt'] == archive.getnames()
            assert b'data' == archive.extractfile('a.txt').read()


def test_tar_open_extracts_nothing_outside(tmp_path, archive_bytes):
    """No member is written outside of the folder."""
    folder = tmp_path / 'a' / 'b'
    folder.mkdir(parents=True)
    with (tar_open(io.BytesIO(archive_bytes)) as archive,
          pytest.raises(tarfile.TarError, match='escaped')):
        archive.extractall(folder)
    assert not (tmp_path / 'escaped.txt').exists()


def test_archive_on_an_old_python_extracts_what_stays_inside(tmp_path):
    """Files, folders and links are extracted; devices, and anything outside,
    are not."""
    file = io.BytesIO()
    inside = [('d', tarfile.DIRTYPE, ''), ('d/f', tarfile.REGTYPE, ''),
              ('d/s', tarfile.SYMTYPE, 'f'), ('h', tarfile.LNKTYPE, 'd/f')]
    hostile = [('p', tarfile.FIFOTYPE, ''), ('/q', tarfile.REGTYPE, ''),
               ('s', tarfile.SYMTYPE, '../q'), ('l', tarfile.LNKTYPE, '../q'),
               ('d/../../q', tarfile.REGTYPE, '')]
    with tarfile.open(fileobj=file, mode='w') as archive:
        for name, kind, target in inside + hostile:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    file.seek(0)
    with CheckedArchive.open(fileobj=file) as archive:
        # Later releases of Python would check by themselves.
        archive.extraction_filter = getattr(
            tarfile, 'fully_trusted_filter', None)
        for member in archive:
            if member.name in {name for name, *_ in inside}:
                archive.extract(member, tmp_path / 'out')
            else:
                with pytest.raises(tarfile.TarError, match=repr(member.name)):
                    archive.extract(member.name, tmp_path / 'out')
    assert ['d', 'h'] == sorted(os.listdir(tmp_path / 'out'))
    assert ['f', 's'] == sorted(os.listdir(tmp_path / 'out' / 'd'))
    assert ['out'] == os.listdir(tmp_path)


def test_tar_open_of_something_else_raises():
    """The error of another file says that it is not an archive."""
    with pytest.raises(tarfile.ReadError, match='could not be opened|empty'):
        tar_open(io.BytesIO(b'<html>'))
