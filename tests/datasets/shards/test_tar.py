"""Data sets in tar archives."""
import json
import os
import pickle
import re
import tarfile
import threading

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support.range_server import serving
from support.tar_files import change_header, digits, member, npy, write_tar

import fuel
from fuel import config
from fuel.bin import fuel_info
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.tar import Tar
from fuel.datasets import TarDataset
from fuel.datasets.shards.tar import split_name
from fuel.exceptions import DamagedFileError, StateMismatchError
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing
from fuel.utils.io_counts import io_counts

FORMS = {'pax': tarfile.PAX_FORMAT, 'gnu': tarfile.GNU_FORMAT,
         'ustar': tarfile.USTAR_FORMAT}


def samples_of(path):
    """Return pairs of key and contents, by `tarfile` and the pattern with
    which WebDataset splits names."""
    found = []
    with tarfile.open(path) as archive:
        for info in archive:
            split = re.match(r'((?:.*/|)[^.]+)[.]([^/]*)$', info.name)
            if not info.isreg() or not split or (
                    re.match(r'__[^/]*__($|/)', info.name)):
                continue
            key, extension = split[1], split[2].lower()
            if not found or found[-1][0] != key:
                found.append((key, {}))
            found[-1][1][extension] = archive.extractfile(info).read()
    return found


PARTS = st.text('ab_.é', min_size=1, max_size=3).filter(
    lambda part: part not in ('.', '..') and not part.endswith('.'))
NAMES = st.lists(PARTS, min_size=1, max_size=3).map('/'.join)


@settings(suppress_health_check=list(HealthCheck))
@given(names=st.lists(NAMES, max_size=12, unique=True),
       form=st.sampled_from(sorted(FORMS)),
       deep=st.sampled_from(['', 'x' * 90 + '/' + 'y' * 80 + '/',
                             'z' * 140 + '/' + 'ä' * 150 + '/']),
       with_time=st.booleans())
def test_samples_are_those_of_webdataset(tmp_path_factory, names, form, deep,
                                         with_time):
    """Names are short or long, with several dots, or none, in folders."""
    if form == 'ustar':
        deep = deep if deep.isascii() and len(deep) < 180 else ''
        names = [name for name in names if name.isascii()]
    path = tmp_path_factory.getbasetemp() / 'any.tar'
    write_tar(path, [
        member(f'{deep}{name}', b'%d' % number * number,
               mtime=number + with_time / 2)
        for number, name in enumerate(['first.a', *names])], FORMS[form])
    wanted = samples_of(path)
    dataset = TarDataset(path, missing='none')
    assert [key for key, _ in wanted] == dataset[:][-1].tolist()
    fields = sorted({name for _, sample in wanted for name in sample})
    assert (*fields, 'key') == dataset.sources
    order = numpy.random.permutation(len(wanted))
    for field, column in zip(fields, dataset.get_data(None, order)[:-1],
                             strict=True):
        assert [wanted[row][1].get(field) for row in order] == column.tolist()


@pytest.fixture
def path(tmp_path):
    """Return an archive of ten samples."""
    return write_tar(tmp_path / 'ten.tar', digits())


def test_shards_are_read_in_any_order(tmp_path):
    """Rows of several archives come as `tarfile` finds them."""
    paths = [write_tar(tmp_path / f'{number}.tar', digits(
        100 * number, 3 + number)) for number in (2, 10, 11)]
    wanted = [sample for path in paths for sample in samples_of(path)]
    dataset = TarDataset(tmp_path / '*.tar')
    assert len(wanted) == len(dataset) == 5 + 13 + 14
    rows = [*numpy.random.permutation(len(wanted)).tolist(), 4, 4]
    labels, images, texts, keys = dataset.get_data(None, rows)
    assert [wanted[row][0] for row in rows] == keys.tolist()
    assert [wanted[row][1]['jpg'] for row in rows] == images.tolist()
    assert [int(wanted[row][1]['cls']) for row in rows] == labels.tolist()
    assert [wanted[row][1]['txt'].decode() for row in rows] == texts.tolist()
    place = dataset.place_of_row(5 + 2)
    assert (str(paths[1]), '', 2) == place


def test_columns_and_splits_choose(path):
    """Sources have any names; fields that are left out may be missing."""
    dataset = TarDataset(
        path, {'image': 'jpg', 'name': 'key'}, which_sets=('end', 'some'),
        splits={'end': (8, 10), 'some': [3, 3]})
    assert ('image', 'name') == dataset.sources
    assert_array_equal(dataset[:][1], [
        'part/00008', 'part/00009', 'part/00003', 'part/00003'])
    assert dataset[0] == (b'image 8' * 3, 'part/00008')
    again = eval(repr(dataset), {'TarDataset': TarDataset})
    assert dataset[:][1].tolist() == again[:][1].tolist()
    with pytest.raises(ValueError, match=r"reads 'jpeg', .*did you mean 'jpg'"
                       r".*fields are \['cls', 'jpg', 'txt', 'key'\]"):
        TarDataset(path, {'image': 'jpeg'})


def test_field_named_key_is_the_field(tmp_path):
    """The keys are then not a source."""
    path = write_tar(tmp_path / 'a.tar', [('a.key', b'door')])
    assert [b'door'] == TarDataset(path)[:][0].tolist()


def test_fields_have_the_types_of_their_extensions(tmp_path):
    """As in WebDataset's own decoders; other files are bytes."""
    arrays = [numpy.arange(6, dtype='>f4').reshape(2, 3) + n for n in range(3)]
    ragged = [numpy.arange(2 * n, dtype='<i2').reshape(n, 2)
              for n in range(3)]
    path = write_tar(tmp_path / 'a.tar', [
        (f'{number}.{name}', content) for number in range(3)
        for name, content in {
            'cls': b'-%d\n' % number, 'json': b'{"a": [%d]}' % number,
            'txt': 'ä'.encode() * number, 'x.npy': npy(arrays[number]),
            'y.npy': npy(numpy.asfortranarray(ragged[number])),
            'pkl': pickle.dumps(number), 'seg.PNG': b'png'}.items()])
    dataset = TarDataset(path)
    found = dict(zip(dataset.sources, dataset[[2, 0, 1]], strict=True))
    assert [-2, 0, -1] == found['cls'].tolist()
    assert numpy.int64 == found['cls'].dtype
    assert [{'a': [n]} for n in (2, 0, 1)] == found['json'].tolist()
    assert ['ää', '', 'ä'] == found['txt'].tolist()
    assert_array_equal(numpy.stack(arrays)[[2, 0, 1]], found['x.npy'])
    assert numpy.dtype('f4') == found['x.npy'].dtype
    for array, number in zip(found['y.npy'], (2, 0, 1), strict=True):
        assert_array_equal(ragged[number], array)
        assert array.flags.writeable
        assert array.flags.c_contiguous
    assert pickle.dumps(2) == found['pkl'][0]
    types = dataset.known_types()
    assert (numpy.float32, (2, 3)) == types['x.npy'][:2]
    assert (numpy.int16, None) == types['y.npy'][:2]
    assert f'TarDataset({str(path)!r}, [' in str(dataset)
    assert "ImagesFromBytes(stream, which_sources=('seg.png',))" in str(
        dataset)
    again = eval(repr(dataset), {'TarDataset': TarDataset})
    assert dataset[0][0] == again[0][0]


@pytest.mark.parametrize(('name', 'content', 'reason'), [
    ('cls', b'cat', 'invalid literal'),
    ('cls', b'9' * 30, 'too large'),
    ('txt', b'\xff', "can't decode"),
    ('json', b'{', 'Expecting property name'),
    ('json', b'[' * 100000, 'while decoding a JSON array'),
    ('npy', b'PK', 'magic string'),
    ('npy', npy(numpy.zeros(3))[:-1], 'has 24 bytes, and there are 23'),
    ('npy', npy(numpy.zeros(3)).replace(b'(3,)', b'(9,)'), '72 bytes'),
    ('npy', npy(numpy.zeros((3, 1))), r'of shape \(3,\) by .* \(3, 1\)'),
    ('npy', npy(numpy.array([1, 'a', {}], object)), 'pickles'),
])
def test_wrong_content_names_the_sample(tmp_path, name, content, reason):
    """The other samples can be read, and streams can leave it out."""
    sound = {'cls': b'1', 'txt': b'a', 'json': b'{}',
             'npy': npy(numpy.zeros(3))}[name]
    path = write_tar(tmp_path / 'a.tar', [
        (f's{number}.{name}', sound if number != 35 else content)
        for number in range(100)])
    dataset = TarDataset(path)
    assert 34 == len(dataset.get_data(None, slice(0, 34))[0])
    with pytest.raises(ValueError, match=(
            rf"a.tar, sample 's35', source '{name}': .*{reason}")):
        dataset.get_data(None, [3, 35])
    stream = DataStream(dataset, batch_size=10, on_error='skip')
    keys = [key for *_, batch in stream.get_epoch_iterator() for key in batch]
    assert [f's{n}' for n in range(100) if n != 35] == keys
    assert 1 == stream.skipped_examples().count


@pytest.mark.parametrize('label', [2 ** 63, -2 ** 63 - 1])
def test_labels_beyond_int64_name_the_remedy(tmp_path, label):
    """The error shows the label; the remedy helps."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.cls', b'1'), ('a.txt', b'x'),
        ('b.cls', b'%d' % label), ('b.txt', b'y')])
    with pytest.raises(ValueError, match=(
            rf"sample 'b', source 'cls': b'{label}' is too large for int64: "
            r"pass dtypes=\{'cls': object\} to read it as text, or "
            r'columns=\.\.\. without it')):
        TarDataset(path)[:]
    assert ['1', str(label)] == TarDataset(
        path, ['cls'], dtypes={'cls': object})[:][0].tolist()
    assert ['x', 'y'] == TarDataset(path, columns=['txt'])[:][0].tolist()


def test_types_may_be_passed(tmp_path):
    """Classes may be named, and numbers may be of other types."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.cls', b'cat'), ('a.jpg', b'1'), ('a.id', b' 7\n'), ('a.x', b'.5'),
        ('b.cls', 'Bär'.encode()), ('b.jpg', b'2'), ('b.id', b'8'),
        ('b.x', b'1e3')])
    with pytest.raises(ValueError, match=(
            r"source 'kind': invalid literal .* pass dtypes=\{'kind': object\}"
            ' to read it as text')):
        TarDataset(path, {'kind': 'cls'})[:]
    columns = {'kind': 'cls', 'size': 'x', 'id': 'id', 'jpg': 'jpg'}
    dataset = TarDataset(path, columns, dtypes={
        'kind': object, 'size': 'float32', 'id': 'uint8'})
    again = eval(repr(dataset), {'TarDataset': TarDataset})
    for one in (dataset, again, pickle.loads(pickle.dumps(dataset))):
        kinds, sizes, ids, _ = one[:]
        assert ['cat', 'Bär'] == kinds.tolist()
        assert [.5, 1000] == sizes.tolist() and sizes.dtype == 'float32'
        assert [7, 8] == ids.tolist() and ids.dtype == 'uint8'
    assert ['cat', 'Bär'] == fuel.load(path, columns=['cls'], dtypes={
        'cls': object})[:][0].tolist()
    for number in b'256', b'-1':
        large = write_tar(tmp_path / 'b.tar', [('a.id', number)])
        with pytest.raises(ValueError, match=f'{number} is too large for uin'):
            TarDataset(large, dtypes={'id': 'uint8'})[:]
    with pytest.raises(ValueError, match=(
            r"dtypes names 'clss', .*did you mean 'cls'\?")):
        TarDataset(path, dtypes={'clss': object})
    with pytest.raises(ValueError, match="source 'cls' must be object, for"):
        TarDataset(path, dtypes={'cls': bool})


def test_types_that_cannot_hold_a_source_are_refused(tmp_path):
    """Keys stay text, and numbers do not become infinite."""
    path = write_tar(tmp_path / 'a.tar', [
        ('1.cls', b'7'), ('1.x', b'1e9'), ('2.cls', b'8'), ('2.x', b'inf')])
    with pytest.raises(ValueError, match=(
            r"names 'key', .* of a field: these sources are \['cls', 'x'\]")):
        TarDataset(path, dtypes={'key': 'int64'})
    dataset = TarDataset(path, dtypes={'x': 'float16'})
    with pytest.raises(ValueError, match="b'1e9' is too large for float16"):
        dataset.get_data(None, [0])
    assert numpy.isinf(dataset.get_data(None, [1])[1]).all()
    for text, dtype in ('1e400', 'float64'), (str(-2 ** 31 - 1), 'int32'):
        large = write_tar(tmp_path / 'b.tar', [('1.x', text.encode())])
        with pytest.raises(ValueError, match=(
                rf"b'{text}' is too large for {dtype}: pass dtypes=.'x': ob")):
            TarDataset(large, dtypes={'x': dtype})[:]
    with pytest.raises(ValueError, match=(
            r"dtypes must be a dict from sources, as in dtypes=\{'cls': ")):
        TarDataset(path, dtypes=['cls'])
    for dtype in 'int65', None:
        with pytest.raises(ValueError, match="source 'cls' must be object, "):
            TarDataset(path, dtypes={'cls': dtype})


def test_state_belongs_to_the_types(tmp_path):
    """A state of numbers is not one of texts; those without types stay."""
    path = write_tar(tmp_path / 'a.tar', digits())
    first, second = [DataStream(TarDataset(path, dtypes=dtypes), batch_size=2)
                     for dtypes in (None, {'cls': object})]
    next(first.get_epoch_iterator())
    with pytest.raises(StateMismatchError, match='dtypes'):
        second.load_state_dict(first.state_dict())
    assert 'data set dtypes' not in first.state_dict()['stream']


def test_missing_fields_are_an_error_or_none(tmp_path):
    """Of sources that are used; None makes a source one of objects."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.cls', b'1'), ('a.jpg', b'x'), ('b.jpg', b'y'),
        ('c.cls', b'3'), ('c.npy', npy(numpy.arange(3)))])
    with pytest.raises(ValueError, match=(
            r"a.tar, sample 'b': it has no field 'cls'.*missing='none'")):
        TarDataset(path)
    dataset = TarDataset(path, missing='none')
    assert "missing='none'" in repr(dataset)
    labels, images, arrays, _ = dataset[:]
    assert [1, None, 3] == labels.tolist()
    assert [b'x', b'y', None] == images.tolist()
    assert [None, None] == arrays[:2].tolist()
    assert_array_equal(numpy.arange(3), arrays[2])
    keys = TarDataset(path, sources=('key',))
    assert ['a', 'b', 'c'] == keys[:][0].tolist()
    with pytest.raises(ValueError, match="'b': it has no field 'cls'"):
        keys.sources = ('key', 'cls')
    with pytest.raises(ValueError, match="missing must be 'error' or 'none'"):
        TarDataset(path, missing='skip')


def test_members_that_do_not_follow_each_other_are_named(tmp_path):
    """The error says why a sample lacks a field that it has elsewhere."""
    path = write_tar(tmp_path / 'a.tar', sorted(
        digits(), key=lambda pair: pair[0].rpartition('.')[2]))
    with pytest.raises(ValueError, match=(
            "a.tar, sample 'part/00000': it has no field .* elsewhere in the "
            'file: write the archive again')):
        TarDataset(path)
    ordered = write_tar(tmp_path / 'b.tar', sorted(digits()))
    assert len(TarDataset(ordered)) == 10


def test_repeated_extension_is_an_error(tmp_path):
    """The case does not matter; the same key later is another sample."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.x', b'1'), ('b.x', b'2'), ('a.x', b'3')])
    assert [b'1', b'2', b'3'] == TarDataset(path)[:][0].tolist()
    write_tar(path, [('a.x', b'1'), ('a.y', b'2'), ('a.X', b'3')])
    with pytest.raises(ValueError, match=(
            r"a.tar, sample 'a': there are two members.*'x'.*'a.X'")):
        TarDataset(path)


@pytest.mark.parametrize(('kind', 'why'), [
    (tarfile.SYMTYPE, 'is a link'), (tarfile.LNKTYPE, 'is a link'),
    (tarfile.FIFOTYPE, 'is a link or a device'),
    (tarfile.GNUTYPE_SPARSE, 'is sparse')])
def test_links_and_sparse_members_are_refused_by_name(tmp_path, kind, why):
    """Their bytes are not in one place of the archive."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.x', b'1'), member('b.x', linkname='a.x', type=kind)])
    with pytest.raises(ValueError, match=f"a.tar: the member 'b.x' {why}"):
        TarDataset(path)


def test_sparse_members_of_pax_are_refused(tmp_path):
    """GNU tar writes them as regular files with another name."""
    path = write_tar(tmp_path / 'a.tar', [member(
        'GNUSparseFile.0/b.x', b'1', pax_headers={
            'GNU.sparse.major': '1', 'GNU.sparse.name': 'b.x'})])
    with pytest.raises(ValueError, match='is sparse'):
        TarDataset(path)


def test_numbers_may_be_binary_and_in_extended_headers(tmp_path):
    """Both replace octal digits where these are too few."""
    path = write_tar(tmp_path / 'a.tar', [('a.x', b'five!'), ('b.x', b'six')])
    change_header(path, 0, size=b'\x80' + bytes(10) + b'\x05')
    assert [b'five!', b'six'] == TarDataset(path)[:][0].tolist()
    write_tar(path, [member('a.x', b'five!', pax_headers={'size': '5'}),
                     ('b.x', b'six')])
    change_header(path, 0, size=b'0')
    assert [b'five!', b'six'] == TarDataset(path)[:][0].tolist()


def test_members_may_have_any_name(tmp_path):
    """Nothing is unpacked, so no name leads anywhere."""
    names = ['../a.x', '/b.x', 'C:/c.x', './d.x']
    path = write_tar(tmp_path / 'a.tar', [(name, b'') for name in names])
    assert [name[:-2] for name in names] == TarDataset(path)[:][1].tolist()


def test_names_of_other_bytes_stay_different(tmp_path):
    """The archive does not say in which encoding its names are."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a\udce4.x', b'1'), ('a\udcf6.x', b'2')], tarfile.GNU_FORMAT)
    assert ['a\udce4', 'a\udcf6'] == TarDataset(path)[:][1].tolist()


@pytest.mark.parametrize('form', FORMS)
def test_cut_archive_is_an_error_that_names_the_place(tmp_path, form):
    """Wherever it was cut; the archive or the member is named."""
    path = write_tar(tmp_path / 'a.tar', digits(count=3), FORMS[form])
    content = path.read_bytes()
    with tarfile.open(path) as archive:
        end = archive.getmembers()[-1].offset_data + 512
    for size in (*range(0, end, 100), end):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedFileError, match=r'a\.tar.*cut short'):
            TarDataset(path)
    assert path.write_bytes(content[:end + 512])
    assert 3 == len(TarDataset(path))


def test_changed_header_is_an_error(tmp_path):
    """The check sum of the header does not fit."""
    path = write_tar(tmp_path / 'a.tar', digits(count=3), FORMS['gnu'])
    content = bytearray(path.read_bytes())
    content[5632 + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=(
            r"a\.tar, after the member 'part/00001\.txt': .*check sum")):
        TarDataset(path)


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data(), form=st.sampled_from(sorted(FORMS)))
def test_damaged_headers_are_read_as_by_converters(tmp_path_factory, data,
                                                   form):
    """The fast reader leaves to theirs what it does not know, in archives with
    any change, also of the check sum."""
    path = tmp_path_factory.getbasetemp() / 'damaged.tar'
    write_tar(path, [
        member(name, b'abc' * number, mtime=number + .5) for number, name in
        enumerate(['a.x', 'b' * 120 + '.x', 'é.x', 'd/' * 60 + 'e.x', 'f.x'])],
        FORMS[form] if form != 'ustar' else FORMS['gnu'])
    change_header(path, data.draw(st.integers(0, 4)), **{
        data.draw(st.sampled_from(['size', 'typeflag', 'name', 'magic'])):
        data.draw(st.sampled_from([
            b'', b'5', b'0', b'L', b'x', b'g', b' 7', b'0000000001\0',
            b'1 1', b'\x80' + bytes(10) + b'\x02', b'\xff' * 6]))})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.sampled_from(b'0157xL=\n \0\xff'))
    path.write_bytes(content[:data.draw(st.sampled_from(
        [None, None, len(content) // 3]))])
    wanted, problem = outcome(lambda: members_by_walk(path))
    dataset, error = outcome(lambda: TarDataset(path, missing='none'))
    if problem:
        assert problem in error
    elif error:
        assert 'two members with' in error or 'there is no sample' in error
    else:
        assert len(wanted) == sum(int((starts >= 0).sum()) for starts, _ in (
            dataset.table.fields.values()))


def outcome(function):
    """Return what a function returns, and the text of its error."""
    try:
        return function(), ''
    except BadInputFile as error:
        return None, error.problem
    except (DamagedFileError, ValueError) as error:
        return None, str(error)


def members_by_walk(path):
    """Return the names of members that belong to samples."""
    with path.open('rb') as stream:
        archive = Tar(stream, str(path), 0, path.stat().st_size)
        return [member.name for member in archive.walk(
            1 << 40, is_unpacked=False) if split_name(member.name)]


def test_contents_are_skipped_when_headers_are_read(tmp_path):
    """Those of small members are read with the headers, in larger pieces."""
    path = write_tar(tmp_path / 'a.tar', [
        (f'{number}.x', bytes(1 << 20)) for number in range(20)])
    before = io_counts.bytes_read
    TarDataset(path)
    assert io_counts.bytes_read - before < 30 * 4096


@pytest.mark.parametrize('kind', ['gz', 'bz2', 'xz'])
def test_compressed_archive_is_refused(tmp_path, kind):
    """The error names the command."""
    path = tmp_path / f'a.tar.{kind}'
    with tarfile.open(path, f'w:{kind}') as archive:
        archive.addfile(member('a.x')[0])
    command = {'gz': 'gunzip', 'bz2': 'bunzip2', 'xz': 'unxz'}[kind]
    with pytest.raises(ValueError, match=f'is compressed .* with {command}'):
        TarDataset(path)


def test_names_with_other_dots_are_refused(tmp_path):
    """Each file would have a field of its own."""
    path = write_tar(tmp_path / 'a.tar', [
        (f'{number}.5_7.{number}.x', b'') for number in range(1001)])
    other = write_tar(tmp_path / 'b.tar', [
        (f'{number}.{number}', b'') for number in range(600)])
    for paths in (path, [other, write_tar(tmp_path / 'c.tar', [
            (f'{number}.0{number}', b'') for number in range(600)])]):
        with pytest.raises(ValueError, match='more than 1000 fields, such'):
            TarDataset(paths, missing='none')
    assert 600 == len(TarDataset(other, missing='none'))


def test_archive_without_samples_is_an_error(tmp_path):
    """Only folders, files without an extension, and what describes them."""
    path = write_tar(tmp_path / 'a.tar', [
        member('a.b', type=tarfile.DIRTYPE), ('README', b'a'),
        ('__meta__/a.json', b'{}')])
    with pytest.raises(ValueError, match=r'a\.tar: there is no sample'):
        TarDataset(path)
    other = write_tar(tmp_path / 'b.tar', [('a.x', b'1')])
    assert 1 == len(TarDataset([path, other]))
    with pytest.raises(FileNotFoundError, match='c.tar'):
        TarDataset(tmp_path / 'c.tar')


def test_index_is_kept_and_made_again(tmp_path):
    """It is that of the present state of the file."""
    config.remote_cache_path = str(tmp_path / 'cache')
    path = write_tar(tmp_path / 'a.tar', digits(count=1200))
    wanted = TarDataset(path)[:]
    before = io_counts.bytes_read
    dataset = TarDataset(path)
    assert before == io_counts.bytes_read
    for one, two in zip(wanted, dataset[:], strict=True):
        assert_array_equal(one, two)
    kept, = (tmp_path / 'cache' / 'indexes').iterdir()
    kept.write_bytes(kept.read_bytes()[:-100])
    assert 1200 == len(TarDataset(path))
    write_tar(path, digits(5, count=1100))
    assert list(range(5, 1105)) == TarDataset(path)[:][0].tolist()


def test_pickles_and_resumes_in_another_process(tmp_path):
    """A pickle holds no sample; workers read what this process reads."""
    path = write_tar(tmp_path / 'a.tar', digits(count=300))
    stream = DataStream(TarDataset(path), batch_size=7, shuffle=True, seed=3)
    wanted = [batch[0].tolist() for batch in stream.get_epoch_iterator()]
    assert len(pickle.dumps(stream)) < 10000
    copy = pickle.loads(pickle.dumps(stream))
    copy.reset()
    stream.reset()
    epoch = stream.get_epoch_iterator()
    for _ in range(5):
        next(epoch)
    state = json.loads(json.dumps(stream.state_dict()))
    other = DataStream(TarDataset(path), batch_size=7, shuffle=True, seed=3)
    other.load_state_dict(state)
    rest = [batch[0].tolist() for batch in other.get_epoch_iterator()]
    assert [batch[0].tolist() for batch in epoch] == rest
    workers = MultiProcessing(DataStream(
        TarDataset(path), batch_size=7, shuffle=True, seed=3), num_workers=2)
    assert wanted == [
        batch[0].tolist() for batch in workers.get_epoch_iterator()]


def test_replaced_archive_is_read_from_the_next_epoch_on(tmp_path, path):
    """An epoch that has begun reads the old one, or raises."""
    stream = DataStream(TarDataset(path), batch_size=2)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    other = write_tar(tmp_path / 'other.tar', digits(50))
    os.replace(other, path)
    assert [2, 3] == next(epoch)[0].tolist()
    assert [50, 51] == next(stream.get_epoch_iterator())[0].tolist()
    os.replace(write_tar(other, digits(50, count=9)), path)
    with pytest.raises(StateMismatchError, match='had 10 examples'):
        next(stream.get_epoch_iterator())


def test_state_notices_swapped_archives(tmp_path):
    """Two archives of one size that change places are other data; archives
    with the same samples at other places are not."""
    paths = [write_tar(tmp_path / f'{number}.tar', digits(20 * number, 20))
             for number in range(2)]
    assert len({os.path.getsize(path) for path in paths}) == 1

    def new():
        return DataStream(TarDataset(paths), batch_size=7, shuffle=True,
                          seed=3)

    stream = new()
    epoch = stream.get_epoch_iterator()
    first = next(epoch)[0].tolist()
    state = json.loads(json.dumps(stream.state_dict()))
    write_tar(paths[0], [(member('README', b'text')[0], b'text'),
                         *digits(0, 20)], tarfile.GNU_FORMAT)
    other = new()
    other.load_state_dict(state)
    rest = [label for batch in other.get_epoch_iterator()
            for label in batch[0].tolist()]
    assert sorted(first + rest) == list(range(40))
    for number, path in enumerate(paths):
        write_tar(path, digits(20 * (1 - number), 20))
    with pytest.raises(StateMismatchError, match=(
            r"with other data: by the field 'data_id', the checksums of data "
            r"set 0 \(TarDataset\) .*accept=\('data',\)")):
        new().load_state_dict(state)
    other = new()
    with pytest.warns(UserWarning, match='may come twice or not at all'):
        other.load_state_dict(state, accept=('data',))
    next(other.get_epoch_iterator())
    # States of before have no checksum of archives.
    state['data_id'] = state['data_id'][:10] + 5 * '.' + state['data_id'][15:]
    del state['crc']
    new().load_state_dict(state)


def test_archive_that_is_written_to_is_an_error(path):
    """Old and new rows are not mixed."""
    dataset = TarDataset(path)
    with open(path, 'r+b') as file:
        file.write(b'x')
    os.utime(path, (1, 1))
    with pytest.raises(DamagedFileError, match='was written to'):
        dataset.get_data(None, [1])


def test_threads_read_at_once(tmp_path):
    """Positions in the file are not shared."""
    path = write_tar(tmp_path / 'a.tar', digits(count=200))
    dataset = TarDataset(path, ['cls', 'txt'])
    wanted = dataset[:]
    wrong = []

    def read(seed):
        rng = numpy.random.RandomState(seed)
        for _ in range(50):
            rows = rng.randint(0, 200, 20)
            found = dataset.get_data(None, rows)
            wrong.extend(rows[(found[0] != wanted[0][rows])
                              | (found[1] != wanted[1][rows])])

    threads = [threading.Thread(target=read, args=(seed,))
               for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_load_finds_archives(tmp_path):
    """By content, in lists, patterns, with braces, and in folders."""
    paths = [write_tar(tmp_path / f's-{number:03}.tar', digits(number, 1))
             for number in range(9, 12)]
    os.rename(paths[1], renamed := tmp_path / 's-010.shard')
    assert [10] == fuel.load(renamed)[:][0].tolist()
    os.rename(renamed, paths[1])
    for files in (paths, str(tmp_path / '*.tar'), tmp_path,
                  str(tmp_path / 's-{009..011}.tar'),
                  str(tmp_path / '{s-009,s-01{0,1}}.tar')):
        dataset = fuel.load(files)
        assert isinstance(dataset, TarDataset)
        assert [9, 10, 11] == dataset[:][0].tolist()
    assert [9, 11] == TarDataset(str(tmp_path / 's-0{09,11}.tar'))[:][
        0].tolist()
    literal = write_tar(tmp_path / '{a,b}.tar', digits(5, 1))
    assert [5] == fuel.load(literal)[:][0].tolist()
    with pytest.raises(FileNotFoundError, match=r's-012\.tar'):
        fuel.load(str(tmp_path / 's-{011..012}.tar'))
    with serving(tmp_path) as server:
        dataset = fuel.load(server.url('s-{009..011}.tar'))
        assert [9, 10, 11] == dataset[:][0].tolist()


def test_load_finds_splits(tmp_path):
    """By the names of folders, or of files."""
    for number, name in enumerate(('train', 'val')):
        for folder in (tmp_path / 'names', tmp_path / 'folders' / name):
            folder.mkdir(parents=True, exist_ok=True)
            for part in range(2):
                write_tar(folder / f'{name}-0000{part}-of-00002.tar', digits(
                    10 * number + part, 1))
    for folder in ('names', 'folders'):
        dataset = fuel.load(tmp_path / folder, 'val')
        assert [10, 11] == dataset[:][0].tolist()
        assert [0, 1, 10, 11] == fuel.load(
            tmp_path / folder, 'all')[:][0].tolist()
        with pytest.raises(ValueError, match="'train', 'val'"):
            fuel.load(tmp_path / folder, 'test')
    with pytest.raises(ValueError, match="'train', 'val'"):
        fuel.load(tmp_path / 'names')


@pytest.mark.parametrize('name', ['x.tar', 'x.tar.gz', 'x.tgz', 'x.tar.bz2'])
def test_load_refuses_compressed_archives(tmp_path, name):
    """The error says what to do."""
    with tarfile.open(tmp_path / name, 'w:gz') as archive:
        archive.addfile(member('a.x')[0])
    with pytest.raises(ValueError, match=rf'{name}.*decompress it.*gunzip'):
        fuel.load(tmp_path / name)
    if name != 'x.tar':
        with pytest.raises(FileNotFoundError, match='decompress it'):
            fuel.load(tmp_path)


def test_load_finds_archives_without_a_signature(tmp_path):
    """The first form of tar had none, and an empty archive has no header."""
    path = write_tar(tmp_path / 'x.tar', [('a.x', b'1')], FORMS['ustar'])
    change_header(path, 0, magic=b'')
    assert [b'1'] == fuel.load(path)[:][0].tolist()
    with pytest.raises(ValueError, match='there is no sample'):
        fuel.load(write_tar(path, []))
    path.write_bytes(b'not an archive at all' * 100)
    with pytest.raises(DamagedFileError, match=r'x\.tar: not a sound tar'):
        fuel.load(path)
    path.write_bytes(b'')
    with pytest.raises(ValueError, match='is empty'):
        fuel.load(path)
    path.write_bytes(b'<!DOCTYPE html>' * 100)
    with pytest.raises(ValueError, match='may be a web page'):
        fuel.load(path)


def test_load_refuses_litdata_by_name(tmp_path):
    """Its chunks are not read."""
    index = tmp_path / 'index.json'
    index.write_text(json.dumps({'chunks': [{
        'chunk_bytes': 9, 'chunk_size': 1, 'dim': None,
        'filename': 'chunk-0-0.bin'}], 'config': {}}))
    (tmp_path / 'chunk-0-0.bin').write_bytes(b'123456789')
    with pytest.raises(FileNotFoundError, match='LitData is not read'):
        fuel.load(tmp_path)
    with pytest.raises(ValueError, match='LitData is not read'):
        fuel.load(index)


def test_fuel_info_shows_the_call(tmp_path, capsys):
    """Of one archive, and of several."""
    paths = [write_tar(tmp_path / f'{number}.tar', digits(number, 1))
             for number in range(2)]
    for name in (paths[0], tmp_path / '*.tar', tmp_path / '{0,1}.tar'):
        assert 0 == fuel_info.main([str(name)])
        assert f'TarDataset({str(name)!r}' in capsys.readouterr().out


def test_fuel_info_names_the_kinds_of_fields(tmp_path, capsys):
    """Bytes, text, numbers and parsed JSON."""
    path = write_tar(tmp_path / 'a.tar', [
        ('a.cls', b'1'), ('a.jpg', b'x'), ('a.json', b'{"b": 2}'),
        ('a.txt', b'c')])
    assert 0 == fuel_info.main([str(path), '--json'])
    sources = json.loads(capsys.readouterr().out)['layout']['sources']
    assert {'cls': 'int64', 'jpg': 'bytes', 'json': 'JSON', 'txt': 'text',
            'key': 'text'} == {
        name: source['type'] for name, source in sources.items()}
