"""ExpectsAxisLabels."""
import logging

import pytest

from fuel.exceptions import AxisLabelsMismatchError
from fuel.transformers import ExpectsAxisLabels, Transformer

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
    """Exactly one record for each source."""
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
    """In the interest of speed."""
    checker = Checker()
    checker.verify_axis_labels(EXPECTED, EXPECTED, 'x')
    checker.verify_axis_labels(EXPECTED, 'other', 'x')
