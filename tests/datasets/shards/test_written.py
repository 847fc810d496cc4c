"""Files that other libraries wrote have the samples that these read."""
import json

import numpy
import pytest
from support.record_peers import KEPT, WRITTEN, plain_rows
from support.tar_files import index_of

import fuel


@pytest.mark.parametrize('name', KEPT)
def test_samples_are_those_of_the_writers_own_reader(name):
    """All of them, in their order and in another one."""
    wanted = json.loads((WRITTEN / f'{name}.json').read_text('utf-8'))
    dataset = fuel.load(WRITTEN / name)
    assert len(wanted) == len(dataset)
    assert {*dataset.sources} == {*wanted[0]}
    assert wanted == plain_rows(dataset.sources, dataset[:])
    order = numpy.random.permutation(len(wanted)).tolist()
    assert [wanted[row] for row in order] == plain_rows(
        dataset.sources, dataset.get_data(None, order))


def test_index_of_wids_leads_to_the_same_samples():
    """As wids wrote it for these archives."""
    wanted = json.loads((WRITTEN / 'webdataset.json').read_text('utf-8'))
    dataset = fuel.load(WRITTEN / 'webdataset' / 'set.json')
    assert wanted == plain_rows(dataset.sources, dataset[:])


def test_indexes_of_dali_are_those_of_other_tests_and_not_data():
    """DALI wrote these, and the tests write such ones themselves."""
    assert 5 == len(fuel.load(WRITTEN / 'webdataset' / 'train-*'))
    for path in (WRITTEN / 'webdataset').glob('*.tar'):
        assert index_of(path) == path.with_suffix('.idx').read_text()
