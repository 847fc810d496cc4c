"""The command ``fuel-order``."""
import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, TypeAlias

from fuel.bin.commands import (
    CommandParser, build_stream, pipe_friendly, positive_number)
from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.orders import (
    ExamplePlace, OrderTable, StreamOrder, WindowPlace)
from fuel.orders.names import rows_called
from fuel.schemes.shard import POLICIES

__all__ = ['main', 'make_parser']

STREAM = 'mine:build_stream'
# Most states in a file that an error shows.
SHOWN = 3

Answer: TypeAlias = (
    StreamOrder | OrderTable | list[ExamplePlace] | list[WindowPlace] | int)


def make_parser() -> CommandParser:
    """Return the parser of the command."""
    parser = CommandParser(
        prog='fuel-order',
        description='Show which examples come when in a data stream, without '
                    'reading data.',
        examples=[f'fuel-order {STREAM}',
                  (f'fuel-order {STREAM} --step 12345 --ranks 8 '
                   '--accumulate 4'),
                  f'fuel-order {STREAM} --epoch 3 --item 17',
                  f'fuel-order {STREAM} --row 618420 --epoch 3'])
    parser.add_version()
    parser.add_argument(
        'stream', metavar='module:function',
        help='what builds the stream: a function without arguments, in a '
             'module that can be imported from here')
    parser.add_argument(
        '--state', metavar='FILE[:FIELD]',
        help='a JSON file with the state to load first, or with a field that '
             'is a state, such as ck.json:loader; needed for steps if epochs '
             'were left before their ends')
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument('--step', type=_number, metavar='N',
                       help='show the examples of a step of the optimizer, '
                            'counted from 0 at the first epoch')
    shown.add_argument('--item', type=_number, metavar='N',
                       help='show the examples of an item of the epoch, '
                            'counted from 0')
    shown.add_argument('--row', metavar='N',
                       help='show all places of the epoch at which a row of a '
                            'data set comes, with their steps: its number, '
                            'or its key or path, such as train/cat/7.jpg')
    shown.add_argument('--windows-with', type=_number, metavar='N',
                       help='show all places of the epoch at which windows '
                            'or runs of rows hold a row')
    shown.add_argument('--digest', action='store_true',
                       help='show the digest of the order of the epoch, by '
                            'which two runs are compared')
    parser.add_argument('--accumulate', type=positive_number, default=1,
                        metavar='N', help='items of each rank for a step; '
                                          'default: %(default)s')
    parser.add_argument('--dataset', type=_number, metavar='N',
                        help='with --row and --windows-with: number of the '
                             'data set in the pipeline, if there are several')
    parser.add_argument('--stop', type=_number, metavar='N',
                        help='leave out the items from this number on, or, '
                             'with --digest, the examples; needed for all '
                             'places, digests and --json if the epoch has no '
                             'end')
    parser.add_argument('--epoch', type=_number, metavar='N',
                        help='the epoch, counted from 0; default: the next '
                             'one, or that of the state')
    parser.add_argument('--ranks', type=positive_number, metavar='N',
                        help='number of ranks that share the stream; default: '
                             'as the function built it')
    parser.add_argument('--by', choices=('batch', 'example'), default='batch',
                        help='with --ranks: how they share it; default: '
                             '%(default)s')
    parser.add_argument('--uneven', choices=POLICIES, default='uneven',
                        help='with --ranks: what happens at the end of an '
                             'epoch that they cannot share evenly; default: '
                             '%(default)s')
    parser.add_argument('--json', action='store_true',
                        help='print all rows, as JSON')
    return parser


def _number(text: str) -> int:
    """Return an integer from 0 on from the text of an argument."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f'expected a number, from 0 on, got {text!r}')
    return int(text)


@pipe_friendly('fuel-order')
def main(args: Sequence[str] | None = None) -> int:
    """Show which examples come when in a stream.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: 0, or 2 if the order is not known, or the stream
        cannot be built.
    """
    parser = make_parser()
    given = parser.parse_args(args)
    if given.step is not None and given.epoch is not None:
        parser.error('argument --epoch: not allowed with argument --step, '
                     'since steps are counted over all epochs')
    try:
        order = _order_of(parser, given)
        if given.epoch is not None:
            order = order.epoch(given.epoch)
        _print(_answer(order, given), order, given)
    except (IndexError, UnknownOrderError, ValueError) as error:
        print(f'fuel-order: {error}', file=sys.stderr)
        return 2
    return 0


def _order_of(parser: argparse.ArgumentParser, given: Any) -> StreamOrder:
    """Return the order of the stream that the arguments name."""
    stream = build_stream(parser, given.stream)
    if given.ranks is not None:
        stream = stream.shard(0, given.ranks, by=given.by,
                              uneven=given.uneven)
    if given.state is not None:
        try:
            stream.load_state_dict(_state_in(parser, given.state))
        except StateMismatchError as error:
            parser.error(f'{given.state}: {error}')
    # The stream's own attribute `order` may be something else.
    return StreamOrder.of_stream(stream)


def _state_in(parser: argparse.ArgumentParser, name: str) -> Any:
    """Return the state in a file, or in a field of it."""
    path, fields = name, list[str]()
    while not os.path.exists(path) and ':' in path:
        path, _, field = path.rpartition(':')
        fields.insert(0, field)
    if not os.path.exists(path) and fields:
        path, *fields = name.split(':')
    try:
        with open(path, encoding='utf-8') as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        parser.error(f'{path} is not a JSON file with a state: {error}')
    where = path
    for field in fields:
        known = {str(key): value for key, value in _fields_of(found)}
        if field not in known:
            parser.error(f'{where} has no field {field!r}, only '
                         f'{", ".join(known) or "one value":.200}')
        found, where = known[field], f'{where}:{field}'
    if not _is_state(found):
        names = [f'{where}:{":".join(place)}' for place in _states_in(found)]
        if names:
            parser.error(
                f'{where} is not a state, but has '
                f'{", ".join(names[:SHOWN])}{", ..." * (len(names) > SHOWN)}: '
                f'pass --state {names[0]}')
    return found


def _fields_of(value: object) -> Iterable[tuple[object, object]]:
    """Return names and values of the fields of a value of JSON."""
    return value.items() if isinstance(value, dict) else enumerate(
        value) if isinstance(value, list) else ()


def _is_state(value: object) -> bool:
    return isinstance(value, dict) and {'format', 'position'} <= value.keys()


def _states_in(value: object) -> list[list[str]]:
    """Return the names of the fields that lead to each state in a value."""
    return [[]] if _is_state(value) else [
        [str(key), *place] for key, one in _fields_of(value)
        for place in _states_in(one)]


def _answer(order: StreamOrder, given: Any) -> Answer:
    """Return what the arguments ask of an order."""
    if given.step is not None:
        return order.step(given.step, given.accumulate)
    if given.digest:
        return order.digest(stop=given.stop)
    if given.row is not None:
        rows = rows_called(order, given.row, given.dataset)
        return sorted(
            [place for row in rows for place in order.index(
                row, given.dataset, given.stop)],
            key=lambda place: (place.item, place.row or 0))
    if given.windows_with is not None:
        return order.windows_with(
            given.windows_with, given.dataset, given.stop)
    if given.item is not None:
        return order[given.item]
    return order[:given.stop] if given.json or given.stop is not None else (
        order)


def _print(answer: Answer, order: StreamOrder, given: Any) -> None:
    """Print an answer about an order."""
    if isinstance(answer, StreamOrder | int):
        print(repr(answer))
    elif isinstance(answer, OrderTable):
        print(json.dumps({name: column.tolist() for name, column
                          in answer.columns.items()})
              if given.json else repr(answer))
    else:
        steps = [_step_of(order, place.item, given.accumulate)
                 for place in answer]
        if given.json:
            print(json.dumps(list(map(
                _fields, answer, repeat(order), steps))))
        else:
            print('\n'.join(map(_line, answer, repeat(order), steps)) or (
                'it does not come in this epoch'))


def _step_of(order: StreamOrder, item: int, accumulate: int) -> int | None:
    """Return the number of the step that has an item; None if no step has it,
    or if that is not known."""
    with suppress(IndexError, UnknownOrderError):
        return order.step_of(item, accumulate)
    return None


def _fields(place: ExamplePlace | WindowPlace, order: StreamOrder,
            step: int | None) -> dict[str, Any]:
    """Return the fields of a place for JSON; rows as first, stop and step."""
    found = {**place._asdict(), 'optimizer_step': step,
             **_where(place, order)}
    if isinstance(place, WindowPlace):
        rows = found.pop('rows')
        found |= {'first': rows.start, 'stop': rows.stop, 'step': rows.step}
    return found


def _where(place: ExamplePlace | WindowPlace,
           order: StreamOrder) -> dict[str, Any]:
    """Return the rank and the file of an example, if they are known."""
    if isinstance(place, WindowPlace) or place.row is None:
        return {}
    columns = order[place.item].columns
    return {name: columns[name].tolist()[place.row]
            for name in ('rank', 'file') if name in columns}


def _line(place: ExamplePlace | WindowPlace, order: StreamOrder,
          step: int | None) -> str:
    """Return a line about a place."""
    text = f'epoch {place.epoch}, item {place.item}, row {place.row}'
    if isinstance(place, WindowPlace):
        rows = place.rows
        text += (f': window {place.window}, rows {rows.start} to '
                 f'{range(rows.start, rows.stop, rows.step)[-1]}'
                 + f' in steps of {rows.step}' * (rows.step > 1))
    text += ''.join([f', {name} {value}' for name, value in _where(
        place, order).items()])
    return (text + f', step {step}' * (step is not None)
            + ', left out' * place.left_out)


if __name__ == '__main__':
    sys.exit(main())
