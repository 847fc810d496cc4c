"""The memory that opening tables and JSON lines takes."""
import csv
import gc
import json
import random
import tracemalloc

import pytest

from fuel.bin import fuel_convert
from fuel.datasets import CSVDataset, JSONLDataset

# Of a table's file, and besides.
TIMES, ALLOWED, LITTLE = 16, 32 << 20, 8 << 20
SHORT = ['{}', '{}.5', 'x{}', '2024-02-29', 'true', '', 'NA', '\xe9', '?']
LONG = ['x', '9', ' ', '\U0001f600', '\x01', 'a,', '"', 'b\n', '\u20ac',
        '0.5 ', '-']


def peak_of(function, *arguments, **options):
    """Return how many bytes a call had allocated at most, with NumPy's."""
    gc.collect()
    tracemalloc.start()
    try:
        function(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def written(path, rows):
    """Write a table, or JSON lines; return the bytes of the first records."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        if path.suffix == '.csv':
            csv.writer(file, lineterminator='\n').writerows(rows)
        else:
            file.writelines(json.dumps({
                f'f{number}': cell for number, cell in enumerate(row)
            }, ensure_ascii=False) + '\n' for row in rows)
    return path.stat().st_size


def random_rows(generator):
    """Return a few to 1,000 rows of short cells, some of them long."""
    kinds = generator.choices(SHORT, k=generator.randrange(1, 6))
    rows = [[kind.format(generator.randrange(100)) for kind in kinds]
            for _ in range(generator.choice([2, 100, 300, 1000]))]
    for _ in range(generator.choice([1, 1, 5])):
        length = int(10 ** generator.uniform(4, 5))
        text = generator.choice(LONG)
        cell = generator.choice(['', '\U0001f600', '1']) + (
            text * (length // len(text)))
        generator.choice(rows)[generator.randrange(len(kinds))] = cell
    return rows


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('seed, cases', [
    (0, 6), *[pytest.param(seed, 100, marks=pytest.mark.full)
              for seed in range(1, 21)]])
@pytest.mark.parametrize('kind, cls', [
    ('csv', CSVDataset), ('jsonl', JSONLDataset)])
def test_memory_of_opening_random_cells_is_a_multiple_of_their_bytes(
        tmp_path, kind, cls, seed, cases):
    """A long cell does not make the others wider, whatever the shape."""
    generator = random.Random(f'{kind} {seed}')
    for number in range(cases):
        path = tmp_path / f'{number}.{kind}'
        nbytes = written(path, random_rows(generator))
        options = {} if kind == 'jsonl' else {
            'header': generator.choice([None, True, False]),
            'columns': {'x': 0}}
        assert peak_of(cls, path, **options) < TIMES * nbytes + ALLOWED
        path.unlink()


@pytest.mark.parametrize('rows', [
    [['1', 'x'], *[['1', 'y'] for _ in range(999)], ['1', 'z' * 10 ** 6]],
    [['1', '9' * 10 ** 6], *[['1', '2'] for _ in range(999)]],
    [['1', '\U0001f600' + '\x01' * 2 ** 21]],
    [['1', '\U0001f600' + 'x, ' * 10 ** 6]] * 2,
    [['1', '\U0001f600 "', f'{"x" * 99}\n' * 30000]],
    [[' ' * 10 ** 6, ' \U0001f600 x' * 10 ** 5]],
    [['1', 'z' * 10 ** 5] for _ in range(20)],
    [['12'] * 50 for _ in range(1000)], [[''] * 50 for _ in range(1000)],
    [['2.5'] * 500 for _ in range(3)]])
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind, cls', [
    ('csv', CSVDataset), ('jsonl', JSONLDataset)])
def test_memory_of_opening_long_cells_is_a_multiple_of_their_bytes(
        tmp_path, kind, cls, rows):
    """A cell of 1 MB among 1,000 rows took 4 GB."""
    path = tmp_path / f'rows.{kind}'
    nbytes = written(path, rows)
    for header in (None, False) if kind == 'csv' else ():
        if header is False or len(rows) > 1:
            assert peak_of(cls, path, header=header,
                           columns=None if header is False else {'x': 0}
                           ) < TIMES * nbytes + LITTLE
    if kind == 'jsonl':
        assert peak_of(cls, path) < TIMES * nbytes + LITTLE


def test_memory_of_nested_lists_is_that_of_a_few_records(tmp_path):
    """An empty list takes twenty times its bytes, so that not all of the
    first records are held."""
    path = tmp_path / 'nested.jsonl'
    path.write_text(''.join(
        f'{{"a": [{", ".join(["[1]"] * 500)}]}}\n' for _ in range(500)))
    assert peak_of(JSONLDataset, path) < TIMES * path.stat().st_size
    assert (500, 1) == JSONLDataset(path).known_types()['a'].shape


@pytest.mark.parametrize('options', [
    ['--ignore', 'b'], ['--target', 'b'], ['--one-hot'],
    ['--one-hot', '--missing', 'NA']])
def test_memory_of_converting_a_long_cell_is_a_multiple_of_its_bytes(
        tmp_path, options):
    """Opening it takes such a multiple, too."""
    path = tmp_path / 'rows.csv'
    path.write_text('a,b\n' + '1,x\n' * 999 + f'2,{"y" * 10 ** 6}\n')
    assert peak_of(fuel_convert.main, [
        'csv', str(path), '-o', str(tmp_path), *options]) < (
            TIMES * path.stat().st_size + ALLOWED)


def test_batch_of_a_number_beside_a_long_text_takes_little_memory(tmp_path):
    """The error of a wrong cell shows its beginning."""
    path = tmp_path / 'rows.csv'
    path.write_text('a\n' + '1.5\n' * 1000 + f'{"y" * 10 ** 6}\n')
    dataset = CSVDataset(path)

    def read():
        with pytest.raises(ValueError, match=r"line 1002.*'y{60}'\.{3} is"):
            dataset.get_data(None, slice(0, 1001))

    assert peak_of(read) < TIMES * path.stat().st_size + ALLOWED
