"""Hints for names that other libraries use."""
import copy
import pickle
import re
from pathlib import Path

import numpy
import pytest

import fuel
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import NotAStreamError
from fuel.streams import DataStream
from fuel.transformers import Batch, Cast, Chain, Mapping, Merge, Mix
from fuel.utils.other_libraries import FOR_DATASETS, FOR_STREAMS


def flowers():
    """Return a data set of two sources."""
    return IndexableDataset({'features': numpy.arange(80).reshape(40, 2),
                             'targets': numpy.arange(40)})


def line_of(owner, name):
    """Return what an error says is to be written."""
    with pytest.raises(AttributeError, match=(
            f"^{type(owner).__name__} has no attribute '{name}': in Fuel, "
            'write ')) as caught:
        getattr(owner, name)
    assert name == caught.value.name
    return str(caught.value).partition('in Fuel, write ')[2]


def run(line, parts):
    """Run the code of a line, with nothing but what it imports."""
    _, more = parts
    code, _, _ = line.partition(
        more.format(item='batch', parts='(features, targets)') or ' (from ')
    imports = re.findall('from [a-z.]+ import [A-Za-z_, ]+', line)
    dataset = flowers()
    stream = (dataset.get_example_stream() if 'Batch,' in code
              else DataStream(dataset, batch_size=32))
    scope = {'dataset': dataset, 'stream': stream, 'rank': 0, 'num_shards': 2,
             'function': lambda batch: batch, 'predicate': len}
    scope['other'] = DataStream(IndexableDataset(
        {'other': numpy.arange(40)} if 'Merge' in code
        else {'features': numpy.zeros((40, 2)),
              'targets': numpy.arange(40)}), batch_size=32)
    *before, last = code.split(', then ')
    exec('\n'.join([*imports, *before]), scope)
    if last.startswith('for '):
        return exec(last, scope)
    return eval(last, scope)


@pytest.mark.parametrize('name', FOR_STREAMS)
def test_line_for_a_stream_runs(name):
    """It runs as it is written, with its imports."""
    stream = DataStream(flowers(), batch_size=4)
    made = run(line_of(stream, name), FOR_STREAMS[name])
    if hasattr(made, 'get_epoch_iterator') and name != 'prefetch':
        assert len(list(made)) > 0


@pytest.mark.parametrize('name', FOR_DATASETS)
def test_line_for_a_data_set_runs(name):
    """The line first makes a stream if it must."""
    made = run(line_of(flowers(), name), FOR_DATASETS[name])
    if hasattr(made, 'get_epoch_iterator') and name != 'prefetch':
        assert len(list(made)) > 0


def test_line_has_the_names_of_the_sources():
    """The line tells whether examples or batches come."""
    stream = DataStream(flowers(), batch_size=4)
    assert 'takes each batch, a tuple (features, targets)' in line_of(
        stream, 'map')
    examples = DataStream(IterableDataset({'word': 'abc'}))
    assert 'takes each example, a tuple (word,)' in line_of(examples, 'map')
    assert '(from fuel.transformers import Mapping)' in line_of(
        examples, 'map')


def test_stages_and_streams_without_sources_say_it_too():
    """Unknown sources are called data."""
    stream = DataStream(flowers(), batch_size=4)
    assert 'stream.apply(Take, 10)' in line_of(Cast(stream, 'f4'), 'take')
    stream.sources = None
    assert '(data,)' in line_of(stream, 'map')


def test_hints_do_not_add_attributes():
    """`hasattr`, completion, copies and pickles do not find them."""
    stream, dataset = DataStream(flowers(), batch_size=4), flowers()
    for owner, lines in ((stream, FOR_STREAMS), (dataset, FOR_DATASETS)):
        for one in (owner, copy.copy(owner), copy.deepcopy(owner),
                    pickle.loads(pickle.dumps(owner))):
            assert not any(hasattr(one, name) for name in lines)
            assert not {*lines} & {*dir(one)}
            assert not any(hasattr(type(one), name) for name in lines)
    assert {'apply', 'sources', 'dataset', 'skip'} <= {*dir(stream)}


class Behind:
    """A base of a user's class that has such a method."""

    def take(self):
        """Return a number."""
        return 3


class Own(DataStream, Behind):
    """A stream of a user."""

    def map(self):
        """Return a number."""
        return 4


def test_users_classes_have_methods_of_these_names():
    """The methods are their own, of another base, or assigned."""
    stream = Own(flowers(), batch_size=4)
    stream.filter = 5
    assert (3, 4, 5) == (stream.take(), stream.map(), stream.filter)
    assert {'take', 'map', 'filter'} <= {*dir(stream)}
    assert 3 == pickle.loads(pickle.dumps(stream)).take()
    assert Own.take is Behind.take


class Frame:
    """An object with the module and names of another library."""


def of(module, *names):
    """Return an object of a class of another library."""
    cls = Frame
    for name in reversed(names):
        cls = type(name, (cls,), {'__module__': module})
    return cls()


OBJECTS = {
    'list': ([1, 2], 'a list: put arrays and lists into an IndexableDataset'),
    'array': (numpy.arange(3), 'a ndarray: put arrays and lists into an Ind'),
    'dict': ({'x': [1]}, 'IndexableDataset'),
    'path': (Path('a.csv'), r'open files with fuel\.load\(.*a\.csv'),
    'text': ('data/a.csv', r"'data/a.csv' \(str\): open files with fuel\.loa"),
    'paths': (['a.csv', Path('b.csv')], r'open files with fuel\.load\(\['),
    'generator': ((n for n in range(3)), 'IterableDataset, for one epoch'),
    'set': ({1, 2}, 'put it into an IterableDataset'),
    'class': (IndexableDataset, r'the class IndexableDataset: make one, Ind'),
    'frame': (of('pandas.core.frame', 'DataFrame'), 'ArrowDataset'),
    'hugging face': (of('datasets.arrow_dataset', 'Dataset'), 'ArrowDataset'),
    'torch': (of('torch.utils.data.dataset', 'Subset', 'Dataset'),
              'TorchDataset, of fuel.interop.torch'),
    'torch in order': (of('torch.utils.data.dataset', 'IterableDataset',
                          'Dataset'), 'put it into an IterableDataset'),
    'loader': (of('torch.utils.data.dataloader', 'DataLoader'),
               'the data set that it reads into a TorchDataset'),
    'tensor': (of('torch', 'Tensor'), r'tensor\.numpy\(\)'),
    'None': (None, r'None \(NoneType\)')}


@pytest.mark.parametrize('kind', OBJECTS)
@pytest.mark.parametrize('reader', [DataStream, Cast, Merge, Mix, Chain],
                         ids=lambda reader: reader.__name__)
def test_object_in_the_place_of_a_data_set_or_stream(kind, reader):
    """The class to put it into is named."""
    data, text = OBJECTS[kind]
    if reader is DataStream:
        with pytest.raises(TypeError, match=f'dataset must be a Dataset.*'
                                            f'{text}'):
            DataStream(data)
        return
    if reader is Cast:
        if kind in ('None', 'class'):
            return
        with pytest.raises(NotAStreamError, match=(
                f'^Cast reads a stream, got .*{text}.*DataStream over it')):
            Cast(data, 'f4')
        return
    more = {'sources': ('x',)} if reader is Merge else {}
    if kind != 'class':
        with pytest.raises(TypeError, match=(
                f'^{reader.__name__} reads a stream, got .*{text}')):
            reader((data,), **more)


@pytest.mark.parametrize('cls', [IndexableDataset, IterableDataset])
@pytest.mark.parametrize('wrap', [lambda data: data, lambda data: {'x': data}])
def test_table_is_not_taken_for_rows(cls, wrap):
    """A table is refused alone and as a source; a column is taken."""
    for kind in ('frame', 'hugging face'):
        with pytest.raises(TypeError, match='put tables into an ArrowDataset'):
            cls(wrap(OBJECTS[kind][0]))
    assert 2 == len(cls(wrap(column_of_pandas([0, 1]))))


def column_of_pandas(labels):
    """Return what looks like a column of pandas."""
    cls = type('Series', (list,), {
        '__module__': 'pandas.core.series', 'index': labels})
    return cls([7] * len(labels))


@pytest.mark.parametrize('labels', [[1, 0], [0, 2], [1, 2], ['a', 'b']])
def test_column_is_not_taken_by_labels_of_its_own(labels):
    """After a table was divided at random, its rows keep their labels."""
    column = column_of_pandas(labels)
    for data in column, {'x': numpy.arange(2), 'y': column}:
        with pytest.raises(TypeError, match=r'is a Series.*pass ser'):
            IndexableDataset(data)
    assert 2 == len(list(DataStream(IterableDataset(column))))


def test_stage_names_a_missing_stream_by_keyword_too():
    """It does by position, too; None is left to the stage."""
    with pytest.raises(NotAStreamError, match='Mapping reads a stream, got 3'):
        Mapping(data_stream=3, mapping=len)
    with pytest.raises(NotAStreamError, match='Batch reads a stream'):
        Batch([1, 2], batch_size=2)


def test_stream_in_the_place_of_a_data_set_or_of_several():
    """Both are written in another way."""
    stream = DataStream(flowers(), batch_size=4)
    with pytest.raises(TypeError, match='got the stream DataStream.*apply'):
        DataStream(stream, batch_size=2)
    with pytest.raises(TypeError, match=r'write Merge\(\(one, other\), \.'):
        Merge(stream, stream)
    with pytest.raises(TypeError, match=r'write Chain\(\(one, other\), \.'):
        Chain(stream)


@pytest.mark.parametrize('kind', [
    kind for kind in OBJECTS if kind not in ('path', 'text', 'paths')])
def test_object_in_the_place_of_a_name(kind):
    """`fuel.load` reads files."""
    data, text = OBJECTS[kind]
    with pytest.raises(TypeError, match='^name must be that of a data set'
                                        f'.*{text.partition(": ")[2]}'):
        fuel.load(data)
