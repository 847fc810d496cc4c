"""Read the examples of a preview, without effect on running epochs."""
from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy

from fuel.datasets.checks import is_sequential
from fuel.describe.examples import Array, shown_array
from fuel.describe.panels import Panel
from fuel.describe.pipeline import (
    Described, dataset_stage, described, short, try_method)
from fuel.describe.preview import Preview
from fuel.describe.source_types import SourceType
from fuel.epochs.pipeline import child_streams
from fuel.epochs.readers import close_state
from fuel.epochs.stage import stage_of
from fuel.remote.urls import is_url
from fuel.schemes.iteration_scheme import is_scheme, parts_of_scheme
from fuel.sharding.shard_pipeline import copied_pipeline
from fuel.utils.arguments import try_call
from fuel.utils.overrides import covers
from fuel.utils.sparse import count_bytes, count_rows, iterate_rows

# Most bytes of all examples of a preview; the first example may have more.
MOST_BYTES = 1 << 28
# Number of examples of a remote data set, or in a notebook's own display.
FEW = 8
# Reading ends after this number of errors, if no example could be read.
MOST_ERRORS = 3
# The names of sources that hold classes; the first that exists is used.
LABELS = ('targets', 'labels', 'fine_labels')


def preview_dataset(dataset: Any, count: int) -> Preview:
    """Return a preview of `count` examples, spread evenly over a data set.

    If the data set is read in order, they are its first examples.
    """
    error: Exception | None = None
    examples: dict[int, tuple[Any, ...]] = {}
    which = ''
    with _generators_kept():
        try:
            if is_sequential(dataset):
                first, error = _first_examples(dataset, count)
                examples = dict(enumerate(first))
                which = f'the first {len(examples)}'
            else:
                total = len(dataset)
                examples, error = _spread_examples(
                    dataset, total, FEW if names_url(dataset) else count)
                which = f'{len(examples)} of {total}'
        except Exception as problem:  # noqa: BLE001 (it is shown)
            error = problem
    title = f'{type(dataset).__name__}: ' + (
        f'{which} examples' if which else 'nothing was read')
    panels = _panels(dataset_stage(dataset), [
        list(map(shown_array, parts))
        for parts in zip(*examples.values(), strict=True)],
        which, _names_of(dataset) if examples else ())
    return Preview(title, panels, error, list(examples))


def _first_examples(dataset: Any, count: int) -> tuple[
        list[tuple[Any, ...]], Exception | None]:
    """Return the first examples of a data set that is read in order.

    The second value is the error that ended the reading, or None.
    """
    if try_method(dataset, 'is_read_once'):
        raise _used_up()
    found: list[tuple[Any, ...]] = []
    examples = iter(dataset)
    try:
        return found, _take(found, examples, count)
    finally:
        try_method(examples, 'close')


def _take(found: list[tuple[Any, ...]], items: Iterable[tuple[Any, ...]],
          count: int) -> Exception | None:
    """Append the next items to a list, up to `count` items or `MOST_BYTES`.

    Returns: the error that ended the reading, or None.
    """
    size = 0
    try:
        for item in islice(items, count):
            found.append(item)
            size += sum(try_call(0, count_bytes, part) for part in item)
            if size > MOST_BYTES:
                break
    except Exception as error:  # noqa: BLE001 (it is shown)
        return error
    return None


def _spread_examples(dataset: Any, total: int, count: int) -> tuple[
        dict[int, tuple[Any, ...]], Exception | None]:
    """Return examples that are spread evenly over a data set.

    Returns: a mapping from indices to examples, and the first error, or None.
        Examples that cannot be read are left out.
    """
    count = min(count, total)
    if not count:
        return {}, None
    size = _size_of(dataset)
    count = max(1, min(count, MOST_BYTES // max(1, size)))
    rows = numpy.linspace(0, total - 1, count).astype('int64').tolist()
    # Read a remote data set only once: a second attempt may take minutes.
    batch = dataset[rows] if names_url(dataset) else try_call(
        None, dataset.__getitem__, rows)
    if batch is not None and all(
            try_call(-1, count_rows, part) == count for part in batch):
        return dict(zip(rows, zip(
            *map(iterate_rows, batch), strict=True), strict=True)), None
    found: dict[int, tuple[Any, ...]] = {}
    errors: list[Exception] = []
    for row in rows:
        try:
            found[row] = dataset[row]
        except Exception as error:  # noqa: BLE001 (it is shown)
            errors.append(error)
            if len(errors) == MOST_ERRORS and not found:
                break
    return found, errors[0] if errors else None


def _size_of(dataset: Any) -> int:
    """Return the number of bytes of an example.

    If the types are not known, it is the size of the first example.
    """
    types = try_method(dataset, 'known_types', {})
    known = [types.get(source) for source in dataset.sources]
    sizes = [_bytes_of(one) for one in known]
    if None not in sizes:
        return sum(size or 0 for size in sizes)
    first: tuple[Any, ...] = try_call((), dataset.__getitem__, 0)
    return sum(shown_array(part).nbytes for part in first)


def _bytes_of(known: SourceType | None) -> int | None:
    """Return the bytes of a source's data in an example; None if unknown."""
    if known is None or known.dtype is None or known.dtype.hasobject:
        return None
    lengths = [length for length in known.shape or () if length is not None]
    if known.shape is None or len(lengths) < len(known.shape):
        return None
    return known.dtype.itemsize * math.prod(lengths)


def names_url(dataset: object) -> bool:
    """Return whether a detail of a data set is a URL."""
    return any(is_url(str(detail).split(' ')[0])
               for detail in try_method(dataset, 'details', ()))


def is_quick(dataset: object, may_open: bool) -> bool:
    """Return whether a few examples can be read in a moment.

    The result is False if reading them might call a function of the user.

    `may_open`: whether a local file may be opened to read them.
    """
    return bool(try_method(dataset, 'known_length')) and covers(
        dataset, 'takes_requests', ('get_data',)) and (
        try_method(dataset, 'has_rows_at_hand') or (
            may_open and not names_url(dataset)
            and is_sequential(dataset) is False))


def preview_stream(stream: Any, count: int) -> Preview:
    """Return a preview of the first examples of a stream's next epoch.

    They are examples of the first batch, if the stream produces batches.
    """
    error: Exception | None = None
    columns: list[list[Array]] = []
    which = 'nothing was read'
    with _generators_kept():
        try:
            columns, which, error = _first_items(stream, count)
        except Exception as problem:  # noqa: BLE001 (it is shown)
            error = problem
    stages = described(stream)
    names: Sequence[str] = ()
    names = try_call(
        names, lambda: _names_behind(stream, label_source(stream.sources)))
    panels = _panels(stages[0], columns, which, names) if stages else []
    return Preview(f'{short(stream)}: {which}', panels, error)


def _first_items(stream: Any, count: int) -> tuple[
        list[list[Array]], str, Exception | None]:
    """Return the first examples of each source of a stream.

    Returns: the examples of each source, a text that says which examples they
        are, and the error that ended the reading, or None.
    """
    _refuse_used_up(stream)
    ours = copied_pipeline(stream, may_draw=True)
    pairs = list(zip(_streams(ours), _streams(stream), strict=True))
    source = _without_copies(ours)
    try:
        if stage_of(stream).stream.produces_examples:
            items: list[tuple[Any, ...]] = []
            error = _take(items, source.get_epoch_iterator(), count)
            columns = [list(map(shown_array, parts))
                       for parts in zip(*items, strict=True)]
            return columns, f'the first {len(items)} examples', error
        batch = next(source.get_epoch_iterator(), None)
        if batch is None:
            return [], 'no batches', None
        sizes = {try_call(1, count_rows, part) for part in batch}
        size = max(sizes, default=0)
        shown = f'the first {count} of {size}' if size > count else str(size)
        return ([_rows_of(part, count) for part in batch],
                f'{shown} examples of the first batch', None)
    finally:
        _close(pairs)


def _rows_of(part: Any, count: int) -> list[Array]:
    """Return the first rows of the data of a source in a batch."""
    try:
        return [shown_array(row) for row in islice(iterate_rows(part), count)]
    except TypeError:
        return [shown_array(part)]


def _refuse_used_up(stream: Any) -> None:
    """Raise ValueError if a preview would use up the data of a pipeline."""
    for one in _streams(stream):
        runs_in = try_call(None, getattr, one, 'runs_in')
        if runs_in is not None and not child_streams(one):
            raise ValueError(
                f'the batches of the stream come from {runs_in}, and a '
                'preview would take a batch away from the readers of the '
                'stream: preview the stream where its batches are made')
        if try_method(vars(one).get('dataset'), 'is_read_once'):
            raise _used_up()
        if _is_ordered_once(stage_of(one).scheme):
            raise _used_up('numbers of its iteration scheme')


def _is_ordered_once(scheme: object) -> bool:
    """Return whether a scheme, or a part of it, holds an iterator.

    A copy of the scheme would share the iterator.
    """
    return isinstance(scheme, Iterator) or (is_scheme(scheme) and any(map(
        _is_ordered_once, (
            *vars(scheme).values(), *parts_of_scheme(scheme)))))


def _used_up(what: str = 'data') -> ValueError:
    return ValueError(f'the {what} can be read only once, so a preview would '
                      'use them up: put them into a list')


def _streams(stream: Any) -> Iterator[Any]:
    """Yield the streams of a pipeline, outermost first."""
    yield stream
    for child in child_streams(stream):
        yield from _streams(child)


def _without_copies(stream: Any) -> Any:
    """Return a pipeline without the stages that only pass items on.

    A stage of worker processes is one of them, so the preview starts no
    process.
    """
    stage = stage_of(stream)
    inputs = list(map(_without_copies, stage.inputs))
    if stage.passes_items_on and len(inputs) == 1:
        return inputs[0]
    if inputs:
        stage.replace_inputs(inputs)
    return stream


def _close(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Close the states of data sets that copies of streams have opened.

    `pairs`: pairs of a copy and the stream that was copied.
    """
    for ours, theirs in pairs:
        dataset = vars(ours).get('dataset')
        if dataset is None:
            continue
        kept = [id(state) for state in _states(theirs)]
        for state in {id(state): state for state in _states(ours)}.values():
            if state is not None and id(state) not in kept:
                close_state(dataset, state)


def _states(stream: Any) -> list[Any]:
    """Return the states of the data set that a stream and its epochs use."""
    shown = [vars(stream), *[
        epoch.attributes for _, epoch in stage_of(stream).holders]]
    return [attributes['data_state'] for attributes in shown
            if 'data_state' in attributes]


@contextmanager
def _generators_kept() -> Iterator[None]:
    """Restore the global random generators at the end of a block."""
    python = random.getstate()
    state: Any = numpy.random.get_state(legacy=False)
    torch = sys.modules.get('torch')
    generator = vars(torch).get('default_generator') if torch else None
    drawn = None if generator is None else generator.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        numpy.random.set_state(state)
        if generator is not None:
            generator.set_state(drawn)


def _names_of(dataset: Any) -> Sequence[str]:
    """Return the names of a data set's classes; () if there are none."""
    names = try_call(None, getattr, dataset, 'class_names')
    return list(map(str, names)) if isinstance(names, (list, tuple)) else ()


def _names_behind(stream: Any, label: str | None) -> Sequence[str]:
    """Return the class names of the source that holds classes.

    They come from the data set, or from the stage that encodes the classes.
    Other stages are assumed to keep the numbers of the classes.
    """
    if label is None or label not in stream.sources:
        return ()
    encoded = vars(stream).get('parameters')
    if try_call(None, lambda: encoded.source) == label:
        return _names_of(encoded)
    dataset = vars(stream).get('dataset')
    if dataset is not None:
        return (_names_of(dataset)
                if label_source(dataset.sources) == label else ())
    found = [_names_behind(child, label) for child in child_streams(stream)]
    return found[0] if found and all(
        names == found[0] for names in found) else ()


def label_source(sources: Sequence[str]) -> str | None:
    """Return the name of the source that holds classes; None if none does."""
    return next((name for name in LABELS if name in sources), None)


def _panels(stage: Described, columns: Sequence[list[Array]], which: str,
            names: Sequence[str] = ()) -> list[Panel]:
    """Return a panel for each source.

    `columns`: the examples of each source.
    `which`: text that says which examples they are.
    `names`: names of the classes.
    """
    by_source = {source.name: examples for source, examples in zip(
        stage.sources, columns, strict=False)}
    label = label_source(tuple(by_source))
    found = []
    for source in stage.sources:
        axes = source.axes or ()
        found.append(Panel(
            source.name, by_source.get(source.name, []), (), which,
            axes[-2:] == ('height', 'width'),
            names if source.name == label else ()))
    if label is not None:
        _add_captions(found, label)
    return found


def _add_captions(panels: list[Panel], label: str) -> None:
    """Set the captions of the other panels to the classes of the examples.

    `label`: name of the source that holds the classes.
    """
    classes = next(panel for panel in panels if panel.name == label)
    if classes.counts and not any(
            example.dtype.kind == 'f' for example in classes.examples):
        captions = [classes.name_of(example.item()) if classes.is_single
                    else cell for example, cell in zip(
                        classes.examples, classes.cells, strict=True)]
        for panel in panels:
            if panel is not classes and len(panel.examples) == len(captions):
                panel.label(captions)
