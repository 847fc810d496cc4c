"""Pictures in folders of classes are turned as their EXIF data say."""
import io

import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

import fuel
from fuel.bin import fuel_convert
from fuel.converters.raw.images import decode, orientation

UPRIGHT = numpy.arange(4 * 6 * 3, dtype='uint8').reshape(4, 6, 3)
# What a camera stores, which its orientation makes upright.
STORED = {
    1: UPRIGHT,
    2: UPRIGHT[:, ::-1],
    3: UPRIGHT[::-1, ::-1],
    4: UPRIGHT[::-1],
    5: UPRIGHT.transpose(1, 0, 2),
    6: UPRIGHT.transpose(1, 0, 2)[::-1],
    7: UPRIGHT.transpose(1, 0, 2)[::-1, ::-1],
    8: UPRIGHT.transpose(1, 0, 2)[:, ::-1]}
KINDS = {'png': {}, 'tiff': {}, 'webp': {'lossless': True}}


def exif(number):
    """Return EXIF data of an orientation."""
    found = Image.Exif()
    found[0x0112] = number
    return found


def encode(number, kind='png', pixels=None):
    """Return a file of pixels with an orientation."""
    file = io.BytesIO()
    Image.fromarray(numpy.ascontiguousarray(
        STORED[number] if pixels is None else pixels)).save(
            file, kind, exif=exif(number), **KINDS[kind])
    return file.getvalue()


def convert(tmp_path, files, *arguments):
    """Convert files of one class; return the images."""
    folder = tmp_path / 'own' / 'a'
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert 0 == fuel_convert.main([
        'image_folder', str(tmp_path / 'own'), '-o', str(tmp_path),
        *arguments])
    with fuel.load(tmp_path / 'own.hdf5', split='train') as dataset:
        return dataset[:][0]


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('number', STORED)
def test_every_orientation_is_undone(number, kind):
    """The pixels are those that a viewer shows."""
    assert_array_equal(UPRIGHT.transpose(2, 0, 1), decode(
        encode(number, kind), 'a', upright=True))


@pytest.mark.parametrize('kind', KINDS)
def test_pictures_that_are_alike_when_turned_become_an_array(tmp_path, kind):
    """One size is one size of the turned pictures."""
    features = convert(tmp_path, {
        f'{number}.{kind}': encode(number, kind) for number in STORED})
    assert_array_equal(
        numpy.stack([UPRIGHT.transpose(2, 0, 1)] * len(STORED)), features)


def test_pictures_that_differ_when_turned_are_ragged(tmp_path):
    """Their files have one size, their upright pictures have two."""
    features = convert(tmp_path, {'0.png': encode(1),
                                  '1.png': encode(6, pixels=UPRIGHT)})
    assert [(3, 4, 6), (3, 6, 4)] == [image.shape for image in features]


def test_size_is_that_of_the_turned_picture(tmp_path):
    """Height and width are exchanged before the picture is resized."""
    features = convert(tmp_path, {'0.png': encode(6), '1.png': encode(1)},
                       '--size', '8x12')
    assert_array_equal(features[0], features[1])


def test_png_with_exif_data_after_its_pixels_is_left_as_it_is(tmp_path):
    """The size of a picture is known before its pixels are decoded."""
    content = encode(6)
    start = content.index(b'eXIf') - 4
    stop = start + 12 + int.from_bytes(content[start:start + 4], 'big')
    end = content.index(b'IEND') - 4
    late = (content[:start] + content[stop:end] + content[start:stop]
            + content[end:])
    features = convert(tmp_path, {'0.png': late})
    assert_array_equal(STORED[6].transpose(2, 0, 1)[None], features)


@pytest.mark.parametrize('damage', [
    lambda data: data.replace(b'MM', b'NN'), lambda data: data[:11],
    lambda data: data[:6]])
def test_picture_with_damaged_exif_data_is_left_as_it_is(tmp_path, damage):
    """Its pixels can be read."""
    file = io.BytesIO()
    Image.fromarray(UPRIGHT).save(file, 'png',
                                  exif=damage(exif(6).tobytes()))
    features = convert(tmp_path, {'0.png': file.getvalue()})
    assert_array_equal(UPRIGHT.transpose(2, 0, 1)[None], features)


@pytest.mark.parametrize('number', [0, 9, 65535])
def test_unknown_orientation_is_none(number):
    """Numbers from 1 to 8 have a meaning."""
    content = encode(number, pixels=UPRIGHT)
    assert 1 == orientation(Image.open(io.BytesIO(content)))


def test_built_in_sets_are_as_stored():
    """Their files were published with the arrays that others have."""
    assert_array_equal(STORED[6].transpose(2, 0, 1), decode(
        encode(6), 'a'))
