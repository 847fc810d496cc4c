"""Remote files of any layout."""
import json
import pickle

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal
from support.layouts.cells import put_csr
from support.sparse_rows import random_csr

from fuel.datasets import CSR, Categorical, HDF5Dataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream

ROWS = 40
SECRETS = ['pass-word', 'sig-nature', 'to-ken']


@pytest.fixture
def urls(folder, server):
    """Return the URLs of two files, with credentials in them."""
    found = []
    for number in range(2):
        matrix = random_csr(ROWS, 90, seed=number)
        with h5py.File(folder / f'{number}.h5', 'w') as file:
            put_csr(file, 'X', matrix, compression='gzip')
            file['type/codes'] = numpy.arange(ROWS, dtype='i1') % 2
            file['type/categories'] = [f'{number}', 'both']
            file['name'] = [f'cell {row}' for row in range(ROWS)]
            file['link'] = h5py.ExternalLink('0.h5', '/name')
        found.append(server.url(f'{number}.h5').replace(
            '//', '//user:pass-word@') + '?X-Amz-Signature=sig-nature&raw=1')
    return found


def test_columns_of_remote_files_equal_those_of_local_ones(urls, folder):
    """They are equal in an epoch that prefetches."""
    columns = [CSR('X'), Categorical('type'), 'name']
    local = HDF5Dataset(folder / '*.h5', columns)
    remote = HDF5Dataset(urls, columns)
    assert local.categories == remote.categories
    epochs = [DataStream(dataset, iteration_scheme=ShuffledScheme(
        2 * ROWS, 7, seed=1)).get_epoch_iterator()
        for dataset in (local, remote)]
    for one, other in zip(*epochs, strict=True):
        assert_array_equal(one[0].toarray(), other[0].toarray())
        assert one[1].tolist() == other[1].tolist()
        assert one[2].tolist() == other[2].tolist()


def test_nothing_shows_credentials(urls):
    """Pickles do not hold credentials either; they can be given again."""
    options = {'client_kwargs': {'headers': {'X-Token': 'Bearer to-ken'}}}
    dataset = HDF5Dataset(urls, ['name'], storage_options=options)
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(8, 3))
    next(stream.get_epoch_iterator())
    shown = [repr(dataset), str(dataset), dataset.storage_options,
             dataset.files, json.dumps(stream.state_dict()),
             pickle.dumps(dataset), dataset.kept_arguments()]
    for text in map(str, shown):
        assert [] == [secret for secret in SECRETS if secret in text], text
    assert 'raw=1' in repr(dataset)
    copy = pickle.loads(pickle.dumps(dataset))
    copy.storage_options = {}
    assert 'cell 3' == copy.get_data(None, 3)[0]


def test_links_of_remote_files_are_not_followed(urls):
    """Patterns are refused too: they are for local files."""
    with pytest.raises(ValueError, match='not followed from a remote file'):
        HDF5Dataset(urls, ['link'])
    with pytest.raises(ValueError, match='patterns are for local files'):
        HDF5Dataset('s3://bucket/*.h5')
