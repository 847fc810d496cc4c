"""Chainer's data sets, conversion and files, without Chainer."""
import hashlib
import multiprocessing
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuel.interop.chainer as chainer
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.downloaders.base import (
    DownloadError,
    Options,
    default_downloader,
)
from fuel.interop.chainer import (
    ChainerDataset,
    ConcatenatedDataset,
    DatasetMixin,
    DictDataset,
    SubDataset,
    TransformDataset,
    TupleDataset,
    as_dataset,
    cache_or_load_file,
    cached_download,
    concat_examples,
    to_device,
)
from fuel.testing import check_dataset


class Squares(DatasetMixin):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def get_example(self, i):
        return range(self.count)[i] ** 2


def test_mixin_makes_every_way_of_indexing_of_one_example():
    """An integer gives an example, a slice, a list or an array a list."""
    squares = Squares(6)
    assert 9 == squares[3]
    assert [1, 4] == squares[1:3]
    assert [25, 16, 9] == squares[:2:-1]
    assert [16, 0] == squares[[4, 0]]
    assert [0, 1, 4] == squares[numpy.arange(3)]
    assert [] == squares[[]] == squares[4:2]
    with pytest.raises(IndexError):
        squares[6]


@pytest.mark.parametrize('index', [
    numpy.ones(6, bool), [1.5], numpy.zeros((2, 2), int), ['a']])
def test_mixin_refuses_an_index_that_is_not_a_list_of_integers(index):
    """A mask would be read as zeros and ones."""
    with pytest.raises(IndexError, match='one-dimensional array of integers'):
        Squares(6)[index]


def test_mixin_says_what_a_subclass_lacks():
    """The error names both methods."""
    with pytest.raises(NotImplementedError, match='get_example'):
        DatasetMixin()[0]
    with pytest.raises(NotImplementedError, match='__len__'):
        len(DatasetMixin())


class Negated(Squares):
    """Overrides what the mixin's manual invites to."""

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return [-i for i in found] if isinstance(found, list) else -found


class Indexed(DatasetMixin):
    """Has no examples of the mixin's kind."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return -index ** 2


@pytest.mark.parametrize('dataset', [Negated(4), Indexed()])
@pytest.mark.parametrize('read', [
    lambda dataset: chainer.SerialIterator(dataset, 4, shuffle=False).next(),
    lambda dataset: chainer.MultithreadIterator(
        dataset, 4, shuffle=False).next(),
    lambda dataset: chainer.split_dataset(dataset, 4)[0][:],
    lambda dataset: TransformDataset(dataset, int)[:],
    lambda dataset: [one for one, in TupleDataset(dataset)[[0, 1, 2, 3]]],
    lambda dataset: [example['a'] for example in map(
        DictDataset(a=dataset).__getitem__, range(4))],
    lambda dataset: ConcatenatedDataset(dataset, dataset)[:4],
    lambda dataset: ChainerDataset(dataset).get_data(
        None, [0, 1, 2, 3])[0].tolist()])
def test_indexing_that_is_overridden_is_what_is_read(dataset, read):
    """`get_example` is not called, and may be missing."""
    assert [0, -1, -4, -9] == read(dataset)


def test_example_that_is_overridden_is_in_what_indexing_returns():
    """It is called even if the data set below reads several examples at
    once."""
    class Halves(TransformDataset):
        def get_example(self, i):
            return super().get_example(i) / 2

    halves = Halves(Squares(3), float)
    assert [0, .5, 2] == halves[:] == halves[[0, 1, 2]]
    assert [0, .5, 2] == chainer.SerialIterator(
        halves, 3, shuffle=False).next()


def test_data_set_reads_its_own_slices_beside_others():
    """A data set may have a faster way than one by one."""
    class Sliced(Squares):
        def __getitem__(self, index):
            assert isinstance(index, slice)
            return numpy.arange(*index.indices(len(self))) ** 2

    assert [(1, 'b'), (4, 'c')] == TupleDataset(Sliced(3), 'abc')[1:]


COMBINED = {
    'tuple': (TupleDataset([1, 2, 3], numpy.arange(3) * 10),
              [(1, 0), (2, 10), (3, 20)]),
    'dict': (DictDataset(a=[1, 2, 3], b='xyz'),
             [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}, {'a': 3, 'b': 'z'}]),
    'transformed': (TransformDataset(Squares(3), float), [0., 1., 4.]),
    'concatenated': (ConcatenatedDataset([5], [], Squares(2)), [5, 0, 1]),
    'part': (SubDataset(Squares(6), 2, 5), [4, 9, 16]),
    'part in order': (SubDataset(Squares(4), 0, 3, [3, 1, 2, 0]), [9, 1, 4]),
    'of Fuel': (as_dataset(IndexableDataset(
        {'a': numpy.arange(3), 'b': [5, 6, 7]})), [(0, 5), (1, 6), (2, 7)]),
}


@pytest.mark.parametrize('name', COMBINED)
def test_combined_data_set_is_indexed_like_a_list(name):
    """Integers from either end, slices, lists and arrays are indices."""
    dataset, examples = COMBINED[name]
    assert len(examples) == len(dataset)
    assert examples == [dataset[i] for i in range(len(dataset))]
    assert examples[-1] == dataset[-1]
    assert examples == dataset[:]
    assert examples[::-2] == dataset[::-2]
    assert [examples[2], examples[0]] == dataset[[2, 0]]
    assert [examples[1]] == dataset[numpy.array([1])]
    for beyond in (len(examples), -len(examples) - 1):
        with pytest.raises(IndexError):
            dataset[beyond]
        with pytest.raises(IndexError):
            dataset[[beyond]]


@pytest.mark.parametrize('make, text', [
    (TupleDataset, 'at least one data set'),
    (DictDataset, 'at least one data set'),
    (lambda: TupleDataset([1], [1, 2]), '0: 1, 1: 2'),
    (lambda: DictDataset(a=[1], b=[1, 2]), 'a: 1, b: 2'),
    (lambda: SubDataset([1, 2], 1, 3), 'within the 2 examples'),
    (lambda: SubDataset([1, 2], 1, 0), 'start before finish'),
    (lambda: SubDataset([1, 2], 0, 1, [1]), 'one index for each example'),
    (lambda: chainer.split_dataset([1, 2], 3), 'at most 2'),
    (lambda: chainer.split_dataset([1, 2], -1), 'not be negative'),
    (lambda: chainer.split_dataset_n([1, 2], 0), 'positive integer'),
])
def test_combination_that_makes_no_sense_is_refused(make, text):
    """The error has the numbers that do not fit."""
    with pytest.raises(ValueError, match=text):
        make()


def test_arguments_of_another_type_are_refused():
    """The error names the type."""
    with pytest.raises(TypeError, match='split_at'):
        chainer.split_dataset([1, 2], 1.5)
    with pytest.raises(TypeError, match='transform'):
        TransformDataset([1], None)
    with pytest.raises(TypeError, match='n_folds'):
        chainer.get_cross_validation_datasets([1, 2])
    with pytest.raises(TypeError, match="'n_hold'"):
        chainer.get_cross_validation_datasets([1, 2], n_hold=3)


@given(st.integers(0, 30), st.integers(1, 7), st.integers(0, 99))
def test_splits_partition_the_data_set(count, n, seed):
    """Each example is in one part, in both halves, and validates once."""
    whole = list(range(count))
    first, rest = chainer.split_dataset_random(whole, count // 2, seed)
    assert count // 2 == len(first)
    assert whole == sorted(first[:] + rest[:])
    parts = chainer.split_dataset_n_random(whole, n, seed)
    assert [count // n] * n == list(map(len, parts))
    assert len(set(sum((part[:] for part in parts), []))) == n * (count // n)
    assert whole[:n * (count // n)] == sum(
        (part[:] for part in chainer.split_dataset_n(whole, n)), [])
    for folds in (chainer.get_cross_validation_datasets(whole, n),
                  chainer.get_cross_validation_datasets_random(
                      whole, n, seed)):
        assert n == len(folds)
        assert whole == sorted(sum((valid[:] for _, valid in folds), []))
        for train, valid in folds:
            assert whole == sorted(train[:] + valid[:])


def test_old_name_of_the_number_of_folds_is_taken():
    """Chainer 7 accepts it too."""
    assert 3 == len(chainer.get_cross_validation_datasets([1, 2, 3],
                                                          n_fold=3))


def test_random_split_is_that_of_the_seed():
    """The order of ``RandomState(seed).permutation``."""
    first, rest = chainer.split_dataset_random(range(10), 3, seed=0)
    assert [2, 8, 4] == first[:]
    assert [9, 1, 6, 7, 3, 0, 5] == rest[:]


def test_batch_of_arrays_is_stacked():
    """Batches of arrays, of tuples and dicts of them, and of numbers are
    stacked."""
    rows = [numpy.full(2, i, 'float32') for i in range(3)]
    batch = concat_examples(rows)
    assert ('float32', (3, 2)) == (batch.dtype, batch.shape)
    pair = concat_examples([(row, i) for i, row in enumerate(rows)])
    assert isinstance(pair, tuple)
    assert [0, 1, 2] == pair[1].tolist() == pair[0][:, 0].tolist()
    named = concat_examples([{'x': row, 't': i}
                             for i, row in enumerate(rows)])
    assert ['x', 't'] == list(named)
    assert (3, 2) == named['x'].shape


def test_unequal_shapes_are_filled_up_if_asked():
    """The result is the smallest shape that holds all, in the arrays' type."""
    rows = [numpy.ones((1, 3), 'int8'), numpy.ones((2, 1), 'int8')]
    with pytest.raises(ValueError, match='padding=0'):
        concat_examples(rows)
    batch = concat_examples(rows, padding=7)
    assert 'int8' == batch.dtype
    assert [[[1, 1, 1], [7, 7, 7]], [[1, 7, 7], [1, 7, 7]]] == batch.tolist()
    pairs = [(row, 1.) for row in rows]
    assert 7 == concat_examples(pairs, padding=(7, None))[0][1, 0, 2]
    with pytest.raises(ValueError, match='no value|none for 1'):
        concat_examples(pairs, padding=(7,))
    named = [{'a': row} for row in rows]
    assert 5 == concat_examples(named, padding={'a': 5})['a'][1, 0, 2]
    floats = [numpy.zeros(1), numpy.zeros(2)]
    assert numpy.isnan(concat_examples(floats, padding=float('nan'))[0, 1])


@pytest.mark.parametrize('padding', [
    .1, numpy.float64(.1), numpy.float32(.1), numpy.array(.1), 1 / 3, 1e-60,
    -1, True, float('inf')])
@pytest.mark.parametrize('dtype', ['float16', 'float32', 'complex64'])
def test_padding_is_rounded_to_the_type_of_the_arrays(dtype, padding):
    """A number that is written with more digits is one of that type."""
    batch = concat_examples(
        [numpy.zeros(1, dtype), numpy.zeros(2, dtype)], padding=padding)
    assert dtype == batch.dtype
    assert batch[0, 1] == numpy.array(padding).astype(dtype)


@pytest.mark.parametrize('batch, padding, error, text', [
    ([], None, ValueError, 'the batch is empty'),
    (['a', 'b'], None, TypeError, "example 0 is 'a'"),
    ([(1, 'a'), (2, 'b')], None, TypeError, "part 1 of example 0 is 'a'"),
    ([None], None, TypeError, 'not an array of numbers'),
    ([numpy.zeros(2), numpy.zeros((1, 2))], 0, ValueError, 'add axes'),
    ([numpy.zeros(1, 'u1'), numpy.zeros(2, 'u1')], -1, ValueError,
     'padding -1 is not a valid uint8'),
    ([numpy.zeros(1, int), numpy.zeros(2, int)], .5, ValueError,
     'is not a valid int'),
    ([numpy.zeros(1, 'u1'), numpy.zeros(2, 'u1')], float('nan'), ValueError,
     'padding nan is not a valid uint8'),
    ([numpy.zeros(1, 'f4'), numpy.zeros(2, 'f4')], 1e60, ValueError,
     r'padding 1e\+60 is not a valid float32'),
    ([numpy.zeros(1, 'f4'), numpy.zeros(2, 'f4')], 1j, ValueError,
     'is not a valid float32'),
    ([numpy.zeros(1, 'f4'), numpy.zeros(2, 'f4')], 'x', ValueError,
     'is not a valid float32'),
    ([numpy.zeros(1, 'f4'), numpy.zeros(2, 'f4')], [1, 2], ValueError,
     'is not a valid float32'),
    ([(1, 2), (3,)], None, ValueError, r'number 1 is \(3,\)'),
    ([{'a': 1}, {'b': 1}], None, ValueError, 'number 1 is'),
    ([(1, 2), 3], None, ValueError, 'number 1 is 3'),
])
def test_batch_that_is_not_an_array_is_refused(batch, padding, error, text):
    """The error names the part and the example."""
    with numpy.errstate(invalid='ignore'), pytest.raises(error, match=text):
        concat_examples(batch, padding=padding)


def test_device_is_the_host_or_a_gpu():
    """It is a number, a name or an object of Chainer's."""
    array = numpy.arange(3)
    assert to_device(None, array) is array
    assert to_device(-1, array) is array
    assert to_device('@numpy', array) is array
    assert isinstance(to_device(-1, [1, 2]), numpy.ndarray)

    class Device:
        def send(self, arrays):
            return 'sent', arrays

    assert 'sent' == to_device(Device(), array)[0]
    assert 'sent' == concat_examples([1, 2], device=Device())[0]


@pytest.mark.parametrize('device', [0, 3, '@cupy:0'])
def test_gpu_without_cupy_is_refused(device, monkeypatch):
    """The error says what gets arrays there."""
    monkeypatch.setitem(__import__('sys').modules, 'cupy', None)
    with pytest.raises(ImportError, match='CuPy'):
        to_device(device, numpy.zeros(1))


@pytest.mark.parametrize('device', ['cpu', '@cupy:x', 1.5, '@numpy:0'])
def test_device_that_is_none_is_refused(device):
    """The error shows valid devices."""
    with pytest.raises(ValueError, match='device must be'):
        to_device(device, numpy.zeros(1))


# Files.

@pytest.fixture
def dataset_root(tmp_path):
    """Return the root of data sets, which is set for the test."""
    chainer.set_dataset_root(tmp_path / 'root')
    yield tmp_path / 'root'
    chainer.set_dataset_root(None)


def test_root_is_set_by_function_variable_or_home(own_home, monkeypatch):
    """They have this precedence."""
    monkeypatch.delenv('CHAINER_DATASET_ROOT', raising=False)
    assert str(own_home / '.chainer' / 'dataset') == (
        chainer.get_dataset_root())
    monkeypatch.setenv('CHAINER_DATASET_ROOT', '/somewhere')
    assert '/somewhere' == chainer.get_dataset_root()
    chainer.set_dataset_root('/else')
    try:
        assert '/else' == chainer.get_dataset_root()
    finally:
        chainer.set_dataset_root(None)


def test_folder_of_a_data_set_is_below_the_root(dataset_root):
    """The folder is created if wanted; a name cannot lead out."""
    assert not dataset_root.exists()
    path = chainer.get_dataset_directory('a/b', create_directory=False)
    assert str(dataset_root / 'a' / 'b') == path
    assert not dataset_root.exists()
    assert path == chainer.get_dataset_directory('a/b')
    assert (dataset_root / 'a' / 'b').is_dir()
    for name in ('../b', '/etc', 'a/../..', ''):
        with pytest.raises(ValueError, match='below'):
            chainer.get_dataset_directory(name)


class Reply:
    """A reply of a server, as the downloader reads it."""

    status_code = 200

    def __init__(self, content, cut=None):
        self.headers = {'content-length': str(len(content))}
        self.content = content if cut is None else content[:cut]
        self.raw = None

    def iter_content(self, size):
        """Yield the content."""
        yield self.content

    def raise_for_status(self):
        """All is well."""

    def close(self):
        """Do nothing."""


def test_file_is_downloaded_once(dataset_root, monkeypatch):
    """The file lies where Chainer looks for it too."""
    asked = []

    def get(url, **kwargs):
        asked.append(url)
        return Reply(b'digits')

    monkeypatch.setattr('fuel.downloaders.base.requests.get', get)
    url = 'https://example.org/digits.gz'
    path = cached_download(url)
    with open(path, 'rb') as file:
        assert b'digits' == file.read()
    assert path == cached_download(url)
    assert [url] == asked
    assert path == str(dataset_root / '_dl_cache' / hashlib.md5(
        url.encode()).hexdigest())
    assert path != cached_download(url + '?other')


def test_one_of_several_downloads_and_the_others_wait(
        dataset_root, monkeypatch):
    """Those that come at once make one request."""
    asked = []

    def get(url, **kwargs):
        asked.append(url)
        time.sleep(.2)
        return Reply(b'digits')

    monkeypatch.setattr('fuel.downloaders.base.requests.get', get)
    url = 'https://example.org/digits.gz'
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(cached_download, [url] * 6))
    assert [url] == asked
    assert [paths[0]] * 6 == paths
    assert Path(paths[0]).read_bytes() == b'digits'
    assert [Path(paths[0])] == [
        path for path in (dataset_root / '_dl_cache').iterdir()
        if '.part' not in path.name]


def test_broken_download_leaves_nothing(dataset_root, monkeypatch):
    """A file that is cut does not count; the next call tries again."""
    replies = [Reply(b'digits', cut=3) for _ in range(8)]
    monkeypatch.setattr('fuel.downloaders.base.requests.get',
                        lambda url, **kwargs: replies.pop())
    monkeypatch.setattr(
        'fuel.interop.chainer.files.default_downloader',
        partial(default_downloader, options=Options(attempts=1, backoff=0)))
    url = 'https://example.org/digits.gz'
    with pytest.raises(DownloadError):
        cached_download(url)
    assert not [path for path in (dataset_root / '_dl_cache').iterdir()
                if '.part' not in path.name]


def load(path):
    """Return the content of a file."""
    with open(path) as file:
        return file.read()


def create(text, path):
    """Write a file slowly, at a path at which nothing is."""
    with open(path, 'x') as file:
        for letter in text:
            file.write(letter)
            file.flush()
    return text


def test_file_is_created_or_loaded(tmp_path):
    """The creator gets another path, with nothing there."""
    path = tmp_path / 'new' / 'cached.txt'
    seen = []

    def creator(temporary):
        seen.append(temporary)
        return create('abc', temporary)

    assert 'abc' == cache_or_load_file(path, creator, load)
    assert str(path) != seen[0]
    assert 'abc' == cache_or_load_file(path, creator, load)
    assert 1 == len(seen)
    assert [path] == list(path.parent.iterdir())
    assert path is cache_or_load_file(path, creator, lambda given: given)


def test_creator_that_fails_leaves_nothing(tmp_path):
    """No part of the file and no folder beside it remains."""
    def fail(path):
        create('half', path)
        raise RuntimeError('no more')

    with pytest.raises(RuntimeError, match='no more'):
        cache_or_load_file(tmp_path / 'a', fail, load)
    assert [] == list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match='no file was written'):
        cache_or_load_file(tmp_path / 'a', lambda path: 'forgot', load)
    assert [] == list(tmp_path.iterdir())


TEXT = 'content ' * 500


def create_and_load(path, pipe):
    """Create or load a file several times, in a process of its own."""
    for _ in range(5):
        pipe.send(cache_or_load_file(path, partial(create, TEXT), load))


def test_threads_and_processes_never_see_half_a_file(tmp_path):
    """Each of them gets the whole content."""
    path = tmp_path / 'cached.txt'
    context = multiprocessing.get_context('fork')
    ours, theirs = context.Pipe()
    processes = [context.Process(target=create_and_load, args=(path, theirs))
                 for _ in range(3)]
    for process in processes:
        process.start()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(
        cache_or_load_file(path, partial(create, TEXT), load)))
        for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        process.join(60)
        assert 0 == process.exitcode
    while ours.poll():
        seen.append(ours.recv())
    assert {TEXT} == set(seen)
    assert [path] == list(tmp_path.iterdir())


# Between Fuel and Chainer.

def test_data_set_of_fuel_is_read_at_once():
    """A batch is one request, and stays the caller's own."""
    requests = []

    class Counting(IndexableDataset):
        def get_data(self, state=None, request=None):
            requests.append(request)
            return super().get_data(state, request)

    data = numpy.arange(12).reshape(6, 2)
    dataset = as_dataset(Counting({'x': data, 'y': list(range(6))}))
    batch = dataset[[4, 1]]
    assert [[4, 1]] == requests
    assert [(4, [8, 9]), (1, [2, 3])] == [
        (int(y), x.tolist()) for x, y in batch]
    batch[0][0][:] = 0
    assert data[4].tolist() == [8, 9]
    named = as_dataset(IndexableDataset({'x': [1, 2]}), as_dict=True)
    assert [{'x': 2}, {'x': 1}] == named[[1, 0]]
    assert {'x': 2} == named[-1]
    assert [] == named[[]]


def test_data_set_that_is_read_in_order_has_no_indices():
    """The error says what to do."""
    with pytest.raises(TypeError, match='as_iterator'):
        as_dataset(IterableDataset([1, 2]))


def tuples():
    """Return a Chainer data set of tuples as one of Fuel."""
    return ChainerDataset(
        TupleDataset(numpy.arange(18.).reshape(9, 2), list(range(9))),
        names=('features', 'targets'))


def dicts():
    """Return a Chainer data set of dicts as one of Fuel."""
    return ChainerDataset(DictDataset(
        a=numpy.arange(9), b=[numpy.arange(n) for n in range(9)]))


def singles():
    """Return a Chainer data set of arrays as one of Fuel."""
    return ChainerDataset(Squares(9))


@pytest.mark.parametrize('build', [dicts, singles])
def test_chainer_data_set_keeps_the_promises_of_data_sets(build):
    """Data sets of tuples are tested in the contracts."""
    check_dataset(build, another_process=False)


def test_chainer_data_set_has_names_for_its_sources():
    """Names are given, the keys of dicts, or numbers."""
    assert ('features', 'targets') == tuples().sources
    assert ('a', 'b') == dicts().sources
    assert ('data',) == singles().sources
    assert ('data_0', 'data_1') == ChainerDataset(
        TupleDataset([1], [2])).sources
    swapped = ChainerDataset(DictDataset(a=[1], b=[2]), names=('b', 'a'))
    assert (2, 1) == swapped.get_data(None, 0)
    only = ChainerDataset(DictDataset(a=[1], b=[2]), sources=('b',))
    assert [[2]] == [part.tolist() for part in only.get_data(None, [0])]


@pytest.mark.parametrize('dataset, names, error, text', [
    (iter([1]), None, TypeError, 'must have a length'),
    ([], None, ValueError, 'list has no examples'),
    ([(1, 2)], ('x',), ValueError, '2 parts'),
    ([(1, 2)], 'xy', ValueError, 'tuple of names'),
    ([{'a': 1}], ('b',), ValueError, "'a'"),
])
def test_chainer_data_set_without_names_is_refused(
        dataset, names, error, text):
    """The error shows the parts of an example."""
    with pytest.raises(error, match=text):
        ChainerDataset(dataset, names=names)


def test_example_with_other_parts_is_refused():
    """It is refused at any position."""
    dataset = ChainerDataset([(1, 2), (3,)])
    with pytest.raises(ValueError, match='example 1 must have the parts'):
        dataset.get_data(None, [0, 1])
    with pytest.raises(ValueError, match='example 1 must have the parts'):
        dataset.get_data(None, 1)


def test_both_directions_are_inverse():
    """Data that go through Chainer and back are unchanged."""
    dataset = IndexableDataset({'x': numpy.arange(6), 'y': list(range(6))})
    back = ChainerDataset(as_dataset(dataset), names=dataset.sources)
    for expected, got in zip(dataset.get_data(None, [5, 0]),
                             back.get_data(None, [5, 0]), strict=True):
        assert numpy.array_equal(expected, got)


def test_data_sets_pickle():
    """The pickles hold the data sets that they are made of."""
    for dataset, examples in COMBINED.values():
        assert examples == pickle.loads(pickle.dumps(dataset))[:]
