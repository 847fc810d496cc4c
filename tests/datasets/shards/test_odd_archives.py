"""Tar archives of an odd kind, written byte by byte.

What is expected of each follows from the format. An archive is an error that
names the archive and the member or sample, or it has the right samples. No
case may take long.
"""
import io
import re
import tarfile

import numpy
import pytest

from fuel.datasets import TarDataset
from fuel.exceptions import DamagedFileError
from fuel.streams import DataStream

BLOCK = 512
END = b'\0' * 2 * BLOCK


def header(name, size=0, kind=b'0', size_field=None, magic=b'ustar\x0000',
           prefix=b'', checksum=None):
    """Return a header, written by hand."""
    block = bytearray(BLOCK)
    name = name if isinstance(name, bytes) else name.encode()
    block[:len(name)] = name
    block[100:108] = b'0000644\0'
    block[108:116] = block[116:124] = b'0000000\0'
    block[124:136] = b'%011o\0' % size if size_field is None else size_field
    block[136:148] = b'00000000000\0'
    block[156:157] = kind
    block[257:257 + len(magic)] = magic
    block[345:345 + len(prefix)] = prefix
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % (
        sum(block) if checksum is None else checksum)
    return bytes(block)


def padded(content):
    """Return a content, filled up to whole blocks."""
    return content + b'\0' * (-len(content) % BLOCK)


def file(name, content=b'x', **options):
    """Return a member: header and content."""
    return header(name, len(content), **options) + padded(content)


def pax(**records):
    """Return an extended header of PAX with records."""
    content = b''
    for key, value in records.items():
        line = f' {key.replace("__", ".")}={value}\n'.encode()
        length = len(line) + 1
        while len(str(length)) + len(line) != length:
            length = len(str(length)) + len(line)
        content += str(length).encode() + line
    return file('PaxHeaders/x', content, kind=b'x')


def number(value):
    """Return a number of more than eleven octal digits, in base 256."""
    return b'\x80' + value.to_bytes(11, 'big')


def npy(array):
    """Return the bytes of a ``.npy`` file, pickled if it has objects."""
    stream = io.BytesIO()
    numpy.save(stream, array, allow_pickle=True)
    return stream.getvalue()


GOOD = file('a.txt', b'first')
LONG = 'long/' + 'n' * 300 + '.txt'
# Name of a case: the archive, and the keys and texts of its samples.
RIGHT = {
    'one block of zeros at the end': (GOOD + b'\0' * BLOCK, {'a': 'first'}),
    'other bytes behind the end': (GOOD + END + b'garbage' * 99,
                                   {'a': 'first'}),
    'a member of 0 bytes': (file('a.txt', b'') + END, {'a': ''}),
    'a folder and a name without a dot': (
        header('d/', kind=b'5') + file('README') + GOOD + END,
        {'a': 'first'}),
    'names that begin with underscores': (
        file('__meta__/x.txt') + file('__this__.txt', b'kept') + GOOD + END,
        {'__this__': 'kept', 'a': 'first'}),
    'hidden members': (
        file('._a.txt') + file('d/._a.txt', b'kept') + END, None),
    'names in UTF-8': (file('grün/漢.txt', b'yes') + END, {'grün/漢': 'yes'}),
    'names of PAX in UTF-8': (
        pax(path='grün/漢字.txt') + file('x.txt', b'yes') + END,
        {'grün/漢字': 'yes'}),
    'a name of 300 characters, of GNU': (
        file('././@LongLink', LONG.encode() + b'\0', kind=b'L')
        + file(LONG[:100], b'far') + END, {LONG[:-4]: 'far'}),
    'a name with a prefix': (
        file('n.txt', b'far', prefix=b'p' * 150) + END,
        {'p' * 150 + '/n': 'far'}),
    'what GNU writes in the place of a prefix': (
        file('n.txt', b'near', magic=b'ustar  \0', prefix=b'14000000000\0')
        + END, {'n': 'near'}),
    'a header of the seventh edition of Unix': (
        file('n.txt', b'old', magic=b'') + END, {'n': 'old'}),
    'a size in base 256': (
        header('n.txt', size_field=number(3)) + padded(b'yes') + END,
        {'n': 'yes'}),
    'a size of PAX': (
        pax(size='3') + header('n.txt', 0) + padded(b'yes') + GOOD + END,
        {'n': 'yes', 'a': 'first'}),
    'a time of PAX before each member': (
        pax(mtime='1.5') + GOOD + pax(mtime='1.5') + file('b.txt', b'2')
        + END, {'a': 'first', 'b': '2'}),
    'a comment for all members': (
        file('pax_global_header', b'18 comment=abcdef\n', kind=b'g') + GOOD
        + END, {'a': 'first'}),
    'a member in one piece, of type 7': (
        file('n.txt', b'yes', kind=b'7') + END, {'n': 'yes'}),
    'a member of the oldest type': (
        file('n.txt', b'yes', kind=b'\0') + END, {'n': 'yes'}),
    'names that lead out of the folder': (
        file('../n.txt', b'yes') + file('/m.txt', b'too') + END,
        {'../n': 'yes', '/m': 'too'}),
    'names that begin with a dot and a slash': (
        file('./n.txt', b'yes') + END, {'./n': 'yes'}),
    'the same key later': (
        file('a.txt', b'1') + file('b.txt', b'2') + file('a.txt', b'3') + END,
        None),
    'extensions in upper case': (file('a.TXT', b'yes') + END, {'a': 'yes'}),
    'an extension without a name, in a folder': (
        file('d/.txt', b'yes') + END, {'d/': 'yes'}),
}
# Name of a case: the archive, the error, and what it must name.
WRONG = {
    'cut in a header': (GOOD + header('b.txt', 1)[:300], DamagedFileError,
                        'a.txt'),
    # Half of a download may end there too.
    'without an end': (GOOD + file('b.txt'), DamagedFileError, 'b.txt'),
    'cut behind a content': (header('b.txt', 5) + b'first', DamagedFileError,
                             'b.txt'),
    'cut in a member': (GOOD + header('b.txt', 900) + b'x' * 100,
                        DamagedFileError, 'b.txt'),
    'cut in an extended header': (GOOD + pax(path='z' * 900)[:700],
                                  DamagedFileError, 'a.txt'),
    '0 bytes': (b'', DamagedFileError, ''),
    'zeros alone': (END * 10, ValueError, ''),
    'zeros in the place of a header': (
        GOOD + b'\0' * BLOCK + padded(b'lost') + file('c.txt') + END,
        DamagedFileError, 'a.txt'),
    'folders alone': (header('d/', kind=b'5') + END, ValueError, ''),
    'two members of one name': (GOOD + GOOD + END, ValueError,
                                "'a'.*txt"),
    'two extensions that differ in case': (
        file('a.txt') + file('a.Txt') + END, ValueError, "'a'.*txt"),
    'a symbolic link': (GOOD + header('b.txt', kind=b'2') + END, ValueError,
                        'b.txt'),
    'a hard link': (GOOD + header('b.txt', kind=b'1') + END, ValueError,
                    'b.txt'),
    'a device': (GOOD + header('b.txt', kind=b'3') + END, ValueError,
                 'b.txt'),
    'a sparse member of GNU': (GOOD + file('b.txt', kind=b'S') + END,
                               ValueError, 'b.txt'),
    'a sparse member of PAX': (
        GOOD + pax(GNU__sparse__major='1', GNU__sparse__minor='0')
        + file('b.txt') + END, ValueError, 'b.txt'),
    'a wrong check sum': (GOOD + file('b.txt', checksum=1) + END,
                          DamagedFileError, 'a.txt'),
    'a size beyond the file': (GOOD + header('b.txt', 10 ** 6) + b'x' * 900,
                               DamagedFileError, 'b.txt'),
    'a size of 2 ** 88 bytes': (
        GOOD + header('b.txt', size_field=b'\x80' + b'\xff' * 11) + END,
        DamagedFileError, 'b.txt|a.txt'),
    'a negative size': (
        GOOD + header('b.txt', size_field=b'\xff' * 12) + END,
        DamagedFileError, 'b.txt|a.txt'),
    'a size that is not a number': (
        GOOD + header('b.txt', size_field=b'nine\0\0\0\0\0\0\0\0') + END,
        DamagedFileError, 'b.txt|a.txt'),
    'a size of PAX that is not a number': (
        GOOD + pax(size='-5') + file('b.txt') + END, DamagedFileError,
        'b.txt|a.txt'),
    'an extended header of a gigabyte': (
        GOOD + header('x', 1 << 30, kind=b'x') + END, DamagedFileError,
        'a.txt|x'),
    'an extended header whose length lies': (
        GOOD + file('x', b'99 path=b.txt\n', kind=b'x') + file('b.txt') + END,
        DamagedFileError, 'a.txt'),
    'one name for all members': (
        file('x', b'14 path=b.txt\n', kind=b'g') + GOOD + END,
        (ValueError, DamagedFileError), ''),
    'a sample that lacks a field': (
        file('a.txt') + file('a.cls', b'1') + file('b.txt') + END, ValueError,
        "'b'.*'cls'"),
    'compressed with gzip': (b'\x1f\x8b\x08' + b'\0' * 99, ValueError,
                             'gunzip'),
    'compressed with bzip2': (b'BZh91AY&SY' + b'\0' * 99, ValueError,
                              'bunzip2'),
    'compressed with xz': (b'\xfd7zXZ\0' + b'\0' * 99, ValueError, 'unxz'),
    'compressed with zstd': (b'\x28\xb5\x2f\xfd' + b'\0' * 99, ValueError,
                             'zstd'),
}
# Name of a case: the extension and content of a second sample, which is wrong;
# and the content of the first and third one.
WRONG_CONTENTS = {
    'a class that is not a number': ('cls', b'seven', b'7'),
    'a class that is not whole': ('cls', b'7.5', b'7'),
    'a class of 0 bytes': ('cls', b'', b'7'),
    'a class beyond int64': ('cls', b'9' * 30, b'7'),
    'text that is not UTF-8': ('txt', b'\xff\xfe\xff', b'yes'),
    'JSON that ends early': ('json', b'{"a": 1', b'{}'),
    'an array of pickles': ('npy', npy(numpy.array([{}], object)),
                            npy(numpy.arange(3))),
    'an array that is cut': ('npy', npy(numpy.arange(99))[:200],
                             npy(numpy.arange(3))),
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes an archive."""
    def write(content):
        path = tmp_path / 'odd.tar'
        path.write_bytes(content)
        return path

    return write


@pytest.mark.timeout(30)
@pytest.mark.parametrize('case', [
    case for case, (_, samples) in RIGHT.items() if samples is not None])
def test_odd_archive_has_the_right_samples(write, case):
    """Each has its key and its text."""
    content, samples = RIGHT[case]
    texts, keys = TarDataset(write(content)).get_data(
        None, slice(0, len(samples)))
    assert dict(zip(keys, texts, strict=True)) == samples


def test_key_that_comes_again_is_another_sample(write):
    """Members of one sample follow each other."""
    dataset = TarDataset(write(RIGHT['the same key later'][0]))
    assert [part.tolist() for part in dataset.get_data(None, [0, 1, 2])] == [
        ['1', '2', '3'], ['a', 'b', 'a']]


def test_hidden_member_in_a_folder_is_an_extension_of_the_folder(write):
    """WebDataset splits the name so; at the top, it leaves it out."""
    dataset = TarDataset(write(RIGHT['hidden members'][0]))
    assert dataset.sources == ('_a.txt', 'key')
    assert [part.tolist() for part in dataset.get_data(None, [0])] == [
        ['kept'], ['d/']]


def test_names_in_other_encodings_are_different_keys(write):
    """Two names of Latin-1 that only differ in an umlaut."""
    dataset = TarDataset(write(file(b'\xe4.txt', b'1') + file(
        b'\xf6.txt', b'2') + END))
    texts, keys = dataset.get_data(None, [0, 1])
    assert texts.tolist() == ['1', '2']
    assert keys[0] != keys[1]


@pytest.mark.timeout(30)
@pytest.mark.parametrize('case', WRONG)
def test_odd_archive_is_an_error_that_names_the_place(write, case):
    """It names the archive, and the member or the sample, or the member in
    front of the damage."""
    content, error, named = WRONG[case]
    with pytest.raises(error, match=re.compile(
            rf'odd\.tar.*{named}', re.DOTALL)):
        TarDataset(write(content))


@pytest.mark.timeout(30)
@pytest.mark.parametrize('case', WRONG_CONTENTS)
def test_wrong_content_is_an_error_or_left_out(write, case):
    """The error names archive and sample; on_error='skip' counts one."""
    name, wrong, right = WRONG_CONTENTS[case]
    path = write(file(f'one.{name}', right) + file(f'two.{name}', wrong)
                 + file(f'three.{name}', right) + END)
    dataset = TarDataset(path)
    with pytest.raises(ValueError, match=rf"odd\.tar.*'two'.*'{name}'"):
        dataset.get_data(None, [0, 1, 2])
    stream = DataStream(dataset, batch_size=2, on_error='skip')
    delivered = [key for *_, keys in stream.get_epoch_iterator()
                 for key in keys]
    assert delivered == ['one', 'three']
    assert stream.skipped_examples().count == 1


def test_pickle_in_an_array_is_not_loaded(write):
    """It could run any code."""
    class Harm:
        def __reduce__(self):
            return pytest.fail, ('the pickle was loaded',)

    path = write(file('a.npy', npy(numpy.array([Harm()], object))) + END)
    with pytest.raises(ValueError, match=r'odd\.tar'):
        TarDataset(path).get_data(None, [0])


def test_headers_written_here_are_those_of_tar(write):
    """Python's reader finds the same."""
    path = write(GOOD + pax(path='b.txt') + file('x', b'2') + END)
    with tarfile.open(path) as archive:
        assert [info.name for info in archive] == ['a.txt', 'b.txt']
