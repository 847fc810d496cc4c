"""Cells of tables in text."""
import random

import pytest

from fuel.datasets.cells import CellColumn
from fuel.datasets.csv import CSVDataset

# Such as columns have; some are markers of missing values, as written here.
CELLS = (
    ('1', '-20', ' 3 '), ('1.5', '2e3'), ('true', 'False'),
    ('2024-02-29', '2024-02-29T12:30', '2024-02-29 12:30:00.5'),
    ('', ' '), ('abc', '2024-02-30', '1_000'), ('9007199254740993',),
    ('nan', 'NaN'), ('NA', 'n/a ', '-'), ('?', 'null'))


def found_of(groups):
    """Return what is found of cells that come in groups."""
    column = CellColumn()
    for cells in groups:
        column.add(cells)
    kinds = column.kinds
    return (kinds.dtype(), kinds.dtype(False), kinds.is_blank, kinds.has_gaps,
            column.markers, column.markers and column.unmarked_type(),
            None if kinds.is_text else column.rounded)


@pytest.mark.parametrize('cases', [
    500, pytest.param(20000, marks=pytest.mark.full)])
def test_cells_are_of_one_type_however_they_are_divided(cases):
    """The type, the markers and the rounded integer are those of all cells
    at once."""
    generator = random.Random(cases)
    with_markers = 0
    for _ in range(cases):
        pool = [cell for kind in generator.sample(
            CELLS, generator.randrange(1, 4)) for cell in kind]
        cells = generator.choices(pool, k=generator.randrange(1, 9))
        expected = found_of([cells])
        with_markers += bool(expected[4])
        groups, start = [], 0
        while start < len(cells):
            stop = start + generator.randrange(1, 4)
            groups.append(cells[start:stop])
            start = stop
        assert found_of(groups) == expected, groups
        assert found_of([[cell] for cell in cells]) == expected, cells
    assert with_markers > cases / 20


@pytest.mark.parametrize('count', [10, 400, 900])
def test_marker_before_other_cells_is_named_in_files_of_any_size(
        tmp_path, count):
    """A marker that is a number of floating point is named too."""
    path = tmp_path / 'table.csv'
    text = 'x' * 1000
    path.write_text(
        'd,text\n' + f'nan,{text}\n' * count + f'2024-02-29,{text}\n' * 20)
    with pytest.warns(UserWarning, match=(
            r"column 'd' is text because of 'nan': .*missing=\('nan',\)")):
        CSVDataset(path)
    path.write_text('d,text\n' + f'nan,{text}\n1.5,{text}\n' * (count // 2)
                    + f'NA,{text}\n' * 20)
    with pytest.warns(UserWarning, match=r"missing=\('nan', 'NA'\)"):
        CSVDataset(path)
