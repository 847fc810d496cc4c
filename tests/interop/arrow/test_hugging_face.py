"""Data sets of Hugging Face keep what they say of their columns."""
import pickle
import shutil
import subprocess
import sys

import numpy
import pyarrow.parquet
import pytest
from support.audio_files import RATE, encode, waves

import fuel
from fuel.exceptions import UndecodableImageError
from fuel.interop.arrow import ArrowDataset, HuggingFaceIterable
from fuel.interop.audio import AudioFromBytes
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers.image import ImagesFromBytes

# It pickles what it makes.
pytestmark = pytest.mark.filterwarnings('ignore')


def test_class_labels_keep_their_names(pictures, tmp_path):
    """They are kept in a file too, under the name of the source, and in a
    pickle."""
    pictures.to_parquet(tmp_path / 'pictures.parquet')
    for data in pictures, str(tmp_path / 'pictures.parquet'):
        dataset = pickle.loads(pickle.dumps(
            ArrowDataset(data, {'targets': 'label'})))
        assert {'targets': ('cat', 'dog')} == dataset.categories
        assert ('cat', 'dog') == dataset.class_names
        targets, = dataset.get_data(None, [1, 0])
        assert ['dog', 'cat'] == dataset.category_names(
            'targets', targets).tolist()


@pytest.mark.parametrize('columns, sources, expected', [
    (('label',), None, ('cat', 'dog')), (('kind',), None, ('cat', 'dog')),
    (('a', 'b'), None, None), (('a', 'b'), ('x', 'b'), ('small', 'large')),
    (('a', 'targets'), None, ('small', 'large')),
    (('fine_labels', 'labels'), None, ('small', 'large')),
    (('a',), ('x',), None), ((), None, None)])
def test_class_names_are_those_of_the_source_of_classes(
        hugging_face, columns, sources, expected):
    """The only source that has names counts too, if it is read. A data set
    that is read in order has the same names."""
    features = {'x': hugging_face.Value('int64'), **{
        name: hugging_face.ClassLabel(names=names) for name, names in zip(
            columns, (['cat', 'dog'], ['small', 'large']), strict=False)}}
    data = hugging_face.Dataset.from_dict(
        {name: [0, 1] for name in features}, hugging_face.Features(features))
    for dataset in (
            ArrowDataset(data, sources=sources),
            HuggingFaceIterable(data.to_iterable_dataset(), sources=sources)):
        assert expected == dataset.class_names


@pytest.mark.parametrize('metadata', [
    None, {}, {'huggingface': 'x'}, {'huggingface': '[]'},
    {'huggingface': '{"info": {"features": {"label": 3}}}'},
    {'huggingface': '{"info": {"features": {"x": {"_type": "Value"}}}}'}])
def test_table_without_names_of_classes_has_none(metadata):
    """Other metadata in the place of names are ignored."""
    table = pyarrow.table({'label': [0, 1]}).replace_schema_metadata(metadata)
    dataset = ArrowDataset(table)
    assert {} == dataset.categories
    with pytest.raises(KeyError):
        dataset.category_names('label', numpy.array([0]))


def test_images_are_decoded(pictures):
    """Images are decoded from bytes, or from the file that they name."""
    stream = ImagesFromBytes(DataStream(
        ArrowDataset(pictures), iteration_scheme=SequentialScheme(4, 4)),
        which_sources=('image',))
    (images, labels), = stream.get_epoch_iterator()
    assert [0, 1, 2, 3] == [int(image.mean()) for image in images]
    assert (3, 4, 5) == images[3].shape
    assert [0, 1, 1, 0] == labels.tolist()


@pytest.mark.parametrize('path', ['missing.png', '.'])
def test_image_whose_file_is_missing_is_an_error(pictures, tmp_path, path):
    """The option `on_error='skip'` leaves the image out."""
    table = pictures.with_format('arrow')[:]
    table = table.set_column(0, 'image', pyarrow.array(
        [*table['image'].to_pylist()[:3],
         {'bytes': None, 'path': str(tmp_path / path)}],
        table.schema.field('image').type))
    scheme = SequentialScheme(4, 4)
    stream = ImagesFromBytes(DataStream(
        ArrowDataset(table), iteration_scheme=scheme),
        which_sources=('image',))
    with pytest.raises(UndecodableImageError, match='cannot be read'):
        next(stream.get_epoch_iterator())
    stream = ImagesFromBytes(DataStream(
        ArrowDataset(table), iteration_scheme=scheme),
        which_sources=('image',), on_error='skip')
    images, labels = next(stream.get_epoch_iterator())
    assert (3, [0, 1, 1]) == (len(images), labels.tolist())


def test_audio_columns_of_hugging_face_are_decoded(hugging_face, tmp_path):
    """Sounds are decoded in memory and from a file, of bytes or of a named
    file."""
    sounds = [encode(waves(number), form)
              for number, form in enumerate(('WAV', 'FLAC'))]
    (tmp_path / 'b.flac').write_bytes(sounds[1])
    features = hugging_face.Features({
        'audio': hugging_face.Audio(sampling_rate=RATE),
        'label': hugging_face.ClassLabel(names=['cat', 'dog'])})
    table = pyarrow.table({
        'audio': pyarrow.array(
            [{'bytes': sounds[0], 'path': 'a.wav'},
             {'bytes': None, 'path': str(tmp_path / 'b.flac')}],
            features.arrow_schema.field('audio').type),
        'label': [0, 1]}).replace_schema_metadata(
            features.arrow_schema.metadata)
    data = hugging_face.Dataset(hugging_face.table.InMemoryTable(table),
                            fingerprint='a')
    data.to_parquet(tmp_path / 'sounds.parquet')
    for source in data, str(tmp_path / 'sounds.parquet'):
        stream = AudioFromBytes(
            DataStream(ArrowDataset(source), batch_size=2), RATE,
            which_sources='audio')
        (found, labels), = stream.get_epoch_iterator()
        assert [0, 1] == labels.tolist()
        for number, sound in enumerate(found):
            numpy.testing.assert_allclose(
                waves(number)[:, 0], sound, atol=1e-4)


@pytest.mark.parametrize('change', [
    lambda data: data,
    lambda data: data.shuffle(seed=1),
    lambda data: data.select([4, 0]),
    lambda data: data.train_test_split(2, seed=1)['train'],
    lambda data: data.shuffle(seed=1).add_column('z', list(range(5))),
    lambda data: data.select_columns(['label', 'text']).shuffle(seed=1),
    lambda data: data.rename_column('text', 'words').shuffle(seed=1),
    lambda data: data.shuffle(seed=1).with_format(
        'numpy', columns=['label', 'text']),
    lambda data: data.shuffle(seed=1).with_format(
        'numpy', columns=['label'], output_all_columns=True)],
    ids=['cast', 'shuffle', 'select', 'split', 'flattened', 'columns',
         'renamed', 'format', 'format of some'])
def test_sources_are_in_the_order_of_column_names(hugging_face, change):
    """Casts and selections keep the order, so that a loop over the batches
    names them right."""
    data = change(hugging_face.Dataset.from_dict({
        'text': list('abcde'), 'label': [0, 1, 0, 1, 1]}).cast_column(
            'label', hugging_face.ClassLabel(names=['bad', 'good'])))
    dataset = ArrowDataset(data)
    assert tuple(data.column_names) == dataset.sources
    rows = data.with_format(None)[:]
    assert [rows[name] for name in data.column_names] == [
        part.tolist() for part in dataset[:]]
    parts = ArrowDataset(hugging_face.DatasetDict(
        {'train': data, 'test': data.select([1])}), which_sets=('test',))
    assert tuple(data.column_names) == parts.sources


def test_splits_of_a_dict_are_chosen(hugging_face, pictures):
    """The argument `which_sets` chooses splits, and their order."""
    parts = hugging_face.DatasetDict({
        'train': pictures.select([2, 0, 1], new_fingerprint='b'),
        'test': pictures.select([3], new_fingerprint='c')})
    chosen = ArrowDataset(parts, which_sets=('test', 'train'),
                          sources=('label',))
    assert [0, 1, 0, 1] == chosen.get_data(None, slice(0, 4))[0].tolist()
    assert {'label': ('cat', 'dog')} == {
        'label': chosen.categories['label']}
    assert 1 == ArrowDataset(parts, which_sets=('test',)).num_examples
    with pytest.raises(ValueError, match='train'):
        ArrowDataset(parts, which_sets=('valid',))


def test_splits_of_other_columns_are_refused(hugging_face, pictures):
    """The error says how to read one of them."""
    parts = hugging_face.DatasetDict({
        'train': pictures, 'test': hugging_face.Dataset(
            hugging_face.table.InMemoryTable(pyarrow.table({'x': [1]})),
            fingerprint='d')})
    with pytest.raises(ValueError, match=r"different columns.*\['train'\]"):
        ArrowDataset(parts, which_sets=('train',))


def test_folder_that_hugging_face_saved_is_opened(
        hugging_face, pictures, tmp_path):
    """Its files are Arrow streams; what `map` kept beside them is not read."""
    folder = tmp_path / 'saved'
    hugging_face.DatasetDict(
        {'train': pictures, 'test': pictures.select([0])}).save_to_disk(folder)
    kept = next((folder / 'train').glob('data-*.arrow'))
    for name in ('cache-0a1b2c3d4e5f6789', 'cache-0a1b_00000_of_00002'):
        shutil.copy(kept, folder / 'train' / f'{name}.arrow')
    for split, count in [('train', 4), ('test', 1)]:
        for dataset in (fuel.load(folder, split),
                        ArrowDataset(folder / split)):
            assert count == dataset.num_examples
            assert {'label': ('cat', 'dog')} == dataset.categories
    assert 4 == fuel.load(kept).num_examples


def test_other_names_of_classes_are_refused(hugging_face, tmp_path):
    """One number would stand for two names; not if no source has them."""
    parts = {name: hugging_face.Dataset.from_dict(
        {'x': [0, 1], 'label': [0, 1]}, hugging_face.Features({
            'x': hugging_face.Value('int64'),
            'label': hugging_face.ClassLabel(names=names)}))
        for name, names in (('train', ['cat', 'dog']),
                            ('test', ['dog', 'cat']))}
    with pytest.raises(ValueError, match=r"classes of 'label'.*\['train'\]"):
        ArrowDataset(hugging_face.DatasetDict(parts), which_sets=('train',))
    paths = [str(tmp_path / f'{name}.parquet') for name in parts]
    for path, part in zip(paths, parts.values(), strict=True):
        part.to_parquet(path)
    with pytest.raises(ValueError, match="test.parquet.*of 'label'"):
        ArrowDataset(paths)
    assert not ArrowDataset(paths, {'data': 'x'}).categories
    assert ('cat', 'dog') == ArrowDataset(
        [paths[0], paths[0]]).categories['label']


@pytest.mark.parametrize('shape', [(4, 6), (4, 3, 2), (2, 2, 3, 2)])
def test_arrays_come_as_arrays(tmp_path, hugging_face, shape):
    """Files read without the library, and streams, give arrays too."""
    rows = numpy.arange(5 * numpy.prod(shape), dtype='uint8').reshape(
        5, *shape)
    found = hugging_face.Dataset.from_dict(
        {'x': rows}, hugging_face.Features({
            'x': getattr(hugging_face, f'Array{len(shape)}D')(
                shape, 'uint8')}))
    found.to_parquet(tmp_path / 'a.parquet')
    found.save_to_disk(tmp_path / 'saved')
    for data in found, tmp_path / 'a.parquet', tmp_path / 'saved':
        dataset = ArrowDataset(data)
        assert shape == dataset.known_types()['x'].shape
        assert numpy.uint8 == dataset[[4, 0]][0].dtype
        numpy.testing.assert_array_equal(rows[[4, 0]], dataset[[4, 0]][0])
    assert 0 == subprocess.run([sys.executable, '-c', f"""
import sys
from fuel.interop.arrow import ArrowDataset
x, = ArrowDataset({str(tmp_path / 'a.parquet')!r})[:]
assert x.shape == {rows.shape} and x.sum() == {rows.sum()}, x
assert 'datasets' not in sys.modules
"""], check=False).returncode
    stream = HuggingFaceIterable(found.to_iterable_dataset())
    numpy.testing.assert_array_equal(
        rows[0], stream.get_data(stream.open())[0])


def test_arrays_that_are_missing_or_of_no_fixed_shape(hugging_face):
    """Nulls are refused as in other lists; a first axis may have any
    length."""
    def dataset(shape, rows):
        return ArrowDataset(hugging_face.Dataset.from_dict(
            {'x': rows}, hugging_face.Features({
                'x': hugging_face.Array2D(shape, 'int32')})))

    gaps = dataset((1, 2), [[[1, 2]], None, [[3, 4]]])
    with pytest.raises(ValueError, match="column 'x' .*has 1 nulls"):
        gaps[:]
    ragged, = dataset((None, 2), [[[1, 2]], [[3, 4], [5, 6]]])[:]
    assert [(1, 2), (2, 2)] == [one.shape for one in ragged]
    assert {numpy.dtype('int32')} == {one.dtype for one in ragged}


def test_arrays_of_text_are_lists(hugging_face):
    """Tables and streams give lists, since no array of NumPy holds text
    arrays."""
    found = hugging_face.Dataset.from_dict(
        {'x': [[['a', 'b'], ['c', None]]] * 2}, hugging_face.Features({
            'x': hugging_face.Array2D((2, 2), 'string')}))
    rows, = ArrowDataset(found)[:]
    assert [[['a', 'b'], ['c', None]]] * 2 == rows.tolist()
    stream = HuggingFaceIterable(found.to_iterable_dataset())
    assert ([['a', 'b'], ['c', None]],) == stream.get_data(stream.open())


@pytest.mark.parametrize('shape', [
    f'[[{"9" * 40}, 2], "int64"]', '[' * 100000, '[[2], "int64"]', '7'],
    ids=['large', 'deep', 'short', 'none'])
def test_damaged_shape_of_arrays_is_none(tmp_path, shape):
    """Rows come by what they are then."""
    values = pyarrow.array([[[1, 2], [3, 4]]])
    field = pyarrow.field('x', values.type, metadata={
        'ARROW:extension:name':
            'datasets.features.features.Array9DExtensionType',
        'ARROW:extension:metadata': shape})
    pyarrow.parquet.write_table(pyarrow.table(
        [values], pyarrow.schema([field])), tmp_path / 'a.parquet')
    found, = ArrowDataset(tmp_path / 'a.parquet')[0]
    assert [[1, 2], [3, 4]] == found.tolist()


def test_nested_lists_of_numbers_are_arrays(hugging_face):
    """Each array has its shape; lists of several lengths stay lists."""
    rows = [[[1, 2], [3, 4]], [[5, 6]], [], None, [[1], [2, 3]]]
    found, = ArrowDataset(hugging_face.Dataset.from_dict({'x': rows}))[:]
    assert [(2, 2), (1, 2), (0, 0)] == [one.shape for one in found[:3]]
    assert rows[:3] == [one.tolist() for one in found[:3]]
    assert rows[3:] == found[3:].tolist()
