"""The manual's table of marks names all stages, and says what is so."""
import json
import re

import numpy
import pytest
from support import pipelines
from support.listed_stages import STAGES, rows_of_table

from fuel.datasets import IndexableDataset
from fuel.epochs.pipeline import child_streams, datasets_of
from fuel.exceptions import UnknownOrderError
from fuel.export import log_examples
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Expand, Mapping, MarkExamples, Transformer)

ROWS = [(set(re.findall(r'(?<!`)`(\w+)`', head)), cell)
        for head, cell in rows_of_table('which_example', 'pay nothing')]
OF_THE_ITEM = {name for names, cell in ROWS if 'of the item' in cell
               for name in names}
# Of other libraries or processes, with tests of their own.
ELSEWHERE = {'AudioFromBytes', 'RayWorkers', 'ServerDataStream', 'ToJax',
             'ToTorch'}
N = 12


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return the folder of the files that the pipelines read."""
    folder = tmp_path_factory.mktemp('pipelines')
    pipelines.write_files(folder)
    return folder


def stages(stream):
    """Yield a stream and all streams that it reads."""
    yield stream
    for child in child_streams(stream):
        yield from stages(child)


def classes_of(stream):
    """Return the names of the classes of all stages, with their bases."""
    return {base.__name__ for stage in stages(stream)
            for base in type(stage).__mro__}


@pytest.mark.parametrize('name', STAGES)
def test_stage_of_the_api_index_is_in_one_row(name):
    """A new stage says which examples its rows have."""
    assert 1 == sum(name in names for names, _ in ROWS)


def test_the_table_names_stages_only():
    """No row is of a stage that there is no more."""
    assert set().union(*[names for names, _ in ROWS]) == set(STAGES)


def test_each_stage_of_the_table_is_in_a_pipeline(files):
    """Those below hold each row of the table against what comes."""
    found = set().union(*[classes_of(pipelines.build(name, files))
                          for name in pipelines.PIPELINES])
    assert set(STAGES) - ELSEWHERE <= found


@pytest.mark.parametrize('name', sorted(pipelines.PIPELINES))
def test_log_has_what_marks_have(name, files, tmp_path):
    """Both agree if rows are known; otherwise the log names a stage of the row
    "of the item", and its examples are those that were read for it."""
    stream = pipelines.build(name, files)
    items = len(list(log_examples(stream, tmp_path / 'log')))
    path, = tmp_path.iterdir()
    lines = list(map(json.loads, path.read_text().splitlines()))
    assert items == len(lines)
    by = {line.get('of_item') for line in lines}
    iterator = MarkExamples(
        pipelines.build(name, files), 'own mark').get_epoch_iterator()
    if by != {None}:
        stage, = by
        rows = {type(one).__name__: {base.__name__ for base in type(
            one).__mro__} for one in stages(stream)}[stage]
        assert rows & OF_THE_ITEM
        with pytest.raises(UnknownOrderError, match=f'an item of {stage} '):
            next(iterator)
        count = len(datasets_of(stream))
        read = {tuple(entry) for line in lines for entry in line['examples']}
        assert read
        assert {number for number, _ in read} <= set(range(count))
        return
    marks = [item[-1] for item in iterator]
    assert len(marks) == len(lines)
    for line, mark in zip(lines, marks, strict=True):
        assert line['examples'] == [
            [pair for pair in row.tolist() if pair != [-1, -1]]
            if numpy.ndim(row) > 1 else row.tolist()
            for row in (mark[None] if stream.produces_examples else mark)]


# --- stages of a user's, whose examples are those of the item


def examples():
    """Return a stream of examples that hold their rows."""
    return DataStream(IndexableDataset({'x': numpy.arange(N)}), shuffle=True,
                      seed=1)


class Halves(Expand):
    """Makes two batches of each."""

    def expand(self, item):
        """Yield both halves, the second one first."""
        half = len(item[0]) // 2
        yield (item[0][half:],)
        yield (item[0][:half],)


class Padded(Transformer):
    """Makes a batch of nothing after each that it reads."""

    produces_examples = False
    epoch_attributes = (*Transformer.epoch_attributes, '_is_filler')
    _is_filler = True

    def __init__(self, data_stream, most):
        super().__init__(data_stream, False)
        self.most = most

    def start_epoch(self):
        """Begin with a batch that is read."""
        self._is_filler = True
        super().start_epoch()

    def get_data(self, request=None):
        """Return a batch that is read, or one of zeros."""
        self._is_filler = not self._is_filler
        if self._is_filler:
            return (numpy.zeros(3, int),)
        found = [next(self.child_epoch_iterator)[0]
                 for _ in range(self.most)]
        return (numpy.concatenate(found),)


def short(data):
    """Return a batch without its first row."""
    return (data[0][1:],)


def test_examples_of_the_item_are_all_that_were_read(tmp_path):
    """Of an Expand, of a function that drops rows, of a get_data."""
    rows = [int(row) for row, in examples()]
    batches = [[[0, row] for row in rows[first:first + 4]]
               for first in range(0, N, 4)]
    for build, expected, stage in (
            (Halves, [one for one in batches for _ in range(2)], 'Halves'),
            (lambda stream: Mapping(stream, short), batches, 'Mapping'),
            (lambda stream: Padded(stream, 3), [sum(batches, []), []],
             'Padded')):
        path = tmp_path / stage
        list(log_examples(build(Batch(examples(), batch_size=4)), path))
        lines = list(map(json.loads, path.read_text().splitlines()))
        assert expected == [line['examples'] for line in lines]
        assert {stage} == {line['of_item'] for line in lines}


def test_an_item_of_nothing_has_no_mark():
    """An item of something is refused, so begin with one of nothing."""
    class Filler(Padded):
        _is_filler = False

        def start_epoch(self):
            super().start_epoch()
            self._is_filler = False

    stream = Filler(Batch(examples(), batch_size=4), 1)
    iterator = iter(MarkExamples(stream, partner='partner'))
    zeros, *marks = next(iterator)
    assert zeros.tolist() == [0] * 3
    for mark in marks:
        assert mark.dtype == numpy.int64
        assert mark.tolist() == [[-1, -1]] * 3
    with pytest.raises(UnknownOrderError, match='an item of Filler '):
        next(iterator)
