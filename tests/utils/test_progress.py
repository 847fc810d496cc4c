"""Long tasks show how far they are; short ones nothing."""
import io
import sys

import h5py
import numpy
import pytest

from fuel.datasets import H5PYDataset, IndexableDataset
from fuel.datasets.vocabulary import build_vocabulary
from fuel.streams import DataStream
from fuel.transformers.label_encoding import fit_label_encoding
from fuel.transformers.standardization import fit_standardization
from fuel.transformers.whitening import fit_whitening
from fuel.utils import progress as module
from fuel.utils.progress import progress


@pytest.fixture
def at_once(monkeypatch):
    """Show tasks that would be too short."""
    monkeypatch.setattr(module, 'DELAY', 0.)


def test_short_task_shows_nothing(capsys):
    """Most programs call such functions on small data."""
    with progress('Counting', 2, delay=True) as bar:
        bar.advance(1)
    assert ('', '') == capsys.readouterr()


def test_long_task_shows_two_lines(at_once, capsys):
    """They are on the standard error, so that the program's output stays
    whole."""
    with progress('Counting', 2, delay=True) as bar:
        bar.advance(1)
        bar.advance(1)
    out, error = capsys.readouterr()
    first, last = error.splitlines()
    assert ('', 'Counting: 1 of 2') == (out, first)
    assert last.startswith('Counting: 2 of 2 in ')


def test_task_that_fails_says_where(at_once, capsys):
    """It does so in the last line."""
    with pytest.raises(KeyError), progress('Counting', delay=True) as bar:
        bar.advance(3)
        raise KeyError
    assert ['Counting: 3', 'Counting: stopped at 3'] == (
        capsys.readouterr().err.splitlines())


class Terminal(io.StringIO):
    """A terminal of a program."""

    def isatty(self):
        """Say so."""
        return True


class Cell(io.StringIO):
    """The output of a cell of a notebook."""


Cell.__module__ = 'ipykernel.iostream'


@pytest.mark.parametrize('screen', [Terminal, Cell])
def test_terminals_and_notebooks_get_a_bar(at_once, monkeypatch, screen):
    """With the share that is done, the time left and the rate."""
    drawn = screen()
    monkeypatch.setattr(sys, 'stderr', drawn)
    with progress('Counting', 4, delay=True) as bar:
        for _ in range(4):
            bar.advance(1)
    text = drawn.getvalue()
    assert 'Counting: ' in text
    assert '100%' in text
    assert '\r' in text
    assert text.count('\n') <= 1


def test_no_standard_error(at_once, monkeypatch):
    """Some programs have none."""
    monkeypatch.setattr(sys, 'stderr', None)
    with progress('Counting', 4, delay=True) as bar:
        bar.advance(4)


def stream():
    """Return a stream of batches."""
    rows = numpy.random.RandomState(0).normal(size=(8, 2))
    return DataStream(IndexableDataset(
        {'x': rows, 'targets': [*'abababab']}), batch_size=4)


@pytest.mark.parametrize('fit, label', [
    (fit_standardization, 'Fitting standardization'),
    (fit_label_encoding, 'Fitting label encoding'),
    (fit_whitening, 'Fitting whitening')])
def test_fitting_shows_how_far_it_is(at_once, capsys, fit, label):
    """By the batches of the epoch."""
    fit(stream())
    first, last = capsys.readouterr().err.splitlines()
    assert f'{label}: 1 of 2' == first
    assert last.startswith(f'{label}: 2 of 2 in ')


def test_vocabularies_show_how_far_they_are(at_once, capsys, tmp_path):
    """The bytes of the files count."""
    (tmp_path / 'text').write_text('a b\n' * 50)
    build_vocabulary([tmp_path / 'text'])
    assert 'Counting tokens: 200 of 200 bytes in ' in capsys.readouterr().err


@pytest.mark.parametrize('order', ['range', 'indices'])
def test_reading_into_memory_shows_how_far_it_is(
        at_once, capsys, tmp_path, monkeypatch, order):
    """Large sources are read in parts, which make the same whole."""
    monkeypatch.setattr('fuel.datasets.hdf5.dataset.PART', 100)
    rows = numpy.arange(120).reshape(40, 3)
    path = tmp_path / 'data.hdf5'
    with h5py.File(path, 'w') as file:
        file['x'] = rows
        file['chosen'] = numpy.arange(0, 40, 2)
        part = (0, 40) if order == 'range' else (
            -1, -1, file['chosen'].ref)
        file.attrs['split'] = H5PYDataset.create_split_array(
            {'train': {'x': part}})
    dataset = H5PYDataset(path, ('train',), load_in_memory=True)
    expected = rows if order == 'range' else rows[::2]
    assert numpy.array_equal(expected, dataset[:][0])
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith(
        f'Reading {path} into memory: {expected.nbytes} of '
        f'{expected.nbytes} bytes in ')
    assert 2 == len(error)
