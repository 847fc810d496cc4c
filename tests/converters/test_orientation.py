"""Pictures in folders of classes are turned as their EXIF data say."""
import io

import numpy
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

import fuel
from fuel.bin import fuel_convert
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.images import decode_image, open_image
from fuel.datasets import IndexableDataset
from fuel.exceptions import UndecodableImageError
from fuel.streams import DataStream
from fuel.transformers.image import ImagesFromBytes
from fuel.transformers.image.orientation import orientation, upright_size

UPRIGHT = numpy.arange(4 * 6 * 3, dtype='uint8').reshape(4, 6, 3)
# Stored pixels that each orientation makes upright.
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
    assert_array_equal(UPRIGHT.transpose(2, 0, 1), decode_image(
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


def with_late_exif(content):
    """Return a PNG file with its EXIF data after its pixels."""
    start = content.index(b'eXIf') - 4
    stop = start + 12 + int.from_bytes(content[start:start + 4], 'big')
    end = content.index(b'IEND') - 4
    return (content[:start] + content[stop:end] + content[start:stop]
            + content[end:])


def test_exif_data_after_the_pixels_of_a_png_count(tmp_path):
    """The size of the picture, which is known first, is the turned one."""
    features = convert(tmp_path, {
        f'{number}.png': with_late_exif(encode(number))
        for number in STORED})
    assert_array_equal(
        numpy.stack([UPRIGHT.transpose(2, 0, 1)] * len(STORED)), features)


def test_orientation_of_a_png_is_the_same_before_and_after_decoding():
    """Finding EXIF data does not disturb the decoder."""
    for content in (encode(6), with_late_exif(encode(6))):
        image = Image.open(io.BytesIO(content))
        assert 6 == orientation(image)
        assert_array_equal(STORED[6], numpy.asarray(image))
        assert 6 == orientation(image)


def test_pixels_of_a_png_without_exif_data_are_not_decoded_for_its_size():
    """It is known from the head of the file."""
    file = io.BytesIO()
    Image.fromarray(UPRIGHT).save(file, 'png')
    image = Image.open(file)
    assert (4, 6) == upright_size(image)
    assert image.fp is not None


def test_large_png_with_late_exif_data_is_not_decoded_for_its_size(
        tmp_path, monkeypatch):
    """A small file can claim to be gigabytes of pixels."""
    monkeypatch.setattr('fuel.converters.raw.images.MAX_PIXELS', 23)
    path = tmp_path / '0.png'
    path.write_bytes(with_late_exif(encode(6)))
    with pytest.raises(BadInputFile, match='4 x 6 pixels'), open_image(
            path, 'a') as image:
        upright_size(image)


def test_png_that_is_cut_off_is_reported_as_such(tmp_path):
    """Looking for EXIF data ends at the end of the file."""
    content = with_late_exif(encode(6))
    with pytest.raises(BadInputFile, match='cannot be decoded'):
        decode_image(content[:content.index(b'IDAT') + 10], 'a', upright=True)


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
    assert_array_equal(STORED[6].transpose(2, 0, 1), decode_image(
        encode(6), 'a'))


def decoded(*files, **arguments):
    """Return what the stage makes of files."""
    stream = DataStream(IndexableDataset({'image': list(files)}),
                        batch_size=len(files))
    return next(iter(ImagesFromBytes(stream, **arguments)))[0]


@pytest.mark.parametrize('kind', KINDS)
def test_stage_turns_images_as_the_conversion_does(tmp_path, kind):
    """An argument asks for it."""
    files = [encode(number, kind) for number in STORED]
    for image in decoded(*files, upright=True):
        assert_array_equal(UPRIGHT.transpose(2, 0, 1), image)
    grey, = decoded(files[5], upright=True, color_mode='L')
    assert (1, 4, 6) == grey.shape


def test_stage_leaves_images_as_they_are_stored(caplog):
    """The stage logs a turned image once, unless upright=False is given."""
    files = [encode(number) for number in (1, 6, 8)]
    stored = [numpy.ascontiguousarray(STORED[number].transpose(2, 0, 1))
              for number in (1, 6, 8)]
    for arguments, messages in (({'upright': False}, 0), ({}, 1)):
        found = decoded(*files, **arguments)
        assert all(map(numpy.array_equal, stored, found))
        assert messages == len(caplog.messages)
    assert 'orientation 6' in caplog.text or 'orientation 8' in caplog.text
    assert 'pass upright=True to turn such images' in caplog.text
    with pytest.raises(TypeError, match='upright must be True or False'):
        decoded(*files, upright='yes')


@pytest.mark.parametrize('number', [1, 6])
def test_jpeg_is_shrunk_to_the_size_of_what_is_upright(number):
    """A picture on its side has the other size in its file."""
    file = io.BytesIO()
    size = (640, 160) if number == 1 else (160, 640)
    Image.new('RGB', size).save(file, 'JPEG', exif=exif(number))
    image, = decoded(file.getvalue(), upright=True, shrink_to=(40, 100))
    assert (3, 40, 160) == image.shape


def test_images_that_are_missing_or_several_are_told():
    """Skipping leaves out empty and missing images; a list is an error."""
    good = encode(1)
    stream = DataStream(
        IndexableDataset({'image': [good, b'', None, {
            'bytes': None, 'path': None}]}), batch_size=4, on_error='skip')
    stream = ImagesFromBytes(stream)
    assert [1] == [len(images) for images, in stream]
    skipped = stream.skipped_examples()
    assert [1, 2, 3] == [one.example for one in skipped.examples]
    for file, text in ((b'', r"'image' \(0 bytes\) is empty"),
                       (None, "'image' is missing")):
        with pytest.raises(UndecodableImageError, match=text):
            decoded(file)
    with pytest.raises(TypeError, match=(
            'must be one file, got 2, such as .*: choose one of them before')):
        decoded([good, good])
    with pytest.raises(BadInputFile, match='the file is empty'):
        decode_image(b'', 'a.png')
