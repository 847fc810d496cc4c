"""HDF5 files for tests: small ones written here, with plain h5py."""
import h5py
import numpy

NEW_FORM = 'scalar fields'
OLD_FORM = 'fields of shape (1,)'


def split_array(rows, form=NEW_FORM):
    """Return a ``split`` attribute made without Fuel.

    Parameters
    ----------
    rows : list of tuple
        Split, source, start, stop, reference or None, available.
    form : str
        `NEW_FORM`, or `OLD_FORM`, as the old manual's recipe gives on
        today's NumPy.

    """
    shape = () if form == NEW_FORM else (1,)
    array = numpy.zeros(len(rows), dtype=[
        ('split', 'S20'), ('source', 'S20'), ('start', numpy.int64, shape),
        ('stop', numpy.int64, shape), ('indices', h5py.ref_dtype),
        ('available', numpy.bool_, shape), ('comment', 'S1')])
    for place, (split, source, start, stop, ref, available) in enumerate(rows):
        array[place] = (split.encode(), source.encode(), start, stop,
                        ref or h5py.Reference(), available, b'.')
    return array


def write_pairs(path, num_examples=100, train=80):
    """Write features 0, 1, 2, ... and targets ten times that, as splits
    train and test."""
    with h5py.File(path, 'w') as file:
        file['features'] = numpy.arange(num_examples * 2).reshape(-1, 2)
        file['targets'] = 10 * numpy.arange(num_examples)[:, None]
        label(file['features'], 'batch', 'feature')
        label(file['targets'], 'batch', 'index')
        file.attrs['split'] = split_array([
            (split, source, start, stop, None, True)
            for split, start, stop in [('train', 0, train),
                                       ('test', train, num_examples)]
            for source in ('features', 'targets')])
    return str(path)


def write_ragged(file, name, examples, dtype='uint8', labels=None):
    """Write examples of different shapes as a variable-length source."""
    ndim = examples[0].ndim
    dataset = file.create_dataset(
        name, (len(examples),), dtype=h5py.vlen_dtype(numpy.dtype(dtype)))
    for row, example in enumerate(examples):
        dataset[row] = example.ravel()
    dataset.dims[0].label = 'batch'
    shapes = file.create_dataset(
        name + '_shapes', (len(examples), ndim), dtype='int32')
    shapes[...] = [example.shape for example in examples]
    shapes.make_scale('shapes')
    dataset.dims[0].attach_scale(shapes)
    if labels:
        names = file.create_dataset(name + '_shape_labels', (ndim,), 'S7')
        names[...] = [text.encode() for text in labels]
        names.make_scale('shape_labels')
        dataset.dims[0].attach_scale(names)


def label(dataset, *names):
    """Label the axes of an HDF5 data set."""
    for axis, name in zip(dataset.dims, names, strict=True):
        axis.label = name
