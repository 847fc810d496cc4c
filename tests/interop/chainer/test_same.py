"""Classes with Chainer's names behave as Chainer's own."""
import hashlib
import subprocess
import sys
import types

import chainer
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.chainer_sets import Sampler
from support.chainer_towers import build as build_tower
from support.chainer_towers import towers

import fuel.interop.chainer as bridge
from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.testing import check_dataset
from fuel.utils.signatures import signature_of

pytestmark = pytest.mark.filterwarnings('ignore')

MODULES = {'dataset': chainer.dataset, 'datasets': chainer.datasets,
           'iterators': chainer.iterators}
NAMES = [(module, name) for module in MODULES
         for name in getattr(bridge, module).__all__]


@pytest.mark.parametrize('module, name', NAMES)
def test_name_takes_the_arguments_of_chainer(module, name):
    """Arguments have the same order and the same defaults."""
    ours = getattr(getattr(bridge, module), name)
    theirs = getattr(MODULES[module], name)
    assert ours is getattr(bridge, name)
    if isinstance(theirs, type) and theirs.__init__ is object.__init__:
        return

    def parameters(function):
        return [(parameter.name, parameter.kind, parameter.default)
                for parameter in signature_of(function).parameters.values()]
    if name == 'concat_examples':
        # Theirs is an object with a method that takes anything.
        assert ['batch', 'device', 'padding'] == [
            each[0] for each in parameters(ours)]
        return
    if name == 'get_cross_validation_datasets_random':
        # Theirs demands n_folds, though it takes n_fold too.
        assert [each[0] for each in parameters(theirs)] == [
            each[0] for each in parameters(ours)]
        return
    assert parameters(theirs) == parameters(ours)


def test_iterators_are_those_that_updaters_look_for():
    """A dict of iterators is not needed."""
    stream = DataStream(IndexableDataset([1, 2]),
                        iteration_scheme=ShuffledScheme(2, 1))
    for iterator in (bridge.SerialIterator([1], 1),
                     bridge.as_iterator(stream)):
        assert isinstance(iterator, chainer.dataset.Iterator)


def test_bridge_imports_chainer_where_warnings_are_errors():
    """Chainer warns of NumPy; stopped in mid-import, it stays unusable."""
    subprocess.run(
        [sys.executable, '-W', 'error', '-W', 'ignore::DeprecationWarning',
         '-c', ('import fuel.interop.chainer as bridge, chainer\n'
                'assert issubclass(bridge.iterators.SerialIterator,'
                ' chainer.dataset.Iterator)')], check=True)


@given(st.integers(1, 9), st.integers(1, 12), st.booleans(), st.booleans(),
       st.sampled_from(['SerialIterator', 'MultithreadIterator']))
def test_iterator_gives_what_chainer_s_gives(
        n, batch_size, repeat, shuffle, name):
    """Batches and attributes are equal, for any size, to the end."""
    iterators = []
    for module in (chainer.iterators, bridge.iterators):
        options = {'order_sampler': module.ShuffleOrderSampler(
            numpy.random.RandomState(3))} if shuffle else {'shuffle': False}
        iterators.append(getattr(module, name)(
            list(range(n)), batch_size, repeat, **options))
    theirs, ours = iterators
    for _ in range(8):
        attributes = ('epoch', 'is_new_epoch', 'epoch_detail',
                      'previous_epoch_detail', 'current_position',
                      'batch_size', 'repeat')
        assert [getattr(theirs, name) for name in attributes] == [
            pytest.approx(getattr(ours, name)) for name in attributes]
        expected = next(theirs, None)
        assert expected == next(ours, None)
        if expected is None:
            break
    theirs.finalize()


LIBRARIES = [types.SimpleNamespace(**{
    **vars(chainer.dataset), **vars(chainer.datasets),
    **vars(chainer.iterators)}), bridge]


def outcome(function):
    """Return what a function returns, or the type of its error."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001 (the other must raise it too)
        return type(error)


@given(towers, st.data())
def test_tower_of_data_sets_is_indexed_as_chainer_s_is(tower, data):
    """Its users override either `__getitem__` or `get_example`."""
    theirs, ours = (build_tower(library, tower) for library in LIBRARIES)
    n = len(theirs)
    assert n == len(ours)
    # Chainer does not take negative numbers for data sets after each other.
    least = 0 if 'ConcatenatedDataset' in repr(tower) else -n
    number = st.integers(least, n + 1)
    index = data.draw(st.one_of(number, st.slices(n)))
    assert outcome(lambda: theirs[index]) == outcome(lambda: ours[index])
    if tower[0] not in ('TupleDataset', 'DictDataset', 'list'):
        # There Chainer returns columns.
        index = data.draw(st.lists(number.filter(lambda i: i < n),
                                   max_size=4 if n else 0))
        assert outcome(lambda: theirs[index]) == outcome(lambda: ours[index])


@given(towers, st.integers(1, 4), st.sampled_from(
    ['SerialIterator', 'MultithreadIterator']))
def test_tower_of_data_sets_is_read_as_chainer_s_is(tower, size, name):
    """Iterators read them alike, with the same errors."""
    def read(library):
        with getattr(library, name)(build_tower(library, tower), size,
                                    repeat=False, shuffle=False) as iterator:
            return list(iterator)

    theirs, ours = LIBRARIES
    assert outcome(lambda: read(theirs)) == outcome(lambda: read(ours))


@pytest.mark.parametrize('name', [
    'SerialIterator', 'MultithreadIterator', 'MultiprocessIterator'])
@pytest.mark.parametrize('sampler', [
    lambda module: module.ShuffleOrderSampler(numpy.random),
    lambda module: Sampler().drawn, lambda module: Sampler.backwards])
def test_order_of_a_sampler_is_that_of_chainer(name, sampler):
    """A sampler that cannot be copied works too."""
    found = []
    for module in LIBRARIES:
        numpy.random.seed(5)
        with getattr(module, name)(
                list(range(5)), 3, order_sampler=sampler(module)) as iterator:
            found.append([iterator.next() for _ in range(5)])
    assert found[0] == found[1]


def test_chainer_s_loaders_take_the_cache_of_files(tmp_path, monkeypatch):
    """A file is written at the first call, and loaded at the second."""
    words = tmp_path / 'words'
    words.write_text('a b a\n')
    for name, replacement in (
            ('cache_or_load_file', bridge.cache_or_load_file),
            ('cached_download', lambda url: str(words)),
            ('get_dataset_directory', lambda name: str(tmp_path))):
        monkeypatch.setattr(chainer.dataset.download, name, replacement)
    for _ in range(2):
        assert {'a': 0, 'b': 1, '<eos>': 2} == (
            chainer.datasets.get_ptb_words_vocabulary())
        assert [[0, 1, 0, 2]] * 3 == [
            part.tolist() for part in chainer.datasets.get_ptb_words()]


@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 99))
def test_splits_are_those_of_chainer(count, n, seed):
    """The same examples in the same order."""
    def parts(module):
        whole = list(range(count))
        order = numpy.random.RandomState(seed).permutation(count)
        yield module.split_dataset(whole, count // 2)
        yield module.split_dataset(whole, count // 2, order)
        yield module.split_dataset_random(whole, count // 3, seed)
        yield module.split_dataset_n(whole, n, order)
        yield module.split_dataset_n_random(whole, n, seed)
        if 1 < n <= count:
            # Theirs fails for an empty fold.
            yield from module.get_cross_validation_datasets(whole, n)
            yield from module.get_cross_validation_datasets_random(
                whole, n, seed)

    assert [[part[:] for part in each] for each in parts(
        chainer.datasets)] == [[part[:] for part in each] for each in parts(
            bridge.datasets)]


@pytest.mark.parametrize('batch, padding', [
    ([1, 2], None), ([1.5, 2], None), ([[1, 2], [3, 4]], None),
    ([numpy.float32(1), numpy.float32(2)], None),
    ([(numpy.zeros(2, 'f4'), 1), (numpy.ones(2, 'f4'), 2)], None),
    ([{'a': 1, 'b': numpy.ones(3)}] * 2, None),
    ([numpy.zeros(2, 'i4'), numpy.ones(3, 'i4')], 7),
    ([(numpy.zeros((1, 2)), 1), (numpy.ones((2, 1)), 2)], (5, None)),
    ([{'a': numpy.zeros(1)}, {'a': numpy.zeros(2)}], {'a': 3}),
])
def test_converted_batch_is_that_of_chainer(batch, padding):
    """Type, shape and values are equal."""
    def described(converted):
        if isinstance(converted, tuple):
            return [described(part) for part in converted]
        if isinstance(converted, dict):
            return {key: described(part) for key, part in converted.items()}
        return converted.dtype, converted.tolist()

    for device in (None, -1):
        assert described(chainer.dataset.concat_examples(
            batch, device, padding)) == described(
                bridge.concat_examples(batch, device, padding))


def test_device_of_chainer_is_taken():
    """Chainer's updaters pass such a device on."""
    device = chainer.get_device('@numpy')
    array = bridge.concat_examples([1, 2], device)
    assert [1, 2] == array.tolist()


def build():
    """Return a data set of Chainer's own as one of Fuel."""
    return bridge.ChainerDataset(chainer.datasets.TupleDataset(
        numpy.arange(18.).reshape(9, 2), numpy.arange(9)), ('x', 'y'))


def test_data_set_of_chainer_keeps_the_promises_of_data_sets():
    """It keeps them as Fuel's own data sets do."""
    check_dataset(build, another_process=False)


def test_chainer_s_iterators_go_over_data_sets_of_fuel():
    """Chainer's iterators index them one by one."""
    dataset = bridge.as_dataset(IndexableDataset({
        'x': numpy.arange(9), 'y': list(range(9))}))
    iterator = chainer.iterators.MultiprocessIterator(
        dataset, 4, shuffle=False, n_processes=1, shared_mem=1000)
    assert [(0, 0), (1, 1), (2, 2), (3, 3)] == [
        (int(x), y) for x, y in iterator.next()]
    iterator.finalize()


def test_downloads_lie_where_chainer_s_lie(tmp_path):
    """A file that one of them has is not downloaded by the other."""
    roots = chainer.dataset.get_dataset_root(), bridge.get_dataset_root()
    try:
        for module in (chainer.dataset, bridge):
            module.set_dataset_root(str(tmp_path))
        url = 'https://example.org/file'
        folder = tmp_path / '_dl_cache'
        folder.mkdir()
        (folder / hashlib.md5(url.encode()).hexdigest()).write_text('here')
        assert chainer.dataset.cached_download(url) == (
            bridge.cached_download(url))
    finally:
        chainer.dataset.set_dataset_root(roots[0])
        bridge.set_dataset_root(None)
