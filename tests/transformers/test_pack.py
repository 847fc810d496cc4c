"""Pack: sequences of different lengths in rows of one."""
import itertools
import json
import logging
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fuel.datasets import IndexableDataset, IterableDataset
from fuel.exceptions import StateMismatchError
from fuel.kernels.packing import RowPacker, fill_rows, measure, number_rows
from fuel.schemes import ConstantScheme, ShuffledExampleScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Mapping, MultiProcessing
from fuel.transformers.sequences import Pack, PackingReport


def sequences_of(lengths, **kwargs):
    """Return a stream of sequences whose items are all different."""
    ends = list(itertools.accumulate(lengths))
    return DataStream(IterableDataset({'x': [
        list(range(end - length + 1, end + 1))
        for end, length in zip(ends, lengths, strict=True)]}), **kwargs)


def cut(sequence, length, too_long):
    """Return the pieces of a sequence that are packed."""
    if too_long == 'cut':
        return [sequence[:length]]
    return [sequence[start:start + length]
            for start in range(0, max(1, len(sequence)), length)]


def packed_rows(lengths, length, window, too_long='split'):
    """Return the rows of a first-fit with a bounded window, as in a book."""
    rows, first = [], 0
    for sequence, in sequences_of(lengths).get_epoch_iterator():
        for piece in cut(sequence, length, too_long):
            if not piece:
                continue
            room = [number for number in range(first, len(rows))
                    if sum(map(len, rows[number])) + len(piece) <= length]
            if not room:
                first = max(first, len(rows) - window + 1)
                room = [len(rows)]
                rows.append([])
            rows[room[0]].append(piece)
            while first < len(rows) and (
                    sum(map(len, rows[first])) == length):
                first += 1
    return rows


def as_arrays(row, length):
    """Return the items, segments and positions of a row of sequences."""
    padding = [0] * (length - sum(map(len, row)))
    return ([item for piece in row for item in piece] + padding,
            [place + 1 for place, piece in enumerate(row)
             for _ in piece] + padding,
            [place for piece in row for place in range(len(piece))] + padding)


def read(stream):
    """Return what is left of a stream's epoch, as lists."""
    return [tuple(part.tolist() for part in data)
            for data in stream.get_epoch_iterator()]


LENGTHS = st.lists(st.integers(0, 12), max_size=60)


@given(LENGTHS, st.integers(1, 10), st.integers(1, 6),
       st.sampled_from(['cut', 'split']), st.booleans())
def test_pack_is_first_fit_with_a_window(
        lengths, length, window, too_long, in_batches):
    """Examples, or batches of them, are packed; every item is there."""
    stream = sequences_of(lengths)
    if in_batches:
        stream = Batch(stream, iteration_scheme=ConstantScheme(7))
    packed = Pack(stream, length, window=window, too_long=too_long)
    expected = packed_rows(lengths, length, window, too_long)
    assert [as_arrays(row, length) for row in expected] == read(packed)
    total = sum(map(len, itertools.chain(*expected)))
    assert PackingReport(
        length, len(expected), total, len(lengths),
        *[sum(each > length for each in lengths) * (too_long == mode)
          for mode in ('cut', 'split')], lengths.count(0)) == packed.report


@given(LENGTHS, st.integers(1, 10), st.integers(1, 4), st.integers(1, 3),
       st.integers(0, 30), st.integers(1, 70))
def test_position_is_exact(lengths, length, window, batch_size, step, block):
    """It is exact at any step, with the counts; and saved again at the
    next."""
    def stream():
        return Pack(Batch(sequences_of(lengths),
                          iteration_scheme=ConstantScheme(block)),
                    length, window=window, batch_size=batch_size,
                    too_long='split')

    whole = read(stream())
    step = min(step, len(whole))
    first = stream()
    epoch = first.get_epoch_iterator()
    for _ in range(step):
        next(epoch)
    second = stream()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    again = second.get_epoch_iterator()
    assert first.report == second.report
    third = stream()
    if step < len(whole):
        next(again)
    third.load_state_dict(second.state_dict())
    assert whole[step + 1:] == read(third)


def test_state_holds_no_data():
    """A state holds positions and levels, for a window of any size."""
    stream = Pack(sequences_of([100] * 3000), 1000, window=20)
    epoch = stream.get_epoch_iterator()
    for _ in range(50):
        next(epoch)
    state = stream.state_dict()
    assert len(json.dumps(state)) < 2000
    assert len(state['leftover']['used']) <= 20
    # The number of items to read again is bounded, too.
    assert state['children'][0]['position'] >= 50 * 10 - 20 * 10 - 64


@given(LENGTHS, st.integers(3, 9), st.integers(0, 30))
def test_sequences_that_are_too_long_are_refused_once(lengths, length, step):
    """The error has the number; the others are all packed, also after a
    restart."""
    def follow(stream, steps=None):
        epoch, found, errors = stream.get_epoch_iterator(), [], []
        while steps is None or len(found) + len(errors) < steps:
            try:
                found.append(next(epoch)[0].tolist())
            except ValueError as error:
                errors.append(str(error))
            except StopIteration:
                break
        return found, errors

    def stream():
        return Pack(sequences_of(lengths), length, window=3)

    found, errors = follow(stream())
    wrong = [number for number, each in enumerate(lengths) if each > length]
    assert [f'sequence {number} of the epoch has the length {lengths[number]}'
            for number in wrong] == [
        error.partition(',')[0] for error in errors]
    kept = [item for each in range(len(lengths)) if each not in wrong
            for item in [lengths[each]]]
    assert sum(kept) == sum(item > 0 for row in found for item in row)
    first = stream()
    before = follow(first, step)
    second = stream()
    second.load_state_dict(first.state_dict())
    after = follow(second)
    if first.state_dict()['epoch'] == 'running':
        assert found == before[0] + after[0]
        assert errors == before[1] + after[1]


def test_error_names_the_remedies():
    """It has all three of them."""
    with pytest.raises(ValueError, match=(
            'sequence 1 of the epoch has the length 5, more than the 4 of a '
            "row: use too_long='cut' or 'split'")):
        read(Pack(sequences_of([2, 5]), 4))


def test_sources_are_packed_alike():
    """Each item stays beside those of the other sources."""
    x = [numpy.arange(6.).reshape(3, 2), numpy.arange(4.).reshape(2, 2)]
    stream = DataStream(IterableDataset({'x': x, 'y': [[1, 2, 3], [4, 5]]}))
    packed = Pack(stream, 6, batch_size=1, padding_value=-1,
                  segments_source='ids', positions_source=None)
    assert ('x', 'y', 'ids') == packed.sources
    (rows, y, ids), = packed.get_epoch_iterator()
    assert_array_equal(
        [[*x[0].tolist(), *x[1].tolist(), [-1, -1]]], rows)
    assert_array_equal([[1, 2, 3, 4, 5, -1]], y)
    assert_array_equal([[1, 1, 1, 2, 2, 0]], ids)
    assert numpy.int32 == ids.dtype


def test_types_of_rows():
    """Those of the first sequence with items, or as asked for."""
    def rows(items, **kwargs):
        return next(Pack(DataStream(IterableDataset({'x': items})), 4,
                         **kwargs).get_epoch_iterator())[0]

    small = numpy.array([1, 2], '>i2')
    assert numpy.dtype('int16') == rows([[], small, small]).dtype
    assert [1, 2, 1, 2] == rows([small, small.astype('i1')]).tolist()
    assert numpy.dtype('float32') == rows([[1], [2.5]], dtype='float32').dtype
    assert [1, 3, 0, 0] == rows([numpy.arange(8)[1:5:2]]).tolist()
    assert [True, True, False, False] == rows([[True, True]]).tolist()
    with pytest.raises(TypeError, match="sequence 1 of 'x' is of the type f"):
        rows([[1], [2.5]])
    with pytest.raises(TypeError, match='numbers that int8 does not hold'):
        rows([[1], [300]], dtype='int8')
    with pytest.raises(ValueError, match='shape \\(length, ...\\), got 5'):
        rows([5])
    with pytest.raises(ValueError, match=r'must be numbers .* got \[\'a'):
        rows([['a']])
    with pytest.raises(ValueError, match='must be numbers of shape'):
        rows([[[1], [1, 2]]])
    with pytest.raises(ValueError, match=(
            r'shape \(2,\), but the items of the rows have the shape \(\)')):
        rows([[1], [[1, 2]]])


def test_type_is_kept_when_a_state_is_taken_up():
    """The type stays even if the items read again have a smaller one."""
    items = [numpy.arange(3, dtype=dtype) for dtype in ('i8', 'i2', 'i2')]

    def stream():
        return Pack(DataStream(IterableDataset({'x': items})), 3)

    first = stream()
    next(first.get_epoch_iterator())
    second = stream()
    second.load_state_dict(first.state_dict())
    assert ['int64'] * 2 == [
        x.dtype.name for x, _, _ in second.get_epoch_iterator()]


def test_sources_of_different_lengths_are_refused():
    """The error has the number of the sequence."""
    stream = DataStream(IterableDataset({'x': [[1], [2]], 'y': [[1], []]}))
    with pytest.raises(ValueError, match=(
            "sequence 1 of the epoch 'x' has 1 items and 'y' 0")):
        read(Pack(stream, 4))


def test_failed_read_leaves_out_that_sequence_alone():
    """Those that were read before it wait."""
    def fail(data):
        if 5 in data[0]:
            raise ValueError('damaged')
        return data

    def stream():
        return Pack(Mapping(sequences_of([2, 2, 2, 2]), fail), 4)

    first = stream()
    epoch = first.get_epoch_iterator()
    with pytest.raises(ValueError, match='damaged'):
        next(epoch)
    second = stream()
    second.load_state_dict(first.state_dict())
    expected = [([1, 2, 3, 4], [1, 1, 2, 2], [0, 1, 0, 1]),
                ([7, 8, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0])]
    for found in second.get_epoch_iterator(), epoch:
        assert expected == [tuple(part.tolist() for part in row)
                            for row in found]


def test_report_is_logged_at_the_end(caplog):
    """It has the share of padding."""
    with caplog.at_level(logging.INFO, 'fuel.transformers.packing'):
        read(Pack(sequences_of([3, 0, 9]), 4, too_long='cut'))
    assert ('3 sequences in 2 rows of 4, 12.50% padding; 1 cut, 0 split, '
            '1 empty') in caplog.text
    assert 0 == Pack(sequences_of([]), 4).report.padding_share


def test_little_is_padding():
    """Sequences of 10 to 500 items are packed into rows of 2,048."""
    lengths = numpy.random.RandomState(0).randint(10, 501, 4000)
    packed = Pack(sequences_of(lengths), 2048, batch_size=8)
    read(packed)
    assert packed.report.padding_share < .05


def test_labels_follow_the_form():
    """Examples and batches are packed, from either."""
    labelled = DataStream(
        IndexableDataset({'x': [[1], [2, 3]]},
                         axis_labels={'x': ('batch', 'time')}),
        iteration_scheme=ShuffledExampleScheme(2))
    assert dict.fromkeys(
        ('x', 'segments', 'positions'), ('time',)) == Pack(
        labelled, 4).axis_labels
    batches = Batch(labelled, iteration_scheme=ConstantScheme(2))
    assert ('batch', 'time') == Pack(
        batches, 4, batch_size=2).axis_labels['segments']
    assert Pack(sequences_of([1]), 4).axis_labels is None


def test_pack_runs_in_a_worker():
    """One worker packs; several cannot share it."""
    with MultiProcessing(Pack(sequences_of([3, 2, 1]), 4)) as worker:
        assert read(Pack(sequences_of([3, 2, 1]), 4)) == read(worker)
    with pytest.raises(ValueError, match='the stage Pack does not make one'):
        MultiProcessing(Pack(sequences_of([3]), 4), num_workers=2)


@pytest.mark.parametrize(('arguments', 'text'), [
    ({'length': 0}, 'length must be a positive'),
    ({'batch_size': 0}, 'batch_size must be a positive'),
    ({'window': 0}, 'window must be a positive'),
    ({'too_long': 'drop'}, "too_long must be 'error', 'cut' or 'split'"),
    ({'dtype': 'U3'}, 'dtype must be a type of number'),
    ({'segments_source': 'x'}, 'must be names of their own'),
    ({'segments_source': 'positions'}, 'must be names of their own')])
def test_wrong_arguments_are_refused(arguments, text):
    """The error names the argument."""
    with pytest.raises(ValueError, match=text):
        Pack(sequences_of([1]), **{'length': 4, **arguments})


@pytest.mark.parametrize('change', [
    {'delivered': -1}, {'delivered': 10 ** 6}, {'used': [99]},
    {'used': 'ab'}, {'first': 5}, {'counts': [0]}, {'counts': [0] * 9},
    {'refused': [None]}, {'kinds': []}, {'kinds': [['O', []]]},
    {'kinds': [['nonsense', []]]}, {'kinds': [['<i8', [-1]]]},
    {'items': None}])
def test_damaged_states_are_refused(change):
    """Nothing of them is believed."""
    stream = Pack(sequences_of([3, 2, 4, 4, 1]), 4)
    next(stream.get_epoch_iterator())
    state = stream.state_dict()
    del state['crc']
    state['leftover'].update(change)
    restored = Pack(sequences_of([3, 2, 4, 4, 1]), 4)
    restored.load_state_dict(state)
    with pytest.raises(StateMismatchError, match='leftover'):
        restored.get_epoch_iterator()


def test_kernels_check_what_they_are_given():
    """They raise errors before they copy bytes."""
    array, dtype = numpy.arange(3), numpy.dtype(int)
    assert [3, 3] == measure([array, array], dtype, ()).tolist()
    for wrong in ([1], array[::2], array.astype('>i8'), array[:, None],
                  numpy.array(None), array.astype(object)):
        assert measure([array, wrong], dtype, ()) is None
    assert measure([array.astype(object)], numpy.dtype(object), ()) is None
    packer = RowPacker(4, 2, 1)
    lengths = numpy.array([3, 5])
    with pytest.raises(IndexError, match='not sequences of the parts'):
        packer.add(([array],), lengths, 0, 3, 9)
    with pytest.raises(IndexError, match='too few sequences'):
        packer.add(([array],), lengths, 0, 2, 9)
    with pytest.raises(ValueError, match='a sequence of 5 does not fit'):
        packer.add(([array, array],), lengths, 0, 2, 9)
    for arguments in (0, 1, 1), (1, 0, 1), (4, 2, 1, [5]), (4, 1, 1, [1, 1]):
        with pytest.raises(ValueError, match='rows'):
            RowPacker(*arguments)
    out = numpy.zeros((1, 2), int)
    with pytest.raises(ValueError, match='longer than the row'):
        fill_rows([[[array]]], 0, out)
    with pytest.raises(ValueError, match='as many rows'):
        fill_rows([], 0, out)
    with pytest.raises(ValueError, match='contiguous'):
        fill_rows([[[array]]], 0, numpy.zeros((1, 6), int)[:, ::2])
    with pytest.raises(ValueError, match='longer than the row'):
        number_rows([[[array]]], out.astype('int32'), None)
    with pytest.raises(ValueError, match='as many rows'):
        number_rows([], None, out.astype('int32'))


def test_packer_pickles():
    """The pickle has the content of its rows."""
    packer = RowPacker(4, 2, 1)
    packer.add(([numpy.arange(3)] * 3,), numpy.array([3, 3, 3]), 0, 3, 9)
    copy = pickle.loads(pickle.dumps(packer))
    assert ([3, 3], 1) == (copy.used, copy.first)
    for each in packer, copy:
        each.finish()
        assert [[[[0, 1, 2]]]] * 3 == [
            [[part.tolist() for part in parts] for parts in row]
            for row in each.take(9)]
