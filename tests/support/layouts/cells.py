"""Files of single cells, of each version of AnnData."""
import h5py
import numpy
from scipy import sparse

from support.layouts.miniature import Written

CELLS, GENES = 40, 30
TYPES = ['B cell', 'T cell', 'monocyte']


def counts(rng, cells=CELLS):
    """Return a sparse matrix with some empty rows."""
    matrix = sparse.random(cells, GENES, .2, 'csr', 'f4', rng)
    matrix.data[:] = rng.integers(1, 9, matrix.nnz)
    keep = numpy.ones(cells)
    keep[::7] = 0
    matrix = sparse.diags(keep, dtype='f4') @ matrix
    matrix.eliminate_zeros()
    return sparse.csr_array(matrix)


def put_text(group, name, texts):
    """Write text of variable length, as AnnData does today."""
    group[name] = numpy.array(texts, object)
    group[name].attrs['encoding-type'] = 'string-array'
    group[name].attrs['encoding-version'] = '0.2.0'


def put_csr(group, name, matrix, chunk=16, compression=None, **attributes):
    """Write a sparse matrix by rows, in chunks of some values."""
    found = group.create_group(name)
    found.attrs.update(attributes or {
        'encoding-type': 'csr_matrix', 'encoding-version': '0.1.0',
        'shape': matrix.shape})
    for part in ('data', 'indices', 'indptr'):
        found.create_dataset(part, data=getattr(matrix, part), maxshape=(
            None,), chunks=(chunk,), compression=compression)


def put_frame(file, name, index, columns=()):
    """Begin a table of today's version."""
    frame = file.create_group(name)
    frame.attrs.update({
        'encoding-type': 'dataframe', 'encoding-version': '0.2.0',
        '_index': '_index', 'column-order': numpy.array(columns, object)
        if len(columns) else numpy.array([], 'f8')})
    put_text(frame, '_index', index)
    return frame


def names(prefix, count):
    """Return names such as cell_3."""
    return [f'{prefix}_{number}' for number in range(count)]


def h5ad(folder, rng):
    """Write today's version, with a sparse matrix."""
    path = folder / 'cells.h5ad'
    matrix, other = counts(rng), rng.random((CELLS, GENES))
    codes = rng.integers(-1, len(TYPES), CELLS).astype('i1')
    ages, mask = rng.integers(0, 90, CELLS), rng.integers(0, 2, CELLS) > 0
    depth = rng.random(CELLS).astype('f4')
    labels = [f'ü{number}' for number in range(CELLS)]
    with h5py.File(path, 'w') as file:
        file.attrs.update({
            'encoding-type': 'anndata', 'encoding-version': '0.1.0'})
        put_csr(file, 'X', matrix)
        obs = put_frame(file, 'obs', names('cell', CELLS),
                        ['depth', 'cell_type', 'age', 'label'])
        obs['depth'] = depth
        kind = obs.create_group('cell_type')
        kind.attrs.update({'encoding-type': 'categorical',
                           'encoding-version': '0.2.0', 'ordered': False})
        kind['codes'] = codes
        put_text(kind, 'categories', TYPES)
        age = obs.create_group('age')
        age.attrs.update({'encoding-type': 'nullable-integer',
                          'encoding-version': '0.1.0'})
        age['values'], age['mask'] = ages, mask
        put_text(obs, 'label', labels)
        put_frame(file, 'var', names('gene', GENES))
        file['layers/scaled'] = other
        file['obsm/X_pca'] = other[:, :2]
        file.create_group('uns')
    return Written(str(path), {
        'X': matrix, 'obs/depth': depth, 'obs/cell_type': codes,
        'obs/age/values': ages, 'obs/age/mask': mask,
        'obs/label': numpy.array(labels, object)})


def h5ad_dense(folder, rng):
    """Write today's version, with a dense matrix."""
    path = folder / 'dense.h5ad'
    matrix = rng.random((CELLS, GENES)).astype('f4')
    with h5py.File(path, 'w') as file:
        file.attrs.update({
            'encoding-type': 'anndata', 'encoding-version': '0.1.0'})
        file['X'] = matrix
        obs = put_frame(file, 'obs', names('cell', CELLS), ['batch'])
        obs['batch'] = numpy.arange(CELLS)
        put_frame(file, 'var', names('gene', GENES))
    return Written(str(path), {
        'X': matrix, 'obs/batch': numpy.arange(CELLS)})


def h5ad_07(folder, rng):
    """Write version 0.7, whose categories are referred to."""
    path = folder / 'old.h5ad'
    matrix = counts(rng)
    codes = rng.integers(-1, len(TYPES), CELLS).astype('i1')
    with h5py.File(path, 'w') as file:
        put_csr(file, 'X', matrix, **{
            'encoding-type': 'csr_matrix', 'encoding-version': '0.1.0',
            'shape': matrix.shape})
        for name, index in (('obs', names('cell', CELLS)),
                            ('var', names('gene', GENES))):
            frame = put_frame(file, name, index,
                              ['cell_type'] if name == 'obs' else ())
            frame.attrs['encoding-version'] = '0.1.0'
        obs = file['obs']
        obs['cell_type'] = codes
        put_text(obs.create_group('__categories'), 'cell_type', TYPES)
        obs['cell_type'].attrs['categories'] = (
            obs['__categories/cell_type'].ref)
    return Written(str(path), {'X': matrix, 'obs/cell_type': codes})


def h5ad_06(folder, rng):
    """Write a version before 0.7, whose tables are of a compound type."""
    path = folder / 'oldest.h5ad'
    matrix = counts(rng)
    obs = numpy.zeros(CELLS, [('index', 'S8'), ('kind', 'i1'),
                              ('depth', 'f4')])
    obs['index'] = names('cell', CELLS)
    obs['kind'] = rng.integers(0, len(TYPES), CELLS)
    obs['depth'] = rng.random(CELLS)
    var = numpy.zeros(GENES, [('index', 'S8')])
    var['index'] = names('gene', GENES)
    obsm = numpy.zeros(CELLS, [('X_pca', 'f4', (2,))])
    with h5py.File(path, 'w') as file:
        put_csr(file, 'X', matrix, h5sparse_format='csr',
                h5sparse_shape=matrix.shape)
        file['obs'], file['var'], file['obsm'] = obs, var, obsm
        put_csr(file, 'raw.X', matrix, h5sparse_format='csr',
                h5sparse_shape=matrix.shape)
        file['uns/kind_categories'] = numpy.array(TYPES, object)
    return Written(str(path), {
        'X': matrix, 'obs/kind': obs['kind'], 'obs/depth': obs['depth']})
