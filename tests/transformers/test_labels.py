"""ExpectsAxisLabels."""
import logging

import h5py
import numpy
import pytest

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.exceptions import AxisLabelsMismatchError
from fuel.streams import DataStream
from fuel.transformers import Batch, ExpectsAxisLabels, Transformer, Unpack
from fuel.transformers.image import RandomFixedSizeCrop

EXPECTED = ('batch', 'channel')


class Checker(ExpectsAxisLabels, Transformer):
    """A stage that skips the constructors."""

    def __init__(self):
        pass


@pytest.mark.parametrize('actual', [EXPECTED, list(EXPECTED)])
def test_labels_as_expected_are_silent(actual, caplog):
    """Lists come out of some files."""
    Checker().verify_axis_labels(EXPECTED, actual, 'x')
    Checker().verify_axis_labels(('batch',), 'batch', 'x')
    assert [] == caplog.records


def test_missing_labels_are_warned_about_once(caplog):
    """There is exactly one record for each source."""
    checker = Checker()
    for _ in range(2):
        checker.verify_axis_labels(EXPECTED, None, 'x')
    record, = caplog.records
    assert logging.WARNING == record.levelno
    assert "source 'x'" in record.getMessage()
    assert f"axis_labels={{'x': {EXPECTED}}}" in record.getMessage()
    checker.verify_axis_labels(EXPECTED, None, 'y')
    assert 2 == len(caplog.records)


@pytest.mark.parametrize('actual', [
    ('channel', 'batch'), ('batch',), 'batch', ()])
def test_other_labels_raise_each_time(actual):
    """A check that failed is not skipped later."""
    checker = Checker()
    for _ in range(2):
        with pytest.raises(AxisLabelsMismatchError, match="of source 'x'"):
            checker.verify_axis_labels(EXPECTED, actual, 'x')
    assert issubclass(AxisLabelsMismatchError, ValueError)


def test_labels_are_checked_only_the_first_time():
    """Later checks would cost time."""
    checker = Checker()
    checker.verify_axis_labels(EXPECTED, EXPECTED, 'x')
    checker.verify_axis_labels(EXPECTED, 'other', 'x')


@pytest.fixture
def unlabelled(tmp_path):
    """A data set of a file whose axes have no labels."""
    path = tmp_path / 'images.hdf5'
    with h5py.File(path, 'w') as file:
        file['image'] = numpy.arange(4 * 3 * 25, dtype='uint8').reshape(
            4, 3, 5, 5)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'image': (0, 4)}})
    return H5PYDataset(path, ('train',))


@pytest.mark.parametrize('below', [
    lambda dataset: DataStream(dataset, batch_size=2),
    lambda dataset: DataStream(dataset, shuffle=True),
    lambda dataset: Batch(DataStream(dataset, shuffle=True), batch_size=2),
    lambda dataset: Unpack(DataStream(dataset, batch_size=2))],
    ids=['batches', 'examples', 'Batch', 'Unpack'])
def test_image_stage_over_a_file_without_labels_warns(
        unlabelled, below, caplog):
    """Empty labels do not count as labels, through any stages."""
    with unlabelled:
        stage = RandomFixedSizeCrop(below(unlabelled), (2, 2))
        image, = next(iter(stage))
    assert (3, 2, 2) == image.shape[-3:]
    assert 'has no axis labels for it to check' in caplog.text
    assert {'image': None} == stage.axis_labels


def test_labels_of_some_axes_are_still_checked():
    """An axis without a label is not the one that is expected."""
    stream = DataStream(IndexableDataset(
        {'image': numpy.zeros((2, 3, 5, 5))},
        axis_labels={'image': ('batch', '', '', '')}), batch_size=2)
    with pytest.raises(AxisLabelsMismatchError, match="'batch', '', '', ''"):
        next(iter(RandomFixedSizeCrop(stream, (2, 2))))
