"""Stages of Fuel, applied to the batches of Ray Data."""
from functools import partial

import h5py
import numpy
import pytest
import ray.data

from fuel.datasets import H5PYDataset
from fuel.interop.ray import RayDataset, map_batches, to_ray
from fuel.schemes import ConstantScheme, SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Cache,
    Cast,
    Filter,
    Mapping,
    Rename,
    ScaleAndShift,
    ToDense,
)
from fuel.transformers.image import RandomHorizontalFlip
from fuel.transformers.noise import GaussianNoise

pytestmark = pytest.mark.timeout(300)


def rows_of(dataset, name='id'):
    """Return a column of a data set of Ray Data, sorted."""
    return sorted(row[name] for row in dataset.take_all())


def test_pipeline_makes_what_it_makes_of_a_stream(tmp_path):
    """Data go from an HDF5 file through Ray and back."""
    path = tmp_path / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('rows', data=numpy.arange(300, dtype='u1').reshape(
            100, 3), chunks=(8, 3))
        file['numbers'] = numpy.arange(100)
        file.attrs['split'] = H5PYDataset.create_split_array({
            'train': dict.fromkeys(('rows', 'numbers'), (0, 100))})
    train_set = H5PYDataset(path, ('train',))

    def pipeline(stream):
        return Rename(Cast(ScaleAndShift(
            stream, 2, 1, which_sources=('rows',)), 'float32'),
            {'rows': 'scaled'})

    expected, = pipeline(DataStream(train_set, iteration_scheme=(
        SequentialScheme(100, 100)))).get_epoch_iterator()
    mapped = RayDataset(map_batches(
        to_ray(train_set, rows_per_task=16), pipeline, batch_size=7))
    assert ('numbers', 'scaled') == tuple(sorted(mapped.sources))
    found = dict(zip(mapped.sources, mapped.get_data(
        None, slice(0, 100)), strict=True))
    for source, part in zip(('numbers', 'scaled'), expected, strict=True):
        assert part.dtype == found[source].dtype
        assert numpy.array_equal(part, found[source])


def test_batches_have_the_size_asked_for_or_that_of_a_block():
    """Each row comes once."""
    def sized(stream):
        return Mapping(stream, lambda batch: (
            numpy.full(len(batch[0]), len(batch[0])),), add_sources=('size',))

    dataset = ray.data.range(20, override_num_blocks=2)
    for size, sizes in ((None, {10}), (4, {4, 2})):
        mapped = map_batches(dataset, sized, size)
        assert list(range(20)) == rows_of(mapped)
        assert sizes == set(rows_of(mapped, 'size'))


def test_stage_may_write_into_its_batch():
    """The batch is the stage's own, arrays of unequal shapes too."""
    def written(batch):
        numbers, parts = batch
        numbers[...] += 1
        for part in parts:
            part[...] += 1
        return batch

    dataset = ray.data.range(6).map(lambda row: {
        **row, 'parts': numpy.zeros(row['id'] + 1)}).materialize()
    for _ in range(2):
        rows = map_batches(dataset, lambda stream: Mapping(
            stream, written)).take_all()
        assert [1, 2, 3, 4, 5, 6] == sorted(row['id'] for row in rows)
        assert all((row['parts'] == 1).all() for row in rows)


def test_draws_depend_on_the_seed_and_the_batch():
    """They do not depend on the process or the time."""
    dataset = ray.data.from_numpy(numpy.concatenate([
        numpy.zeros((10, 4)), numpy.ones((10, 4))])).repartition(2)

    def noisy(seed):
        rows = map_batches(dataset, lambda stream: GaussianNoise(
            stream, .1, seed=seed), 10).take_all()
        return numpy.stack(sorted(
            (row['data'] for row in rows), key=lambda row: row.mean() > .5))

    first = noisy(1)
    assert numpy.array_equal(first, noisy(1))
    assert not numpy.array_equal(first, noisy(2))
    # Each batch has draws of its own.
    assert not numpy.allclose(first[:10], first[10:] - 1)


def test_axis_labels_reach_the_stages():
    """Stages for images need them."""
    images = numpy.arange(24).reshape(2, 1, 3, 4)
    flipped = map_batches(
        ray.data.from_numpy(images), lambda stream: RandomHorizontalFlip(
            stream, probability=1.),
        axis_labels={'data': ('batch', 'channel', 'height', 'width')})
    found = numpy.stack([row['data'] for row in flipped.take_all()])
    assert sorted(images[..., ::-1].tolist()) == sorted(found.tolist())


def test_arrays_of_unequal_shapes_are_columns():
    """Ray has them as columns too."""
    def ragged(batch):
        parts = numpy.empty(len(batch[0]), object)
        parts[:] = [numpy.arange(number + 1.) for number in batch[0]]
        return (parts,)

    mapped = map_batches(ray.data.range(4), lambda stream: Cast(Mapping(
        stream, ragged, add_sources=('parts',)), 'float32',
        which_sources=('parts',)))
    for row in mapped.take_all():
        assert numpy.array_equal(
            numpy.arange(row['id'] + 1, dtype='f4'), row['parts'])


@pytest.mark.parametrize('pipeline', [
    lambda stream: Filter(stream, bool),
    lambda stream: Cast(Cache(stream, ConstantScheme(2)), 'float32')],
    ids=['Filter', 'Cache'])
def test_pipeline_that_needs_other_batches_is_refused(pipeline):
    """The call raises the error, not a worker."""
    with pytest.raises(ValueError, match=(
            'the stage (Filter|Cache) does not make one item of each.*'
            'cannot be applied to each batch of Ray Data by itself')):
        map_batches(ray.data.range(4), pipeline)


def test_error_of_a_stage_has_its_text():
    """The error has Ray's own class."""
    def fail(batch):
        raise ValueError('number 7 is unlucky')

    with pytest.raises(ray.exceptions.RayTaskError, match='is unlucky'):
        map_batches(ray.data.range(4), lambda stream: Mapping(
            stream, fail)).take_all()


def sparse_of(data):
    """Return one column as sparse rows."""
    from scipy.sparse import csr_array
    return (csr_array(data[0][:, None]),)


def test_sparse_batches_are_made_dense_before():
    """Blocks of Ray Data are tables of arrays."""
    numbers = ray.data.range(6)
    with pytest.raises(Exception, match=r"map_batches .* ToDense\(.*'id'"):
        map_batches(numbers, partial(Mapping, mapping=sparse_of)).take_all()
    dense = map_batches(numbers, lambda stream: ToDense(
        Mapping(stream, sparse_of)))
    assert [[n] for n in range(6)] == sorted(
        row['id'].tolist() for row in dense.take_all())
