"""Times in tables and JSON lines."""
import json
import random
from datetime import UTC, datetime, timedelta, timezone

import numpy
import pytest

from fuel.datasets import CSVDataset, JSONLDataset

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Nanoseconds of each unit.
SIZES = {'W': 7 * 86400 * 10 ** 9, 'D': 86400 * 10 ** 9,
         'h': 3600 * 10 ** 9, 'm': 60 * 10 ** 9, 's': 10 ** 9, 'ms': 10 ** 6,
         'us': 10 ** 3, 'ns': 1}
WRONG = ['1700000000', '20240229', '20240229T1230', '12024-02-29', '-2024',
         '+2024-02-29', '24-02-29', '2024-2-29', '2024-02-30', '2024-13',
         '2024-W09-4', '2024-060', '2024/02/29', '29.02.2024', 'today', 'NaT',
         '2024-02-29T24:00', '2024-02-29T12:60', '2024-02-29T12:30,5',
         '2024-02-29T12:30:60', '2024-02-29T1:30', '2024-02-29T12:30:00.',
         '2024-02-29T12:30:00.1234567891', '2024-02-29T12:30+24:00',
         '2024-02-29T12:30+02:60', '2024-02-29T12:30 UTC', '2024-02-29Z',
         '2024-02-29T', '2024-02-29T12.5', '1.7e9', '\u0662\u0660\u0662\u0664',
         '2024-02-29T12:30 +02:00', 'x' * 5000]


def dataset_of(folder, texts, dtype, kind):
    """Return a data set of a table or of JSON lines with some times."""
    path = folder / f'times.{kind}'
    if kind == 'csv':
        path.write_text('when,x\n' + ''.join(
            f'"{text}",1\n' for text in texts), encoding='utf-8')
        return CSVDataset(path, dtypes={'when': dtype}, sources=('when',))
    path.write_text(''.join(
        json.dumps({'when': text}) + '\n' for text in texts))
    return JSONLDataset(path, dtypes={'when': dtype})


def written(generator, unit):
    """Return a time as text, as `unit` has it, and its nanoseconds since
    1970 by the standard library, or the number of its year or month."""
    years = 1, 999, 1677, 1969, 1970, 2024, 2262, 9998
    moment = datetime(generator.choice(years), 1, 1, tzinfo=UTC) + timedelta(
        seconds=generator.randrange(366 * 86400))
    if unit in 'YM':
        return (f'{moment.year:04}', moment.year - 1970) if unit == 'Y' else (
            f'{moment.year:04}-{moment.month:02}',
            12 * (moment.year - 1970) + moment.month - 1)
    text = moment.date().isoformat()
    zone, nanoseconds = '', 0
    form = '' if unit in 'WD' else generator.choice(
        ['', '%H', '%H:%M', '%H:%M:%S', '%H:%M:%S.'])
    moment = datetime.fromisoformat(
        text + (form and 'T' + moment.strftime(form.rstrip('.'))))
    if form:
        text += generator.choice('T ') + moment.strftime(form)
        if form.endswith('.'):
            digits = str(generator.randrange(10 ** 9)).zfill(9)[
                :generator.randrange(1, 10)]
            text += digits
            nanoseconds = int(digits.ljust(9, '0'))
        zone = generator.choice(['', 'Z', 'z', '+05', '-1130', '+02:00',
                                 '-23:59', '+00:01'])
    offset = datetime.strptime('+0000' if zone in ('', 'Z', 'z') else (
        zone.replace(':', '') + '00')[:5], '%z').utcoffset()
    moment = moment.replace(tzinfo=timezone(offset))
    return text + zone, nanoseconds + 10 ** 9 * (
        (moment - EPOCH) // timedelta(seconds=1))


@pytest.mark.parametrize('cases', [
    150, pytest.param(3000, marks=pytest.mark.full)])
@pytest.mark.parametrize('kind', ['csv', 'jsonl'])
def test_times_of_each_unit_equal_the_standard_library(tmp_path, kind, cases):
    """The unit of a type says how its times are written: what is written so
    is read exactly, with its zone, and all else is an error."""
    generator = random.Random(kind)
    for _ in range(cases):
        unit = generator.choice(['Y', 'M', *SIZES])
        count = generator.choice([1, 1, 1, 10])
        dtype = f'datetime64[{count}{unit}]'
        texts, numbers = zip(*[written(generator, unit) for _ in range(
            generator.randrange(1, 4))], strict=True)
        size = count * SIZES.get(unit, 1)
        is_right = [not number % size and abs(number // size) < 2 ** 63
                    for number in numbers]
        if all(is_right):
            found, = dataset_of(tmp_path, texts, dtype, kind)[:]
            assert (found.dtype, found.astype(int).tolist()) == (
                numpy.dtype(dtype), [number // size for number in numbers])
            other = generator.choice(WRONG)
            texts = *texts, other
            is_right.append(False)
        line = is_right.index(False) + 1 + (kind == 'csv')
        with pytest.raises(ValueError, match=(
                rf"times\.{kind}, line {line}[:,].*'when'.*"
                r'(function.*seconds since 1970|missing=)')):
            dataset_of(tmp_path, texts, dtype, kind)[:]


@pytest.mark.parametrize('unit, right, wrong', [
    ('Y', '2024', ['2024-02', '2024-01-01', '02024', '20240229']),
    ('M', '2024-02', ['2024', '2024-02-29', '202402', '1700000000']),
    ('D', '2024-02-29', ['2024', '2024-02', '20240229', '1700000000',
                         '2024-02-29T00:00']),
    ('s', '2024-02-29T12:30:00+02:00', ['2024', '2024-02', '20240229',
                                        '1700000000', '1700000000.5'])])
@pytest.mark.parametrize('kind', ['csv', 'jsonl'])
def test_time_in_the_form_of_another_unit_is_an_error(
        tmp_path, kind, unit, right, wrong):
    """Digits are not taken for a year, also behind a thousand times."""
    dtype = f'datetime64[{unit}]'
    for number in (1, 1000):
        for text in wrong:
            dataset = dataset_of(tmp_path, [right] * number + [text], dtype,
                                 kind)
            with pytest.raises(ValueError, match=(
                    f'line {number + 1 + (kind == "csv")}.*{text}.*'
                    r"dtypes=\{'when': 'int64'\}")):
                dataset.get_data(None, [0, number])
    found, = dataset_of(tmp_path, [right] * 2, dtype, kind)[:]
    assert right[:16] in str(found[0]) or '2024-02-29T10:30:00' == str(
        found[0])


def test_digits_behind_a_thousand_dates_are_an_error(tmp_path):
    """The type of the dates was found, and was not given."""
    path = tmp_path / 'days.csv'
    path.write_text('day,x\n' + '2024-02-29,1\n' * 1000 + '20240301,1\n')
    dataset = CSVDataset(path)
    assert 'datetime64[D]' == dataset.dtypes['day']
    with pytest.raises(ValueError, match=(
            r"days.csv, line 1002, column 0 \(day\): '20240301' is not a "
            r'valid datetime64\[D\].*is written as 2024-02-29: ')):
        dataset.get_data(None, [1000])


@pytest.mark.parametrize('kind', ['csv', 'jsonl'])
def test_nanoseconds_beside_a_zone_are_kept(tmp_path, kind):
    """Python's own times end at microseconds."""
    found, = dataset_of(tmp_path, [
        '2024-02-29T12:30:00.123456789+02:00',
        '2262-04-11T23:47:16.854775807Z', '1677-09-21 00:12:43.145224193'],
        'datetime64[ns]', kind)[:]
    assert ['2024-02-29T10:30:00.123456789', '2262-04-11T23:47:16.854775807',
            '1677-09-21T00:12:43.145224193'] == found.astype(str).tolist()
    for text in ('2262-04-11T23:47:16.854775808',
                 '1677-09-21T00:12:43.145224192',
                 '2262-04-11T23:47:16.9-00:01'):
        with pytest.raises(ValueError, match='line'):
            dataset_of(tmp_path, [text], 'datetime64[ns]', kind)[:]


@pytest.mark.parametrize('kind', ['csv', 'jsonl'])
def test_times_without_a_unit_are_an_error(tmp_path, kind):
    """The unit says how times are written; batches had different ones."""
    with pytest.raises(ValueError, match=r"pass 'datetime64\[D\]' for dates"):
        dataset_of(tmp_path, ['2024-02-29'], 'datetime64', kind)


def test_number_in_json_lines_is_not_a_time(tmp_path):
    """The error says how to read seconds since 1970."""
    path = tmp_path / 'numbers.jsonl'
    path.write_text('{"when": 1700000000}\n')
    with pytest.raises(ValueError, match=(
            r"line 1: .*1700000000 is an integer: .*seconds since 1970 as "
            r"integers, dtypes=\{'when': 'int64'\}")):
        JSONLDataset(path, dtypes={'when': 'datetime64[s]'})[:]
    seconds, = JSONLDataset(path)[:]
    assert '2023-11-14T22:13:20' == str(seconds.astype('datetime64[s]')[0])
