"""Scripts and other packages rely on more than the converted files."""
import functools
import gzip
import io
import os
import stat
import struct
import tarfile

import h5py
import numpy
import pytest
import zmq
from numpy.testing import assert_array_equal
from support import raw_data
from support.processes import run_python

from fuel.converters import (
    adult,
    caltech101_silhouettes,
    celeba,
    dogs_vs_cats,
    ilsvrc2010,
    ilsvrc2012,
    svhn,
    youtube_audio,
)
from fuel.converters.base import BadInputFile, MissingInputFiles


class Socket:
    """Notes what is sent, and hands it out again."""

    def __init__(self):
        self.sent = []

    def send_pyobj(self, value, flags=0):
        """Note a header."""
        assert zmq.SNDMORE == flags
        self.sent.append(value)

    def send(self, content, flags=0, **kwargs):
        """Note a body."""
        assert 0 == flags
        self.sent.append(bytes(content))

    def recv_pyobj(self, flags=0):
        """Hand out a header."""
        assert zmq.SNDMORE == flags
        return self.sent.pop(0)

    def recv(self, flags=0):
        """Hand out a body."""
        return self.sent.pop(0)


class File:
    """No more of a file than `prepare_hdf5_file` may use."""

    def __init__(self):
        self.attrs, self.sources = {}, {}

    def create_dataset(self, name, shape, dtype):
        """Make an array."""
        self.sources[name] = numpy.empty(shape, dtype)

    def __getitem__(self, name):
        return self.sources[name]


WNID_MAP = {wnid: i for i, wnid in enumerate(raw_data.WNIDS[:3])}


@pytest.fixture
def train():
    """Return a training archive and its rows (name, class, bytes)."""
    content, rows = raw_data.train_tar(numpy.random.RandomState(0), (3, 2, 4),
                                       prefix='folder/')
    return io.BytesIO(content), [
        (name.rpartition('/')[2], label, image) for name, label, image
        in rows]


def patch_archive(*names, which='train', content=b'patch'):
    """Return an archive of patch images."""
    return io.BytesIO(raw_data.tar(
        [(f'patch_images/{which}/{name}', content) for name in names],
        'w:gz'))


def test_train_set_producer_sends_headers_and_images(train):
    """Inner archives in their order, files sorted; patches take places."""
    archive, rows = train
    socket = Socket()
    ilsvrc2010.train_set_producer(socket, archive, patch_archive(rows[4][0]),
                                  WNID_MAP)
    expected = []
    for i, (name, label, image) in enumerate(rows):
        expected += [(name, label), b'patch' if i == 4 else image.tobytes()]
    assert expected == socket.sent


@pytest.mark.parametrize('which', ['train', 'valid'])
def test_unused_patches_are_an_error(train, which):
    """A failure after the last image is raised."""
    archive, _ = train
    socket = Socket()
    if which == 'train':
        with pytest.raises(ValueError, match='not all patch images'):
            ilsvrc2010.train_set_producer(
                socket, archive, patch_archive('other.JPEG'), WNID_MAP)
    else:
        images = io.BytesIO(raw_data.tar([('val/a.JPEG', b'a')]))
        with pytest.raises(ValueError, match='not all patch images'):
            ilsvrc2010.other_set_producer(
                socket, 'valid', images,
                patch_archive('other.JPEG', which='val'), [0])


def test_other_set_producer_sorts_and_zips():
    """Files in the order of their names, with the classes given."""
    images = io.BytesIO(raw_data.tar(
        [(f'val/{i}.JPEG', bytes([i])) for i in (2, 0, 1)], 'w', ['val/']))
    socket = Socket()
    ilsvrc2010.other_set_producer(
        socket, 'valid', images, patch_archive('1.JPEG', which='val'),
        [5, 6, None])
    assert [('0.JPEG', 5), b'\0', ('1.JPEG', 6), b'patch', ('2.JPEG', None),
            b'\2'] == socket.sent


@pytest.mark.parametrize('open_file', [
    File, lambda: h5py.File('a.hdf5', 'w', driver='core',
                            backing_store=False)])
@pytest.mark.parametrize('seed', [None, 3])
def test_image_consumer_writes_shuffled_rows(train, open_file, seed):
    """Rows come in the order of arrival, or permuted by the seed, behind
    those of other sets; any object with data sets will do."""
    archive, rows = train
    socket, hdf5_file = Socket(), open_file()
    ilsvrc2010.train_set_producer(socket, archive, None, WNID_MAP)
    ilsvrc2010.prepare_hdf5_file(hdf5_file, 3, len(rows), 2)
    ilsvrc2010.image_consumer(socket, hdf5_file, len(rows),
                              shuffle_seed=seed, offset=3)
    places = numpy.arange(len(rows)) if seed is None else (
        numpy.random.RandomState(seed).permutation(len(rows)))
    for place, (name, label, image) in zip(places, rows, strict=True):
        row = int(place) + 3
        assert name.encode() == hdf5_file['filenames'][row][0]
        assert label == hdf5_file['targets'][row][0]
        assert_array_equal(image, hdf5_file['encoded_images'][row])


def test_prepare_hdf5_file_makes_what_it_always_made():
    """Types and shapes; in 2012 test examples have no targets."""
    for module, targets in ((ilsvrc2010, 9), (ilsvrc2012, 7)):
        hdf5_file = File()
        module.prepare_hdf5_file(hdf5_file, 4, 3, 2)
        assert {'encoded_images': (9,), 'filenames': (9, 1),
                'targets': (targets, 1)} == {
            name: array.shape for name, array in hdf5_file.sources.items()}
        assert numpy.dtype('uint8') == (
            hdf5_file['encoded_images'].dtype.metadata['vlen'])
        assert 'S32' == hdf5_file['filenames'].dtype
        assert 'int16' == hdf5_file['targets'].dtype
        assert 9 == len(hdf5_file.attrs['split'])


def test_process_train_set_with_another_number_raises(train):
    """Too few or too many images are an error, not a hang."""
    archive, rows = train
    for number, text in ((len(rows) + 1, 'got 9'), (len(rows) - 1, 'more')):
        hdf5_file = File()
        ilsvrc2010.prepare_hdf5_file(hdf5_file, len(rows) + 1, 0, 0)
        with pytest.raises(ValueError, match=text):
            ilsvrc2010.process_train_set(hdf5_file, archive, None, number,
                                         WNID_MAP)


def test_process_other_set_copies_in_order():
    """The rows are those after `offset`."""
    hdf5_file = File()
    ilsvrc2010.prepare_hdf5_file(hdf5_file, 2, 3, 0)
    images = io.BytesIO(raw_data.tar(
        [(f'{i}.JPEG', bytes([i])) for i in range(3)]))
    ilsvrc2010.process_other_set(hdf5_file, 'valid', images, None, [7, 8, 9],
                                 2)
    assert [7, 8, 9] == hdf5_file['targets'][2:, 0].tolist()
    assert [0, 1, 2] == [int(image[0])
                         for image in hdf5_file['encoded_images'][2:]]


def test_load_from_tar_or_patch_unpacks_gzipped_images():
    """An image may be gzipped under its plain name."""
    image = raw_data.jpeg(numpy.random.RandomState(0)).tobytes()
    content = io.BytesIO(raw_data.tar([
        ('x/a.JPEG', image), ('x/b.JPEG', gzip.compress(image)),
        ('x/c.JPEG', b'damaged'), ('x/d.JPEG', b'\x1f\x8bdamaged')]))
    with tarfile.open(fileobj=content) as archive:
        def load(name):
            return ilsvrc2010.load_from_tar_or_patch(
                archive, name, {'c.JPEG': b'patch'})
        assert (image, False) == load('x/a.JPEG')
        assert (image, False) == load('x/b.JPEG')
        assert (b'patch', True) == load('x/c.JPEG')
        with pytest.raises(BadInputFile, match='neither an image'):
            load('x/d.JPEG')


def test_extract_patch_images_tells_sets_by_folder():
    """Only ``.JPEG`` files; valid is called val there."""
    members = [(f'p/{folder}/{folder}.{extension}', folder.encode())
               for folder in ('train', 'val', 'test')
               for extension in ('JPEG', 'txt')]
    for which, folder in (('train', 'train'), ('valid', 'val'),
                          ('test', 'test')):
        archive = io.BytesIO(raw_data.tar(members))
        assert {f'{folder}.JPEG': folder.encode()} == (
            ilsvrc2010.extract_patch_images(archive, which))
    with pytest.raises(ValueError, match="must be 'train'"):
        ilsvrc2010.extract_patch_images(io.BytesIO(), 'val')


def test_read_devkit_keeps_large_identifiers(tmp_path):
    """Children's identifiers go up to 1676."""
    raw_data.ilsvrc2010(tmp_path)
    synsets, costs, groundtruth = ilsvrc2010.read_devkit(
        str(tmp_path / ilsvrc2010.DEVKIT_ARCHIVE))
    assert [1, 300, 1676] == synsets['children'][3].tolist()
    assert [-1, -1, -1] == synsets['children'][0].tolist()
    assert raw_data.WNIDS == [w.decode() for w in synsets['WNID']]
    assert [12, 3, 4, 0] == synsets['num_train_images'].tolist()
    assert (3, 3) == costs.shape
    assert 6 == len(groundtruth)
    raw_data.ilsvrc2012(tmp_path)
    synsets, groundtruth = ilsvrc2012.read_devkit(
        str(tmp_path / ilsvrc2012.DEVKIT_ARCHIVE))
    assert [1, 2, 3, 4] == synsets['ILSVRC2012_ID'].tolist()
    assert 4 == len(groundtruth)


@pytest.mark.parametrize('name', ['ILSVRC2012_img_test.tar',
                                  'ILSVRC2012_img_test_v10102019.tar'])
def test_ilsvrc2012_counts_images_of_its_folder(tmp_path, monkeypatch, name):
    """The archive is beside the others, under either name; folders are not
    images."""
    (tmp_path / 'raw').mkdir()
    (tmp_path / 'cwd').mkdir()
    raw_data.ilsvrc2012(tmp_path / 'raw', name)
    monkeypatch.chdir(tmp_path / 'cwd')
    devkit = tmp_path / 'raw' / ilsvrc2012.DEVKIT_ARCHIVE
    for path in (str(devkit), devkit):
        n_train, valid, n_test, wnid_map = ilsvrc2012.prepare_metadata(path)
        assert (10, 4, 3) == (n_train, len(valid), n_test)
        assert 0 == wnid_map['n07711080']
    ilsvrc2012.convert_ilsvrc2012(str(tmp_path / 'raw'), '.')
    assert ['ilsvrc2012.hdf5'] == os.listdir()


@pytest.mark.parametrize('keys', ['references', 'names', 'paths',
                                  'processes'])
def test_svhn_boxes_may_be_named_or_referenced(tmp_path, monkeypatch, keys):
    """Elements of digitStruct are keys into its group, of either kind."""
    expected = raw_data.svhn_1(tmp_path)
    if keys == 'processes':
        monkeypatch.setattr('fuel.converters.svhn_numbers.ANOTHER_PROCESS',
                            1)
    elif keys != 'references':
        monkeypatch.setattr(raw_data, 'digit_struct', functools.partial(
            named_digit_struct, paths=keys == 'paths'))
        expected = raw_data.svhn_1(tmp_path)
    path, = svhn.convert_svhn_format_1(str(tmp_path), str(tmp_path))
    with h5py.File(path, 'r') as h5file:
        for source in ('bbox_labels', 'bbox_lefts'):
            for i, boxes in enumerate(expected['train'][source]):
                assert_array_equal(boxes.ravel(), h5file[source][i])


@pytest.mark.parametrize('threshold', [1, 1000])
def test_svhn_damaged_boxes_are_an_error(tmp_path, monkeypatch, threshold):
    """The error says what was wrong, whichever process reads them."""
    monkeypatch.setattr('fuel.converters.svhn_numbers.ANOTHER_PROCESS',
                        threshold)
    monkeypatch.setattr(raw_data, 'digit_struct', lambda boxes: b'damaged')
    raw_data.svhn_1(tmp_path)
    with pytest.raises(BadInputFile, match='digitStruct.mat cannot be read'):
        svhn.convert_svhn_format_1(str(tmp_path), str(tmp_path))


def named_digit_struct(boxes, paths):
    """Return a digitStruct.mat whose keys are names in its group, or paths
    of any length."""
    out = io.BytesIO()

    def keys(names):
        return numpy.array([[('/digitStruct/' * paths + name)]
                            for name in names],
                           dtype=h5py.string_dtype() if paths else 'S9')
    with h5py.File(out, 'w') as h5file:
        group = h5file.create_group('digitStruct')
        names = []
        for i, table in enumerate(boxes):
            image = group.create_group(f'image{i}')
            names.append(f'image{i}')
            for name, values in zip(
                    ('height', 'label', 'left', 'top', 'width'),
                    table.T, strict=True):
                if len(values) == 1:
                    image[name] = [float(values[0])] if paths else [
                        [float(values[0])]]
                    continue
                cells = []
                for j, value in enumerate(values):
                    group[f'{name}{i}_{j}'] = (
                        float(value) if paths else [[float(value)]])
                    cells.append(f'{name}{i}_{j}')
                image[name] = keys(cells)
        group['bbox'] = keys(names)
    return out.getvalue()


@pytest.mark.parametrize('module, function, formats, bad', [
    (svhn, 'convert_svhn', {1: 'convert_svhn_format_1',
                            2: 'convert_svhn_format_2'}, 3),
    (celeba, 'convert_celeba', {
        '64': 'convert_celeba_64',
        'aligned_cropped': 'convert_celeba_aligned_cropped'}, '65')])
def test_formats_call_their_module_functions(monkeypatch, module, function,
                                             formats, bad):
    """The functions are looked up in the module and called positionally,
    with the default name."""
    prefix = 'svhn_format' if module is svhn else 'celeba'
    for which, name in formats.items():
        calls = []
        monkeypatch.setattr(module, name,
                            lambda *args, calls=calls: calls.append(args))
        getattr(module, function)(which, 'in', 'out')
        assert [('in', 'out', f'{prefix}_{which}.hdf5')] == calls
    with pytest.raises(ValueError, match=f'got {bad!r}'):
        getattr(module, function)(bad, 'in', 'out')


def test_celeba_64_reduces_and_crops(tmp_path, monkeypatch):
    """64 x 78 pixels by Lanczos, then 64 x 64 of the middle; the borders of
    splits are those of the full data, whatever `NUM_EXAMPLES` says."""
    from PIL import Image
    raw_data.celeba(tmp_path)
    monkeypatch.setattr(celeba, 'NUM_EXAMPLES', raw_data.CELEBA)
    path, = celeba.convert_celeba_64(str(tmp_path), str(tmp_path))
    with raw_data.zipfile.ZipFile(tmp_path / 'img_align_celeba.zip') as raw:
        image = Image.open(raw.open('img_align_celeba/000003.jpg'))
        expected = numpy.asarray(image.resize(
            (64, 78), Image.Resampling.LANCZOS).crop((0, 7, 64, 71)))
    with h5py.File(path, 'r') as h5file:
        assert_array_equal(expected.transpose(2, 0, 1), h5file['features'][2])
        assert [0, 0, 162770, 162770, 182637, 182637] == sorted(
            h5file.attrs['split']['start'].tolist())
        assert raw_data.CELEBA in h5file.attrs['split']['stop'].tolist()


def test_silhouettes_size_and_files_are_checked(tmp_path):
    """A size that does not exist comes before files that do not."""
    convert = caltech101_silhouettes.convert_silhouettes
    with pytest.raises(ValueError, match='got 10'):
        convert(10, str(tmp_path), str(tmp_path))
    with pytest.raises(MissingInputFiles, match='silhouettes_28_split1'):
        convert(28, str(tmp_path), str(tmp_path))


def test_adult_columns_do_not_depend_on_the_hash_seed(tmp_path):
    """Two runs give the same file, and columns match over
    splits."""
    raw_data.adult(tmp_path)
    found = set()
    for seed in '12':
        assert (0, b'', b'') == run_python(
            '-c', 'import sys\nfrom fuel.converters.adult import '
            'convert_adult\nconvert_adult(sys.argv[1], sys.argv[1])',
            str(tmp_path), PYTHONHASHSEED=seed)
        found.add((tmp_path / 'adult.hdf5').read_bytes())
    assert 1 == len(found)


@pytest.mark.parametrize('y, expected', [
    ([0, 1, 2], numpy.eye(3)), ([4, 3], [[0, 1], [1, 0]]), ([5], [[1]])])
def test_convert_to_one_hot(y, expected):
    """There is one column for each integer from the smallest to the
    largest."""
    assert_array_equal(expected, adult.convert_to_one_hot(y))


@pytest.mark.parametrize('lines, text', [
    ('1, 2, 3', 'expected 15 fields'),
    (raw_data.ADULT.format(age='old', work='a', weight=1, sex='Male',
                           country='Cuba', income='>50K'), 'field 1'),
    (raw_data.ADULT.format(age=1, work='a', weight=1, sex='Male',
                           country='Cuba', income='rich'), 'line 5')])
def test_adult_bad_records_are_named(tmp_path, lines, text):
    """A record that is none is not dropped silently."""
    raw_data.adult(tmp_path)
    with open(tmp_path / 'adult.data', 'a') as raw:
        raw.write(lines + '\n')
    with pytest.raises(BadInputFile, match=text):
        adult.convert_adult(str(tmp_path), str(tmp_path))


def test_dogs_vs_cats_needs_no_directory_entry(tmp_path):
    """Images are told by their names, not by their places in the archive:
    none is lost if the first entry is one."""
    raw_data.dogs_vs_cats(tmp_path)
    path = tmp_path / 'dogs_vs_cats.test1.zip'
    with raw_data.zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()
                   if not name.endswith('/')]
    raw_data.write_zip(path, members)
    out, = dogs_vs_cats.convert_dogs_vs_cats(str(tmp_path), str(tmp_path))
    with h5py.File(out, 'r') as h5file:
        assert 16 == len(h5file['image_features'])


FFMPEG = """#!{python}
import sys, numpy
from scipy.io import wavfile
if open(sys.argv[sys.argv.index('-i') + 1], 'rb').read() != b'sound':
    sys.exit('Invalid data')
channels = int(sys.argv[sys.argv.index('-ac') + 1])
rate = int(sys.argv[sys.argv.index('-ar') + 1])
wavfile.write(sys.argv[-1], rate, numpy.arange(
    20 * channels, dtype='int16').reshape(-1, channels))
"""


def test_youtube_audio_is_decoded_by_ffmpeg(tmp_path, monkeypatch):
    """One example (batch, time, feature); a failing ffmpeg, and none at
    all, are errors that say so."""
    import sys

    from fuel import config
    from fuel.datasets.youtube_audio import YouTubeAudio
    convert = youtube_audio.convert_youtube_audio
    (tmp_path / 'x-1_Y.m4a').write_bytes(b'sound')
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(RuntimeError, match='ffmpeg is needed'):
        convert(str(tmp_path), str(tmp_path), 'x-1_Y')
    (tmp_path / 'ffmpeg').write_text(FFMPEG.format(python=sys.executable))
    (tmp_path / 'ffmpeg').chmod(stat.S_IRWXU)
    path, = convert(str(tmp_path), str(tmp_path), 'x-1_Y', channels=2)
    assert str(tmp_path / 'x-1_Y.hdf5') == path
    config.data_path = [str(tmp_path)]
    with YouTubeAudio('x-1_Y') as dataset:
        assert ('batch', 'time', 'feature') == (
            dataset.axis_labels['features'])
        sound, = dataset.get_data(None, [0])
    assert_array_equal(numpy.arange(40).reshape(1, 20, 2), sound)
    (tmp_path / 'x-1_Y.m4a').write_bytes(b'noise')
    with pytest.raises(BadInputFile, match='Invalid data'):
        convert(str(tmp_path), str(tmp_path), 'x-1_Y')


def test_conversion_on_any_number_of_cores_gives_equal_bytes(tmp_path,
                                                             monkeypatch):
    """The order of results is that of the items."""
    raw_data.svhn_1(tmp_path)
    raw_data.dogs_vs_cats(tmp_path)
    found = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(os, 'sched_getaffinity',
                            lambda pid, cores=cores: set(range(cores)),
                            raising=False)
        for convert in (svhn.convert_svhn_format_1,
                        dogs_vs_cats.convert_dogs_vs_cats):
            path, = convert(str(tmp_path), str(tmp_path))
            with open(path, 'rb') as h5file:
                found.append(h5file.read())
    assert found[:2] == found[2:4] == found[4:]


@pytest.mark.parametrize('compressed', [True, False])
@pytest.mark.parametrize('order', ['Xy', 'yX', 'longer X'])
def test_matlab_images_are_those_that_scipy_reads(tmp_path, compressed,
                                                  order):
    """They may be packed or not, behind any other variables."""
    from scipy.io import savemat

    from fuel.converters.raw import matlab
    rng = numpy.random.RandomState(0)
    images = raw_data.bytes_of(rng, 4, 5, 3, 11)
    variables = {'X': images, 'y': numpy.arange(11.),
                 'longer': rng.normal(size=(7, 3))}
    path = str(tmp_path / 'a.mat')
    names = order.split() if ' ' in order else list(order)
    savemat(path, {name: variables[name] for name in names},
            do_compression=compressed)
    found = matlab.MatlabImages(path, 'X')
    assert (11, 3, 4, 5) == found.shape
    assert_array_equal(images.transpose(3, 2, 0, 1),
                       numpy.concatenate(list(found.blocks())))


def test_matlab_images_of_another_layout_are_refused(tmp_path):
    """Images saved as other numbers, and data of another length."""
    from scipy.io import savemat

    from fuel.converters.raw.matlab import MatlabImages
    path = str(tmp_path / 'a.mat')
    images = raw_data.bytes_of(numpy.random.RandomState(0), 4, 5, 3, 11)
    savemat(path, {'X': images}, do_compression=False)
    content = (tmp_path / 'a.mat').read_bytes()
    size = b'\2\0\0\0' + images.size.to_bytes(4, 'little')
    assert size in content
    for other in (b'\5' + size[1:], size[:4] + b'\1' + size[5:]):
        (tmp_path / 'a.mat').write_bytes(content.replace(size, other))
        with pytest.raises(BadInputFile, match='X has .* bytes'):
            list(MatlabImages(path, 'X').blocks())
    savemat(path, {'X': images.astype('float64')})
    with pytest.raises(BadInputFile, match="'X' to be uint8"):
        MatlabImages(path, 'X')


@pytest.mark.parametrize('compressed', [True, False])
@pytest.mark.parametrize('kind', ['f8', 'f4', 'i1', 'u1', 'i2', 'u2', 'i4',
                                  'u4', 'i8', 'u8', '?'])
def test_matlab_numbers_are_those_that_scipy_reads(tmp_path, compressed,
                                                   kind):
    """They have any type and shape, also empty and in the tag itself."""
    from scipy.io import loadmat, savemat

    from fuel.converters.raw.matlab import read_variables
    rng = numpy.random.RandomState(0)
    arrays = {'a': rng.randint(0, 100, (3, 5)), 'b': rng.randint(0, 2, (1, 1)),
              'c': numpy.zeros((0, 4)), 'd': rng.randint(0, 9, (2, 3, 4)),
              'e': rng.randint(0, 9, 3)}
    path = str(tmp_path / 'a.mat')
    savemat(path, {name: array.astype(kind) for name, array in
                   arrays.items()}, do_compression=compressed)
    expected = loadmat(path)
    for name, found in read_variables(path, arrays).items():
        assert_array_equal(expected[name], found)


@pytest.mark.parametrize('tag', [
    # Of an array: the flags claim to be huge, or end before they begin.
    struct.pack('<4I', 14, 16, 6, 1 << 17), struct.pack('<3I', 14, 4, 6),
    struct.pack('<2I', 9, 8)])
def test_matlab_odd_elements_are_refused(tmp_path, tag):
    """Nothing large is read."""
    from fuel.converters.raw.matlab import read_variables
    (tmp_path / 'a.mat').write_bytes(bytes(126) + b'IM' + tag)
    with pytest.raises(BadInputFile, match='not a sound MATLAB file'):
        read_variables(str(tmp_path / 'a.mat'), ['X'])


def test_svhn_image_with_a_side_that_has_no_number_is_refused(tmp_path,
                                                              monkeypatch):
    """Sides are stored as uint16; a larger one would be another."""
    from fuel.converters import svhn_numbers
    assert numpy.iinfo('uint16').max == svhn_numbers.MAX_SIDE
    raw_data.svhn_1(tmp_path)
    monkeypatch.setattr(svhn_numbers, 'MAX_SIDE', 10)
    with pytest.raises(BadInputFile, match='has the shape .* more than 10'):
        svhn.convert_svhn_format_1(str(tmp_path), str(tmp_path))
    assert 3 == len(os.listdir(tmp_path))


def test_ffmpeg_opens_nothing_but_files(tmp_path, monkeypatch):
    """A playlist in place of a sound opens nothing; a name is not an option or
    an address."""
    import subprocess
    from types import SimpleNamespace
    calls = []

    def run(arguments, **kwargs):
        calls.append(arguments)
        return SimpleNamespace(returncode=1, stderr=b'refused')
    (tmp_path / '-y.m4a').write_bytes(b'#EXTM3U')
    monkeypatch.setattr(subprocess, 'run', run)
    monkeypatch.setattr('shutil.which', lambda name: name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputFile, match='refused'):
        youtube_audio.convert_youtube_audio('', '', '-y')
    (arguments,) = calls
    place = arguments.index('-i')
    assert ['-protocol_whitelist', 'file'] == arguments[place - 2:place]
    assert os.path.isabs(arguments[place + 1])


def test_one_damaged_image_is_named(tmp_path, monkeypatch):
    """An exception of a thread that decodes is that of the conversion."""
    raw_data.celeba(tmp_path)
    monkeypatch.setattr(celeba, 'NUM_EXAMPLES', raw_data.CELEBA)
    path = tmp_path / 'img_align_celeba.zip'
    with raw_data.zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    members[7] = (members[7][0], members[7][1][:300])
    raw_data.write_zip(path, members)
    with pytest.raises(BadInputFile, match='000007.jpg: cannot be decoded'):
        celeba.convert_celeba_64(str(tmp_path), str(tmp_path))
    assert 2 == len(os.listdir(tmp_path))


def test_giant_image_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    """A small file can claim to be an image of gigabytes."""
    from fuel.converters.raw import images as raw_images
    monkeypatch.setattr(raw_images, 'MAX_PIXELS', 100)
    image = raw_data.encode(numpy.zeros((11, 10, 3), 'uint8'), 'PNG')
    with pytest.raises(BadInputFile, match='10 x 11 pixels'):
        raw_images.decode_image(image, 'a.png')
