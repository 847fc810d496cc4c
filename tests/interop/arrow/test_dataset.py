"""Tables of Arrow, Parquet files and data frames as data sets."""
import collections
import pickle
from functools import partial

import numpy
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuel_calls import calls_of_batches

import fuel
from fuel.bin import fuel_convert
from fuel.datasets import H5PYDataset, Windows
from fuel.exceptions import DamagedFileError
from fuel.interop.arrow import ArrowDataset, from_pandas
from fuel.schemes import (
    BlockShuffledScheme, SequentialScheme, ShuffledScheme)
from fuel.streams import DataStream
from fuel.testing import check_dataset, check_stream
from fuel.transformers import MultiProcessing

N = 30


def table(count=N):
    """Return a table of all kinds of columns."""
    rng = numpy.random.RandomState(2)
    images = rng.randint(0, 256, (count, 2, 3)).astype('uint8')
    return pyarrow.table({
        'number': rng.randint(-9, 9, count).astype('int32'),
        'weight': rng.rand(count),
        'flag': rng.rand(count) < .5,
        'image': pyarrow.FixedShapeTensorArray.from_numpy_ndarray(images),
        'pair': pyarrow.FixedSizeListArray.from_arrays(
            pyarrow.array(rng.rand(2 * count).astype('float32')), 2),
        'words': [list(range(n % 4)) for n in range(count)],
        'name': [f'é{n}' for n in range(count)],
        'kind': pyarrow.array(
            [('a', 'b')[n % 2] for n in range(count)]).dictionary_encode(),
        'time': pyarrow.array(
            numpy.arange(count).astype('datetime64[ms]')),
    })


def write(folder, kind):
    """Write the table in a way; return what a data set is made of."""
    path = str(folder / 'data')
    if kind == 'table':
        return table()
    if kind == 'chunks':
        return pyarrow.concat_tables(
            [table().slice(0, 11), table().slice(11, 0), table().slice(11)])
    if kind == 'parquet':
        pyarrow.parquet.write_table(table(), path, row_group_size=7)
    elif kind == 'folder':
        for part in range(3):
            pyarrow.parquet.write_table(
                table().slice(part * 10, 10),
                str(folder / f'part-{part}.parquet'), row_group_size=4)
        return str(folder)
    else:
        make = (pyarrow.ipc.new_file if kind == 'arrow'
                else pyarrow.ipc.new_stream)
        with make(path, table().schema) as writer:
            for batch in table().to_batches(max_chunksize=8):
                writer.write_batch(batch)
    return path


KINDS = ['table', 'chunks', 'parquet', 'folder', 'arrow', 'arrow stream']


def expected(rows):
    """Return what a batch of the table holds, by PyArrow itself."""
    taken = table().take(rows)
    return {
        **{name: taken[name].to_numpy() for name in (
            'number', 'weight', 'flag', 'time')},
        'image': taken['image'].combine_chunks().to_numpy_ndarray(),
        'pair': numpy.array(taken['pair'].to_pylist(), 'float32'),
        'words': taken['words'].to_pylist(),
        'name': taken['name'].to_pylist(), 'kind': taken['kind'].to_pylist()}


def check(batch, rows):
    """Compare a batch with the rows of the table."""
    for name, part in expected(rows).items():
        found = batch[name]
        if isinstance(part, list):
            assert found.dtype == object
            assert part == [each.tolist() if hasattr(each, 'tolist')
                            else each for each in found]
        else:
            assert (part.dtype, part.tolist()) == (
                found.dtype, found.tolist()), name


@pytest.mark.parametrize('cache_bytes', [None, 300])
@pytest.mark.parametrize('kind', KINDS)
def test_rows_are_those_of_the_library(kind, cache_bytes, tmp_path):
    """Rows are equal in any order, in slices and alone, for any cache."""
    dataset = ArrowDataset(write(tmp_path, kind), cache_bytes=cache_bytes)
    assert N == dataset.num_examples
    assert tuple(table().column_names) == dataset.sources

    def read(request):
        return dict(zip(dataset.sources, dataset.get_data(None, request),
                        strict=True))
    for rows in ([3], [29, 0, 7, 7, 14], list(range(N))[::-1]):
        check(read(rows), rows)
    check(read(slice(5, 19)), list(range(5, 19)))
    check({name: numpy.array([part, None], object)[:1]
           if name in ('words', 'name', 'kind') else numpy.array([part])
           for name, part in read(12).items()}, [12])
    dataset.close(None)


@given(st.lists(st.integers(0, N - 1), min_size=1, max_size=40),
       st.sampled_from([0, 50, 10 ** 6]), st.integers(1, N))
def test_any_rows_of_any_groups_are_right(rows, cache_bytes, size):
    """Rows are right with a cache of any size."""
    chunks = pyarrow.concat_tables(
        table().slice(start, size) for start in range(0, N, size))
    dataset = ArrowDataset(chunks, cache_bytes=cache_bytes)
    check(dict(zip(dataset.sources, dataset.get_data(None, rows),
                   strict=True)), rows)


@pytest.mark.parametrize('kind', ['table', 'chunks', 'parquet'])
def test_data_set_keeps_the_promises_of_data_sets(
        kind, tmp_path, another_process):
    """The promises are about states, pickles, ownership, threads and
    processes."""
    build = partial(ArrowDataset, write(tmp_path, kind), sources=(
        'number', 'image', 'words', 'name'))
    check_dataset(build, another_process=another_process)


def test_epoch_resumes_and_runs_in_workers(tmp_path, another_process):
    """Row groups are decoded in whichever process reads them."""
    path = write(tmp_path, 'parquet')

    def stream():
        return DataStream(ArrowDataset(path, sources=('number', 'name')),
                          iteration_scheme=BlockShuffledScheme(
                              N, 4, block_size=7, window=2))

    def read(epoch):
        return [(numbers.tolist(), names.tolist()) for numbers, names in epoch]

    whole = read(stream().get_epoch_iterator())
    assert N == sum(len(numbers) for numbers, _ in whole)
    with MultiProcessing(stream(), num_workers=2) as parallel:
        assert whole == read(parallel.get_epoch_iterator())
    check_stream(stream, another_process=False)


def test_only_the_columns_of_the_sources_are_decoded(tmp_path, monkeypatch):
    """Each row group is decoded once, while it fits."""
    path = write(tmp_path, 'parquet')
    decoded = count_decoded(monkeypatch)
    stream = DataStream(ArrowDataset(path, sources=('number', 'image')),
                        iteration_scheme=ShuffledScheme(N, 4))
    for _ in range(2):
        list(stream.get_epoch_iterator())
    assert {'number': 5, 'image': 5} == decoded


def count_decoded(monkeypatch):
    """Return what counts how often the row groups of columns are decoded."""
    decoded = collections.Counter()
    original = pyarrow.parquet.ParquetFile.read_row_group

    def read(self, group, columns=None, **kwargs):
        decoded.update(columns)
        return original(self, group, columns=columns, **kwargs)

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, 'read_row_group', read)
    return decoded


def test_groups_that_do_not_fit_are_dropped(tmp_path, monkeypatch):
    """The least recently used are dropped; the last is kept at any size."""
    decoded = count_decoded(monkeypatch)
    for cache_bytes, count in ((2 * 7 * 8, 4), (7 * 8, 7), (0, 7)):
        decoded.clear()
        dataset = ArrowDataset(write(tmp_path, 'parquet'), sources=(
            'weight',), cache_bytes=cache_bytes)
        for row in (0, 8, 8, 0, 15, 15, 0, 22, 0):
            dataset.get_data(None, [row])
        assert count == decoded['weight']


def test_columns_that_are_read_share_the_cache_by_bytes(
        tmp_path, monkeypatch):
    """Unread columns take no memory, and a small column leaves its rest."""
    path = str(tmp_path / 'wide.parquet')
    pyarrow.parquet.write_table(pyarrow.table({
        'large': numpy.arange(100.), 'small': numpy.arange(100, dtype='i1'),
        'text': [f'{n}' for n in range(100)],
        **{f'c{n}': numpy.arange(100.) for n in range(20)}}), path,
        row_group_size=10)
    decoded = count_decoded(monkeypatch)
    dataset = ArrowDataset(path, sources=('large', 'small'), cache_bytes=900)
    rows = numpy.random.RandomState(0).permutation(100)
    for _ in range(2):
        for start in range(0, 100, 5):
            batch = rows[start:start + 5].tolist()
            large, small = dataset.get_data(None, batch)
            assert batch == large.tolist() == small.tolist()
    assert {'large': 10, 'small': 10} == decoded
    decoded.clear()
    del dataset  # The next one may share what this one remembers.
    dataset = ArrowDataset(path, sources=('large', 'text'),
                           cache_bytes=900 + 100 * 80)
    for _ in range(2):
        assert [f'{n}' for n in rows] == dataset.get_data(
            None, rows.tolist())[1].tolist()
    assert {'large': 10, 'text': 10} == decoded


def test_columns_become_sources():
    """A source is one column, or several as the second axis."""
    data = pyarrow.table({'a': [1, 2], 'b': [.5, .25], 'c': ['x', 'y']})
    dataset = ArrowDataset(data, {'features': ['a', 'b'], 'label': 'c'})
    features, label = dataset.get_data(None, [1, 0])
    assert [[2., .25], [1., .5]] == features.tolist()
    assert ['y', 'x'] == label.tolist()
    with pytest.raises(ValueError, match='must be plain numbers'):
        ArrowDataset(data, {'features': ['a', 'c']})
    with pytest.raises(ValueError, match="no column 'd'"):
        ArrowDataset(data, {'features': 'd'})
    with pytest.raises(ValueError, match='at least one, got {}'):
        ArrowDataset(data, {})


def test_splits_are_rows():
    """Splits are given as those of NumPy's files."""
    dataset = ArrowDataset(table(), which_sets=('test', 'train'), splits={
        'train': (0, 5), 'test': [29, 7]}, sources=('name',))
    assert 7 == dataset.num_examples
    assert ['é29', 'é7', 'é0'] == dataset.get_data(
        None, slice(0, 3))[0].tolist()


def test_nulls_are_nan_none_or_an_error():
    """The type of the column decides which."""
    data = pyarrow.table({
        'float': [1., None], 'text': ['a', None], 'int': [1, None],
        'list': pyarrow.array([[1], None], pyarrow.list_(pyarrow.int8())),
        'time': pyarrow.array([None, 1], pyarrow.timestamp('us'))})
    dataset = ArrowDataset(data)
    assert numpy.isnan(dataset.readers['float'].read(1))
    assert ['a', None] == dataset.readers['text'].read(slice(None)).tolist()
    assert dataset.readers['list'].read(1) is None
    assert numpy.isnat(dataset.readers['time'].read(0))
    with pytest.raises(ValueError, match="column 'int'.*has 1 nulls"):
        dataset.readers['int'].read(0)


def test_pickle_holds_paths_or_the_table(tmp_path):
    """The pickle holds no decoded rows."""
    dataset = ArrowDataset(write(tmp_path, 'parquet'))
    dataset.get_data(None, list(range(N)))
    text = pickle.dumps(dataset)
    assert len(text) < 2000
    check(dict(zip(dataset.sources, pickle.loads(text).get_data(
        None, [5, 1]), strict=True)), [5, 1])


@pytest.mark.parametrize('content, text', [
    (b'', 'cannot be read'), (b'PAR1 nothing', 'cannot be read'),
    (b'ARROW1\0\0', 'cannot be read'), (b'a,b\n1,2\n', 'cannot be read')])
def test_file_that_is_none_is_refused(content, text, tmp_path):
    """The error names the path of the file."""
    path = tmp_path / 'file'
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=text) as caught:
        ArrowDataset(path)
    assert str(path) in str(caught.value)


def test_damaged_row_group_is_reported_when_it_is_read(tmp_path):
    """The others are read."""
    path = write(tmp_path, 'parquet')
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    start = metadata.row_group(2).column(0).data_page_offset
    with open(path, 'r+b') as file:
        file.seek(start)
        file.write(b'\xff' * 30)
    dataset = ArrowDataset(path, sources=('number',))
    dataset.get_data(None, [0, 29])
    with pytest.raises(DamagedFileError, match="'number' cannot be read"):
        dataset.get_data(None, [15])


def test_wrong_arguments_are_refused(tmp_path):
    """The error names the wrong argument."""
    with pytest.raises(FileNotFoundError):
        ArrowDataset(tmp_path / 'missing.parquet')
    with pytest.raises(FileNotFoundError, match='no file that ends in'):
        ArrowDataset(tmp_path)
    with pytest.raises(TypeError, match='data must be the path'):
        ArrowDataset(5)
    with pytest.raises(ValueError, match='at least one file'):
        ArrowDataset([])
    with pytest.raises(ValueError, match='cache_bytes'):
        ArrowDataset(table(), cache_bytes=-1)
    with pytest.raises(TypeError, match='pandas.DataFrame'):
        from_pandas([1, 2])
    for number, name in enumerate(('a', 'b')):
        pyarrow.parquet.write_table(
            pyarrow.table({name: [1]}), tmp_path / f'{number}.parquet')
    with pytest.raises(ValueError, match="no column 'a'"):
        ArrowDataset(tmp_path)


def test_data_frame_is_a_data_set():
    """Its index is left out; categories are their names."""
    frame = pandas.DataFrame(
        {'x': [1., 2., 3.], 'y': [1, 2, 3],
         'kind': pandas.Categorical(['a', 'b', 'a'])}, index=[7, 8, 9])
    dataset = from_pandas(frame, sources=('kind', 'x'))
    kind, x = dataset.get_data(None, [2, 1])
    assert (['a', 'b'], [3., 2.]) == (kind.tolist(), x.tolist())
    assert ('x', 'y', 'kind') == ArrowDataset(frame).sources


@pytest.mark.filterwarnings('ignore')    # It pickles what it makes.
def test_data_set_of_hugging_face_is_one(hugging_face):
    """A selection of its rows is one too."""
    # With fingerprints, which it would make by pickling PyArrow's classes.
    data = hugging_face.Dataset(hugging_face.table.InMemoryTable(pyarrow.table(
        {'text': list('abcdef'), 'label': list(range(6))})), fingerprint='a')
    text, label = ArrowDataset(data).get_data(None, [4, 0])
    assert (['e', 'a'], [4, 0]) == (text.tolist(), label.tolist())
    chosen = ArrowDataset(data.select([5, 1, 3], new_fingerprint='b'))
    assert [5, 1, 3] == chosen.get_data(None, slice(0, 3))[1].tolist()


@pytest.mark.filterwarnings('ignore')    # It pickles what it makes.
def test_formats_of_hugging_face_are_honoured_or_refused(hugging_face):
    """Columns are chosen; what would change values is not dropped."""
    data = hugging_face.Dataset(hugging_face.table.InMemoryTable(pyarrow.table(
        {'text': list('abc'), 'label': [0, 1, 2]})), fingerprint='a')
    for kind in (None, 'numpy', 'arrow', 'pandas'):
        chosen = data.with_format(kind, columns=['label'])
        assert ('label',) == ArrowDataset(chosen).sources
        everything = data.with_format(
            kind, columns=['label'], output_all_columns=True)
        assert ('text', 'label') == ArrowDataset(everything).sources
    with pytest.raises(ValueError, match=r"'custom'.*with_format\(None"):
        ArrowDataset(data.with_transform(dict))
    with pytest.raises(ValueError, match="format 'numpy'"):
        ArrowDataset(data.with_format('numpy', dtype='float32'))
    with pytest.raises(TypeError, match=r"DatasetDict .*sets=\('train',\)"):
        ArrowDataset(hugging_face.DatasetDict({'train': data}))
    with pytest.raises(TypeError, match='is a stream: load it without'):
        ArrowDataset(data.to_iterable_dataset())


def test_anything_that_exports_arrow_is_one():
    """The protocol of the Arrow format makes it a table."""
    class Exported:
        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.table({'a': [1, 2]}).__arrow_c_stream__(
                requested_schema)

    assert [2] == ArrowDataset(Exported()).get_data(None, [1])[0].tolist()


def test_parquet_is_converted_to_hdf5(tmp_path, capsys):
    """Numbers stay, text becomes classes, and random splits are made."""
    pyarrow.parquet.write_table(pyarrow.table({
        'a': numpy.arange(10.), 'b': numpy.arange(10) * 2,
        'kind': ['x', 'y'] * 5}), tmp_path / 'data.parquet', row_group_size=3)
    status = fuel_convert.main([
        'parquet', '-d', str(tmp_path), '-o', str(tmp_path),
        '--source', 'features=a,b', '--source', 'kind',
        '--hold-out', 'test=0.2', 'data.parquet'])
    assert not status, capsys.readouterr()
    train = H5PYDataset(str(tmp_path / 'data.hdf5'), ('train',),
                        load_in_memory=True)
    test = H5PYDataset(str(tmp_path / 'data.hdf5'), ('test',))
    assert (8, 2) == (train.num_examples, test.num_examples)
    features, kind = train.get_data(None, list(range(8)))
    assert (features[:, 0] * 2 == features[:, 1]).all()
    assert (kind.ravel() == features[:, 0] % 2).all()
    test.close(None)


def test_target_of_a_conversion_is_named_as_elsewhere(tmp_path, capsys):
    """A column of numbers, or of text, beside the others."""
    pyarrow.parquet.write_table(pyarrow.table({
        'x': [1., 2.], 'bought': [True, False], 'kind': ['b', 'a'],
        'id': [3, 4]}), tmp_path / 'a.parquet')
    convert = ['parquet', '-d', str(tmp_path), '-o', str(tmp_path),
               'a.parquet', '--ignore', 'id', '--target']
    for target, others, values in (
            ('bought', ('kind', 'x'), [[True], [False]]),
            ('kind', ('bought', 'x'), [[1], [0]])):
        assert not fuel_convert.main([*convert, target])
        with H5PYDataset(str(tmp_path / 'a.hdf5'), ('train',)) as dataset:
            assert {*others, 'targets'} == set(dataset.sources)
            assert values == dataset[:][
                dataset.sources.index('targets')].tolist()
            assert ('batch', 'index') == dataset.axis_labels['targets']
    for arguments, text in (
            (['size'], "no column 'size'"),
            (['kind', '--ignore', 'size'], "no column 'size' to leave out"),
            (['x', '--source', 'targets=kind', '--source', 'id'],
             "two sources 'targets'")):
        with pytest.raises(SystemExit):
            fuel_convert.main([*convert, *arguments])
        assert text in capsys.readouterr().err


def test_names_of_classes_are_kept(tmp_path, hugging_face):
    """A ClassLabel keeps its numbers, also under another name."""
    hugging_face.Dataset.from_dict(
        {'label': [1, 0, 1], 'x': [1., 2., 3.]}, hugging_face.Features({
            'label': hugging_face.ClassLabel(names=['cat', 'dog']),
            'x': hugging_face.Value('float32')})).to_parquet(
                tmp_path / 'pets.parquet')
    assert not fuel_convert.main([
        'parquet', '-d', str(tmp_path), '-o', str(tmp_path), 'pets.parquet',
        '--source', 'targets=label', '--source', 'x'])
    with H5PYDataset(str(tmp_path / 'pets.hdf5'), ('train',)) as dataset:
        assert ('cat', 'dog') == dataset.class_names
        assert [1, 0, 1] == dataset[:][
            dataset.sources.index('targets')].tolist()


def test_rounding_of_filled_integers_is_told(tmp_path, caplog):
    """A mean that is not whole makes floating numbers of all."""
    pyarrow.parquet.write_table(pyarrow.table({
        'id': [2 ** 53 + 1, None, -2 ** 53 - 1, 1, 2],
        'small': [1, None, 2, 3, 4]}), tmp_path / 'a.parquet')
    convert = ['parquet', '-d', str(tmp_path), '-o', str(tmp_path),
               'a.parquet', '--fill']
    assert not fuel_convert.main([*convert, 'most-frequent'])
    assert not caplog.messages
    assert not fuel_convert.main([*convert, 'mean'])
    message, = caplog.messages
    assert message == (
        "source 'id' becomes float64, since what is filled in, 0.75, is not "
        "whole: numbers such as 9007199254740992 are rounded. Choose --fill "
        "most-frequent or a whole VALUE to keep all digits")


def test_columns_of_one_source_are_filled(tmp_path):
    """Each with its own mean."""
    pyarrow.parquet.write_table(pyarrow.table({
        'a': [1, None, 4], 'b': [None, 6, 8]}), tmp_path / 'a.parquet')
    assert not fuel_convert.main([
        'parquet', '-d', str(tmp_path), '-o', str(tmp_path), 'a.parquet',
        '--source', 'ab=a,b', '--fill', 'mean'])
    with H5PYDataset(str(tmp_path / 'a.hdf5'), ('train',)) as dataset:
        assert [[1., 7.], [2.5, 6.], [4., 8.]] == dataset[:][0].tolist()


def test_share_of_every_class_is_held_out(tmp_path, capsys):
    """Stratified splits work with a source called targets, and without."""
    pyarrow.parquet.write_table(pyarrow.table({
        'a': numpy.arange(20.), 'kind': ['x'] * 10 + ['y'] * 10}),
        tmp_path / 'data.parquet')
    arguments = ['parquet', '-d', str(tmp_path), '-o', str(tmp_path),
                 '--hold-out', 'test=0.2', '--stratify', 'data.parquet']
    assert not fuel_convert.main([
        *arguments, '--source', 'targets=kind', '--source', 'a'])
    test = H5PYDataset(str(tmp_path / 'data.hdf5'), ('test',),
                       sources=('targets',), load_in_memory=True)
    assert [0, 0, 1, 1] == sorted(
        test.get_data(None, slice(0, 4))[0].ravel().tolist())
    with pytest.raises((SystemExit, ValueError)) as caught:
        if fuel_convert.main(arguments):
            raise SystemExit(1)
    assert 'needs a source called targets' in (
        capsys.readouterr().err + str(caught.value))


def test_all_columns_that_hdf5_takes_are_converted(tmp_path):
    """Lists, truth values and times are those of ArrowDataset; integers with
    nulls keep their mask."""
    table = pyarrow.table({
        'list': [[1], [2, 3], None, []], 'ok': [True, None, False, True],
        'n': [2 ** 53 + 1, None, 3, 4], 'x': [.5, None, 1, 2],
        'pair': pyarrow.array([[1, 2]] * 4, pyarrow.list_(pyarrow.int8(), 2)),
        'time': pyarrow.array(numpy.arange(4).astype('datetime64[ms]')),
        'targets': [7, 8, 9, 7]})
    pyarrow.parquet.write_table(table, tmp_path / 'data.parquet',
                                row_group_size=3)
    convert = ['parquet', '-d', str(tmp_path), '-o', str(tmp_path),
               'data.parquet']
    assert not fuel_convert.main(convert)

    def read():
        with H5PYDataset(str(tmp_path / 'data.hdf5'), ('train',)) as dataset:
            return dict(zip(dataset.sources, dataset[:], strict=True))

    found = read()
    assert {*table.column_names, 'ok_mask', 'n_mask'} == {*found}
    assert [[1], [2, 3], [], []] == [each.tolist() for each in found['list']]
    assert (bool, [True, False, False, True]) == (
        found['ok'].dtype, found['ok'].tolist())
    assert [True, False, True, True] == found['ok_mask'].tolist()
    assert [2 ** 53 + 1, 0, 3, 4] == found['n'].tolist()
    assert [True, False, True, True] == found['n_mask'].tolist()
    assert ('datetime64[ms]', [0, 1, 2, 3]) == (
        found['time'].dtype, found['time'].astype(int).tolist())
    assert (4, 2) == found['pair'].shape
    numpy.testing.assert_array_equal([.5, numpy.nan, 1, 2], found['x'])
    assert not fuel_convert.main([*convert, '--fill', 'median'])
    found = read()
    assert {*table.column_names} == {*found}
    assert [True, True, False, True] == found['ok'].tolist()
    assert [2 ** 53 + 1, 4, 3, 4] == found['n'].tolist()
    assert [.5, 1, 1, 2] == found['x'].tolist()


@pytest.mark.parametrize('column, text', [
    (['a', None], 'must hold numbers or text, but row 1 is None'),
    ([['a'], ['b']], 'has values such as')])
def test_column_that_hdf5_does_not_take_is_refused(
        column, text, tmp_path, capsys):
    """The error names the source."""
    pyarrow.parquet.write_table(
        pyarrow.table({'a': column}), tmp_path / 'data.parquet')
    with pytest.raises((SystemExit, ValueError)) as caught:
        if fuel_convert.main(['parquet', '-d', str(tmp_path), '-o',
                              str(tmp_path), 'data.parquet']):
            raise SystemExit(1)
    output = capsys.readouterr()
    assert text in output.err + str(caught.value)
    assert not (tmp_path / 'data.hdf5').exists()


@pytest.mark.parametrize('kind', ['parquet', 'arrow', 'feather'])
def test_files_are_recognised(kind, tmp_path):
    """The first bytes decide, whatever the files are called. The arguments of
    the class work, as do shuffling and resuming."""
    path, rows = str(tmp_path / 'rows'), table().select(['number', 'image'])
    if kind == 'parquet':
        pyarrow.parquet.write_table(rows, path, row_group_size=7)
    elif kind == 'feather':
        pyarrow.feather.write_feather(rows, path, compression='lz4')
    else:
        with pyarrow.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)
    dataset = fuel.load(path)
    assert isinstance(dataset, ArrowDataset)
    assert 'ArrowDataset' in str(dataset)
    numbers = rows['number'].to_numpy()
    part = fuel.load(path, 'test', sources=('number',),
                     splits={'test': (20, N)})
    assert numbers[20:].tolist() == part.get_data(
        None, slice(0, N - 20))[0].tolist()

    def shuffled():
        return DataStream(fuel.load(path, sources=('number', 'image')),
                          iteration_scheme=ShuffledScheme(N, 4, seed=1))
    whole = [row for batch in shuffled().get_epoch_iterator()
             for row in zip(*[part.tolist() for part in batch], strict=True)]
    images = rows['image'].combine_chunks().to_numpy_ndarray().tolist()
    assert sorted(zip(numbers.tolist(), images, strict=True)) == sorted(whole)
    epoch = shuffled().get_epoch_iterator()
    for _ in range(3):
        next(epoch)
    resumed = shuffled()
    resumed.load_state_dict(epoch.state_dict())
    assert whole[12:] == [
        row for batch in resumed.get_epoch_iterator()
        for row in zip(*[part.tolist() for part in batch], strict=True)]


def test_windows_know_their_file(tmp_path):
    """A window knows the file of its first row, and the row in it."""
    dataset = ArrowDataset(write(tmp_path, 'folder'), ['number'])
    windows = Windows(dataset, 1)
    for row in range(N):
        found = windows.provenance(row)
        table = pyarrow.parquet.read_table(found.file)
        assert windows[row][0][0] == (
            table['number'][found.row_of_part].as_py())
    assert found.file == str(tmp_path / 'part-2.parquet')
    with pytest.raises(IndexError):
        windows.provenance(N)


@pytest.mark.parametrize('kind', ['table', 'chunks', 'parquet', 'folder'])
def test_batches_that_are_remembered_call_no_python(tmp_path, kind):
    """Cached batches are read as those of contiguous HDF5: numbers, truth
    values, times, tensors."""
    sources = ('number', 'weight', 'flag', 'image', 'pair', 'time')
    dataset = ArrowDataset(write(tmp_path, kind), sources=sources)
    columns = ArrowDataset(table(), sources=sources).get_data(
        None, slice(0, N))
    assert [] == calls_of_batches(dataset, columns, 4)


def test_rows_of_a_file_that_is_changed_are_refused_when_all_are_in_memory(
        tmp_path):
    """They are refused when C copies them, in the first group and in
    others."""
    for row in 0, N - 1:
        path = write(tmp_path, 'parquet')
        dataset = ArrowDataset(path, sources=('weight',))
        stream = DataStream(dataset, iteration_scheme=SequentialScheme(
            [row] * 20 + [*range(N)], 5))
        iterator = iter(list(stream) and stream)
        next(iterator)
        pyarrow.parquet.write_table(table(N + 1), path)
        with pytest.raises(DamagedFileError, match='while in use'):
            list(iterator)


def test_file_of_the_only_row_group_is_watched(tmp_path):
    """C does not copy its rows once it has changed; other files may."""
    paths = [str(tmp_path / name) for name in ('a', 'b', 'c')]
    for path in paths:
        pyarrow.parquet.ParquetWriter(path, table().schema).close()
    pyarrow.parquet.write_table(table(), paths[1])
    dataset = ArrowDataset(paths, sources=('weight',))
    rows, batch = dataset.readers['weight'].direct().rows, numpy.empty(5)
    for path, is_intact in (('a', True), ('c', True), ('b', False)):
        with open(tmp_path / path, 'ab') as file:
            file.write(b'more')
        assert is_intact == rows.copy(numpy.arange(5), batch)


@pytest.mark.parametrize('kind', ['parquet', 'arrow'])
@pytest.mark.parametrize('source', ['weight', 'name'])
def test_rows_of_the_only_row_group_are_refused_once_the_file_is_changed(
        tmp_path, kind, source):
    """They are refused as those of several groups are; the next epoch reads
    the new file."""
    path = str(tmp_path / 'data')
    write_file = {
        'parquet': pyarrow.parquet.write_table,
        'arrow': pyarrow.feather.write_feather}[kind]
    write_file(table(), path)
    dataset = ArrowDataset(path, sources=(source,))
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(N, 5))
    epoch = stream.get_epoch_iterator()
    next(epoch)
    new = table(N + 1).slice(1)
    write_file(new, path)
    for read in (lambda: next(epoch), lambda: dataset[2]):
        with pytest.raises(DamagedFileError, match='while in use'):
            read()
    first, = next(stream.get_epoch_iterator())
    expected, = ArrowDataset(new, sources=(source,))[:5]
    assert expected.tolist() == first.tolist()


def test_columns_may_be_an_array_of_names():
    """The columns of a data frame are such an array."""
    dataset = ArrowDataset(table(), numpy.array(['weight', 'number']))
    assert ('weight', 'number') == dataset.sources


@pytest.mark.parametrize(('columns', 'text'), [
    ([], r'columns must name at least one, got \[\]'),
    (0, 'columns must be a list of columns, or a dict .*, got 0'),
    ({'x': 0}, 'the table has no column 0: the columns are'),
    ([['weight', 'number']], 'columns must be a list of columns, or a dict')])
def test_columns_are_named(columns, text):
    """The error is about the argument, and not about the table."""
    with pytest.raises(ValueError, match=text):
        ArrowDataset(table(), columns)


def test_table_without_row_groups_has_no_examples(tmp_path):
    """A file without any has none, too."""
    schema = table().select(['number', 'pair', 'name']).schema
    path = str(tmp_path / 'none')
    pyarrow.parquet.ParquetWriter(path, schema).close()
    for data in schema.empty_table(), path, [path, path]:
        dataset = ArrowDataset(data)
        assert 0 == dataset.num_examples
        assert (0, 2) == dataset.read_stored('pair').shape
        assert [] == dataset.read_stored('name').tolist()


@pytest.mark.parametrize('row_group_size', [2, 9])
def test_values_in_values_are_the_callers_own(tmp_path, row_group_size):
    """Remembered rows stay as they were when a batch is written to."""
    path = str(tmp_path / 'nested')
    columns = {
        'lists': [[['a', 'b'], ['c']]] * 4,
        'records': [{'words': ['a'], 'more': {'name': 'b'}}] * 4,
        'pairs': pyarrow.array([[('a', ['b'])]] * 4, pyarrow.map_(
            pyarrow.string(), pyarrow.list_(pyarrow.string())))}
    pyarrow.parquet.write_table(
        pyarrow.table(columns), path, row_group_size=row_group_size)
    dataset = ArrowDataset(path)
    before = [part.tolist() for part in dataset.get_data(None, [0, 3])]
    lists, records, pairs = dataset.get_data(None, [0, 3])
    lists[0][0][0] = pairs[0][0][1][0] = 'changed'
    records[0]['words'][0] = records[0]['more']['name'] = 'changed'
    assert before == [
        part.tolist() for part in dataset.get_data(None, [0, 3])]
