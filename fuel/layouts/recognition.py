"""Find the layout of files by their attributes, groups and arrays."""
from __future__ import annotations

from collections.abc import (
    Callable, Collection, Iterable, Iterator, Mapping, Sequence)
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

import numpy

from fuel.datasets.columns.part_names import Files, as_files, expand
from fuel.datasets.columns.rows import Rows
from fuel.exceptions import AmbiguousLayoutError, UnknownLayoutError
from fuel.layouts import biology, molecules, others, physics, robots
from fuel.layouts.call import Call
from fuel.layouts.others import recognise_plain
from fuel.layouts.seen import Seen, SeenFile
from fuel.remote.urls import StorageOptions
from fuel.storage.open_files import access_to, open_all
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.part_index import Arrays
from fuel.suggestions import did_you_mean
from fuel.utils.hdf5_errors import naming_file
from fuel.version import version
from fuel.utils.warn import warn_user

#: Returns the call that opens files; several calls if there are several ways;
#: None if the files have another layout.
Recogniser: TypeAlias = Callable[[Seen], 'Call | Sequence[Call] | None']

# Recognisers of layouts with a distinctive sign.
SURE: dict[str, Recogniser] = {
    'aloha': robots.recognise_aloha,
    'anndata': biology.recognise_anndata,
    'd4rl': robots.recognise_d4rl,
    'mace': molecules.recognise_mace,
    'makani': physics.recognise_makani,
    'matlab': others.recognise_matlab,
    'minari': robots.recognise_minari,
    'molecules': molecules.recognise_molecules,
    'multimodal_universe': physics.recognise_multimodal_universe,
    'netcdf': physics.recognise_netcdf,
    'nwb': biology.recognise_nwb,
    'pdebench': physics.recognise_pdebench,
    'returnn': others.recognise_returnn,
    'robomimic': robots.recognise_robomimic,
    'stable_worldmodel': robots.recognise_stable_worldmodel,
    'the_well': physics.recognise_the_well,
    'tokens': others.recognise_tokens,
    'torch_brain': biology.recognise_torch_brain}
# The recogniser that is tried last: arrays without such a sign.
PLAIN = 'plain'
# Group of the entry points under which packages register recognisers.
ENTRY_POINTS = 'fuel.layouts'
# Most names in a file that an error shows.
SHOWN = 10


@contextmanager
def seen_files(files: Files, storage_options: StorageOptions | None = None,
               follow: str = 'folder') -> Iterator[Seen]:
    """Open files for recognition, until the end of the block.

    See :class:`~fuel.datasets.HDF5Dataset` for the parameters.
    """
    given = as_files(files, storage_options)
    with ExitStack() as stack:
        paths = expand(given)
        accesses = [access_to(path, None) for path in paths]
        for access in accesses:
            stack.callback(access.close)
        yield Seen(given, LinkedFiles(
            open_all(accesses), paths, follow == 'anywhere'))


def find_call(seen: Seen, layout: str | None = None,
              splits: Sequence[str] = ()) -> tuple[str, Call]:
    """Return the layout of files, and the call that opens them.

    `layout`: the only layout to try; None to try all.
    `splits`: the splits that the user requests; a split may have its own call.

    Raises: AmbiguousLayoutError if there are several calls,
        UnknownLayoutError if there is no call.
    """
    found = _found(seen, layout)
    of_split = {name: [call for call in calls if [call.split] == [*splits]]
                for name, calls in found.items()}
    return _one_call(seen, layout, of_split if any(of_split.values())
                     else found)


def find_known_call(seen: Seen, layout: str | None = None,
                    given: Collection[str] = ()) -> Call | None:
    """Return the call that completes the arguments that the user passes; None
    for files without the sign of a layout.

    `given`: the names of these arguments. If they include 'columns', calls
        that agree in all other arguments are joined into one call with the
        columns of all.

    Raises: AmbiguousLayoutError if there are several calls.
    """
    found = _found(seen, layout, layout is not None)
    if not found and layout is None:
        return None
    calls = [call for several in found.values() for call in several]
    kept = [{name: value for name, value in call.arguments().items()
             if name not in (*given, 'sources')} for call in calls]
    if 'columns' in given and calls and all(
            arguments == kept[0] and call.are_runs == calls[0].are_runs
            for arguments, call in zip(kept, calls, strict=True)):
        columns = {source: column for call in reversed(calls)
                   for source, column in call.columns.items()}
        return replace(calls[0], columns=columns).of(seen.given)
    return _one_call(seen, layout, found)[1]


def _found(seen: Seen, layout: str | None, with_plain: bool = True,
           ) -> Mapping[str, Sequence[Call]]:
    """Return a dict from each layout of the files to its calls."""
    refuse_unknown_layout(layout)
    paths = [file.path for file in seen.files]
    try:
        with naming_file(paths[0], others=paths):
            return (_calls(seen, _chosen(layout)) if layout
                    else _find_calls(seen, with_plain))
    except (OSError, ValueError) as error:
        _refuse_different(seen.files, error)
        raise


def _one_call(seen: Seen, layout: str | None,
              found: Mapping[str, Sequence[Call]]) -> tuple[str, Call]:
    """Return the layout and the only call; raise an error if there is no call,
    or if there are several."""
    if not found:
        raise UnknownLayoutError(_nothing_fits(
            seen, 'no known layout' if layout is None
            else f'no layout {layout!r}'))
    calls = [(name, call.of(seen.given)) for name, several in found.items()
             for call in several]
    if len(calls) > 1:
        listed = '\n'.join(
            f'    {call!r}{_counted(seen, call)}' for _, call in calls)
        names = ' and '.join(map(repr, found))
        raise AmbiguousLayoutError(
            f'{seen.given!r} can be opened in several ways, by the layout '
            f'{names}: choose {_splits_of(calls)}one of\n{listed}'
            if len(found) == 1 else
            f'{seen.given!r} has the layouts {names}: choose one with '
            f'layout=..., or one of\n{listed}')
    name, call = calls[0]
    if not call.columns:
        raise UnknownLayoutError(_nothing_fits(
            seen, f'signs of the layout {name!r}, but no array of its '
                  f'examples'))
    return name, call


def _splits_of(calls: Sequence[tuple[str, Call]]) -> str:
    """Return a text on the splits of calls, for an error; '' without any."""
    splits = [repr(call.split) for _, call in calls if call.split]
    return f'the split {" or ".join(splits)}, or ' if splits else ''


def _counted(seen: Seen, call: Call) -> str:
    """Return a comment with the number of rows of a call in the first file.

    It is '' if the rows are not simply the rows of an array.
    """
    column = next(iter(call.columns.values()), None)
    if call.parts is not None or not isinstance(column, Rows):
        return ''
    array = seen.files[0].array(column.path)
    return '' if array is None else f'  # {array.shape[column.axis]} rows'


def _chosen(layout: str | None, with_plain: bool = True,
            ) -> Iterator[dict[str, Recogniser]]:
    """Yield recognisers by name, in groups: the most certain signs first."""
    if layout is None:
        yield {name: _own(name) for name in SURE}
        yield _of_packages()
        if with_plain:
            yield {PLAIN: _own(PLAIN)}
        return
    if layout in (*SURE, PLAIN):
        yield {layout: _own(layout)}
        return
    yield {layout: _of_packages()[layout]}


def refuse_unknown_layout(layout: str | None) -> None:
    """Raise ValueError if no layout has the given name."""
    if layout is None or layout in (*SURE, PLAIN):
        return
    names = [*SURE, PLAIN, *_of_packages()]
    if layout not in names:
        raise ValueError(
            f'there is no layout {layout!r}'
            f'{did_you_mean(layout, names, " ({})")}; there are '
            f'{", ".join(names)}')


def _own(name: str) -> Recogniser:
    """Return the recogniser of one of Fuel's layouts."""
    return recognise_plain if name == PLAIN else SURE[name]


def _of_packages() -> dict[str, Recogniser]:
    """Return the recognisers of installed packages, by name."""
    return {entry.name: partial(_try, entry)
            for entry in entry_points(group=ENTRY_POINTS)}


def _try(entry: EntryPoint, seen: Seen) -> Call | Sequence[Call] | None:
    """Call the recogniser of a package; warn if it fails."""
    try:
        found = entry.load()(seen)
        calls = [] if found is None else (
            [found] if isinstance(found, Call) else list(found))
        if not all(isinstance(call, Call) for call in calls):
            raise TypeError(f'it should return a Call, a list of them or '
                            f'None, got {found!r}')
    except Exception as error:  # noqa: BLE001 - of whatever others wrote
        warn_user(
            f'the recogniser {entry.name!r} of files, {entry.value}, failed '
            f'and is passed over: {type(error).__name__}: {error}')
        return None
    return calls or None


def _calls(seen: Seen, ranks: Iterable[Mapping[str, Recogniser]],
           ) -> dict[str, Sequence[Call]]:
    """Return the calls of the first rank of recognisers that finds any."""
    for recognisers in ranks:
        found: dict[str, Sequence[Call]] = {}
        for name, function in recognisers.items():
            made = function(seen)
            if made:
                found[name] = [made] if isinstance(made, Call) else made
        if found:
            return found
    return {}


def _find_calls(seen: Seen, with_plain: bool = True,
                ) -> Mapping[str, Sequence[Call]]:
    """Return the calls of all recognisers.

    If a file has many groups, the name of its layout is cached: the next time
    only the recogniser of that layout is tried, so that not all groups are
    searched.
    """
    found: dict[str, Sequence[Call]] = {}

    def make() -> Arrays:
        found.update(_calls(seen, _chosen(None, with_plain)))
        if len(found) == 1 and {*SURE}.issuperset(found) and (
                seen.files[0].has_more()):
            return {'layout': numpy.array([*map(str.encode, found)])}
        return {}

    def knows(kept: Arrays) -> bool:
        names = kept.get('layout', numpy.empty(0)).tolist()
        found.update(_calls(seen, [{name: _own(name) for name in SURE
                                    if names == [name.encode()]}]))
        return bool(found)

    seen.linked.kept(f'layout {version}', make, knows, fewest=1)
    return found


def _refuse_different(files: Sequence[SeenFile], error: Exception) -> None:
    """Raise ValueError if the reason of an error is that files have no names
    in common."""
    names = files[0].names()
    for file in files[1:]:
        others = file.names()
        if names and others and not {*names} & {*others}:
            raise ValueError(
                f'these files are not of one layout: {files[0].path!r} has '
                f'{", ".join(map(repr, names[:SHOWN]))}, and {file.path!r} '
                f'has {", ".join(map(repr, others[:SHOWN]))}; load those of '
                f'each layout by themselves') from error


def _nothing_fits(seen: Seen, what: str) -> str:
    """Return the text of the error that files cannot be recognised."""
    file = seen.files[0]
    names = file.names()
    arrays = file.arrays()
    shown = [f'{array.path!r} {array.dtype} {array.shape}'
             for array in arrays[:SHOWN]]
    shown += [f'the group {name!r}' for name in names[:SHOWN]
              if file.is_group(name)]
    more = ', ...' * (len(arrays) > SHOWN or len(names) > SHOWN)
    if not shown and (empty := file.empty_arrays()):
        listed = ', '.join(f'{array.path!r} {array.dtype} {array.shape}'
                           for array in empty[:SHOWN])
        return (
            f'{file.path!r} has {what}. Its arrays have no rows: {listed}'
            f'{", ..." * (len(empty) > SHOWN)}. A data set needs one: leave '
            f'the file out until it is written')
    return (
        f'{file.path!r} has {what}. It has {", ".join(shown) or "nothing"}'
        f'{more}. Say what its sources are: HDF5Dataset({seen.given!r}, '
        f"['path/of/an/array', ...]), with parts='group_*' where groups have "
        f'the same arrays')
