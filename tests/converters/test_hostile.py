"""Archives and pickles of somebody who means ill."""
import contextlib
import functools
import gzip
import io
import itertools
import os
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import h5py
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import raw_data

from fuel.converters.ilsvrc_images import other_images
from fuel.converters import mnist
from fuel.converters.base import BadInputFile
from fuel.converters.cifar10 import convert_cifar10
from fuel.converters.omniglot import convert_omniglot
from fuel.converters.one_billion_word import convert_one_billion_word
from fuel.converters.raw.archives import (
    open_zip,
    read_zipped,
)
from fuel.converters.raw.files import unpack_gzip
from fuel.converters.raw.inflate import Inflated
from fuel.converters.raw.pickles import load_arrays
from fuel.converters.stl10 import convert_stl10


def test_zip_names_that_lead_out_are_refused(tmp_path):
    """The same for zip archives; and sizes are bounded."""
    path = tmp_path / 'a.zip'
    raw_data.write_zip(path, [('../pwned', b'')])
    with (pytest.raises(BadInputFile, match='would leave'),
          open_zip(str(path))):
        pass
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('bomb', bytes(10 ** 6))
    with (open_zip(str(path)) as archive,
          pytest.raises(BadInputFile, match='more than 1000')):
        read_zipped(str(path), archive, 'bomb', 1000)


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize('value, text', [
    (Evil(os.system, 'touch pwned'), 'posix.system|nt.system'),
    (Evil(eval, '1'), 'builtin(s|__).eval'),
    (Evil(numpy.load, 'x'), 'numpy'),
    (Evil(numpy.frombuffer, b'x'), 'frombuffer'),
    ({'data': numpy.array([{}], dtype=object)}, 'unexpected array type'),
    (['a', 'list'], 'expected a pickled dictionary')])
@pytest.mark.parametrize('protocol', range(6))
def test_pickles_of_anything_else_are_refused(tmp_path, monkeypatch, value,
                                              text, protocol):
    """A pickle holds text, numbers, lists and arrays; nothing runs."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputFile, match=f'(?i){text}'):
        load_arrays(pickle.dumps(value, protocol), 'a')
    assert [] == os.listdir()


@pytest.mark.parametrize('protocol', range(6))
def test_pickles_of_arrays_are_read(protocol):
    """Every protocol and order of bytes or axes."""
    rng = numpy.random.RandomState(0)
    batch = {'data': raw_data.bytes_of(rng, 3, 4), 'labels': [1, 2, 3],
             'more': rng.normal(size=(2, 3)).astype('>f4'),
             'fortran': numpy.asfortranarray(rng.normal(size=(2, 3)))}
    found = load_arrays(pickle.dumps(batch, protocol), 'a')
    assert batch.keys() == found.keys()
    for key, expected in batch.items():
        numpy.testing.assert_array_equal(expected, found[key])


@pytest.mark.parametrize('content', [
    b'\x80\x02}r\xff\xff\xff\x7f.',  # files an object under a huge number
    b'\x80\x05\x96' + (1 << 40).to_bytes(8, 'little') + b'.',
    b'\x80\x04\x8e' + (1 << 40).to_bytes(8, 'little') + b'.'])
def test_pickle_bombs_take_no_memory(content):
    """A few bytes do not claim gigabytes."""
    import resource
    before = resource.getrlimit(resource.RLIMIT_AS)
    # An allocation of gigabytes fails, rather than end other processes.
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, before[1]))
    try:
        with contextlib.suppress(BadInputFile):
            load_arrays(content, 'a')
        if content[1] == 2:
            assert {} == load_arrays(content, 'a')
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize('content', [
    b'cnumpy\nndarray\n(N}(X\x01\0\0\0aNdtb.', b'\x80\x02K\x01\x82\x01.',
    b'(inumpy\nndarray\n.', b'P1\n.', b'\x80\x05\x97.', b'0.', b'\x80'])
def test_pickles_that_do_anything_else_are_refused(content):
    """States for classes, extensions, persistent and outer objects."""
    from fuel.converters.raw import pickles
    with pytest.raises(BadInputFile, match='cannot be unpickled'):
        load_arrays(content, 'a')
    assert not hasattr(pickles._ArrayClass, 'a')


def test_pickle_with_a_forged_shape_is_refused():
    """A shape larger than the content reads no other memory."""
    content = raw_data.python2_pickle(
        {'data': numpy.zeros((2, 2), 'uint8')})
    forged = content.replace(b'J\x02\0\0\0J\x02\0\0\0\x86',
                             b'J\x02\0\0\0J\xff\xff\xff\x7f\x86')
    assert content != forged
    with pytest.raises(BadInputFile, match='cannot be unpickled'):
        load_arrays(forged, 'a')


def test_cifar10_with_an_evil_batch_runs_nothing(tmp_path, monkeypatch):
    """A hostile pickle runs nothing when it is converted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'cifar-10-python.tar.gz').write_bytes(raw_data.tar([
        ('cifar-10-batches-py/data_batch_1',
         pickle.dumps(Evil(os.system, 'touch pwned')))], 'w:gz'))
    with pytest.raises(BadInputFile, match='system, which has no place'):
        convert_cifar10('.', '.')
    assert ['cifar-10-python.tar.gz'] == os.listdir()


TOP = '1-billion-word-language-modeling-benchmark-r13output/'
TEXT = ['training-monolingual.tokenized.shuffled/news.en-00001-of-00100',
        ('heldout-monolingual.tokenized.shuffled/'
         'news.en.heldout-00000-of-00050')]


def write_words(folder, members):
    """Write the archive of One Billion Word."""
    (folder / '1-billion-word-language-modeling-benchmark-r13output.tar.gz'
     ).write_bytes(raw_data.tar(members, 'w:gz', [TOP]))


def test_one_billion_word_is_unpacked_for_its_data_set(tmp_path):
    """Only the text is unpacked, into the folder that is looked for."""
    write_words(tmp_path, [(TOP + name, name.encode()) for name in TEXT] +
                [(TOP + 'README', b'')])
    assert () == convert_one_billion_word(str(tmp_path), str(tmp_path))
    target = tmp_path / '1-billion-word'
    for name in TEXT:
        assert name.encode() == (target / name).read_bytes()
    assert not (target / 'README').exists()
    assert 2 == len(os.listdir(tmp_path))
    with pytest.raises(FileExistsError, match='is there already'):
        convert_one_billion_word(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('members, text', [
    ([(TOP + TEXT[0], b'a'), ('../pwned', b'')], 'would leave'),
    ([('README', b'')], 'no text')])
def test_one_billion_word_failing_leaves_nothing(tmp_path, members, text):
    """A bad archive leaves no folder behind."""
    write_words(tmp_path, members)
    with pytest.raises(BadInputFile, match=text):
        convert_one_billion_word(str(tmp_path), str(tmp_path))
    assert 1 == len(os.listdir(tmp_path))


@pytest.mark.parametrize('parts', [1, 3])
@pytest.mark.parametrize('sizes', [[7], [1 << 20], [512, 3, 100_000]])
def test_inflated_reads_like_gzip(parts, sizes):
    """Any sizes, several files in a row, zeros at the end."""
    content = numpy.random.RandomState(0).randint(
        0, 20, 3_000_000).astype('uint8').tobytes()
    step = -(-len(content) // parts)
    packed = b''.join(gzip.compress(content[i:i + step], 1)
                      for i in range(0, len(content), step)) + bytes(100)
    inflated = Inflated(io.BytesIO(packed))
    found = []
    for size in itertools.cycle(sizes):
        part = inflated.read(size)
        found.append(part)
        if len(part) < size:
            break
    assert content == b''.join(found)
    assert len(content) == inflated.tell()
    inflated = Inflated(io.BytesIO(packed))
    assert 2_000_001 == inflated.seek(2_000_001)
    assert content[2_000_001:2_000_011] == inflated.read(10)
    with pytest.raises(io.UnsupportedOperation, match='forwards'):
        inflated.seek(5)


def test_inflated_notices_damage():
    """A file that is cut short, and one with a wrong check sum."""
    packed = gzip.compress(bytes(range(256)) * 40)
    for stop in range(0, len(packed), 11):
        with pytest.raises(EOFError, match='cut short'):
            Inflated(io.BytesIO(packed[:stop])).read(1 << 20)
    with pytest.raises(zlib.error, match='check'):
        Inflated(io.BytesIO(packed[:-8] + bytes(8))).read(1 << 20)


BOMB = 1 << 27


def peak_of(function):
    """Return how much memory a failing function takes at most."""
    tracemalloc.start()
    try:
        with pytest.raises(BadInputFile) as caught:
            function()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('place, value, text', [
    (6, 99, 'not a sound archive'),  # the version that is needed
    (8, 32, "the member '1.jpg' is damaged")])  # a patch of another file
def test_zip_with_confused_headers_is_refused(tmp_path, place, value, text):
    """A header that the library cannot read is a bad input."""
    path = str(tmp_path / 'a.zip')
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('1.jpg', b'123')
    content = bytearray((tmp_path / 'a.zip').read_bytes())
    content[content.rindex(b'PK\1\2') + place] |= value
    (tmp_path / 'a.zip').write_bytes(content)
    with (pytest.raises(BadInputFile, match=text),
          open_zip(path) as archive):
        read_zipped(path, archive, '1.jpg')


@pytest.mark.parametrize('form', [
    zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_read_zipped_of_a_member_with_a_forged_size_is_bounded(tmp_path,
                                                               form):
    """A member that claims ten bytes takes no more memory than that."""
    path = str(tmp_path / 'bomb.zip')
    with zipfile.ZipFile(path, 'w', form) as archive:
        archive.writestr('1.jpg', bytes(BOMB))
    with open(path, 'r+b') as raw:
        place = raw.read().rindex(b'PK\1\2') + 24
        raw.seek(place)
        raw.write((10).to_bytes(4, 'little'))

    def read():
        with open_zip(path) as archive:
            read_zipped(path, archive, '1.jpg')

    peak, text = peak_of(read)
    assert peak < BOMB // 8
    assert ('Bad CRC-32' if form == zipfile.ZIP_DEFLATED
            else 'in another way than deflate') in text


def test_read_zipped_of_an_encrypted_member_raises(tmp_path):
    """A member that needs a password is a bad input, not a RuntimeError."""
    path = str(tmp_path / 'secret.zip')
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('1.jpg', b'123')
    content = bytearray((tmp_path / 'secret.zip').read_bytes())
    content[6] |= 1
    content[content.rindex(b'PK\1\2') + 8] |= 1
    (tmp_path / 'secret.zip').write_bytes(content)
    with (open_zip(path) as archive,
          pytest.raises(BadInputFile, match="'1.jpg' is encrypted")):
        read_zipped(path, archive, '1.jpg')


def test_gzip_bombs_are_not_unpacked(monkeypatch):
    """No more than a bound is unpacked, alone or as an image in a tar."""
    bomb = gzip.compress(bytes(BOMB))
    peak, text = peak_of(functools.partial(
        unpack_gzip, io.BytesIO(bomb), 'bomb.gz', 1000))
    assert peak < BOMB // 8
    assert 'bomb.gz: the gzip file unpacks to more than 1000 bytes' in text
    archive = io.BytesIO(raw_data.tar([('val/1.JPEG', bomb)], 'w'))
    monkeypatch.setattr('fuel.converters.ilsvrc_images.MAX_IMAGE',
                        len(bomb))
    peak, text = peak_of(lambda: list(other_images(
        'valid', archive, None, [1])))
    assert peak < BOMB // 8
    assert "'val/1.JPEG' is neither an image nor a gzipped one" in text
    assert f'more than {len(bomb)} bytes' in text


def test_no_more_of_an_idx_file_is_unpacked_than_its_header_tells(tmp_path):
    """A small file that goes on for long is refused soon."""
    path = tmp_path / 'images.gz'
    path.write_bytes(gzip.compress(
        struct.pack('>4i', 2051, 2, 28, 28) + bytes(BOMB)))
    read = functools.partial(mnist.read_mnist_images, str(path))
    peak, text = peak_of(read)
    assert peak < BOMB // 8
    assert 'expected 1584 bytes for the shape (2, 28, 28), got more' in text
    path.write_bytes(gzip.compress(
        struct.pack('>4i', 2051, 1 << 20, 28, 280)))
    _, text = peak_of(read)
    assert 'are read' in text


@pytest.mark.parametrize('size', [0, 5, 1 << 20, 3_000_000])
def test_gzip_files_are_read_that_follow_one_another(tmp_path, size):
    """Files that `gzip` can read are unpacked to the same bytes."""
    parts = [os.urandom(size), b'', b'second']
    path = tmp_path / 'a.gz'
    path.write_bytes(b''.join(map(gzip.compress, parts)))
    with open(path, 'rb') as raw:
        assert unpack_gzip(raw, 'a', 1 << 24) == b''.join(parts)


@pytest.mark.timeout(20)
@pytest.mark.parametrize('name, text', [
    ('stl10_binary/train_X.bin', 'there are two members train_X.bin'),
    ('train_X.bin', 'there are two members train_X.bin')])
def test_stl10_with_images_twice_raises(tmp_path, name, text):
    """A shorter member of the same name made the converter wait forever."""
    path = tmp_path / 'stl10_binary.tar.gz'
    raw_data.stl10(tmp_path)
    with tarfile.open(path) as archive:
        members = [(info.name, archive.extractfile(info).read())
                   for info in archive if info.isreg()]
    path.write_bytes(raw_data.tar([(name, b''), *members], 'w:gz'))
    with pytest.raises(BadInputFile, match=text):
        convert_stl10(str(tmp_path), str(tmp_path))
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.timeout(20)
def test_stl10_with_a_member_named_like_a_split_converts(tmp_path):
    """A file 'train' holds no images; it made the converter wait forever."""
    path = tmp_path / 'stl10_binary.tar.gz'
    raw_data.stl10(tmp_path)
    with tarfile.open(path) as archive:
        members = [(info.name, archive.extractfile(info).read())
                   for info in archive if info.isreg()]
    convert_stl10(str(tmp_path), str(tmp_path), 'plain.hdf5')
    path.write_bytes(raw_data.tar([('stl10_binary/train', b''), *members],
                                  'w:gz'))
    convert_stl10(str(tmp_path), str(tmp_path), 'odd.hdf5')
    with (h5py.File(tmp_path / 'plain.hdf5') as plain,
          h5py.File(tmp_path / 'odd.hdf5') as odd):
        assert (plain['features'][...] == odd['features'][...]).all()


@pytest.mark.parametrize('key, value, text', [
    ('labels', [1, 300], 'labels from 1 to 300'),
    ('labels', [1., 2.], 'labels of type float64'),
    ('data', numpy.full((2, 3072), 300), 'data of type int64')])
def test_cifar10_numbers_that_are_not_bytes_are_refused(key, value, text):
    """Larger numbers would wrap around."""
    from fuel.converters.cifar10 import _read_batch
    batch = {'data': numpy.zeros((2, 3072), 'uint8'), 'labels': [1, 2]}
    with pytest.raises(BadInputFile, match=text):
        _read_batch({**batch, key: value}, 'a', {'targets': 'labels'})


@pytest.mark.parametrize('labels, text', [
    ([1, 266, 3], 'from 0 to 255'), ([1, 2.5, 3], 'whole numbers'),
    ([1, 11, 3], 'from 1 to 10, got 11'), ([1, -1, 3], 'from 0 to 255'),
    ([1, numpy.nan, 3], 'whole numbers'), (['a', 'b', 'c'], 'numbers in y')])
def test_svhn_labels_that_are_not_digits_are_refused(tmp_path, labels, text):
    """Larger labels would wrap around."""
    from scipy.io import savemat

    from fuel.converters.svhn import convert_svhn_format_2
    raw_data.svhn_2(tmp_path)
    savemat(tmp_path / 'test_32x32.mat', {
        'X': numpy.zeros((32, 32, 3, 3), 'uint8'),
        'y': numpy.array(labels).reshape(-1, 1)})
    with pytest.raises(BadInputFile, match=text):
        convert_svhn_format_2(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('name', ['train_labels', 'val_data'])
def test_silhouettes_that_are_not_bytes_are_refused(tmp_path, name):
    """Larger values would wrap around."""
    from scipy.io import loadmat, savemat

    from fuel.converters.caltech101_silhouettes import convert_silhouettes
    raw_data.caltech101_silhouettes(tmp_path)
    path = tmp_path / 'caltech101_silhouettes_16_split1.mat'
    content = {key: value for key, value in loadmat(path).items()
               if not key.startswith('_')}
    content[name] = content[name].astype('int16') + 256
    savemat(path, content)
    with pytest.raises(BadInputFile, match=f'0 to 255 in {name}'):
        convert_silhouettes(16, str(tmp_path), str(tmp_path))


def test_matlab_variable_of_a_giant_is_not_read(tmp_path, monkeypatch):
    """Few packed bytes may unpack to gigabytes."""
    from scipy.io import savemat

    from fuel.converters.raw import matlab
    monkeypatch.setattr(matlab, 'MAX_NUMBERS', 1000)
    path = str(tmp_path / 'a.mat')
    savemat(path, {'y': numpy.zeros(1001, 'uint8')}, do_compression=True)
    with pytest.raises(BadInputFile, match='1001'):
        matlab.read_variables(path, ['y'])


def spoil_boxes(h5file, how):
    """Change a digitStruct for the worse."""
    image = h5file['#refs#/image0']
    if how == 'external':
        del image['height']
        image['height'] = h5py.ExternalLink('other.mat', 'x')
    elif how == 'soft':
        del image['height']
        image['height'] = h5py.SoftLink('/#refs#/image0/width')
    elif how == 'storage':
        del image['height']
        image.create_dataset('height', (1, 1), 'f8',
                             external=[('other.mat', 0, 8)])
    elif how == 'virtual':
        del image['height']
        layout = h5py.VirtualLayout((1, 1), 'f8')
        layout[...] = h5py.VirtualSource('other.mat', 'x', (1, 1))
        image.create_virtual_dataset('height', layout)
    elif how == 'giant':
        for name in ('height', 'label', 'left', 'top', 'width'):
            del image[name]
            image.create_dataset(name, (1 << 40, 1), 'f8', chunks=(1024, 1))
    elif how == 'images':
        del h5file['digitStruct/bbox']
        h5file['digitStruct'].create_dataset(
            'bbox', (1 << 40, 1), h5py.ref_dtype, chunks=(1024, 1))
    else:
        name, value = how
        del image[name]
        image[name] = [[value]]


@pytest.mark.parametrize('how, text', [
    ('external', 'is a link'), ('soft', 'is a link'),
    ('storage', 'in another file'), ('virtual', 'in another file'),
    ('giant', '1 to 1000 digits'), ('images', 'expected boxes of 1 images'),
    (('label', 11.), 'labels from 1 to 10'),
    (('left', 65536.), 'up to 65535'), (('top', numpy.nan), 'up to 65535'),
    (('width', numpy.inf), 'up to 65535')])
def test_svhn_boxes_of_an_enemy_are_refused(tmp_path, monkeypatch, how,
                                            text):
    """Nothing but the file is read, and nothing wraps around."""
    from fuel.converters.svhn_boxes import read_boxes
    monkeypatch.chdir(tmp_path)
    with h5py.File('other.mat', 'w') as h5file:
        h5file['x'] = [[7.]]
    (tmp_path / 'a.mat').write_bytes(
        raw_data.digit_struct([numpy.full((1, 5), 3)]))
    assert [3, 3, 3, 3, 3] == read_boxes('a.mat', 1)[1][0].tolist()
    with h5py.File('a.mat', 'r+') as h5file:
        spoil_boxes(h5file, how)
    with pytest.raises(ValueError, match=text):
        read_boxes('a.mat', 1)


@pytest.mark.parametrize('script, text', [
    ('import time; time.sleep(60)', 'could not be read in 0 seconds'),
    ('import os; os.abort()', 'crashes the library')])
def test_svhn_boxes_that_hang_or_crash_are_an_error(tmp_path, monkeypatch,
                                                    script, text):
    """The other process is ended."""
    from fuel.converters import svhn_numbers
    from fuel.converters.svhn import convert_svhn_format_1
    raw_data.svhn_1(tmp_path)
    (tmp_path / 'script.py').write_text(script)
    for name, value in (('ANOTHER_PROCESS', 1), ('SECONDS', .2),
                        ('SECONDS_AN_IMAGE', 0)):
        monkeypatch.setattr(svhn_numbers, name, value)
    if 'abort' in script:
        monkeypatch.setattr(svhn_numbers, 'SECONDS', 30)
    monkeypatch.setattr(svhn_numbers.svhn_boxes, '__file__',
                        str(tmp_path / 'script.py'))
    with pytest.raises(BadInputFile, match=text):
        convert_svhn_format_1(str(tmp_path), str(tmp_path))


def test_members_are_bounded_by_what_they_are(tmp_path, monkeypatch):
    """One image, or all patches together, must not unpack to a gigabyte."""
    from fuel.converters import ilsvrc_images, svhn_numbers
    from fuel.converters.svhn import convert_svhn_format_1
    images = io.BytesIO(raw_data.tar([('val/a.JPEG', bytes(300))]))
    monkeypatch.setattr(ilsvrc_images, 'MAX_IMAGE', 200)
    with pytest.raises(BadInputFile, match='300 bytes, more than 200'):
        list(other_images('valid', images, None, [0]))
    monkeypatch.setattr(ilsvrc_images, 'MAX_PATCHES', 100)
    patches = io.BytesIO(raw_data.tar([
        (f'p/val/{i}.JPEG', bytes(60)) for i in range(2)]))
    with pytest.raises(BadInputFile, match='120 bytes, more than 100'):
        ilsvrc_images.extract_patch_images(patches, 'valid')
    raw_data.svhn_1(tmp_path)
    monkeypatch.setattr(svhn_numbers, 'MAX_IMAGE', 30)
    with pytest.raises(BadInputFile, match='more than 30'):
        convert_svhn_format_1(str(tmp_path), str(tmp_path))


def test_ilsvrc_with_unknown_classes_or_names_is_refused(tmp_path):
    """There is no traceback, and no name is cut short."""
    from fuel.converters import ilsvrc2010
    raw_data.ilsvrc2010(tmp_path)
    for content, text in ((b'1\n99\n', 'names 99'), (b'x\n', 'a number in'),
                          (b'99999\n', 'a number in')):
        (tmp_path / ilsvrc2010.TEST_GROUNDTRUTH).write_bytes(content)
        with pytest.raises(BadInputFile, match=text):
            ilsvrc2010.convert_ilsvrc2010(str(tmp_path), str(tmp_path))
    with h5py.File('a.hdf5', 'w', driver='core',
                   backing_store=False) as h5file:
        ilsvrc2010.prepare_hdf5_file(h5file, 1, 0, 0)
        for name in ('a' * 33, 'ä.JPEG'):
            with pytest.raises(ValueError, match='at most 32 ASCII'):
                ilsvrc2010.write_images(h5file, [(name, 0, b'x')], 1)


def test_dogs_vs_cats_with_another_animal_is_refused(tmp_path):
    """Any name without "cat" used to be taken for a dog."""
    from fuel.converters.dogs_vs_cats import convert_dogs_vs_cats
    raw_data.dogs_vs_cats(tmp_path)
    with zipfile.ZipFile(tmp_path / 'dogs_vs_cats.train.zip',
                         'a') as archive:
        archive.writestr('train/cow.1.jpg', b'')
    with pytest.raises(BadInputFile, match=r'cow\.1\.jpg'):
        convert_dogs_vs_cats(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('name, text', [
    ('a/1/0001_300.png', "'images_background/a/1/0001_300.png' does not say"),
    ('a/1/0001_00.png', 'does not say who drew, 01 to 20'),
    (f'a/1/1_{"9" * 5000}.png', 'does not say'),
    ('{0}/1/0001_01.png', "at most 256 names such as '0', got 257")])
def test_omniglot_with_numbers_that_do_not_fit_is_refused(tmp_path, name,
                                                          text):
    """They would wrap around, or be an error without a file's name."""
    raw_data.omniglot(tmp_path)
    raw_data.write_zip(tmp_path / 'images_background.zip', [
        (f'images_background/{each}', b'') for each in dict.fromkeys(
            name.format(i) for i in range(257))])
    with pytest.raises(BadInputFile, match=text):
        convert_omniglot(str(tmp_path), str(tmp_path))
    assert 2 == len(os.listdir(tmp_path))


def test_idx_shape_that_overflows_is_refused():
    """The product of the lengths is not cut to 64 bits."""
    import struct

    content = struct.pack('>4i', 2051, 1 << 30, 1 << 30, 16)
    with pytest.raises(BadInputFile, match='expected 1844'):
        mnist.read_idx(io.BytesIO(content), 'a', 2051, 3)


def test_stl10_folds_that_are_not_numbers_are_refused():
    """The error names the fold."""
    from fuel.converters.stl10 import _folds
    with pytest.raises(BadInputFile, match='numbers in fold 0'):
        _folds(None, {'fold_indices.txt': b'1 x\n'}, 3, 'a')


def test_text_has_a_bound_together(tmp_path, monkeypatch):
    """Many files may fill a disk as well as one."""
    from fuel.converters import one_billion_word
    write_words(tmp_path, [(TOP + TEXT[0], b'a' * 60),
                           (TOP + TEXT[1], b'a' * 60)])
    monkeypatch.setattr(one_billion_word, 'MAX_TEXT', 100)
    with pytest.raises(BadInputFile, match='120 bytes, more than 100'):
        convert_one_billion_word(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('head, rows, text', [
    ('11', 10, 'got 10'), ('202599', 11, 'got 11'), ('', 11, 'got 11'),
    ('0', 0, 'got 0')])
def test_celeba_that_is_cut_short_is_refused(tmp_path, head, rows, text):
    """The first line tells a table that was cut from an excerpt."""
    from fuel.converters.celeba import convert_celeba
    raw_data.celeba(tmp_path)
    path = tmp_path / 'list_attr_celeba.txt'
    lines = path.read_text().splitlines()
    path.write_text('\n'.join([head, *lines[1:2 + rows]]))
    with pytest.raises(BadInputFile, match=text):
        convert_celeba('64', str(tmp_path), str(tmp_path))


def test_celeba_of_the_full_number_has_the_documented_borders(tmp_path,
                                                              monkeypatch):
    """The borders do not depend on `NUM_EXAMPLES` at the time of the call."""
    from fuel.converters import celeba
    raw_data.celeba(tmp_path)
    monkeypatch.setattr(celeba, 'NUM_EXAMPLES', raw_data.CELEBA)
    path, = celeba.convert_celeba('64', str(tmp_path), str(tmp_path))
    with h5py.File(path) as h5file:
        assert {(0, 162770), (162770, 182637),
                (182637, raw_data.CELEBA)} == {
            (int(row['start']), int(row['stop']))
            for row in h5file.attrs['split']}


@pytest.mark.parametrize('shape', [(-1, -28, 28), (-2, -2, 4), (2, -2, -4),
                                   (-1, 28, 28), (-4, -4, -1)])
def test_idx_shape_with_negative_lengths_is_refused(shape):
    """Two negative lengths have a positive product."""
    header = struct.pack('>4i', 2051, *shape)
    content = header + bytes(abs(int(numpy.prod(shape))))
    with pytest.raises(BadInputFile, match='bytes for the shape'):
        mnist.read_idx(io.BytesIO(content), 'a', 2051, 3)


@settings(max_examples=200, deadline=2000)
@given(content=st.binary(max_size=60), shape=st.lists(
    st.integers(-2 ** 31, 2 ** 31 - 1), min_size=3, max_size=3))
def test_idx_any_header_is_an_array_or_an_error(content, shape):
    """The result is an array of all bytes behind the header, or
    `BadInputFile`."""
    for raw in (content, struct.pack('>4i', 2051, *shape) + content):
        try:
            found = mnist.read_idx(io.BytesIO(raw), 'a', 2051, 3)
        except BadInputFile:
            continue
        assert found.tobytes() == raw[16:]


@pytest.mark.parametrize('side', [16, 31, 33])
def test_svhn_format_2_with_images_of_another_size_is_refused(tmp_path,
                                                              side):
    """Images of 32 x 32 pixels are what the data set promises."""
    from scipy.io import savemat

    from fuel.converters.svhn import convert_svhn_format_2
    raw_data.svhn_2(tmp_path)
    savemat(tmp_path / 'test_32x32.mat', {
        'X': numpy.zeros((side, side, 3, 3), 'uint8'),
        'y': numpy.ones((3, 1), 'uint8')})
    with pytest.raises(BadInputFile, match=r'expected X of shape \(32, 32'):
        convert_svhn_format_2(str(tmp_path), str(tmp_path))
    assert not (tmp_path / 'svhn_format_2.hdf5').exists()


def mutations(content):
    """Return a strategy: some bytes of a content are others, or it is cut."""
    return st.builds(
        lambda changes, stop: bytes(
            changes.get(i, byte) for i, byte in enumerate(content))[:stop],
        st.dictionaries(st.integers(0, len(content) - 1),
                        st.integers(0, 255), max_size=6),
        st.integers(0, len(content)) | st.just(len(content)))


def zipped():
    """Return a zip archive of two members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('a/1.jpg', b'x' * 300)
        archive.writestr('a/2.jpg', bytes(range(100)))
    return out.getvalue()


@settings(max_examples=300, deadline=3000, suppress_health_check=[
    HealthCheck.function_scoped_fixture])
@given(content=mutations(zipped()))
def test_zip_with_any_damage_is_read_or_refused(tmp_path, content):
    """The members as they were written, some of them, or `BadInputFile`."""
    path = tmp_path / 'a.zip'
    path.write_bytes(content)
    try:
        with open_zip(str(path)) as archive:
            for name in archive.namelist():
                read_zipped(str(path), archive, name)
    except BadInputFile:
        return


@settings(max_examples=200, deadline=3000)
@given(content=mutations(raw_data.python2_pickle({
    'data': numpy.arange(12, dtype='uint8').reshape(3, 4),
    'labels': [1, 2, 3]})))
def test_pickle_with_any_damage_is_read_or_refused(content):
    """The result is a dictionary of arrays, or `BadInputFile`: nothing
    runs."""
    try:
        assert isinstance(load_arrays(content, 'a'), dict)
    except BadInputFile:
        return


@settings(max_examples=200, deadline=3000)
@given(content=mutations(gzip.compress(b'x' * 400, mtime=0)))
def test_gzip_with_any_damage_is_read_or_refused(content):
    """The result is the content, if its check sum is right, or
    `BadInputFile`."""
    try:
        assert unpack_gzip(io.BytesIO(content), 'a', 999) in (
            b'x' * 400, b'')
    except BadInputFile:
        return


def matlab(compressed):
    """Return a MATLAB file of images and labels."""
    from scipy.io import savemat
    out = io.BytesIO()
    savemat(out, {'X': numpy.arange(240, dtype='uint8').reshape(4, 4, 3, 5),
                  'y': numpy.arange(5.)[:, None]}, do_compression=compressed)
    return out.getvalue()


@pytest.mark.parametrize('compressed', [True, False])
@settings(max_examples=300, deadline=3000, suppress_health_check=[
    HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_matlab_file_with_any_damage_is_read_or_refused(tmp_path, compressed,
                                                        data):
    """Arrays of numbers, or `BadInputFile`; SciPy ended the process."""
    from fuel.converters.raw.matlab import read_variables
    from fuel.converters.raw.matlab import MatlabImages
    path = tmp_path / 'a.mat'
    path.write_bytes(data.draw(mutations(matlab(compressed))))
    for read in (lambda: read_variables(str(path), ['y', 'X']),
                 lambda: list(MatlabImages(str(path), 'X').blocks())):
        with contextlib.suppress(BadInputFile):
            read()
