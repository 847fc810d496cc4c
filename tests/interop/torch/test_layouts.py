"""Files of each layout in the data loaders of PyTorch."""
import h5py
import numpy
import pytest
import torch
from support.layouts import MINIATURES
from support.layouts.comparing import as_lists, stream_over
from support.torch_pipelines import Frames
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

import fuel
from fuel.datasets import HDF5Dataset, Rows, Windows
from fuel.interop.torch import as_iterable
from fuel.storage import open_hdf5
from fuel.utils.sparse import is_sparse


def tensor_sources(dataset):
    """Return the sources that are tensors: numbers of one shape."""
    rows = dataset.get_data(None, slice(0, min(4, dataset.num_examples)))
    return tuple(
        source for source, part in zip(dataset.sources, rows, strict=True)
        if is_sparse(part) or part.dtype.kind in 'biufc')


def with_fields_apart(dataset):
    """Return a data set of the fields of tables: tables are not tensors."""
    rows = dataset.get_data(None, slice(0, 1))
    if is_sparse(rows[0]) or rows[0].dtype.names is None:
        return dataset
    return HDF5Dataset(dataset.files, {
        f'{table}/{field}': Rows(table, field=field)
        for table, part in zip(dataset.sources, rows, strict=True)
        for field in part.dtype.names})


def as_values(batch):
    """Return a batch of tensors, arrays and text as plain lists."""
    return [as_lists(
        part if not isinstance(part, torch.Tensor)
        else part.to_dense().numpy() if part.layout is torch.sparse_csr
        else part.numpy()) for part in batch]


def assert_loaders_agree(dataset):
    """Compare loaders, and one that goes on in mid-epoch, with the stream."""
    chosen = tensor_sources(dataset)
    whole = [as_values(batch)
             for batch in stream_over(dataset).get_epoch_iterator()]
    half = len(whole) // 2
    for saved, resumed in (0, 2), (2, 0):
        batches = as_iterable(stream_over(dataset), which_sources=chosen)
        epoch = iter(DataLoader(batches, batch_size=None, num_workers=saved))
        first = [next(epoch) for _ in range(half)]
        assert all(isinstance(part, torch.Tensor) for batch in first
                   for source, part in zip(
                       dataset.sources, batch, strict=True)
                   if source in chosen)
        found = [as_values(batch) for batch in first]
        state = batches.state_after(half)
        assert whole == found + [as_values(batch) for batch in epoch]
        batches = as_iterable(stream_over(dataset), which_sources=chosen)
        batches.load_state_dict(state)
        rest = DataLoader(batches, batch_size=None, num_workers=resumed)
        assert whole[half:] == [as_values(batch) for batch in rest]


@pytest.mark.parametrize('miniature', MINIATURES, ids=str)
def test_loaders_give_the_batches_of_the_stream(miniature, tmp_path):
    """Rows are shuffled, runs are read as windows, with workers and without;
    another number of workers resumes."""
    written = miniature.write(tmp_path, numpy.random.default_rng(2))
    dataset = with_fields_apart(fuel.load(written.files))
    # Sequences of RETURNN have lengths of their own.
    assert tensor_sources(dataset) or miniature.name == 'RETURNN'
    assert_loaders_agree(dataset)
    if written.runs is not None and len(written.runs) > 2:
        sources = tuple(
            source for source, part in zip(dataset.sources, dataset.get_data(
                None, slice(0, 2)), strict=True) if not is_sparse(part))
        assert_loaders_agree(Windows(
            dataset, 2, sources=sources,
            runs='all' if dataset.independent_rows else None))
    dataset.close(None)


CHUNKED = {'chunks': (3, 4, 4), 'compression': 'gzip'}


@pytest.mark.parametrize('method, layout', [
    ('fork', {}), ('fork', CHUNKED), ('spawn', CHUNKED)])
def test_open_hdf5_takes_the_place_of_h5py(method, layout, tmp_path):
    """A map-style data set of a program works, also if the file is open before
    the workers start."""
    path = str(tmp_path / 'a.h5')
    frames = numpy.random.default_rng(1).integers(0, 256, (40, 4, 4), 'u1')
    with h5py.File(path, 'w') as file:
        file.create_dataset('obs/frame', data=frames, **layout)

    def read(dataset, num_workers=2):
        sampler = BatchSampler(RandomSampler(
            dataset, generator=torch.Generator().manual_seed(3)), 8, False)
        return torch.cat(list(DataLoader(
            dataset, batch_sampler=sampler, num_workers=num_workers,
            multiprocessing_context=method if num_workers else None)))

    expected = read(Frames(path, h5py.File), 0)
    opened = Frames(path, open_hdf5)
    assert numpy.array_equal(frames[7], opened[7])
    assert torch.equal(expected, read(opened))
    assert torch.equal(expected, read(opened, 0))
