"""Streams of Fuel whose data are arrays of JAX."""
import copy
import pickle
import subprocess
import sys
from functools import partial

import jax
import numpy
import pytest
from jax import numpy as jnp
from jax.sharding import PartitionSpec, SingleDeviceSharding
from support import processes
from support.jax_pipelines import ordered, over_mesh, replicated, shuffled
from support.sparse_rows import SparseDataset, random_csr

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.interop.jax import to_jax
from fuel.schemes import SequentialExampleScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.testing import check_stage
from fuel.transformers import Mapping, Padding, ToDense


def of(column, batch_size=2):
    """Return a stream of batches in order."""
    return DataStream(IndexableDataset(column),
                      iteration_scheme=SequentialScheme(
                          len(column), batch_size))


def first(column, **options):
    """Return the first batch of a column."""
    batch, = next(to_jax(of(column), **options).get_epoch_iterator())
    return batch


class Recording(IndexableDataset):
    """A data set that counts its batches."""

    read = 0

    def get_data(self, state=None, request=None):
        self.read += 1
        return super().get_data(state, request)


@pytest.mark.parametrize('stage', [
    to_jax, partial(to_jax, dtype='bfloat16', sharding='cpu:3'), replicated],
    ids=['plain', 'cast', 'replicated'])
def test_stage_keeps_the_promises(stage, another_process):
    """The promises are about epochs, states, pickles and other processes."""
    check_stage(stage, another_process=another_process)


def test_batches_are_global_arrays_over_a_mesh():
    """Each of eight devices has its rows; a program sees one array."""
    stream = to_jax(ordered(), over_mesh())
    batches = list(stream.get_epoch_iterator())
    expected = list(ordered().get_epoch_iterator())
    for (rows, numbers), (plain, _) in zip(batches, expected, strict=True):
        assert PartitionSpec('batch') == rows.sharding.spec
        parts = rows.addressable_shards
        assert [(2, 3)] * 8 == [part.data.shape for part in parts]
        assert 8 == len({part.device for part in parts})
        for part in parts:
            assert numpy.array_equal(plain[part.index], part.data)
        assert float(plain.sum()) == float(jax.jit(jnp.sum)(rows))
        assert numbers.sharding == rows.sharding


def test_sources_may_be_laid_out_each_in_its_way():
    """Sources that are left out are on the default device."""
    device = jax.devices()[5]
    stream = to_jax(ordered(), {'rows': over_mesh()})
    rows, numbers = next(stream.get_epoch_iterator())
    assert (8, 1) == tuple(len(part.devices()) for part in (rows, numbers))
    for place in (device, 'cpu:5', SingleDeviceSharding(device)):
        rows, numbers = next(to_jax(
            ordered(), {'numbers': place}).get_epoch_iterator())
        assert {device} == numbers.devices()
        assert {jax.devices()[0]} == rows.devices()


def test_next_batch_is_copied_while_this_one_is_used():
    """Only one batch is copied in advance."""
    dataset = Recording(numpy.arange(10.))
    epoch = to_jax(DataStream(
        dataset, iteration_scheme=SequentialScheme(10, 4))
    ).get_epoch_iterator()
    assert 0 == dataset.read
    for number in (2, 3, 3):
        batch, = next(epoch)
        assert isinstance(batch, jax.Array)
        assert number == dataset.read
    assert [] == list(epoch)


@pytest.mark.parametrize('step', [0, 1, 6, 7])
def test_state_on_eight_devices_is_resumed_on_one(step):
    """A batch that was copied in advance counts as not read."""
    one, eight = to_jax(shuffled()), replicated(shuffled())
    for stream in (one, eight):
        epoch = stream.get_epoch_iterator()
        for _ in range(step):
            next(epoch)
        stream.kept = epoch
    assert one.state_dict() == eight.state_dict()
    expected = [batch.tolist() for batch, in eight.kept]
    assert 7 - step == len(expected)
    restored = to_jax(shuffled(), 'cpu:2')
    restored.load_state_dict(one.state_dict())
    assert expected == [
        batch.tolist() for batch, in restored.get_epoch_iterator()]


def test_state_of_another_type_is_refused():
    """The type, unlike the device, decides the values."""
    state = to_jax(shuffled(), dtype='bfloat16').state_dict()
    with pytest.raises(StateMismatchError, match='dtype'):
        to_jax(shuffled()).load_state_dict(state)


@pytest.mark.parametrize('dtype', [
    'bool', 'uint8', 'uint16', 'uint32', 'int8', 'int16', 'int32', 'float16',
    'float32', 'complex64', 'bfloat16', '>i4', '>f4'])
def test_types_stay_what_they_are(dtype):
    """Only the byte order changes."""
    array = numpy.arange(4).astype(jnp.dtype(dtype))
    batch = first(array)
    assert array.dtype.newbyteorder('=') == batch.dtype
    assert array[:2].tolist() == batch.tolist()


def test_types_of_64_bits_follow_the_setting_of_jax():
    """Values that do not fit into 32 bits are an error, not cut off."""
    for wide, narrow in [('float64', 'float32'), ('int64', 'int32'),
                         ('uint64', 'uint32'), ('complex128', 'complex64')]:
        array = numpy.arange(2).astype(wide)
        assert narrow == first(array).dtype
        with jax.enable_x64(True):
            assert wide == first(array).dtype
            assert wide == first(
                numpy.zeros(2, 'f4'), dtype={'data': wide}).dtype
    for value in (2 ** 31, -2 ** 31 - 1):
        with pytest.raises(ValueError, match=f"'data' holds {value}.*int32"):
            first(numpy.array([0, value]))
    assert [-2 ** 31, 2 ** 31 - 1] == first(
        numpy.array([-2 ** 31, 2 ** 31 - 1])).tolist()


def test_floating_numbers_are_cast_on_the_way():
    """Other sources stay as they are, unless a dict says otherwise."""
    rows, numbers = next(to_jax(
        ordered(), dtype=jnp.bfloat16).get_epoch_iterator())
    assert (jnp.bfloat16, 'int32') == (rows.dtype, numbers.dtype)
    rows, numbers = next(to_jax(
        ordered(), dtype={'numbers': 'float16'}).get_epoch_iterator())
    assert ('float32', 'float16') == (rows.dtype, numbers.dtype)


def test_examples_lists_and_arrays_of_jax_are_taken():
    """A stage may return any numbers."""
    stream = to_jax(DataStream(
        IndexableDataset(numpy.arange(3)),
        iteration_scheme=SequentialExampleScheme(3)))
    assert [(0,), (1,), (2,)] == list(stream.get_epoch_iterator())
    assert [1, 2] == first([1, 2, 3]).tolist()
    assert [[1., 1.], [0., 0.]] == first(
        [numpy.ones(2), numpy.zeros(2)]).tolist()
    doubled = Mapping(of(numpy.arange(4)), lambda data: (
        2 * jnp.asarray(data[0]),))
    batch, = next(to_jax(doubled, 'cpu:1').get_epoch_iterator())
    assert [0, 2] == batch.tolist()
    assert {jax.devices()[1]} == batch.devices()


def test_padded_batches_become_arrays():
    """Ragged batches are refused, and the error names Padding."""
    ragged = of([numpy.ones(2), numpy.ones(3)])
    with pytest.raises(TypeError, match=r"'data'.*transformers\.Padding"):
        next(to_jax(ragged).get_epoch_iterator())
    batch, mask = next(to_jax(Padding(ragged)).get_epoch_iterator())
    assert (2, 3) == batch.shape == mask.shape


@pytest.mark.parametrize('column, text', [
    (['a', 'b'], 'strings.*encode them'),
    (numpy.array(['a', 'b'], object), 'strings'),
    (numpy.array([b'a', b'b']), 'strings'),
    (numpy.array([None, 1]), 'Python objects'),
    (numpy.array([(1, 2.)] * 2, [('a', int), ('b', float)]), 'records'),
    (numpy.zeros(2, 'timedelta64[s]'), 'cast it to int64'),
    (numpy.zeros(2, 'longdouble'), 'cast it to float64')])
def test_data_that_no_array_of_jax_holds_are_refused(column, text):
    """The source and the type are named; as they are, they may stay."""
    with pytest.raises(TypeError, match=f"source 'data'.*{text}"):
        first(column)
    kept = first(column, which_sources=())
    assert not isinstance(kept, jax.Array)


def test_batch_that_the_mesh_does_not_divide_is_refused():
    """The error comes in its turn and says how to drop, or pad, the last
    batch."""
    epoch = to_jax(ordered(20), over_mesh()).get_epoch_iterator()
    rows, _ = next(epoch)
    assert (16, 3) == rows.shape
    with pytest.raises(ValueError, match=(
            r'\'rows\' of shape \(4, 3\).*over 8 devices.*uneven="drop"')):
        next(epoch)
    for uneven, count in [('drop', 1), ('pad', 2)]:
        whole = ordered(20).shard(0, 1, by='example', uneven=uneven)
        shapes = [rows.shape for rows, _ in to_jax(whole, over_mesh())]
        assert [(16, 3)] * count == shapes
    examples = DataStream(IndexableDataset(numpy.arange(8)),
                          iteration_scheme=SequentialExampleScheme(8))
    with pytest.raises(ValueError, match=r'shape \(\).*more axes'):
        next(to_jax(examples, over_mesh()).get_epoch_iterator())


def test_pickle_copy_and_repr():
    """Devices are found again by their platform and number."""
    stream = to_jax(ordered(), {'rows': over_mesh(), 'numbers': 'cpu:4'},
                    which_sources=('rows', 'numbers'))
    next(stream.get_epoch_iterator())
    for same in (pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)):
        assert stream.placement == same.placement
        rows, numbers = next(same.get_epoch_iterator())
        assert 8 == len(rows.devices())
        assert {jax.devices()[4]} == numbers.devices()
    assert "to_jax(DataStream, dtype='bfloat16', which_sources=('rows',))" \
        == repr(to_jax(ordered(), dtype=jnp.bfloat16,
                       which_sources=('rows',)))
    assert 'to_jax(DataStream, sharding=NamedSharding(' in repr(
        replicated(ordered()))


def test_pickle_on_a_machine_without_the_devices_is_refused(tmp_path):
    """The text says that a state would do."""
    (tmp_path / 'stage').write_bytes(
        pickle.dumps(to_jax(ordered(), 'cpu:7')))
    program = 'import pickle; pickle.load(open("stage", "rb"))'
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=tmp_path, text=True,
        check=False, timeout=100, capture_output=True,
        env=processes.environment(
            XLA_FLAGS='--xla_force_host_platform_device_count=2'))
    assert 'device cpu:7, which is not there' in done.stderr
    assert 'load the state' in done.stderr


def test_import_leaves_the_devices_to_the_program():
    """`jax.distributed.initialize` must come before they are looked for."""
    program = ('import jax, fuel.interop.jax\n'
               'jax.config.update("jax_num_cpu_devices", 3)\n'
               'assert 3 == len(jax.devices())')
    subprocess.run(
        [sys.executable, '-c', program], check=True, timeout=100,
        env=processes.environment(XLA_FLAGS=''))


@pytest.mark.parametrize('options, error, text', [
    ({'sharding': 'gpu'}, ValueError, r"is there \(cpu:0.*got 'gpu'"),
    ({'sharding': 'cpu:8'}, ValueError, "got 'cpu:8'"),
    ({'sharding': 'cpu:-1'}, ValueError, "got 'cpu:-1'"),
    ({'sharding': 5}, TypeError, 'got int'),
    ({'sharding': {'row': 'cpu'}}, ValueError, "'row'"),
    ({'dtype': 'sundial'}, ValueError, "got 'sundial'"),
    ({'dtype': 'U3'}, ValueError, "got 'U3'"),
    ({'dtype': 'float64'}, ValueError, 'jax_enable_x64'),
    ({'dtype': 'int32'}, ValueError, 'floating numbers.*pass a dict'),
    ({'dtype': {'row': 'int32'}}, ValueError, "meant 'rows'|did you mean"),
    ({'which_sources': ('row',)}, ValueError, "'rows'")])
def test_invalid_arguments_are_refused(options, error, text):
    """The call of `to_jax` raises the error."""
    with pytest.raises(error, match=text):
        to_jax(ordered(), **options)


def test_sparse_batches_are_made_dense_before():
    """JAX has no such arrays that its functions take."""
    rows = random_csr(6, 5)
    stream = DataStream(SparseDataset(rows),
                        iteration_scheme=SequentialScheme(6, 4))
    with pytest.raises(TypeError, match=r"to_jax .* ToDense\(.*\('x',\)"):
        next(to_jax(stream).get_epoch_iterator())
    x, _ = next(to_jax(ToDense(stream)).get_epoch_iterator())
    assert numpy.array_equal(rows.toarray()[:4], x)


def test_print_of_a_stage_of_arrays_is_the_tree_of_the_pipeline():
    """Every stream prints its tree."""
    stream = to_jax(ordered(), dtype='bfloat16')
    assert ['ToJax', '  DataStream', '    IndexableDataset'] == [
        line.partition(':')[0] for line in str(stream).splitlines()]


def test_names_with_slashes_make_a_tree_of_arrays():
    """Functions of JAX take such trees."""
    stream = to_jax(DataStream(IndexableDataset({
        'obs/a': numpy.arange(4), 'obs/b': numpy.ones(4, 'float32'),
        'actions': numpy.zeros(4, 'float32')}), batch_size=2))
    batch = next(stream.dicts(nested=True))
    assert jax.tree.map(lambda array: array.tolist(), batch) == {
        'obs': {'a': [0, 1], 'b': [1, 1]}, 'actions': [0, 0]}


def test_stage_works_without_grain():
    """The import of a function that needs Grain says what is missing."""
    program = """
import sys
sys.modules['grain'] = None
from fuel.interop.jax import to_jax
print(to_jax.__name__)
from fuel.interop.jax import as_iter_dataset
"""
    ran = subprocess.run([sys.executable, '-c', program],
                         capture_output=True, text=True, check=False)
    assert ran.stdout == 'to_jax\n'
    assert 'ImportError: grain is not installed' in ran.stderr
