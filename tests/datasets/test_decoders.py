"""The stages that data sets print for their pictures and sounds."""
import io
import re

import pytest
from PIL import Image
from support.mds_files import write_mds
from support.tar_files import write_tar
from support.tfrecord_files import example, write_tfrecord

import fuel
from fuel.datasets import FilesDataset
from fuel.datasets.decoders import stage_for
from fuel.streams import DataStream

COUNT = 3


def picture(number, form='PNG'):
    """Return the file of a picture of one colour."""
    file = io.BytesIO()
    Image.new('RGB', (4, 5), (number, 0, 0)).save(file, form)
    return file.getvalue()


def folder(path):
    """Return a folder of pictures, and the name of their source."""
    for number in range(COUNT):
        place = path / 'ab'[number % 2]
        place.mkdir(exist_ok=True)
        (place / f'{number}.png').write_bytes(picture(number))
    return path, 'image'


def tar(path):
    """Return an archive of pictures, and the name of their source."""
    return write_tar(path / 'a.tar', [
        member for number in range(COUNT) for member in (
            (f'{number}.cls', b'%d' % number),
            (f'{number}.png', picture(number)))]), 'png'


def mds(path):
    """Return a folder of shards, and the name of the source of pictures."""
    return write_mds(path / 'mds', {
        'picture': ('jpeg', None), 'label': ('str', None)}, [[
            (picture(number, 'JPEG'), b'%d' % number)
            for number in range(COUNT)]]), 'picture'


def tfrecord(path):
    """Return a file of records, and the name of the source of pictures."""
    return write_tfrecord(path / 'a.tfrecord', [
        example(**{'image/encoded': [picture(number, 'JPEG')],
                   'image/format': [b'JPEG'], 'image/label': [number]})
        for number in range(COUNT)]), 'image/encoded'


KINDS = folder, tar, mds, tfrecord


@pytest.mark.parametrize('make', KINDS)
def test_the_import_and_the_call_that_are_printed_decode(tmp_path, make):
    """Both can be pasted, and other sources stay as they are."""
    path, source = make(tmp_path)
    dataset = fuel.load(path)
    names = {'stream': DataStream(dataset, batch_size=COUNT)}
    text = str(dataset)
    exec(re.search(r'from [\w.]+ import \w+', text)[0], names)
    stream = eval(re.search(r'decode with (.*?)[;>]', text)[1], names)
    batch = dict(zip(stream.sources, next(iter(stream)), strict=True))
    assert [(3, 5, 4)] * COUNT == [one.shape for one in batch[source]]
    assert text.count('decode with') == text.count('which_sources=') == 1


@pytest.mark.parametrize('make', KINDS)
def test_a_stage_is_printed_for_sources_in_use_only(tmp_path, make):
    """The sources are chosen in the call, or later."""
    path, source = make(tmp_path)
    dataset = fuel.load(path)
    others = [one for one in dataset.sources if one != source]
    dataset.sources = tuple(others)
    for one in dataset, fuel.load(path, sources=others):
        assert 'decode with' not in str(one)
        assert 'import' not in str(one)


def test_stages_of_both_kinds_are_printed(tmp_path):
    """Each with its sources and its module."""
    sound = b'RIFF\x24\0\0\0WAVEfmt '
    path = write_tfrecord(tmp_path / 'a', [example(
        a=[picture(0)], b=[sound], c=[picture(1)], d=[b'RIFF'])] * 2)
    assert (
        "; decode with ImagesFromBytes(stream, which_sources=('a', 'c')); "
        "from fuel.transformers.image import ImagesFromBytes; "
        "decode with AudioFromBytes(stream, which_sources=('b',)); "
        "from fuel.interop.audio import AudioFromBytes>") in str(
            fuel.load(path))


@pytest.mark.parametrize('values', [
    ([picture(0)], [b'text']), ([picture(0)], []),
    ([picture(0)], [picture(0)] * 2), ([picture(0)] * 2,) * 2])
def test_a_feature_that_is_not_always_one_picture_has_no_stage(
        tmp_path, values):
    """Since the stage takes one picture of each record."""
    path = write_tfrecord(tmp_path / 'a', [
        example(a=value, b=[1]) for value in values])
    assert 'decode with' not in str(fuel.load(path))


@pytest.mark.parametrize('form', [
    'BMP', 'GIF', 'JPEG', 'PNG', 'TIFF', 'WEBP'])
def test_pictures_are_known_by_their_first_bytes(form):
    """In each format that Pillow writes here."""
    assert 'ImagesFromBytes' == stage_for(picture(1, form))


def test_an_audio_folder_names_the_module_of_its_stage(tmp_path):
    """It is not that of the stages of pictures."""
    (tmp_path / 'a.flac').write_bytes(b'fLaC')
    assert 'from fuel.interop.audio import AudioFromBytes' in str(
        FilesDataset(tmp_path))
