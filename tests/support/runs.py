"""Runs of rows, and data sets of every kind that has them."""
import h5py
import numpy

from fuel.datasets import (
    Dataset,
    H5PYDataset,
    HDF5Dataset,
    IndexableDataset,
    NPYDataset,
)


class GetDataAlone(Dataset):
    """A data set as users write them."""

    takes_requests = True

    def __init__(self, arrays):
        self.arrays = arrays
        self.provides_sources = tuple(arrays)
        self.num_examples = len(next(iter(arrays.values())))
        super().__init__()

    def get_data(self, state=None, request=None):
        """Return rows."""
        return tuple([self.arrays[source][request]
                      for source in self.sources])


def joined(kind, folder, arrays, order):
    """Return a data set of some rows of arrays, in an order."""
    split = {'some': (order.start, order.stop) if isinstance(
        order, slice) else order}
    if kind == 'npy':
        for name, array in arrays.items():
            numpy.save(folder / f'{name}.npy', array)
        return NPYDataset({name: folder / f'{name}.npy' for name in arrays},
                          ('some',), split)
    if kind == 'hdf5':
        path = folder / 'rows.hdf5'
        path.unlink(missing_ok=True)
        with h5py.File(path, 'w') as file:
            for name, array in arrays.items():
                file.create_dataset(
                    name, data=array, chunks=(
                        min(3, len(array)), *array.shape[1:]),
                    compression='gzip')
            place = split['some']
            if not isinstance(place, tuple):
                file['order'] = place
                place = -1, -1, file['order'].ref
            file.attrs['split'] = H5PYDataset.create_split_array(
                {'some': dict.fromkeys(arrays, place)})
        return H5PYDataset(path, ('some',))
    if kind == 'parts':
        path = folder / 'rows.h5'
        path.unlink(missing_ok=True)
        with h5py.File(path, 'w') as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array, chunks=(
                    1, *array.shape[1:]))
        return HDF5Dataset(path, list(arrays), splits=split,
                           which_sets=('some',))
    if kind == 'npz':
        numpy.savez_compressed(folder / 'rows.npz', **arrays)
        return NPYDataset(folder / 'rows.npz', ('some',), split)
    return IndexableDataset(arrays) if kind == 'memory' else (
        GetDataAlone(arrays))


def rows_of_runs(lengths):
    """Return the rows of each run."""
    ends = numpy.cumsum(lengths)
    return [list(range(end - length, end))
            for end, length in zip(ends, lengths, strict=True)]


def stretches(runs, rows):
    """Return the rows of each stretch of following rows of one run, with its
    number, one row after the other."""
    found = []
    for row in map(int, rows):
        run = next(number for number, of_run in enumerate(runs)
                   if row in of_run)
        if found and found[-1][0] == run and found[-1][1][-1] == row - 1:
            found[-1][1].append(row)
        else:
            found.append((run, [row]))
    return found


def lay_out(rng, lengths):
    """Return an argument that says where runs of some lengths lie."""
    bounds = numpy.concatenate([[0], numpy.cumsum(lengths)])
    # Arguments by row leave out runs without rows, and cannot tell two runs
    # apart that meet without a mark.
    ends = numpy.zeros(bounds[-1], bool)
    ends[bounds[1:][lengths > 0] - 1] = True
    numbers = numpy.repeat(rng.permutation(len(lengths)), lengths)
    return [{'lengths': lengths}, {'offsets': bounds}, {'ends': ends},
            {'ends': (ends, numpy.zeros_like(ends))},
            {'numbers': numbers}][rng.randint(5)]
