"""Schemes built with picklable-itertools, which Fuel itself never needs."""
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy
import pytest
from support.processes import run_python

from fuel.datasets import IndexableDataset
from fuel.schemes import BatchScheme, IndexScheme
from fuel.streams import DataStream

with warnings.catch_warnings():
    # It imports pkg_resources, which warns.
    warnings.simplefilter('ignore')
    from picklable_itertools import imap, iter_
    from picklable_itertools.extras import partition_all


def test_migration_page_says_what_it_needs():
    """First of all, and as the tests install it."""
    root = Path(__file__).parents[2]
    page = (root / 'docs' / 'migration.rst').read_text('utf-8')
    start = page.partition('How this is checked')[0]
    bound, = re.findall(r"^   \$ python -m pip install 'setuptools(<\d+)'$",
                        start, re.MULTILINE)
    assert f',{bound}\n' in (root / 'setup.cfg').read_text('utf-8')


class Odd(IndexScheme):
    """Visits each second example."""

    def get_request_iterator(self):
        return iter_(list(self.indices)[1::2])


class OddBatches(BatchScheme):
    """Asks for each second example, in batches."""

    def __init__(self, *args, as_lists=True):
        super().__init__(*args)
        self.as_lists = as_lists

    def get_request_iterator(self):
        parts = partition_all(self.batch_size, list(self.indices)[1::2])
        return imap(list, parts) if self.as_lists else parts


@pytest.mark.parametrize('scheme, expected', [
    (Odd(7), [1, 3, 5]),
    (OddBatches(11, 2), [[1, 3], [5, 7], [9]]),
    (OddBatches(11, 2, as_lists=False), [[1, 3], [5, 7], [9]])],
    ids=['examples', 'lists', 'tuples'])
def test_picklable_itertools_scheme_goes_on_from_a_pickle(scheme, expected):
    """At each place of the epoch, and its requests are the same again."""
    dataset = IndexableDataset({'x': numpy.arange(11)})
    stream = DataStream(dataset, iteration_scheme=scheme)
    for count in range(len(expected) + 1):
        iterator = stream.get_epoch_iterator()
        seen = [next(iterator)[0].tolist() for _ in range(count)]
        _, again = pickle.loads(pickle.dumps((stream, iterator)))
        rest = [data.tolist() for data, in again]
        assert expected == seen + rest


def test_fuel_works_without_picklable_itertools():
    """It is required for users' schemes; Fuel imports it nowhere."""
    code = ('import sys; sys.modules["picklable_itertools"] = None\n'
            'import fuel.datasets, fuel.streams, fuel.transformers.image\n'
            'from fuel.schemes import SequentialScheme\n'
            'stream = fuel.streams.DataStream(\n'
            '    fuel.datasets.IndexableDataset([4, 5, 6]),\n'
            '    iteration_scheme=SequentialScheme(3, 2))\n'
            'print(list(stream.get_epoch_iterator()))')
    status, output, errors = run_python('-c', code)
    assert (0, b'[([4, 5],), ([6],)]\n') == (status, output), errors
    assert 'picklable_itertools' in sys.modules
