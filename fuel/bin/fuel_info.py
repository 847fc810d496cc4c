"""The command ``fuel-info``."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from typing import Any

from fuel import config
from fuel.bin.commands import CommandParser, pipe_friendly
from fuel.bin.describe import describe_file
from fuel.bin.epoch_tables import (cost_rows, epoch_costs, measure_shuffles,
                                   options_argument, shuffle_rows)
from fuel.bin.listing import human_size
from fuel.bin.layouts import is_hdf5_file, open_described
from fuel.bin.preview import preview_file
from fuel.describe.preview import Preview
from fuel.layouts.opening import find_missing
from fuel.storage.open_files import open_with_h5py
from fuel.exceptions import (
    AmbiguousLayoutError, ConfigurationError, UnknownLayoutError)
from fuel.layouts.recognition import PLAIN
from fuel.remote.urls import StorageOptions
from fuel.utils.printing import aligned

__all__ = ['main', 'make_parser']

PROVENANCE = """{title}
The command used to generate this file is

    {command}

Relevant versions are

    H5PYDataset      {interface}
    fuel.converters  {converters}
"""

# Explains the columns of the table of shuffles.
MEANING = """\
window: blocks that are shuffled together, and how many examples they have
distance: how far examples are moved; a true shuffle gives 1
lag: how alike the labels of examples are that come so many steps apart;
1 if they are the same, 0 if they are alike by chance
"""

NO_SPLITS = """Splits

    none, which H5PYDataset needs. This adds one of all examples:

    with h5py.File({file!r}, 'r+') as file:
        file.attrs['split'] = H5PYDataset.create_split_array(
            {{'all': {rows}}})
"""

# Types of values that have no shape.
OBJECTS = 'text', 'bytes', 'JSON', 'arrays', 'objects'
# Most names that are shown: enough for digits. With --json, all are shown.
NAMES_SHOWN = 12


def _title(facts: Mapping[str, Any]) -> str:
    title = f'Metadata for {facts["file"]}'
    return f'\n{title}\n{"=" * len(title)}\n'


def _provenance(facts: Mapping[str, Any]) -> str:
    return PROVENANCE.format(
        title=_title(facts),
        command=facts['command'] or 'unknown',
        interface=facts['versions']['H5PYDataset'] or 'unknown',
        converters=facts['versions']['fuel.converters'] or 'unknown')


def _table(title: str, rows: Sequence[Sequence[str]]) -> Iterable[str]:
    if not rows:
        return
    yield f'{title}\n'
    for line in aligned(rows):
        yield f'    {line}'
    yield ''


def _layout(layout: Mapping[str, Any]) -> str:
    if layout['chunks'] is None:
        return str(layout['kind'])
    chunks = ' x '.join(map(str, layout['chunks']))
    decoded = [f'decoded {human_size(layout["decoded"])}'
               ] if layout['filters'] else []
    return ', '.join([f'chunks of {chunks}', *layout['filters'], *decoded])


def _splits(splits: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(name, f'{split["examples"]} examples',
             ', '.join(split['sources'])) for name, split in splits.items()]


def _sources(sources: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(name, source['type'],
             str(tuple(source['shape'])), _axes(source),
             _layout(source['layout']), human_size(source['size']))
            for name, source in sources.items()]


def _axes(source: Mapping[str, Any]) -> str:
    """Return the labels of the axes as text. If examples differ in shape, each
    label has the least and the greatest length of its axis."""
    labels = [label or '?' for label in source['axes'] or ()]
    extremes = source['shapes of examples']
    if extremes is None:
        return ', '.join(labels) or 'no axis labels'
    lengths = [str(least) if least == greatest else f'{least} to {greatest}'
               for least, greatest in zip(extremes['least'],
                                          extremes['greatest'], strict=True)]
    count = len(source['shape'])
    return ', '.join([*(labels or ['?'])[:count], *(
        f'{label} {length}' for label, length in zip_longest(
            labels[count:], lengths, fillvalue='?'))])


def _names(sources: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(name, kind.replace('_', ' '), _shortened(names))
            for name, source in sources.items()
            for kind, names in source['names'].items()]


def _shortened(names: Sequence[str]) -> str:
    shown = ', '.join(f'{i}: {name}' for i, name in
                      enumerate(names[:NAMES_SHOWN]))
    more = len(names) - NAMES_SHOWN
    return f'{shown}, and {more} more' if more > 0 else shown


def _inputs(inputs: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(name + _counts(raw), human_size(raw['size']),
             f'sha256 {raw.get("sha256")}')
            for name, raw in inputs.items()]


def _counts(raw: Mapping[str, Any]) -> str:
    """Return a text about the numbers of converted files and of left-out
    files."""
    left_out = f', {raw["left_out"]} left out' if 'left_out' in raw else ''
    return f' ({raw["files"]} files{left_out})' if 'files' in raw else ''


def _shuffles(measured: list[dict[str, Any]] | None) -> Iterable[str]:
    """Return the table of windows, and an explanation of its numbers."""
    if not measured:
        return []
    return [*_table('Shuffled by blocks', shuffle_rows(measured)),
MEANING]


def _no_splits(facts: Mapping[str, Any]) -> Iterable[str]:
    """Yield advice about a file that H5PYDataset could read if it had
    splits."""
    if facts['layout'].get('name') != PLAIN or not facts['sources']:
        return
    yield NO_SPLITS.format(file=facts['file'], rows={
        name: (0, source['shape'][0])
        for name, source in facts['sources'].items() if source['shape']})


def _layout_text(facts: Mapping[str, Any]) -> Iterable[str]:
    """Yield lines about the layout in which fuel.load opens a file of another
    program."""
    layout = facts['layout']
    if 'problem' in layout:
        yield f'Layout\n\n    not recognised: {layout["problem"]}\n'
        return
    yield f'Layout\n\n    {layout["name"]}; fuel.load opens it as\n'
    yield f'    {layout["call"]}\n'
    runs = layout['runs']
    counts = [f'{layout["examples"]} examples',
              *([] if runs is None else [f'{runs} run{"s" * (runs != 1)}'])]
    yield f'Examples\n\n    {", ".join(counts)}\n'
    yield from _table('Splits', [
        (name, f'{count} examples')
        for name, count in layout['splits'].items()])
    if not _is_of_root(layout, facts['sources']):
        yield from _table('Sources', _kinds(layout['sources']))
    for note in layout['left out']:
        yield f'{note[0].upper()}{note[1:]}\n'


def _kinds(sources: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the type, the shape and the storage of each source of a
    layout."""
    return [
        (name, ('sparse ' if source['sparse'] else '') + source['type'],
         '' if source['type'] in OBJECTS and not source['shape']
         else 'of any shape' if source['shape'] is None
         else str(tuple(source['shape'])).replace('None', '?'),
         '' if source['layout'] is None else _layout(source['layout']))
        for name, source in sources.items()]


def _text(facts: Mapping[str, Any]) -> str:
    size, sources = facts.get('size'), facts['sources']
    layout = facts.get('layout', {})
    is_foreign = layout.get('name', PLAIN) != PLAIN
    is_own = not is_foreign and 'problem' not in layout
    lines = [_provenance(facts) if 'command' in facts and (
        facts['command'] or is_own) else _title(facts)]
    if 'layout' in facts:
        lines += [*_layout_text(facts), *_no_splits(facts)]
        if is_foreign:
            # In other layouts, the items in the root are not the sources.
            sources = {}
    else:
        lines += _table('Splits', _splits(facts['splits']))
    lines += [
        *_table('Sources', _sources(sources)),
        *_table('Names', _names(sources)),
        *_table('First epoch', cost_rows(facts.get('costs', {}))),
        *_table('Converted from', _inputs(facts.get('inputs', {}))),
        *_shuffles(facts.get('shuffle'))]
    return '\n'.join([
        *lines, *([] if size is None else [
            f'Size on disk: {human_size(size)}'])])


def _save(preview: Preview, path: str) -> None:
    if preview.error is not None:
        raise preview.error
    preview.save(path)
    print(f'wrote {path}', file=sys.stderr)


@pipe_friendly('fuel-info')
def main(args: Sequence[str] | None = None) -> int:
    """Print the facts about files of data, or the settings.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: 0 if the files could be read.
    """
    parser = make_parser()
    arguments = parser.parse_args(args)
    config.load_yaml()
    if arguments.config:
        print(_settings(arguments.json))
        return 0
    if not arguments.filename:
        parser.error('the following arguments are required: filename')
    if len(arguments.filename) > 1 and arguments.preview:
        parser.error('--preview draws one file: name no other')
    if min(arguments.window, 1 if arguments.batch_size is None
           else arguments.batch_size) < 1:
        parser.error('--batch-size and --window must be at least 1')
    found = [_facts(parser, arguments, name) for name in arguments.filename]
    if arguments.json:
        print(json.dumps(found if len(found) > 1 else found[0], indent=2))
    else:
        print('\n'.join(map(_text, found)))
    return 0


def _facts(parser: argparse.ArgumentParser, arguments: argparse.Namespace,
           filename: str) -> dict[str, Any]:
    """Return the facts about one file; save a picture of its examples if
    requested."""
    options, picture = arguments.storage_options, arguments.preview
    try:
        if arguments.dtype is not None or not is_hdf5_file(filename):
            with open_described(filename, options, arguments.dtype) as (
                    dataset, layout):
                if picture:
                    _save(dataset.preview(), picture)
            return {'file': filename, 'sources': {}, 'layout': layout}
        with open_with_h5py(filename, storage_options=options) as h5file:
            facts = describe_file(h5file)
            if picture and facts['splits']:
                _save(preview_file(h5file), picture)
        if not facts['splits']:
            facts['layout'] = _layout_facts(
                filename, options, facts['sources'], picture)
        if arguments.batch_size is not None:
            facts['costs'] = epoch_costs(
                filename, options, facts, arguments.batch_size,
                arguments.window)
        if arguments.shuffle:
            facts['shuffle'] = measure_shuffles(
                filename, arguments.split, arguments.shuffle,
                arguments.block_size, options)
    except FileNotFoundError as error:
        parser.error(str(find_missing([filename]) or error))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return facts


def _layout_facts(filename: str, options: StorageOptions | None,
                  root: Mapping[str, Any],
                  picture: str | None) -> dict[str, Any]:
    """Return the facts about the layout of an HDF5 file without splits; save a
    picture of its examples if requested.

    `root`: a mapping from the names of the arrays in the root to descriptions.
    """
    with ExitStack() as stack:
        try:
            dataset, layout = stack.enter_context(
                open_described(filename, options))
        except (AmbiguousLayoutError, UnknownLayoutError) as error:
            layout = {'problem': str(error)}
            if picture and not root:
                raise ValueError(
                    f'{filename}: there are no examples to draw: '
                    f'{error}') from error
        if picture and root and (
                'problem' in layout or _is_of_root(layout, root)):
            with open_with_h5py(filename, storage_options=options) as h5file:
                _save(preview_file(h5file), picture)
        elif picture:
            _save(dataset.preview(), picture)
    return layout


def _is_of_root(layout: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Return whether the sources of a layout are exactly the arrays in the
    root."""
    return bool(layout['name'] == PLAIN
                and layout['sources'].keys() == root.keys())


def _settings(as_json: bool) -> str:
    """Return a text with the value of each setting and the origin of the
    value."""
    found = {name: {'value': _value(name), 'origin': config.origin(name)}
             for name in sorted(config.config)}
    if as_json:
        return json.dumps(found, indent=2, default=str)
    rows = [(name, str(setting['value']), str(setting['origin']))
            for name, setting in found.items()]
    return '\n'.join(aligned(rows))


def _value(name: str) -> object:
    """Return the value of a setting; None if it has no value, or if its
    default is in the home directory and that is unknown."""
    try:
        return getattr(config, name)
    except ConfigurationError:
        if config.origin(name) in ('not set', 'default'):
            return None
        raise


def make_parser() -> CommandParser:
    """Return the parser of the command."""
    parser = CommandParser(
        prog='fuel-info',
        description='Show what files hold, how converted ones were made, and '
        'how those of other people are opened.',
        examples=['fuel-info mnist.hdf5', 'fuel-info cells.h5ad',
                  'fuel-info *.hdf5 --json',
                  'fuel-info mnist.hdf5 --preview mnist.png',
                  'fuel-info --config'])
    parser.add_version()
    parser.add_argument('filename', nargs='*',
                        help='HDF5 files, or their URLs, folders or patterns '
                        "of them (\"'a_*.h5'\"), or files of another format")
    parser.add_argument('--config', action='store_true',
                        help='print each setting, and where its value comes '
                        'from')
    parser.add_argument('--storage-options', type=options_argument,
                        metavar='JSON', default=None,
                        help='arguments of the file system of a URL, such '
                        'as \'{"anon": true}\'; credentials are better '
                        'kept in the environment')
    parser.add_argument('--dtype', default=None,
                        help='the type of the numbers in files of nothing '
                        'but numbers, such as uint16')
    parser.add_argument('--batch-size', type=int, default=None, metavar='N',
                        help='also estimate what an epoch of a remote file '
                        'costs, with batches of N examples')
    parser.add_argument('--window', type=int, default=8, metavar='N',
                        help='blocks that a hierarchical shuffle mixes '
                        '(default: 8)')
    parser.add_argument('--json', action='store_true',
                        help='print everything as JSON')
    parser.add_argument('--preview', metavar='PICTURE',
                        help='draw examples of all sources into this file, '
                        'such as out.png')
    parser.add_argument('--shuffle', metavar='LABELS',
                        help='measure how random shuffles by blocks are, for '
                        'several windows, by the labels in this source')
    parser.add_argument('--split', default='train',
                        help='the split that --shuffle measures (default: '
                        'train)')
    parser.add_argument('--block-size', type=int, metavar='EXAMPLES',
                        help='the size of the blocks of --shuffle (default: '
                        'the chunks of the file)')
    return parser


if __name__ == '__main__':
    sys.exit(main())
