"""A user's own table, in a file of comma-separated values."""
import csv
import logging
import os
import shlex
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.converters.base import Converter, write_file
from fuel.converters.custom_data import (ROWS_AT_ONCE, add_split_options,
                                         advise, as_classes, divided,
                                         split_rows)
from fuel.converters.filling import add_fill_option, fill_values
from fuel.converters.output import LABELS, Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.datasets import IndexableDataset
from fuel.datasets.cells import (
    WORDS, is_header, markers_in, names_of_columns, cell_type,
    without_markers)
from fuel.datasets.json_values import begins_with_object
from fuel.datasets.records import SAMPLE, long_cells
from fuel.streams import DataStream
from fuel.transformers.imputation import STRATEGIES

__all__ = ['convert_csv', 'fill_subparser']

log = logging.getLogger(__name__)

# The largest number of bytes of the columns that replace one column of text.
MAX_ONE_HOT = 1 << 30
# There is a warning about a column if the number of its distinct texts is
# larger than this, and larger than half of the number of examples: the column
# probably holds names.
MANY_TEXTS = 20


@advise
def convert_csv(directory: Folder, output_directory: Folder, filename: str,
                output_filename: str | None = None,
                target: str | None = None, ignore: Sequence[str] = (),
                one_hot: bool = False, delimiter: str = ',',
                header: bool | None = None, dtype: str = 'float64',
                missing: Sequence[str] = (), fill: str | None = None,
                hold_out: Sequence[tuple[str, float]] | None = None,
                seed: int = 1, stratify: bool = False) -> tuple[str]:
    """Convert a table to an HDF5 file that `H5PYDataset` reads.

    The names of the columns are a list in JSON, in the attribute
    'column_names' of 'features'. The names of the classes are in the attribute
    'class_names' of 'targets'. A first column without a name, as pandas writes
    its index, is logged and left out.

    `filename`: name of the table, in UTF-8.
    `target`: name of the column that becomes the source 'targets'. Text
        becomes class numbers, in alphabetical order. Default: none.
    `ignore`: names of columns to leave out.
    `one_hot`: whether a column of text becomes one column for each value;
        otherwise such a column is an error. Default False. In a column of true
        and false, these become 1 and 0 in any case.
    `delimiter`: the separator of fields. Default ``','``.
    `header`: whether the first line names the columns; if not, they are named
        '0', '1' and so on. Default None: the first line must be a header by
        the rules of `CSVDataset`.
    `dtype`: type of 'features'. Default 'float64'.
    `missing`: texts that stand for an empty cell, such as 'NA'.
    `fill`: how to fill empty cells of the features: 'mean',
        'median' or 'most-frequent' of the split 'train', or a value. With
        'mean' and 'median', text is filled with the most frequent text. The
        values are a dict in JSON, in the attribute 'fill_values'. Default:
        none; an empty cell among numbers is then an error.
    `hold_out`: splits to draw at random, and their shares.
    `seed`: seed of the random splits. Default 1.
    `stratify`: whether the same share of every class is held out.
    """
    path, = input_paths(directory, [filename])
    columns, index = _read(path, delimiter, header, frozenset(missing))
    for name in [*ignore, *([] if target is None else [target])]:
        if name not in columns:
            raise ValueError(f'{path} has no column {name!r}; it has '
                             f'{", ".join(columns)}')
    targets: dict[str, Array] = {}
    class_names: dict[str, list[str]] = {}
    if target is not None:
        targets['targets'], known = _targets(columns[target], path, target)
        if known:
            class_names['targets'] = known
    advice = ': one column must be named as the --target'
    filled: dict[str, Any] = {}
    given = {name: column for name, column in columns.items()
             if name not in (target, *ignore, index)}
    if index is not None and index not in (target, *ignore):
        log.warning('left out: the first column, which has no name; '
                    '--target %s is that column', index)
    if fill is not None:
        train = split_rows(len(next(iter(columns.values()))), hold_out, seed,
                           stratify, targets.get('targets'), advice)['train']
        filled = {name: _fill(column, name, path, fill, train)
                  for name, column in given.items() if _has_gaps(column)}
    features, column_names = _features(given, path, one_hot, dtype)
    sources: dict[str, Array] = {'features': features, **targets}
    output_filename = output_filename or (
        os.path.splitext(os.path.basename(filename))[0] + '.hdf5')
    labels = {'features': ('batch', 'feature'), 'targets': LABELS}
    return write_file(
        output_directory, output_filename, [path],
        divided(sources.items(), hold_out, seed, stratify, advice),
        {source: labels[source] for source in sources},
        {'column_names': {'features': column_names},
         'class_names': class_names,
         'fill_values': {'features': filled} if filled else {}})


def _read(path: str, delimiter: str, header: bool | None,
          missing: frozenset[str],
          ) -> tuple[dict[str, list[str]], str | None]:
    """Return a mapping from names to the columns of a table, and the name that
    was given to the first column if it has none; otherwise None."""
    with open(path, 'rb') as binary:
        if begins_with_object(binary):
            raise BadInputFile(
                path, 'it holds JSON lines: choose fuel-convert jsonl')
    with open(path, encoding='utf-8-sig', newline='') as lines:
        try:
            # Strict, since otherwise all text after an unclosed quotation mark
            # would become one cell.
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            with long_cells(os.path.getsize(path)):
                numbered = [(reader.line_num, row) for row in reader if row]
        except TypeError as error:
            raise ValueError('expected one character between fields, got '
                             f'{delimiter!r}') from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInputFile(path, f'not a table ({error})') from error
    rows = [row for _, row in numbered]
    if len(rows) < 1 + (header is not False):
        raise BadInputFile(path, 'there are no examples')
    for line, row in numbered:
        if len(row) != len(rows[0]):
            raise BadInputFile(path, f'expected {len(rows[0])} fields in line '
                               f'{line}, got {len(row)}; fields are separated '
                               f'by {delimiter!r} (--delimiter)')
    if header is None and not is_header(rows[0], [rows[1:SAMPLE + 1]]):
        raise BadInputFile(
            path, f'the first line, {", ".join(rows[0]):.80}, may be an '
            'example, or have the names of the columns: choose --no-header '
            'or --header')
    index = None
    if header is False:
        names = [str(i) for i in range(len(rows[0]))]
    else:
        names = names_of_columns([name.strip() for name in rows[0]])
        rows = rows[1:]
        index = None if numbered[0][1][0].strip() else names[0]
    if len(set(names)) != len(names):
        raise BadInputFile(path, f'two columns have one name: {names}')
    return {name: list(without_markers(cells, missing)) for name, cells in
            zip(names, zip(*rows, strict=True), strict=True)}, index


def _number(text: str, kind: type = float) -> Any:
    """Return the number in a text; refuse Python's notation 1_000."""
    if '_' in text:
        raise ValueError(f'not a number: {text!r}')
    return kind(text)


def _is_number(text: str) -> bool:
    try:
        _number(text)
    except ValueError:
        return False
    return True


def _refuse_gap(column: list[str], path: str, name: str,
                remedy: str = '') -> None:
    """Refuse numbers with empty cells: as text, each number would become a
    class."""
    gaps = [i for i, value in enumerate(column) if not value.strip()]
    if gaps:
        raise BadInputFile(path, f'column {name!r} has no value in '
                           f'{len(gaps)} of {len(column)} examples, the '
                           f'first of them number {gaps[0]}, from 0{remedy}')


def _refuse_markers(column: list[str], path: str, name: str) -> None:
    """Refuse numbers with markers of missing values: as text, each number and
    each marker would become a class."""
    markers = markers_in(column)
    if markers:
        options = ' '.join(f'--missing {shlex.quote(text)}'
                           for text in markers)
        raise BadInputFile(
            path, f'column {name!r} is text only because of '
            f'{", ".join(map(repr, markers))}: choose {options} if that '
            'stands for missing values')


def _has_gaps(column: list[str]) -> bool:
    return not all(value.strip() for value in column)


def _fill(column: list[str], name: str, path: str, fill: str,
          train: Array) -> float | str:
    """Put a value into the empty cells of a column, and return the value."""
    cells = [value.strip() for value in column]
    if all(cell.lower() in WORDS for cell in cells if cell):
        cells = [cell.lower() for cell in cells]
    is_text = not all(_is_number(cell) for cell in cells if cell)
    values = numpy.array(cells, object) if is_text else numpy.array(
        [_number(cell or 'nan') for cell in cells])
    stream = DataStream(IndexableDataset({name: values[train]}),
                        batch_size=ROWS_AT_ONCE)
    try:
        found, = fill_values(stream, name, values.dtype.kind, fill).fill
    except ValueError as error:
        if fill in STRATEGIES:
            raise BadInputFile(path, str(error)) from error
        raise
    for place, cell in enumerate(cells):
        if not cell:
            column[place] = str(found)
    return found if is_text else float(found)


def _without_truths(column: list[str]) -> list[str]:
    """Return a column with 1 and 0 for true and false, if all its cells are
    true or false."""
    cells = [value.strip().lower() for value in column]
    return ([str(int(WORDS[cell])) for cell in cells]
            if all(cell in WORDS for cell in cells) else column)


def _features(columns: dict[str, list[str]], path: str, one_hot: bool,
              dtype: str) -> tuple[Array, list[str]]:
    """Return the features, and the names of their columns."""
    blocks: list[Array] = []
    names: list[str] = []
    for name, cells in columns.items():
        column = _without_truths(cells)
        try:
            blocks.append(numpy.array([[_number(value)] for value in column],
                                      dtype=dtype))
            names.append(name)
            continue
        except ValueError as error:
            if all(_is_number(value) for value in column if value.strip()):
                _refuse_gap(column, path, name, ': choose --fill, such as '
                            '--fill median')
            _refuse_markers(column, path, name)
            if cell_type(column).kind == 'M':
                raise BadInputFile(
                    path, f'column {name!r} holds times: choose --ignore, or '
                    'make numbers of them in a stage over a CSVDataset'
                    ) from error
            if not one_hot:
                raise BadInputFile(
                    path, f'column {name!r} does not hold numbers '
                    f'({error!s:.100}): choose --one-hot, --ignore or '
                    f'--target') from error
        classes, known = as_classes([value.strip() for value in column])
        nbytes = len(known) * len(column) * numpy.dtype(dtype).itemsize
        if nbytes > MAX_ONE_HOT:
            raise BadInputFile(
                path, f'column {name!r} has {len(known)} different texts, '
                f'whose one-hot columns would need {nbytes} bytes: choose '
                '--ignore or --target')
        if len(known) > max(MANY_TEXTS, len(column) // 2):
            log.warning(
                'column %r has %d different texts in %d examples, and becomes '
                'as many columns of zeros and ones: if it names the examples, '
                'choose --ignore %s', name, len(known), len(column),
                shlex.quote(name))
        block = numpy.zeros((len(column), len(known)), dtype)
        block[numpy.arange(len(column)), classes[:, 0]] = 1
        blocks.append(block)
        names += [f'{name}={value}' for value in known]
    if not blocks:
        raise BadInputFile(path, 'no column is left for the features')
    return numpy.concatenate(blocks, axis=1), names


def _targets(column: list[str], path: str, name: str
             ) -> tuple[Array, list[str]]:
    """Return a column as numbers, and the names of the classes of text."""
    _refuse_gap(column, path, name)
    _refuse_markers(column, path, name)
    for kind in (int, float):
        try:
            return numpy.array([[_number(value, kind)] for value in column],
                               dtype=kind), []
        except ValueError:
            continue
        except OverflowError as error:
            raise BadInputFile(path, f'column {name!r} has whole numbers of '
                               'more than 64 bits') from error
    return as_classes([value.strip() for value in column])


def _delimiter(text: str) -> str:
    # In most shells, a tab cannot be typed.
    return '\t' if text == r'\t' else text


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert csv FILE``."""
    subparser.add_argument('filename', help='name of the table')
    subparser.add_argument('--target', metavar='COLUMN', default=None,
                           help='column for the source targets')
    subparser.add_argument('--ignore', metavar='COLUMN', action='append',
                           default=[], help='column to leave out; may be '
                           'repeated')
    subparser.add_argument('--one-hot', action='store_true',
                           help='make columns of zeros and ones of text')
    subparser.add_argument('--delimiter', default=',', type=_delimiter,
                           help='separator of fields, such as ; or \\t '
                           '(default: a comma)')
    subparser.add_argument('--header', action=BooleanOptionalAction,
                           default=None, help='whether the first line has '
                           'the names of the columns, which else are their '
                           'numbers, from 0 on (default: it must look so)')
    subparser.add_argument('--missing', metavar='TEXT', action='append',
                           default=[], help='a text that stands for a '
                           'missing value, such as NA; may be repeated')
    subparser.add_argument('--dtype', default='float64',
                           choices=('float32', 'float64'),
                           help='type of the features (default: float64)')
    add_fill_option(subparser)
    add_split_options(subparser)
    return convert_csv
