"""Slips of those who come from other libraries, answered where they are
made."""
import re
import subprocess
import sys
import warnings
from functools import partial

import h5py
import numpy
import pytest

import fuel
from fuel.datasets import (
    CSVDataset,
    Dataset,
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    IterableDataset,
    JSONLDataset,
    NPYDataset,
    random_split,
)
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Cast, Filter, Mapping, Rename
from fuel.transformers.image import Normalize
from fuel.utils.other_libraries import (
    CSV_KEYWORDS, DATASET_KEYWORDS, LOADER_KEYWORDS)

X = numpy.arange(80).reshape(40, 2)


def dataset():
    """Return a data set of two sources."""
    return IndexableDataset({'x': X, 'y': numpy.arange(40)})


def batches():
    """Return a stream of batches."""
    return DataStream(dataset(), batch_size=4)


@pytest.mark.parametrize('name', LOADER_KEYWORDS)
def test_keyword_of_another_loader_names_what_does_the_same(name):
    """Keywords of common loaders are known."""
    with pytest.raises(TypeError, match=(
            f"DataStream takes no argument '{name}': .*(stream|scheme)")):
        DataStream(dataset(), batch_size=4, **{name: 2})


@pytest.mark.parametrize('name', DATASET_KEYWORDS)
def test_keyword_of_another_data_set_names_what_does_the_same(name):
    """The same for all data sets."""
    with pytest.raises(TypeError, match=(
            f"IndexableDataset takes no argument '{name}': .*"
            '(stream|fuel.load|data_path)')):
        IndexableDataset(X, **{name: 2})


@pytest.mark.parametrize('name, module', [
    ('MNIST', 'datasets'), ('DataStream', 'streams'),
    ('ShuffledScheme', 'schemes'), ('Mapping', 'transformers')])
def test_class_that_is_looked_for_in_the_package_is_found(name, module):
    """The error names its module."""
    with pytest.raises(AttributeError, match=(
            f"no attribute '{name}': it is in fuel.{module}$")):
        getattr(fuel, name)


@pytest.mark.parametrize('name', ['DataLoader', 'nothing', '_MNIST'])
def test_other_names_are_nowhere(name):
    """A look-up of such a name does not disturb `hasattr`."""
    assert not hasattr(fuel, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
        getattr(fuel, name)


def test_module_that_is_not_imported_is_named():
    """The program imports the package alone."""
    done = subprocess.run(
        [sys.executable, '-c', 'import fuel; fuel.datasets'],
        capture_output=True, text=True, check=False)
    assert done.stderr.endswith(
        "AttributeError: module 'fuel' has no attribute 'datasets' until it "
        "is imported: write import fuel.datasets\n")


@pytest.mark.parametrize('name', CSV_KEYWORDS)
def test_keyword_of_pandas_names_what_does_the_same(name):
    """The keywords of its reader of CSV files are known."""
    with pytest.raises(TypeError, match=(
            f"CSVDataset takes no argument '{name}': .*"
            "(delimiter|columns|dtypes|masks)=")):
        CSVDataset('no.csv', **{name: ';'})


def test_other_names_of_arguments_are_told():
    """They are those of torchvision, and those of data sets for files of
    rows."""
    with pytest.raises(TypeError, match="'std': its name is deviation"):
        Normalize(batches(), mean=0, std=1)
    with pytest.raises(TypeError, match="'transform': put a stage over"):
        NPYDataset('no.npz', transform=len)


@pytest.mark.parametrize('function, text', [
    (3, r'must be a function, got 3 \(int\)'),
    (lambda x, y: (x, y),
     r'takes one argument, each batch, a tuple \(x, y\), .* has 2: .*= data'),
    (lambda: None, 'takes one argument, .* but this function has 0')],
    ids=['number', 'two', 'none'])
@pytest.mark.parametrize('stage, name', [
    (Mapping, 'mapping'), (Filter, 'predicate')])
def test_function_of_other_arguments_is_refused(stage, name, function, text):
    """The constructor of the stage raises the error."""
    with pytest.raises(TypeError, match=f'{name} {text}'):
        batches().apply(stage, function)


class Pairs(Mapping):
    """A user's mapping that calls its function in another way."""

    def transform_any(self, data):
        """Return what the function makes of the parts."""
        return self.mapping(*data)


@pytest.mark.parametrize('function', [
    lambda data, extra=1: data, lambda *data: data[0], tuple, iter,
    lambda data, **kwargs: data])
def test_functions_that_can_be_called_with_one_argument(function):
    """A function without a known signature works, too."""
    assert 10 == len(list(batches().apply(Mapping, function)))


def test_users_mapping_may_take_another_function():
    """It may call it as it likes."""
    assert 10 == len(list(Pairs(batches(), lambda x, y: (x, y))))


def test_function_that_takes_its_data_for_a_dict_is_told_what_comes():
    """A note says it, since the error is the function's own."""
    with pytest.raises(TypeError, match='indices') as caught:
        list(batches().apply(Mapping, lambda data: (data['x'],)))
    assert any('gets each batch, a tuple (x, y); with mapping_accepts=dict, '
               'a dict' in note for note in caught.value.__notes__)
    with pytest.raises(KeyError) as caught:
        list(batches().apply(Mapping, lambda data: data['z'],
                             mapping_accepts=dict))
    assert any("gets each batch, a dict of ('x', 'y')" in note
               for note in caught.value.__notes__)


def test_dict_in_the_place_of_a_tuple_warns():
    """Fuel 0.2.0 let it pass."""
    stage = batches().apply(Mapping, lambda data: {'x': 1, 'y': 2})
    with pytest.warns(UserWarning, match='pass mapping_accepts=dict'):
        assert {'x': 1, 'y': 2} == next(iter(stage))


def test_predicate_of_a_batch_says_that_it_gets_one():
    """The note is added where the truth of an array is asked for."""
    with pytest.raises(ValueError, match='ambiguous') as caught:
        list(batches().apply(Filter, lambda data: data[1] > 3))
    assert any('gets each batch, a tuple (x, y), and returns whether to keep '
               'all of it; examples are left out where they come, before '
               'Batch' in note for note in caught.value.__notes__)
    examples = dataset().get_example_stream()
    assert 36 == len(list(examples.apply(Filter, lambda data: data[1] > 3)))
    assert 9 == len(list(examples.apply(
        Filter, lambda data: data[1] > 3).apply(Batch, batch_size=4)))


def test_sizes_in_the_place_of_examples_are_refused():
    """They would be taken for numbers of examples."""
    with pytest.raises(ValueError, match=(
            'ConstantScheme says how many .* IndexableDataset has to know '
            r'which: pass batch_size=4, or .*SequentialScheme\(')):
        DataStream(dataset(), iteration_scheme=ConstantScheme(4))


def test_several_arrays_are_a_dict():
    """They are given side by side, and as a tuple."""
    with pytest.raises(TypeError, match=(
            r"start must be an integer, got a ndarray: .*'targets': y\}")):
        IndexableDataset(X, numpy.arange(40))
    with pytest.warns(UserWarning, match='a tuple of 2 arrays is a single'):
        assert 2 == len(IndexableDataset((X, numpy.arange(40))))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for data in ([X, X], (X[:3], X), (X[:2], X[:2]), (1, 2)):
            assert 2 == len(IndexableDataset(data))


def test_what_can_only_be_iterated_over():
    """The class for it is named."""
    with pytest.raises(ValueError, match='put it into an IterableDataset'):
        IndexableDataset(number for number in range(3))


def test_text_is_not_a_number_of_examples():
    """Text is not a list of examples either."""
    for text in ('40', b'40'):
        with pytest.raises(TypeError, match='a number of examples or a list'):
            SequentialScheme(text, 4)


def test_name_of_a_source_is_not_an_index():
    """The error says where the data of the source are."""
    with pytest.raises(TypeError, match=r'data of this source are dataset\[:'
                                        r'\]\[1\]$'):
        dataset()['y']
    with pytest.raises(TypeError, match=r"got 'z' \(str\)$"):
        dataset()['z']
    assert numpy.arange(40).tolist() == dataset()[:][1].tolist()


@pytest.mark.parametrize('cls', [CSVDataset, JSONLDataset, NPYDataset])
@pytest.mark.parametrize('given, text', [
    ([], 'a list'), ([1, 2], 'a list'),
    (X, 'a ndarray: put arrays and lists into an IndexableDataset'),
    (None, r'None \(NoneType\)')])
def test_value_that_is_not_a_path_is_refused(cls, given, text):
    """The error names the class and the remedy."""
    with pytest.raises(TypeError, match=(
            f'{cls.__name__} reads one file, by its path or URL, got {text}')):
        cls(given)


@pytest.fixture(name='opened', params=['npz', 'csv', 'own.h5', 'plain.h5'])
def opened_file(request, tmp_path):
    """Return what opens a file of ten rows with some arguments."""
    path = tmp_path / f'rows.{request.param}'
    if request.param == 'npz':
        numpy.savez(path, x=numpy.arange(10))
        return partial(NPYDataset, path)
    if request.param == 'csv':
        path.write_text('x\n' + ''.join(f'{row}\n' for row in range(10)))
        return partial(CSVDataset, path)
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(10)
    if request.param == 'own.h5':
        return partial(H5PYDataset, path)
    return partial(HDF5Dataset, path, ['x'])


@pytest.mark.parametrize('names', [None, ('train',)])
@pytest.mark.parametrize('given', [('train',), 7, .8, [0, 1, 2]])
def test_splits_are_a_dict(opened, given, names):
    """Anything else would be all rows, where no split is named."""
    more = {} if names is None else {'which_sets': names}
    with pytest.raises(ValueError, match=(
            r'^splits must be a dict from names to \(start, stop\)')):
        opened(splits=given, **more)


@pytest.mark.parametrize('rows', [None, 3, .5, 0., (0., 3.), (0, 3.5),
                                  (0, 3, 5, 7), slice('a', 'b'),
                                  (0, 4, 0), (), (3,), (0, 3, 1)])
def test_rows_of_a_split_are_a_range_or_a_list(opened, rows):
    """The error names the split, and what was given."""
    with pytest.raises(ValueError, match=(
            f"^split 'train' must be .*, got {re.escape(repr(rows))}$")):
        opened(splits={'train': rows}, which_sets=('train',))


@pytest.mark.parametrize('names', [0, 1.5, True, object()])
def test_which_sets_are_names(opened, names):
    """They are when a file defines its splits, too."""
    with pytest.raises(ValueError, match=(
            '^which_sets must be a tuple of split names, got ')):
        opened(splits={'train': (0, 3)}, which_sets=names)


def test_names_of_splits_may_be_numbers(opened):
    """Folds have such names; a text that is none of them is refused."""
    folds = {0: (0, 5), 1: (5, 10)}
    assert [7] == opened(splits=folds, which_sets=(1,))[[2]][0].tolist()
    with pytest.raises(ValueError, match=(
            r"there is no split '1'; the splits are \(0, 1\)$")):
        opened(splits=folds, which_sets=('1',))


@pytest.mark.parametrize('source', [1, None])
def test_number_as_a_source_is_refused(opened, source):
    """An unknown name is refused, too."""
    with pytest.raises(ValueError, match=f'there is no source {source}'):
        opened(splits={'train': (0, 3)}, which_sets=('train',),
               sources=(source,))


@pytest.fixture(name='table', params=[CSVDataset, JSONLDataset])
def small_table(request, tmp_path):
    """Return what opens a table of two columns with some arguments."""
    path = tmp_path / 'table'
    path.write_text('a,b\n1,2\n' if request.param is CSVDataset else
                    '{"a": 1, "b": 2}\n')
    return partial(request.param, path)


@pytest.mark.parametrize('dtypes', ['float32', float, ['int', 'float']])
def test_types_of_a_table_are_those_of_sources(table, dtypes):
    """A type alone is not that of all of them."""
    with pytest.raises(ValueError, match=(
            r"^dtypes must be a dict from sources, as in dtypes=\{'a': ...")):
        table(dtypes=dtypes)


@pytest.mark.parametrize('columns, text', [
    (3, 'must be a list of columns, or a dict from sources to theirs, got 3'),
    ([], 'must name at least one, got'), ({}, 'must name at least one, got'),
    ({'x': []}, "source 'x' must have at least one column, got"),
    (['a', 'a'], 'a column is there twice: a, a'),
    ([['a', 'b']], r"must be a list of columns, or a dict .*\[\['a', 'b'\]\]"),
    ({'a', 'b'}, 'columns must be a tuple of names in the order of the data')])
def test_columns_of_a_table_are_named(table, columns, text):
    """At least one is needed, and none twice, as in HDF5 files."""
    with pytest.raises(ValueError, match=text):
        table(columns)


@pytest.mark.parametrize('wanted', [7, [7], None, [['a']]])
def test_column_of_a_source_is_named(table, wanted):
    """Anything else is a name that the table does not have."""
    with pytest.raises(ValueError, match=(
            r"has no (column|field) (7|None|\['a'\])")):
        table({'x': wanted})


@pytest.mark.parametrize('given', [True, None, -1, [-1], [None]])
def test_masks_and_missing_cells_are_texts(table, given):
    """A number that stands for missing values is written as its cells."""
    with pytest.raises(ValueError, match='^masks must be a list of sources'):
        table(masks=given)
    if table.func is CSVDataset:
        with pytest.raises(ValueError, match=(
                '^missing must be a list of cells .* text, got ')):
            table(missing=given)


def test_header_is_a_truth_value(tmp_path):
    """Text is neither."""
    path = tmp_path / 'a.csv'
    path.write_text('a\n1\n')
    with pytest.raises(TypeError, match="header must be .*, got 'infer'"):
        CSVDataset(path, header='infer')


@pytest.mark.parametrize('split', [0, .8, object(), {'train': [0]}])
def test_split_to_load_is_a_name(tmp_path, split):
    """A share is for `random_split`, and what that returns for `splits`."""
    numpy.savez(tmp_path / 'rows.npz', x=numpy.arange(10))
    with pytest.raises(TypeError, match=(
            'split must be the name of a split, or several, got .*: pass '
            'the splits of random_split as splits=')):
        fuel.load(tmp_path / 'rows.npz', split)


def test_stream_is_not_divided():
    """Its data set is."""
    with pytest.raises(TypeError, match='stream DataStream: pass the'):
        random_split(batches(), {'train': .8, 'test': .2})


def test_new_names_are_a_dict():
    """It maps the present names to new ones."""
    with pytest.raises(TypeError, match="must be a dict .*'x': "):
        batches().apply(Rename, ['a', 'b'])


def test_missing_type_is_that_of_the_class():
    """It is not that of an unknown base."""
    with pytest.raises(TypeError, match=r"^Cast\..*missing .* 'dtype'"):
        batches().apply(Cast)


class Own(Dataset):
    """A user's data set without a declared kind of requests."""

    provides_sources = ('x',)
    num_examples = 4

    def get_data(self, state=None, request=None):
        """Return the request."""
        return (request,)


def test_users_data_sets_take_what_they_like():
    """They may have other sizes, and more examples than they say."""
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for scheme in (ConstantScheme(2, times=3), SequentialScheme(9, 3),
                       ShuffledScheme(3, 4)):
            assert len(list(DataStream(Own(), iteration_scheme=scheme))) > 0
    assert 2 == len(list(IterableDataset([1, 2])))
