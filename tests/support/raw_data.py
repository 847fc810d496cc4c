"""Miniatures of raw files, byte for byte in the form of the real ones.

`SETS` has each data set of the registry whose raw files are in one form, with
a function that writes them into a folder and returns what the converted file
must hold: for each split its sources, an array each, or a list of arrays if
their shapes differ.
"""
import gzip
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import h5py
import numpy
from PIL import Image

PAGE = b'<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n'
IRIS_CLASSES = ('Iris-setosa', 'Iris-versicolor', 'Iris-virginica')


def bytes_of(rng, *shape):
    """Return random bytes as an array."""
    return rng.randint(0, 256, shape).astype('uint8')


def column(values, dtype='uint8'):
    """Return labels as a column."""
    return numpy.asarray(values, dtype).reshape(-1, 1)


def tar(members, mode='w', directories=()):
    """Return a tar archive of (name, content) pairs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name in directories:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def write_zip(path, members):
    """Write a zip archive of (name, content) pairs."""
    with zipfile.ZipFile(path, 'w') as archive:
        for name, content in members:
            archive.writestr(name, content)


def encode(array, kind, **options):
    """Encode an image of shape (height, width, ...)."""
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind, **options)
    return out.getvalue()


def decoded(content):
    """Decode an image to shape (channel, height, width)."""
    return numpy.asarray(Image.open(io.BytesIO(content))).transpose(2, 0, 1)


def iris(folder):
    """Write ``iris.data``: 150 lines and a blank one."""
    values = numpy.random.RandomState(0).randint(1, 80, (150, 4)) / 10
    lines = [','.join(f'{value:.1f}' for value in row) + ',' +
             IRIS_CLASSES[i // 50] for i, row in enumerate(values)]
    (folder / 'iris.data').write_text('\n'.join(lines) + '\n\n')
    return {'all': {'features': values.astype('float32'),
                    'targets': column(numpy.repeat([0, 1, 2], 50))}}


def idx(array, code=8):
    """Return an array of bytes in the IDX format, gzipped."""
    header = struct.pack('>HBB', 0, code, array.ndim)
    header += struct.pack(f'>{array.ndim}i', *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def mnist(folder, train=12, test=5, seed=0):
    """Write the four files of MNIST."""
    rng = numpy.random.RandomState(seed)
    expected = {}
    for split, name, count in (('train', 'train', train),
                               ('test', 't10k', test)):
        images = bytes_of(rng, count, 28, 28)
        labels = rng.randint(0, 10, count).astype('uint8')
        (folder / f'{name}-images-idx3-ubyte.gz').write_bytes(idx(images))
        (folder / f'{name}-labels-idx1-ubyte.gz').write_bytes(idx(labels))
        expected[split] = {'features': images[:, None],
                           'targets': column(labels)}
    return expected


def fashion_mnist(folder):
    """Write the four files of Fashion-MNIST."""
    return mnist(folder, seed=1)


def kmnist(folder):
    """Write the four files of Kuzushiji-MNIST."""
    return mnist(folder, seed=2)


def emnist(folder):
    """Write ``gzip.zip`` with the set 'letters'."""
    rng = numpy.random.RandomState(3)
    members, expected = [('gzip/', b'')], {}
    for split, count in (('train', 6), ('test', 4)):
        images = bytes_of(rng, count, 28, 28)
        labels = rng.randint(1, 27, count).astype('uint8')
        prefix = f'gzip/emnist-letters-{split}'
        members += [(f'{prefix}-images-idx3-ubyte.gz', idx(images)),
                    (f'{prefix}-labels-idx1-ubyte.gz', idx(labels))]
        expected[split] = {'features': images[:, None],
                           'targets': column(labels)}
    write_zip(folder / 'gzip.zip', members)
    return expected


def python2_pickle(value):
    """Pickle as Python 2 and the NumPy of its time did, protocol 2."""
    def dump(value):
        if isinstance(value, dict):
            return b'}(' + b''.join(dump(k) + dump(v)
                                    for k, v in value.items()) + b'u'
        if isinstance(value, list):
            return b'](' + b''.join(map(dump, value)) + b'e'
        if isinstance(value, int):
            return b'J' + struct.pack('<i', value)
        if isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else value
            return b'T' + struct.pack('<i', len(text)) + text
        shape = b''.join(map(dump, value.shape)) + b'\x86'
        return (b'cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n' +
                dump(0) + b'\x85' + dump('b') + b'tR(' + dump(1) + shape +
                b'cnumpy\ndtype\n(' + dump('u1') + dump(0) + dump(1) +
                b'tR(' + dump(3) + dump('|') + b'NNN' + dump(-1) + dump(-1) +
                dump(0) + b'tb\x89' + dump(value.tobytes()) + b'tb')
    return b'\x80\x02' + dump(value) + b'.'


def cifar10(folder, rows=4):
    """Write ``cifar-10-python.tar.gz``, its members in the real order."""
    rng = numpy.random.RandomState(4)
    batches = {name: {'batch_label': name, 'data': bytes_of(rng, rows, 3072),
                      'labels': rng.randint(0, 10, rows).tolist(),
                      'filenames': [f'{i}.png' for i in range(rows)]}
               for name in ('data_batch_4', 'test_batch', 'data_batch_3',
                            'data_batch_2', 'data_batch_5', 'data_batch_1')}
    top = 'cifar-10-batches-py/'
    (folder / 'cifar-10-python.tar.gz').write_bytes(tar(
        [(top + 'readme.html', PAGE)] + [
            (top + name, python2_pickle(batch))
            for name, batch in batches.items()], 'w:gz', [top]))
    return {split: {
        'features': numpy.concatenate(
            [batches[name]['data'] for name in names]).reshape(-1, 3, 32, 32),
        'targets': column(sum((batches[name]['labels'] for name in names),
                              []))}
        for split, names in (
            ('train', [f'data_batch_{i}' for i in range(1, 6)]),
            ('test', ['test_batch']))}


def cifar100(folder, rows=5):
    """Write ``cifar-100-python.tar.gz``."""
    rng = numpy.random.RandomState(5)
    members, expected = [('cifar-100-python/meta', python2_pickle({}))], {}
    for split in ('test', 'train'):
        batch = {'data': bytes_of(rng, rows, 3072),
                 'fine_labels': rng.randint(0, 100, rows).tolist(),
                 'coarse_labels': rng.randint(0, 20, rows).tolist()}
        members.append((f'cifar-100-python/{split}', python2_pickle(batch)))
        expected[split] = {
            'features': batch['data'].reshape(-1, 3, 32, 32),
            'fine_labels': column(batch['fine_labels']),
            'coarse_labels': column(batch['coarse_labels'])}
    (folder / 'cifar-100-python.tar.gz').write_bytes(tar(members, 'w:gz'))
    return expected


ADULT = ('{age}, {work}, {weight}, Bachelors, 13, Never-married, Sales, '
         'Not-in-family, White, {sex}, 2174, 0, 40, {country}, {income}')


def adult(folder):
    """Write ``adult.data`` and ``adult.test``."""
    def record(age, work, country, income, sex='Male'):
        return ADULT.format(age=age, work=work, weight=7 * age, sex=sex,
                            country=country, income=income)
    train = [record(39, 'Private', 'Cuba', '<=50K'),
             record(50, '?', 'Cuba', '>50K'),
             record(38, 'State-gov', 'Holand-Netherlands', '>50K', 'Female')]
    test = [record(25, 'Private', 'Cuba', '<=50K.'),
            record(28, 'Private', '?', '>50K.'),
            record(44, 'Local-gov', 'Peru', '>50K.')]
    (folder / 'adult.data').write_text('\n'.join(train) + '\n\n')
    (folder / 'adult.test').write_text(
        '\n'.join(['|1x3 Cross validator', *test]) + '\n\n')

    # Local-gov Private State-gov | Cuba Holand-Netherlands Peru
    def row(age, work, male, country):
        return ([age, *numpy.eye(3)[work], 7 * age, 1, 13, 1, 1, 1, 1,
                 *numpy.eye(2)[male], 2174, 0, 40, *numpy.eye(3)[country]])
    return {'train': {'features': numpy.array([row(39, 1, 1, 0),
                                               row(38, 2, 0, 1)]),
                      'targets': column([False, True], bool)},
            'test': {'features': numpy.array([row(25, 1, 1, 0),
                                              row(44, 0, 1, 2)]),
                     'targets': column([False, True], bool)}}


def binarized_mnist(folder):
    """Write three text files."""
    rng = numpy.random.RandomState(6)
    expected = {}
    for split, count in (('train', 5), ('valid', 3), ('test', 2)):
        pixels = rng.randint(0, 2, (count, 784)).astype('uint8')
        (folder / f'binarized_mnist_{split}.amat').write_text(''.join(
            ' '.join(map(str, row)) + '\n' for row in pixels.tolist()))
        expected[split] = {'features': pixels.reshape(-1, 1, 28, 28)}
    return expected


def caltech101_silhouettes(folder, size=16):
    """Write one MATLAB file."""
    from scipy.io import savemat
    rng = numpy.random.RandomState(7)
    names = numpy.array([[f'class {i}' for i in range(101)]], dtype=object)
    variables, expected = {'classnames': names}, {}
    for split, prefix, count in (('train', 'train', 5), ('valid', 'val', 3),
                                 ('test', 'test', 2)):
        data = rng.randint(0, 2, (count, size * size)).astype('uint8')
        labels = rng.randint(1, 102, (count, 1)).astype('uint8')
        variables.update({f'{prefix}_data': data, f'{prefix}_labels': labels})
        expected[split] = {'features': data.reshape(-1, 1, size, size),
                           'targets': labels}
    savemat(folder / f'caltech101_silhouettes_{size}_split1.mat', variables,
            do_compression=True)
    return expected


CELEBA = 11


def celeba(folder):
    """Write images, and attributes in the real format, with CRLF."""
    rng = numpy.random.RandomState(8)
    images = [encode(bytes_of(rng, 218, 178, 3), 'JPEG')
              for _ in range(CELEBA)]
    write_zip(folder / 'img_align_celeba.zip', [('img_align_celeba/', b'')] +
              [(f'img_align_celeba/{i + 1:06d}.jpg', image)
               for i, image in enumerate(images)])
    attributes = rng.randint(0, 2, (CELEBA, 40))
    names = [f'Attribute_{i}' for i in range(40)]
    lines = [str(CELEBA), ' '.join(names) + ' ']
    for i, row in enumerate(attributes * 2 - 1):
        lines.append(f'{i + 1:06d}.jpg {row[0]}' + ''.join(
            f'{value:3d}' for value in row[1:]))
    (folder / 'list_attr_celeba.txt').write_bytes(
        '\r\n'.join([*lines, '']).encode())
    features = numpy.array([decoded(image) for image in images])
    return {split: {'features': features[start:stop],
                    'targets': attributes[start:stop].astype('uint8')}
            # In the proportions of the whole.
            for split, start, stop in (('train', 0, 9), ('valid', 9, 10),
                                       ('test', 10, CELEBA))}


def dogs_vs_cats(folder, train=10, test=6):
    """Write two archives, the first entry of each a directory."""
    rng = numpy.random.RandomState(9)

    def image():
        return encode(bytes_of(rng, *rng.randint(8, 30, 2), 3), 'JPEG')
    images = [(f'train/{kind}.{i}.jpg', image())
              for kind in ('cat', 'dog') for i in range(train // 2)]
    write_zip(folder / 'dogs_vs_cats.train.zip', [('train/', b''), *images])
    tests = [(f'test1/{i + 1}.jpg', image()) for i in range(test)]
    by_name = sorted(tests, key=lambda member: str(member[0]))
    write_zip(folder / 'dogs_vs_cats.test1.zip', [('test1/', b''), *by_name])
    names = [name for name, _ in images]
    numpy.random.RandomState(123522).shuffle(names)
    return {'train': {
        'image_features': [decoded(dict(images)[name]) for name in names],
        'targets': column([int('dog' in name) for name in names])},
        'test': {'image_features': [decoded(content)
                                    for _, content in tests]}}


def digit_struct(boxes):
    """Return a MATLAB 7.3 file; `boxes` has an array (boxes, 5) for each
    image: height, label, left, top, width."""
    path = f'/tmp/fuel-digit-struct-{os.getpid()}.mat'
    try:
        with h5py.File(path, 'w', userblock_size=512) as h5file:
            refs = h5file.create_group('#refs#')
            group = h5file.create_group('digitStruct')
            keys = numpy.empty((len(boxes), 1), dtype=h5py.ref_dtype)
            for i, table in enumerate(boxes):
                image = refs.create_group(f'image{i}')
                for name, values in zip(
                        ('height', 'label', 'left', 'top', 'width'),
                        numpy.asarray(table, float).T, strict=True):
                    if len(values) == 1:
                        image[name] = values[:, None]
                        continue
                    cells = numpy.empty((len(values), 1), h5py.ref_dtype)
                    for j, value in enumerate(values):
                        cell = refs.create_dataset(f'{name}{i}_{j}',
                                                   data=[[value]])
                        cells[j, 0] = cell.ref
                    image.create_dataset(name, data=cells,
                                         dtype=h5py.ref_dtype)
                keys[i, 0] = image.ref
            group.create_dataset('bbox', data=keys, dtype=h5py.ref_dtype)
        with open(path, 'r+b') as struct_file:
            struct_file.write(b'MATLAB 7.3 MAT-file'.ljust(508) + b'\0\2IM')
        with open(path, 'rb') as struct_file:
            return struct_file.read()
    finally:
        os.remove(path)


def svhn_1(folder, counts=(7, 4, 3)):
    """Write the archives of SVHN's format 1."""
    rng = numpy.random.RandomState(10)
    expected = {}
    for split, count in zip(('train', 'test', 'extra'), counts, strict=True):
        images = [bytes_of(rng, *rng.randint(5, 20, 2), 3)
                  for _ in range(count)]
        boxes = [rng.randint(-3, 300, (rng.randint(1, 4), 5))
                 for _ in range(count)]
        for table in boxes:
            table[:, 1] = rng.randint(1, 11, len(table))
        members = [(f'{split}/{i + 1}.png', encode(image, 'PNG'))
                   for i, image in enumerate(images)]
        rng.shuffle(members)
        members.insert(count // 2, (f'{split}/digitStruct.mat',
                                    digit_struct(boxes)))
        members.append((f'{split}/see_bboxes.m', b'% code'))
        (folder / f'{split}.tar.gz').write_bytes(
            tar(members, 'w:gz', [split]))
        places = [numpy.maximum(table, 0) for table in boxes]
        expected[split] = {
            'features': [image.transpose(2, 0, 1) for image in images],
            'bbox_labels': [column(table[:, 1] % 10) for table in boxes],
            **{f'bbox_{name}s': [column(table[:, i], 'uint16')
                                 for table in places]
               for i, name in ((0, 'height'), (2, 'left'), (3, 'top'),
                               (4, 'width'))}}
    return expected


def svhn_2(folder, counts=(5, 3, 2)):
    """Write the MATLAB files of SVHN's format 2."""
    from scipy.io import savemat
    rng = numpy.random.RandomState(11)
    expected = {}
    for split, count in zip(('train', 'test', 'extra'), counts, strict=True):
        images = bytes_of(rng, 32, 32, 3, count)
        digits = rng.randint(1, 11, (count, 1)).astype('uint8')
        savemat(folder / f'{split}_32x32.mat', {'X': images, 'y': digits},
                do_compression=True)
        expected[split] = {'features': images.transpose(3, 2, 0, 1),
                           'targets': digits % 10}
    return expected


def stl10(folder):
    """Write ``stl10_binary.tar.gz``."""
    rng = numpy.random.RandomState(12)
    members, expected = [], {}
    for split, count in (('test', 3), ('train', 6), ('unlabeled', 4)):
        images = bytes_of(rng, count, 3, 96, 96)
        members.append((f'stl10_binary/{split}_X.bin',
                        images.swapaxes(2, 3).tobytes()))
        expected[split] = {'features': images}
        if split != 'unlabeled':
            labels = rng.randint(1, 11, count).astype('uint8')
            members.append((f'stl10_binary/{split}_y.bin', labels.tobytes()))
            expected[split]['targets'] = column(labels)
    folds = [[0, 2, 5], [1, 3, 4]]
    members.append(('stl10_binary/fold_indices.txt', '\n'.join(
        ' '.join(map(str, fold)) for fold in folds).encode() + b'\n'))
    (folder / 'stl10_binary.tar.gz').write_bytes(
        tar(members, 'w:gz', ['stl10_binary/']))
    for i, fold in enumerate(folds):
        expected[f'fold_{i}'] = {source: array[fold] for source, array
                                 in expected['train'].items()}
    return expected


def omniglot(folder):
    """Write two archives of 1-bit PNG files."""
    rng = numpy.random.RandomState(13)
    characters, alphabets, expected = [], [], {}
    for split, names in (('background', ['Greek', 'Latin']),
                         ('evaluation', ['Tengwar'])):
        members, rows = [(f'images_{split}/', b'')], []
        for alphabet in names:
            members.append((f'images_{split}/{alphabet}/', b''))
            alphabets.append(alphabet)
            for c in (1, 2):
                characters.append((alphabet, c))
                for drawer in (2, 1, 10):
                    ink = rng.randint(0, 2, (105, 105)).astype(bool)
                    name = f'{len(characters):04d}_{drawer:02d}.png'
                    path = f'images_{split}/{alphabet}/character{c:02d}/'
                    members.append((path + name, encode(ink, 'PNG')))
                    rows.append((len(characters) - 1, drawer,
                                 len(alphabets) - 1, ink))
        write_zip(folder / f'images_{split}.zip', members)
        rows.sort(key=lambda row: row[:2])
        expected[split] = {
            'features': numpy.array([row[3] for row in rows],
                                    'uint8')[:, None],
            'targets': column([row[0] for row in rows], 'int16'),
            'drawers': column([row[1] for row in rows]),
            'alphabets': column([row[2] for row in rows])}
    return expected


def jpeg(rng):
    """Return a small JPEG file as an array of its bytes."""
    return numpy.frombuffer(encode(bytes_of(rng, 9, 8, 3), 'JPEG'), 'uint8')


WNIDS = ['n07711080', 'n01440764', 'n02084071', 'n00001740']


def meta_mat(id_field, images, year):
    """Return ``meta.mat``: three classes and their root."""
    from scipy.io import savemat
    fields = [id_field, 'WNID', 'words', 'gloss', 'num_children', 'children',
              'wordnet_height', 'num_train_images']
    synsets = numpy.empty((4, 1), dtype=[(name, object) for name in fields])
    for i, (wnid, count) in enumerate(zip(WNIDS, [*images, 0], strict=True)):
        root = i == 3
        synsets[i, 0] = (
            i + 1, wnid, f'words {i}', f'gloss {i}', 3 * root,
            numpy.array([[1, 300, 1676]] if root else [], 'uint16'),
            int(root), count)
    out = io.BytesIO()
    savemat(out, {'synsets': synsets, **(
        {'cost_matrix': numpy.eye(3, dtype='uint8')} if year == 2010
        else {})}, do_compression=True)
    return out.getvalue()


def train_tar(rng, images, prefix=''):
    """Return a training archive, and its (name, class, bytes) in order."""
    order, members = [], []
    for number in (1, 0, 2):
        inner = [(f'{prefix}{WNIDS[number]}_{i}.JPEG', jpeg(rng))
                 for i in range(images[number])]
        members.append((f'{WNIDS[number]}.tar', tar(
            [(name, content.tobytes()) for name, content in inner])))
        order += [(name, number, content) for name, content in sorted(
            inner, key=lambda member: member[0])]
    return tar(members), order


def image_sources(rows, shuffle_seed=None):
    """Return the sources that rows (name, class, bytes) become."""
    if shuffle_seed is not None:
        order = numpy.random.RandomState(shuffle_seed).permutation(len(rows))
        shuffled = [None] * len(rows)
        for place, row in zip(order, rows, strict=True):
            shuffled[place] = row
        rows = shuffled
    names = [name.encode().rpartition(b'/')[2] for name, _, _ in rows]
    sources = {'encoded_images': [content for _, _, content in rows],
               'filenames': column(names, 'S32')}
    if rows[0][1] is not None:
        sources['targets'] = column([label for _, label, _ in rows], 'int16')
    return sources


def ilsvrc2010(folder):
    """Write the six files of ILSVRC 2010."""
    rng = numpy.random.RandomState(14)
    images = (12, 3, 4)
    train, rows = train_tar(rng, images)
    patch = jpeg(rng)
    patched = rows[5][0]
    rows = [(name, label, patch if name == patched else content)
            for name, label, content in rows]
    expected = {'train': image_sources(rows, shuffle_seed=1)}
    patches = [(f'x/train/{patched}', patch.tobytes()),
               ('x/train/readme.txt', b'not an image')]
    ids = {}
    for split, short, count in (('valid', 'val', 6), ('test', 'test', 5)):
        ids[split] = rng.randint(1, 4, count)
        members = [(f'{short}/ILSVRC2010_{short}_{i + 1:08d}.JPEG',
                    jpeg(rng)) for i in range(count)]
        packed = [(name, gzip.compress(content.tobytes()) if i == 2 else
                   content.tobytes())
                  for i, (name, content) in enumerate(members)]
        (folder / f'ILSVRC2010_images_{short}.tar').write_bytes(
            tar(packed[::-1], 'w', [short + '/']))
        expected[split] = image_sources([
            (name, label - 1, content) for (name, content), label in
            zip(members, ids[split], strict=True)])
    (folder / 'ILSVRC2010_images_train.tar').write_bytes(train)
    (folder / 'patch_images.tar').write_bytes(tar(patches, 'w', ['x/']))

    def text(numbers):
        return ''.join(f'{number}\n' for number in numbers).encode()
    (folder / 'ILSVRC2010_test_ground_truth.txt').write_bytes(
        text(ids['test']))
    (folder / 'ILSVRC2010_devkit-1.0.tar.gz').write_bytes(tar([
        ('devkit-1.0/data/meta.mat', meta_mat('ILSVRC2010_ID', images, 2010)),
        ('devkit-1.0/data/ILSVRC2010_validation_ground_truth.txt',
         text(ids['valid']))], 'w:gz'))
    return expected


def ilsvrc2012(folder, test_name='ILSVRC2012_img_test.tar'):
    """Write the four files of ILSVRC 2012."""
    rng = numpy.random.RandomState(15)
    images = (2, 5, 3)
    train, rows = train_tar(rng, images)
    expected = {'train': image_sources(rows, shuffle_seed=1)}
    (folder / 'ILSVRC2012_img_train.tar').write_bytes(train)
    ids = rng.randint(1, 4, 4)
    valid = [(f'ILSVRC2012_val_{i + 1:08d}.JPEG', jpeg(rng))
             for i in range(4)]
    (folder / 'ILSVRC2012_img_val.tar').write_bytes(tar(
        [(name, content.tobytes()) for name, content in valid]))
    expected['valid'] = image_sources([
        (name, label - 1, content)
        for (name, content), label in zip(valid, ids, strict=True)])
    test = [(f'test/ILSVRC2012_test_{i + 1:08d}.JPEG', jpeg(rng))
            for i in range(3)]
    (folder / test_name).write_bytes(tar(
        [(name, content.tobytes()) for name, content in test], 'w',
        ['test/']))
    expected['test'] = image_sources([(name, None, content)
                                      for name, content in test])
    top = 'ILSVRC2012_devkit_t12/data/'
    (folder / 'ILSVRC2012_devkit_t12.tar.gz').write_bytes(tar([
        (top + 'meta.mat', meta_mat('ILSVRC2012_ID', images, 2012)),
        (top + 'ILSVRC2012_validation_ground_truth.txt',
         ''.join(f'{number}\n' for number in ids).encode())], 'w:gz'))
    return expected


# Name of the data set, arguments of its commands, what writes it.


IMAGES = ('batch', 'channel', 'height', 'width')
LABELS = ('batch', 'index')
CLASSIFIED = {'features': IMAGES, 'targets': LABELS}
BOXES = {f'bbox_{name}s': ('batch', 'bounding_box', label)
         for name, label in (('label', 'index'), ('height', 'height'),
                             ('width', 'width'), ('left', 'x'),
                             ('top', 'y'))}


class RawSet(NamedTuple):
    """A data set, perhaps in one of its forms.

    `write`: writes its raw files into a folder.
    `labels`: of the axes of its sources, as far as they have any.
    `arguments`: of the class, and of ``fuel-convert``, beside the split.
    """

    dataset: str
    write: Callable
    labels: dict
    arguments: Mapping = MappingProxyType({})

    @property
    def command(self):
        """Arguments of ``fuel-convert``, a list of str."""
        return [self.dataset, *map(str, self.arguments.values())]


SETS = {
    'adult': RawSet('adult', adult, {
        'features': ('batch', 'feature'), 'targets': LABELS}),
    'binarized_mnist': RawSet(
        'binarized_mnist', binarized_mnist, {'features': IMAGES}),
    'caltech101_silhouettes': RawSet(
        'caltech101_silhouettes', caltech101_silhouettes, CLASSIFIED,
        {'size': 16}),
    'celeba': RawSet(
        'celeba', celeba, {'features': IMAGES, 'targets': (
            'batch', 'target')}, {'which_format': 'aligned_cropped'}),
    'cifar10': RawSet('cifar10', cifar10, CLASSIFIED),
    'cifar100': RawSet('cifar100', cifar100, {
        'features': IMAGES, 'coarse_labels': LABELS, 'fine_labels': LABELS}),
    'dogs_vs_cats': RawSet('dogs_vs_cats', dogs_vs_cats, {
        'image_features': IMAGES, 'targets': LABELS}),
    'emnist': RawSet(
        'emnist', emnist, CLASSIFIED, {'which_format': 'letters'}),
    'fashion_mnist': RawSet('fashion_mnist', fashion_mnist, CLASSIFIED),
    'ilsvrc2010': RawSet('ilsvrc2010', ilsvrc2010, {}),
    'ilsvrc2012': RawSet('ilsvrc2012', ilsvrc2012, {}),
    'iris': RawSet('iris', iris, {
        'features': ('batch', 'feature'), 'targets': LABELS}),
    'kmnist': RawSet('kmnist', kmnist, CLASSIFIED),
    'mnist': RawSet('mnist', mnist, CLASSIFIED),
    'omniglot': RawSet('omniglot', omniglot, {
        **CLASSIFIED, 'alphabets': LABELS, 'drawers': LABELS}),
    'stl10': RawSet('stl10', stl10, CLASSIFIED),
    'svhn_1': RawSet('svhn', svhn_1, {'features': IMAGES, **BOXES},
                     {'which_format': 1}),
    'svhn_2': RawSet('svhn', svhn_2, CLASSIFIED, {'which_format': 2})}
