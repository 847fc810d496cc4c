"""Windows over runs, against plain loops that say what they are."""
import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.runs import (
    GetDataAlone,
    joined,
    lay_out,
    rows_of_runs,
    stretches,
)
from support.waiting import wait_until

from fuel.datasets import (
    Constant,
    Dataset,
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    IterableDataset,
    NPYDataset,
    Ragged,
    Runs,
    Windows,
)
from fuel.datasets.run_readers import WindowReader
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.storage import Reader
from fuel.streams import DataStream


def windows_of(runs, length, step=1, stride=1, pad=None, before=0, after=0,
               span=None):
    """Yield the rows of each window, None for one outside of its run."""
    span = span or (length - 1) * step + 1
    for rows in runs:
        start = -before
        while rows and start <= len(rows) - span + after:
            places = [start + step * place for place in range(length)]
            yield [rows[place] if 0 <= place < len(rows) else None
                   for place in places], [
                rows[min(max(place, 0), len(rows) - 1)] for place in places]
            start += stride


def expected(values, windows, pad):
    """Return the windows of an array, and which rows of them are real."""
    data, mask = [], []
    for real, nearest in windows:
        picked = values[nearest]
        if pad == 'zero':
            picked[[row is None for row in real]] = 0
        data.append(picked)
        mask.append([row is not None for row in real])
    length = len(mask[0]) if mask else 0
    return (numpy.array(data).reshape(len(data), length, *values.shape[1:]),
            numpy.array(mask, bool).reshape(len(data), length))


KINDS = 'npy', 'npz', 'hdf5', 'parts', 'memory', 'get_data'


@pytest.mark.parametrize('cases', [
    300, pytest.param(3000, marks=pytest.mark.full)])
def test_random_windows_are_those_of_a_loop(cases, tmp_path):
    """Any runs, split, padding, step and stride give those of a loop."""
    rng = numpy.random.RandomState(cases)
    seen = set()
    for case in range(cases):
        kind = KINDS[case % len(KINDS)]
        lengths = rng.randint(0, 12, rng.randint(1, 8))
        count = int(lengths.sum())
        if not count:
            continue
        x = rng.randint(0, 255, (count, 2, 3)).astype('uint8')
        y = rng.randn(count)
        order = [slice(0, count), slice(count // 4, count - count // 5),
                 rng.permutation(count)[:rng.randint(1, count + 1)],
                 numpy.flatnonzero(rng.randint(6, size=count))][
                     rng.randint(4 if kind in KINDS[:4] else 1)]
        # The examples of H5PYDataset are in the order of their rows.
        order = numpy.sort(order) if kind == 'hdf5' and isinstance(
            order, numpy.ndarray) else order
        rows = numpy.arange(count)[order]
        if not len(rows):
            continue
        given = lay_out(rng, lengths)
        length, step = rng.randint(1, 6), rng.randint(1, 4)
        stride = rng.randint(1, 4)
        pad = (None, 'edge', 'zero')[rng.randint(3)]
        before, after = rng.randint(0, 7, 2) if pad else (0, 0)
        first = rng.randint(1, length + 1)
        dataset = joined(kind, tmp_path, {'x': x, 'y': y}, order)
        make = functools.partial(
            Windows, dataset, length, runs=given, step=step, stride=stride,
            pad=pad, pad_before=before, pad_after=after, first={'y': first})
        loop = list(windows_of(
            [run for _, run in stretches(rows_of_runs(lengths), rows)],
            length, step, stride, pad, before, after))
        if not loop:
            with pytest.raises(ValueError, match='no run is long enough'):
                make()
            continue
        windows = make()
        assert len(windows) == len(loop), case
        seen.add((kind, type(order), pad, step > 1))
        of_x, mask = expected(x, loop, pad)
        of_y = expected(y, loop, pad)[0][:, :first]
        chosen = rng.randint(len(loop), size=5)
        for request, places in (
                (chosen.tolist(), chosen),
                (slice(0, len(loop)), slice(None)),
                (int(chosen[0]), int(chosen[0]))):
            data = dict(zip(windows.sources, windows.get_data(None, request),
                            strict=True))
            assert_array_equal(data['x'], of_x[places])
            assert_array_equal(data['y'], of_y[places])
            assert data['x'].dtype == x.dtype
            assert ('mask' in data) == (pad is not None)
            if pad:
                assert_array_equal(data['mask'], mask[places])
    assert len(seen) > 40


@pytest.mark.parametrize('cases', [
    100, pytest.param(1000, marks=pytest.mark.full)])
def test_random_dense_windows_are_those_of_a_loop(cases):
    """stable-worldmodel's: every step-th row, and all rows of the actions."""
    rng = numpy.random.RandomState(cases)
    for _ in range(cases):
        lengths = rng.randint(0, 20, 4)
        pixels = rng.randn(lengths.sum(), 2)
        action = rng.randn(lengths.sum(), 3)
        num_steps, frameskip = rng.randint(1, 4), rng.randint(1, 4)
        span = num_steps * frameskip
        loop = []
        for offset, length in zip(numpy.cumsum(lengths) - lengths, lengths,
                                  strict=True):
            for start in range(length - span + 1):
                begin, end = offset + start, offset + start + span
                loop.append((
                    action[begin:end].reshape(num_steps, -1),
                    pixels[begin:end:frameskip]))
        make = functools.partial(
            Windows, IndexableDataset({'action': action, 'pixels': pixels}),
            num_steps, runs={'lengths': lengths}, step=frameskip,
            dense=('action',))
        if not loop:
            with pytest.raises(ValueError, match='no run is long enough'):
                make()
            continue
        windows = make()
        assert len(windows) == len(loop)
        for place in rng.permutation(len(loop))[:9]:
            got, wanted = windows[int(place)], loop[place]
            assert got[0].shape == (num_steps, frameskip, 3)
            assert_array_equal(got[0].reshape(num_steps, -1), wanted[0])
            assert_array_equal(got[1], wanted[1])


@pytest.mark.parametrize(('stack', 'length'), [(1, 1), (3, 4), (10, 1)])
@pytest.mark.parametrize('pad_stack', [False, True])
@pytest.mark.parametrize('pad_length', [False, True])
def test_sequences_of_robomimic(stack, length, pad_stack, pad_length):
    """An example at step i has the rows i - (stack - 1) to i + length - 1."""
    demos = [numpy.arange(n) + 100 * n for n in (12, 3, 14, 11)]
    loop = []
    for demo in demos:
        first = 0 if pad_stack else stack - 1
        last = len(demo) - (0 if pad_length else length - 1)
        for index in range(first, last):
            begin, end = index - (stack - 1), index + length
            before, after = max(0, -begin), max(0, end - len(demo))
            rows = demo[max(0, begin):min(len(demo), end)]
            mask = numpy.ones(len(rows))
            loop.append((numpy.pad(rows, (before, after), 'edge'),
                         numpy.pad(mask, (before, after)) == 1))
    windows = Windows(
        IndexableDataset({'actions': numpy.concatenate(demos)}),
        stack - 1 + length, runs={'lengths': list(map(len, demos))},
        pad='edge', pad_before=stack - 1 if pad_stack else 0,
        pad_after=length - 1 if pad_length else 0)
    data, mask = windows[:]
    assert_array_equal(data, [rows for rows, _ in loop])
    assert_array_equal(mask, [real for _, real in loop])
    if pad_stack and pad_length:
        assert len(windows) == sum(map(len, demos))


def test_episodes_of_aloha():
    """Images are of one step, actions follow from there on, and zeros fill
    up."""
    rng = numpy.random.RandomState(0)
    episodes = [(rng.randn(n, 14), rng.randint(0, 255, (n, 4, 5, 3)))
                for n in (8, 5)]
    chunk, loop = 6, []
    for action, image in episodes:
        for start in range(len(action)):
            padded = numpy.zeros((len(action) + chunk, 14))
            padded[:len(action) - start] = action[start:]
            is_pad = numpy.zeros(len(action) + chunk, bool)
            is_pad[len(action) - start:] = True
            loop.append((padded[:chunk], image[start], is_pad[:chunk]))
    windows = Windows(
        IndexableDataset(dict(zip(('action', 'image'), map(
            numpy.concatenate, zip(*episodes, strict=True)), strict=True))),
        chunk, runs={'lengths': [8, 5]}, pad='zero', pad_after=chunk - 1,
        first={'image': 1})
    assert len(windows) == len(loop)
    for (action, image, mask), got in zip(loop, windows, strict=True):
        assert_array_equal(got[0], action)
        assert_array_equal(got[1], image[None])
        assert_array_equal(got[2], ~mask)


def test_trajectories_of_the_well():
    """A window has input and output steps, dt apart."""
    fields = numpy.random.RandomState(0).rand(3, 11, 4, 2)
    num_input, num_output, dt = 2, 1, 3
    loop = [fields[trajectory, start:start + dt * 3:dt]
            for trajectory in range(3)
            for start in range(11 - dt * (num_input + num_output - 1))]
    windows = Windows(
        IndexableDataset({'field': fields.reshape(33, 4, 2)}), 3, step=dt,
        runs={'lengths': [11] * 3})
    assert_array_equal(windows[:][0], loop)


def test_windows_cross_files_in_one_run():
    """There are `total - dt * (n - 1)` windows, as in makani."""
    windows = Windows(IndexableDataset({'fields': numpy.arange(20)}), 3,
                      runs='all', step=4)
    assert len(windows) == 20 - 4 * 2
    assert_array_equal(windows[11][0], [11, 15, 19])


def test_default_runs_are_those_of_the_data_set():
    """An attribute says so; without it, all rows are one run."""
    rows = IndexableDataset({'x': numpy.arange(6)})
    assert len(Windows(rows, 2)) == 5
    rows.runs = numpy.array([0, 2, 6])
    assert len(Windows(rows, 2)) == 4
    assert len(Windows(rows, 2, runs='all')) == 5


def test_source_may_be_called_runs():
    """Such a source says nothing of the rows."""
    rows = IndexableDataset({'runs': numpy.arange(4), 'x': numpy.arange(4)})
    assert_array_equal(Windows(rows, 3)[1][0], [1, 2, 3])


def test_windows_of_windows():
    """Runs of the inner ones are runs of the outer ones."""
    inner = Windows(IndexableDataset({'x': numpy.arange(9)}), 2,
                    runs={'lengths': [5, 4]})
    outer = Windows(inner, 3)
    assert_array_equal(inner.runs, [0, 4, 7])
    assert_array_equal(outer[:][0], [
        [[0, 1], [1, 2], [2, 3]], [[1, 2], [2, 3], [3, 4]],
        [[5, 6], [6, 7], [7, 8]]])


def test_names_stand_for_sources(tmp_path):
    """A name may stand for an array that is not a source of the windows."""
    numpy.savez(tmp_path / 'a.npz', x=numpy.arange(10), ends=[0, 0, 1] * 3
                + [0], ep_len=[4, 6])
    rows = NPYDataset(tmp_path / 'a.npz', ('late',), {'late': (1, 10)},
                      sources=('x',))
    windows = Windows(rows, 2, runs={'ends': 'ends'})
    assert_array_equal(windows[:][0], [[1, 2], [3, 4], [4, 5], [6, 7], [7, 8]])
    assert_array_equal(windows.run_numbers, [0, 1, 1, 2, 2])
    windows = Windows(rows, 3, runs={'lengths': 'ep_len'})
    assert windows[:][0][:, 0].tolist() == [1, 4, 5, 6, 7]
    in_memory = IndexableDataset({'x': numpy.arange(4), 'of': list('aabb')})
    windows = Windows(in_memory, 2, runs={'numbers': 'of'}, sources=('x',))
    assert_array_equal(windows[:][0], [[0, 1], [2, 3]])


def test_arrays_may_describe_the_examples(tmp_path):
    """Runs may describe the examples of a split, not all rows of a file."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(10))
    rows = NPYDataset(tmp_path / 'a.npy', ('some',), {
        'some': [0, 1, 2, 4, 5, 6, 7]})
    windows = Windows(rows, 2, runs={'lengths': [2, 5]})
    assert_array_equal(windows[:][0], [[0, 1], [4, 5], [5, 6], [6, 7]])
    with pytest.raises(ValueError, match='add up to 8, and there are 10'):
        Windows(rows, 2, runs={'lengths': [8]})
    with pytest.raises(ValueError, match="there is no source 'length'"):
        Windows(rows, 2, runs={'lengths': 'length'})


def test_sources_of_hdf5_files_may_lie_in_other_rows(tmp_path):
    """Rows follow each other where those of every source do."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['x'], file['y'] = numpy.arange(10), numpy.arange(10) + 100
        file['chosen'] = numpy.array([0, 1, 5, 6, 7])
        file.attrs['split'] = H5PYDataset.create_split_array({'train': {
            'x': (2, 7), 'y': (-1, -1, file['chosen'].ref)}})
    for load_in_memory in (False, True):
        rows = H5PYDataset(tmp_path / 'a.hdf5', ('train',),
                           load_in_memory=load_in_memory)
        x, y = Windows(rows, 2)[:]
        assert_array_equal(x, [[2, 3], [4, 5], [5, 6]])
        assert_array_equal(y, [[100, 101], [105, 106], [106, 107]])


class Letters(Dataset):
    """A user's data set, which takes lists and counts what is open."""

    provides_sources = ('letters', 'numbers')
    takes_requests = True
    num_examples = 8
    opened = 0

    def open(self):
        """Return a state."""
        self.opened += 1
        return self

    def close(self, state):
        """Close a state."""
        if state is self:
            self.opened -= 1

    def get_data(self, state=None, request=None):
        """Return letters and numbers."""
        assert state is self
        assert type(request) is list
        self.requests = [*getattr(self, 'requests', []), request]
        return [chr(97 + index) for index in request], numpy.array(request)


def test_data_set_of_a_user_is_asked_once_for_all_sources():
    """The windows call `get_data` with a list, and close what it opened."""
    rows = Letters()
    windows = Windows(rows, 3, step=2)
    letters, numbers = windows.get_data(None, [3, 0])
    assert letters == [['d', 'f', 'h'], ['a', 'c', 'e']]
    assert_array_equal(numbers, [[3, 5, 7], [0, 2, 4]])
    assert rows.requests == [[3, 5, 7, 0, 2, 4]]
    assert rows.opened == 0


class Doubled(NPYDataset):
    """A data set that makes something of its rows."""

    def get_data(self, state=None, request=None):
        """Return twice the rows."""
        return tuple([2 * part for part in super().get_data(state, request)])


def test_what_a_subclass_makes_of_rows_counts(tmp_path):
    """They do not have the rows of the file; rows of a split do not run
    together."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(6))
    rows = Doubled(tmp_path / 'a.npy', ('a',), {'a': [0, 1, 2, 4, 5]})
    assert_array_equal(Windows(rows, 2)[:][0], [[0, 2], [2, 4], [8, 10]])


class Duck:
    """A data set of a class that is none of Fuel's."""

    sources = ('x',)
    num_examples = 5

    def open(self):
        """Return no state."""

    def next_epoch(self, state):
        """Return no state."""

    def get_data(self, state=None, request=None):
        """Return numbers."""
        return (numpy.array(request),)


def test_data_set_of_another_class_will_do():
    """The class has what a stream needs."""
    windows = Windows(Duck(), 3, step=2)
    assert_array_equal(windows[:][0], [[0, 2, 4]])
    assert windows.provenance(0) == ('Duck', 0, 0, '', 0)
    stream = DataStream(windows, iteration_scheme=SequentialScheme(1, 1))
    assert_array_equal(next(stream.get_epoch_iterator())[0], [[0, 2, 4]])
    windows.close(None)
    with pytest.raises(ValueError, match="pass an array in the place of 'x'"):
        Windows(Duck(), 2, runs={'ends': 'x'})


def test_windows_show_what_the_data_set_below_shows():
    """Names of classes, and whether there is something to show."""
    rows = IndexableDataset({'x': numpy.arange(4)})
    rows.class_names = ('cat', 'dog')
    windows = Windows(rows, 2)
    assert windows.class_names == ('cat', 'dog')
    assert windows.has_rows_at_hand()
    assert Windows(Duck(), 2).class_names is None
    assert not Windows(Duck(), 2).has_rows_at_hand()


@pytest.mark.parametrize('kind', KINDS)
def test_threads_read_at_once(kind, tmp_path):
    """One data set, and what it keeps of a batch, serve several."""
    arrays = {'x': numpy.arange(400).reshape(200, 2), 'y': numpy.arange(200)}
    rows = joined(kind, tmp_path, arrays, slice(0, 200))
    windows = Windows(rows, 3, pad='edge', pad_after=2)

    def read(start):
        for _ in range(30):
            data = dict(zip(windows.sources, windows.get_data(
                None, list(range(start, start + 8))), strict=True))
            assert_array_equal(data['y'][:, 0], range(start, start + 8))
            assert_array_equal(data['x'][..., 0], 2 * data['y'])
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(0, 190, 10)))


def test_zeros_take_the_place_of_numbers_alone():
    """A list, or objects, have no zero."""
    rows = IndexableDataset({'x': list('abc')})
    windows = Windows(rows, 2, pad='zero', pad_after=1)
    assert windows[0][0] == ['a', 'b']
    with pytest.raises(ValueError, match="'x' is a list: use pad='edge'"):
        windows[2]
    rows = IndexableDataset({'x': numpy.array(['a', 'b'], object)})
    with pytest.raises(ValueError, match="'x' is of objects"):
        Windows(rows, 2, pad='zero', pad_after=1)
    rows = GetDataAlone({'x': numpy.array(['a', 'b'], object)})
    with pytest.raises(ValueError, match="'x' is of objects"):
        Windows(rows, 2, pad='zero', pad_after=1)[1]


def test_repeated_objects_are_not_shared():
    """A change of one object does not change its repetition."""
    rows = IndexableDataset({'x': [[1], [2]]})
    batch = Windows(rows, 2, pad='edge', pad_after=1)[[1, 1]][0]
    batch[0][0].append(9)
    assert batch == [[[2, 9], [2]], [[2], [2]]]


@pytest.mark.parametrize(('kwargs', 'words'), [
    ({'length': 0}, 'length must be a positive integer'),
    ({'step': 0}, 'step must be a positive'),
    ({'stride': -1}, 'stride must be a positive'),
    ({'pad_after': 1}, "pass pad='edge' or pad='zero'"),
    ({'pad': 'edge', 'pad_before': -1}, 'pad_before must not be negative'),
    ({'pad': 'mirror'}, "pad must be None or 'edge' or 'zero'"),
    ({'short': 'skip'}, "short must be 'drop' or 'error', got 'skip'"),
    ({'first': {'z': 1}}, "first: there is no source 'z'"),
    ({'first': {'x': 4}}, r"first\['x'\] must be at most the length, 3"),
    ({'first': {'x': 0}}, 'must be a positive integer'),
    ({'first': {'makst': 1}}, "no source 'makst' .did you mean 'mask'"),
    ({'dense': ('z',)}, "dense: there is no source 'z'"),
    ({'dense': 'x', 'first': {'x': 1}}, 'in both first and dense'),
    ({'dense': ('x',), 'pad': 'edge'}, 'dense cannot be used with pad'),
    ({'pad': 'edge'}, "there is a source 'mask' already"),
    ({'runs': {'lengths': [5]}}, 'add up to 5, and there are 6 rows'),
    ({'length': 5, 'step': 2, 'runs': {'lengths': [4, 2]}},
     'for a window of 9 rows: the longest of 2 has 4, and padding is 0'),
    ({'length': 9, 'pad': 'zero', 'pad_after': 2, 'mask_source': 'is_real'},
     'the longest of 1 has 6, and padding is 2'),
    ({'runs': {'lengths': [4, 2]}, 'short': 'error'},
     'run 1 has 2 rows, too few for a window of 3')])
def test_wrong_arguments_are_refused(kwargs, words):
    """The error says what was expected and what came."""
    rows = IndexableDataset({'x': numpy.arange(6), 'mask': numpy.arange(6)})
    with pytest.raises(ValueError, match=words):
        Windows(rows, **{'length': 3, **kwargs})


def test_first_without_counts_is_refused():
    """The text shows a dict."""
    with pytest.raises(TypeError, match=r"\{'image': 1\}, got \['x'\]"):
        Windows(IndexableDataset({'x': numpy.arange(6)}), 3, first=['x'])


def test_data_read_in_order_are_refused():
    """Such data have no rows to go back to."""
    with pytest.raises(TypeError, match='IterableDataset is read in order'):
        Windows(IterableDataset({'x': [1, 2]}), 2)


def test_mask_may_have_another_name():
    """A source may have the usual name of the mask."""
    rows = IndexableDataset({'mask': numpy.arange(3)})
    windows = Windows(rows, 2, pad='edge', pad_after=1,
                      mask_source='is_real')
    assert windows.sources == ('mask', 'is_real')
    assert Windows(rows, 2, pad='edge', pad_after=1, mask_source='is_real',
                   sources=('is_real',))[2][0].tolist() == [True, False]


def test_data_without_rows_have_no_windows():
    """There is no run that could be too short."""
    windows = Windows(IndexableDataset({'x': numpy.arange(0)}), 3)
    assert len(windows) == 0
    assert list(windows) == []


def test_example_says_where_it_comes_from(tmp_path):
    """It has file, run and first row, in any split."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(10))
    rows = NPYDataset(tmp_path / 'a.npy', ('late',), {'late': (3, 10)})
    windows = Windows(rows, 2, runs={'lengths': [2, 5, 3]}, pad='edge',
                      pad_before=1)
    assert [windows.provenance(example)[1:3] for example in range(3)] == [
        (1, 3), (1, 3), (1, 4)]
    assert windows.provenance(-1 % len(windows)) == (
        str(tmp_path / 'a.npy'), 2, 8, '', 8)
    with pytest.raises(IndexError, match='examples must lie in 0 to'):
        windows.provenance(len(windows))
    runs = Runs(rows, runs={'lengths': [2, 5, 3]})
    assert [runs.provenance(run)[1:3] for run in range(2)] == [(1, 3), (2, 7)]


def test_labels_have_the_axes_of_rows():
    """They have the axis of the rows, and the one between the steps."""
    rows = IndexableDataset(
        {'x': numpy.zeros((9, 2)), 'y': numpy.zeros(9)},
        axis_labels={'x': ('batch', 'feature'), 'y': None})
    assert Windows(rows, 2, dense=('x',)).axis_labels == {
        'x': ('batch', 'time', 'step', 'feature')}
    assert Windows(rows, 2, pad='edge').axis_labels == {
        'x': ('batch', 'time', 'feature'), 'mask': ('batch', 'time')}
    assert Runs(rows).axis_labels == {'x': ('batch', 'time', 'feature')}


def test_pickles_that_name_the_class_of_cuts_in_its_first_module_load():
    """An earlier Fuel has pickled such windows."""
    rows = IndexableDataset({'x': numpy.arange(10)})
    windows = Windows(rows, 3, runs={'lengths': [6, 4]}, step=2)
    pickled = pickle.dumps(windows, 0).replace(
        b'cfuel.datasets.run_readers\nWindowCuts\n',
        b'cfuel.datasets.windows\nWindowCuts\n')
    assert b'cfuel.datasets.windows\nWindowCuts\n' in pickled
    data, = pickle.loads(pickled).get_data(None, [0, 1])
    assert [[0, 2, 4], [1, 3, 5]] == data.tolist()


def test_pickle_holds_no_rows(tmp_path):
    """The pickle says only where the rows are."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(100_000))
    windows = Windows(NPYDataset(tmp_path / 'a.npy'), 5)
    pickled = pickle.dumps(windows)
    assert len(pickled) < 10_000
    assert_array_equal(pickle.loads(pickled)[7][0], windows[7][0])


class OncePerRun(Reader):
    """Rows with one value for a whole run."""

    is_per_run = True

    def _read_list(self, rows):
        """Return tens."""
        return rows // 5 * 10

    def _read_range(self, start, stop):
        """Return tens."""
        return self._read_list(numpy.arange(start, stop))


def test_values_of_runs_need_no_zeros(tmp_path):
    """A text that comes once has no padding; ragged rows have no zeros."""
    with h5py.File(tmp_path / 'a.h5', 'w') as file:
        for name in 'ab':
            file[f'{name}/x'], file[f'{name}/name'] = numpy.arange(3), name
            file[f'{name}/values'] = numpy.arange(5)
            file[f'{name}/ends'] = [1, 4, 5]
    rows = HDF5Dataset(tmp_path / 'a.h5', ['x', Constant('name')], parts='*')
    windows = Windows(rows, 2, pad='zero', pad_after=1)
    x, name, mask = windows.get_data(None, [2, 3])
    assert x.tolist() == [[2, 0], [0, 1]] and name.tolist() == ['a', 'b']
    assert mask.tolist() == [[True, False], [True, True]]
    rows = HDF5Dataset(tmp_path / 'a.h5', [Ragged('values', ends='ends')],
                       parts='*')
    with pytest.raises(ValueError, match="'values' is of objects"):
        Windows(rows, 2, pad='zero', pad_after=1)
    rows = HDF5Dataset(tmp_path / 'a.h5', ['x', Ragged(
        'values', ends='ends')], parts='*')
    windows = Windows(rows, 2, pad='zero', pad_after=1, sources=['x'])
    assert windows.get_data(None, [2])[0].tolist() == [[2, 0]]


def with_run_values(tmp_path):
    """Return a data set of two runs of five rows, and a value for each."""
    numpy.save(tmp_path / 'a.npy', numpy.arange(10))
    rows = NPYDataset({'x': tmp_path / 'a.npy', 'run': tmp_path / 'a.npy'})
    rows.readers['run'] = OncePerRun('', 'run', (10,), numpy.dtype('int64'))
    rows.runs = numpy.array([0, 5, 10])
    return rows


def test_values_of_runs_come_once(tmp_path):
    """They come once in whole runs and in windows, also over parts of the
    runs."""
    rows = with_run_values(tmp_path)
    run, x = Runs(rows).get_data(None, [1, 0])
    assert_array_equal(run, [10, 0])
    assert_array_equal(x[0], range(5, 10))
    assert_array_equal(Windows(rows, 2)[[0, 4]][0], [0, 10])
    assert Windows(rows, 2).known_types()['run'].shape == ()
    assert_array_equal(Windows(
        rows, 2, runs={'lengths': [2, 3, 2, 3]})[:][0], [0, 0, 0, 10, 10, 10])


def test_values_of_runs_come_often_over_other_runs(tmp_path):
    """A window may have rows of several runs."""
    rows = with_run_values(tmp_path)
    assert_array_equal(Windows(rows, 2, runs='all')[4][0], [0, 10])
    assert_array_equal(Runs(rows, runs='all')[0][0], [0] * 5 + [10] * 5)


def test_files_stay_open_between_epochs(tmp_path):
    """Opening takes time, and pages of new maps must be touched again."""
    opened = []

    class Counted(HDF5Dataset):
        def load(self):
            opened.append(1)
            super().load()

    path = tmp_path / 'rows.h5'
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(8)
    dataset = Counted(path)
    stream = DataStream.default_stream(Windows(dataset, 2), batch_size=3)
    dataset.get_data(None, [0])
    before = len(opened)
    for _ in range(3):
        assert 7 == sum(len(batch) for batch, in stream.get_epoch_iterator())
        next(stream.get_epoch_iterator())
    assert before == len(opened)


@pytest.mark.parametrize('kind', [Runs, functools.partial(Windows, length=2)])
def test_path_in_the_place_of_a_data_set_is_refused(kind):
    """The error has the line that opens it."""
    with pytest.raises(TypeError, match=r"fuel\.load\('a\.h5'\)"):
        kind('a.h5')


@pytest.mark.parametrize('options', [
    {'step': 2 ** 62}, {'stride': 2 ** 63},
    {'pad': 'edge', 'pad_before': 2 ** 62, 'pad_after': 2 ** 62},
    {'pad': 'edge', 'pad_after': 2 ** 60, 'runs': {'lengths': [1] * 10}},
    {'dense': 'x', 'step': 2 ** 62}],
    ids=str)
def test_numbers_that_overflow_are_refused(options):
    """Windows would be counted as too few, or none."""
    rows = IndexableDataset({'x': numpy.arange(10)})
    with pytest.raises(ValueError, match=str(2 ** 60)):
        Windows(rows, 3, **options)


def test_plain_batches_of_windows_are_read_in_c(tmp_path, monkeypatch):
    """An epoch's batches are, as far as each source is plain rows of a
    file."""
    path, called = tmp_path / 'rows.h5', []
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(120).reshape(40, 3)
        file.create_dataset('y', data=numpy.arange(40.), chunks=(1,))
    below = HDF5Dataset(path, ['x', 'y'], splits={
        'a': [*range(20, 40), *range(10)]}, which_sets=('a',))
    spans = WindowReader.read_spans
    monkeypatch.setattr(WindowReader, 'read_spans', (
        lambda *args: called.append(1) or spans(*args)))
    for options in ({}, {'step': 3, 'stride': 2}, {'dense': ('y',)},
                    {'first': {'x': 1}}):
        dataset = Windows(below, 4, runs={'lengths': [12, 8, 2, 8]},
                          **options)
        scheme = ShuffledScheme(dataset.num_examples, 5, seed=1)
        requests = list(ShuffledScheme(
            dataset.num_examples, 5, seed=1).get_request_iterator())
        stream = DataStream(dataset, iteration_scheme=scheme)
        batches = dataset.get_data(None, slice(0, None))
        called.clear()
        for number, found in enumerate(stream.get_epoch_iterator()):
            assert not called
            request = requests[number]
            for whole, batch in zip(batches, found, strict=True):
                assert whole.dtype == batch.dtype
                assert_array_equal(whole[request], batch)


@pytest.mark.parametrize('pad', ['edge', 'zero'])
def test_padded_windows_of_an_epoch_need_no_mask(tmp_path, pad):
    """Padded windows are those of a request, whatever reads them."""
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        file['x'] = numpy.arange(1., 11)
    windows = Windows(
        HDF5Dataset(tmp_path / 'x.hdf5'), 3, runs={'lengths': [4, 6]},
        pad=pad, pad_before=2, pad_after=1, sources=('x',))
    batches = [batch for batch, in DataStream(
        windows, batch_size=4).get_epoch_iterator()]
    whole, = windows.get_data(None, slice(0, None))
    assert_array_equal(numpy.concatenate(batches), whole)
    outside = 1 if pad == 'edge' else 0
    assert [outside, outside, 1] == whole[0].tolist()


def test_windows_have_as_many_axes_as_numpy_takes(tmp_path):
    """More axes than the C code copies are allowed."""
    most = 33 if numpy.lib.NumpyVersion(numpy.__version__) >= '2.0.0' else 32
    rows = numpy.arange(20).reshape(20, *[1] * (most - 3))
    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:
        file['x'] = rows
    windows = Windows(HDF5Dataset(tmp_path / 'x.hdf5'), 3, dense=['x'])
    batch, = next(DataStream(windows, batch_size=4).get_epoch_iterator())
    assert batch.ndim == most
    assert_array_equal(batch.ravel(), [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5])


def test_chunks_of_windows_are_decoded_in_advance(tmp_path):
    """They are decoded while the consumer works, as for rows."""
    path = tmp_path / 'rows.h5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('x', data=numpy.arange(400), chunks=(20,),
                            compression='gzip')
    dataset = Windows(HDF5Dataset(path, ['x']), 5)
    epoch = DataStream(dataset, iteration_scheme=SequentialScheme(
        dataset.num_examples, 10)).get_epoch_iterator()
    next(epoch)
    store = dataset.readers['x'].rows.store
    wait_until(lambda: store.num_decoded > 3)
    assert 39 == len(list(epoch))


def pairs(tokens, length, step, stride):
    """Return inputs and targets of windows, by slices of NumPy's."""
    whole = numpy.array([
        tokens[start:start + length * step + 1:step] for start in range(
            0, len(tokens) - length * step, stride)])
    return whole[:, :-1], whole[:, 1:]


@pytest.mark.parametrize('kind', [*KINDS, 'list'])
@pytest.mark.parametrize('length, step, stride', [
    (1, 1, 1), (4, 1, 4), (5, 2, 3)])
def test_targets_are_the_rows_that_follow(
        kind, length, step, stride, tmp_path):
    """Both sources are contiguous arrays of their own, in batches of epochs
    too."""
    tokens = numpy.random.RandomState(3).randint(0, 1000, 60)
    rows = IndexableDataset({'x': tokens.tolist()}) if kind == 'list' else (
        joined(kind, tmp_path, {'x': tokens}, slice(0, 60)))
    windows = Windows(rows, length, step=step, stride=stride, targets='next')
    inputs, targets = pairs(tokens, length, step, stride)
    assert windows.sources == ('inputs', 'targets')
    assert len(windows) == len(inputs)
    chosen = numpy.random.RandomState(4).randint(len(inputs), size=7)
    for request in (chosen.tolist(), slice(0, len(inputs)), int(chosen[0])):
        found = windows.get_data(None, request)
        assert_array_equal(found[0], inputs[request])
        assert_array_equal(found[1], targets[request])
    assert windows.provenance(1).row == stride
    scheme = ShuffledScheme(len(windows), 4, seed=2)
    order = numpy.concatenate(list(scheme.get_request_iterator()))
    stream = DataStream(windows, iteration_scheme=ShuffledScheme(
        len(windows), 4, seed=2))
    batches = list(stream.get_epoch_iterator())
    if kind != 'list':
        for batch in batches:
            assert all(one.flags.c_contiguous and one.flags.owndata
                       and one.flags.writeable for one in batch)
            assert not numpy.shares_memory(*batch)
    assert_array_equal(numpy.concatenate([one for one, _ in batches]),
                       inputs[order])
    assert_array_equal(numpy.concatenate([one for _, one in batches]),
                       targets[order])


def test_rows_of_inputs_and_targets_are_read_once():
    """A data set of the user is asked for the whole window."""
    rows = Letters()
    rows.sources = ('numbers',)
    rows.get_data = lambda state, request: (
        Letters.get_data(rows, state, request)[1],)
    windows = Windows(rows, 2, stride=2, targets='next')
    inputs, targets = windows.get_data(None, [1, 0])
    assert_array_equal(inputs, [[2, 3], [0, 1]])
    assert_array_equal(targets, [[3, 4], [1, 2]])
    assert rows.requests == [[2, 3, 4, 0, 1, 2]]


def test_several_sources_have_targets_each():
    """Those in `first`, and the values of whole runs, keep their names."""
    rows = IndexableDataset({'a': numpy.arange(9), 'b': -numpy.arange(9),
                             'c': 10 * numpy.arange(9)})
    windows = Windows(rows, 3, runs={'lengths': [5, 4]}, targets='next',
                      first={'c': 1}, axis_labels=None)
    assert windows.sources == (
        'a_inputs', 'a_targets', 'b_inputs', 'b_targets', 'c')
    found = dict(zip(windows.sources, windows[:], strict=True))
    assert_array_equal(found['a_inputs'], [[0, 1, 2], [1, 2, 3], [5, 6, 7]])
    assert_array_equal(found['b_targets'],
                       [[-1, -2, -3], [-2, -3, -4], [-6, -7, -8]])
    assert_array_equal(found['c'], [[0], [10], [50]])
    some = Windows(rows, 3, runs={'lengths': [5, 4]}, targets='next',
                   sources=('b_targets',))
    assert_array_equal(some[:][0], [[-1, -2, -3], [-2, -3, -4],
                                    [-6, -7, -8]])
    assert_array_equal(some[2][0], [-6, -7, -8])


def test_types_labels_and_categories_of_targets(tmp_path):
    """They are those of the source that both are made of."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as file:
        file['x'] = numpy.arange(8).reshape(8, 1).astype('uint16')
        file['x'].dims[0].label, file['x'].dims[1].label = 'batch', 'feature'
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': (0, 8)}})
    for load_in_memory in (False, True):
        rows = H5PYDataset(tmp_path / 'a.hdf5', ('train',),
                           load_in_memory=load_in_memory)
        windows = Windows(rows, 3, targets='next')
        types = windows.known_types()
        assert types.keys() == {'inputs', 'targets'}
        assert {(kind.dtype, kind.shape) for kind in types.values()} == {
            (numpy.dtype('uint16'), (3, 1))}
        assert windows.axis_labels == dict.fromkeys(
            ('inputs', 'targets'), ('batch', 'time', 'feature'))
        inputs, targets = pickle.loads(pickle.dumps(windows))[:]
        assert_array_equal([inputs[..., 0], targets[..., 0]],
                           pairs(numpy.arange(8), 3, 1, 1))
        rows.close(None)


def test_windows_of_inputs_and_targets(tmp_path):
    """A data set above reads each source by itself."""
    numpy.save(tmp_path / 'x.npy', numpy.arange(12))
    inner = Windows(NPYDataset(tmp_path / 'x.npy'), 2, targets='next')
    outer = Windows(inner, 2, stride=5)
    inputs, targets = outer[:]
    assert_array_equal(inputs, [[[0, 1], [1, 2]], [[5, 6], [6, 7]]])
    assert_array_equal(targets, inputs + 1)


@pytest.mark.parametrize('more, words', [
    ({'targets': 'last'}, "targets must be None or 'next'"),
    ({'targets': 'next', 'pad': 'edge'}, 'cannot be used with pad'),
    ({'targets': 'next', 'dense': 'x'}, 'cannot be used with dense'),
    ({'targets': 'next', 'sources': ('x',)}, 'inputs'),
    ({'targets': 'next', 'first': {'inputs': 1}}, "two sources 'inputs'")])
def test_targets_that_cannot_be_are_refused(more, words):
    """The error says what does not go together."""
    rows = IndexableDataset({'x': numpy.arange(9), 'inputs': numpy.arange(9)}
                            if 'first' in more else {'x': numpy.arange(9)})
    with pytest.raises(ValueError, match=words):
        Windows(rows, 3, **more)
    with pytest.raises(ValueError, match='no run is long enough .* 10 rows'):
        Windows(rows, 9, targets='next')


def test_state_of_other_targets_is_refused():
    """The same number of windows would have other rows."""
    rows = IndexableDataset({'x': numpy.arange(20)})

    def stream(**kwargs):
        return DataStream(Windows(rows, **kwargs),
                          iteration_scheme=SequentialScheme(16, 4))

    saved = stream(length=4, targets='next')
    next(saved.get_epoch_iterator())
    with pytest.raises(ValueError, match='saved by another pipeline'):
        stream(length=4).load_state_dict(saved.state_dict())
    with pytest.raises(ValueError, match='saved by another pipeline'):
        stream(length=5).load_state_dict(saved.state_dict())
    again = stream(length=4, targets='next')
    again.load_state_dict(saved.state_dict())
    assert_array_equal(next(again.get_epoch_iterator())[1],
                       [range(n + 1, n + 5) for n in range(4, 8)])
