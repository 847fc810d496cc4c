"""What fitted stages share: reading the training data, saving parameters."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy

from fuel.transformers.source_names import as_tuple_of_names
from fuel.typing import StreamLike
from fuel.utils.atomic_files import atomic_path
from fuel.utils.progress import progress

Parameters = TypeVar('Parameters')

FORMAT = 1
# Single examples are gathered into batches of this size to be fitted.
GATHERED = 256


def batches_of(data_stream: StreamLike, source: str,
               label: str) -> Iterator[Any]:
    """Yield the batches of a source in one epoch, examples in batches.

    How far the epoch has come is shown under a label.
    """
    place = list(data_stream.sources).index(source)
    items = data_stream.get_epoch_iterator()
    try:
        count: int | None = len(items)  # type: ignore[arg-type]
    except TypeError:
        count = None
    gathered: list[Any] = []
    with progress(label, count, delay=True) as bar:
        for item in items:
            bar.advance(1)
            if not data_stream.produces_examples:
                yield item[place]
                continue
            gathered.append(item[place])
            if len(gathered) == GATHERED:
                yield numpy.stack(gathered)
                gathered.clear()
    if gathered:
        yield numpy.stack(gathered)


def save_parameters(path: str | os.PathLike[str], kind: str,
                    parameters: Any) -> None:
    """Save a dataclass as JSON, replacing the file as a whole."""
    text = json.dumps({'fuel': kind, 'format': FORMAT, **asdict(parameters)},
                      sort_keys=True, indent=1)
    with atomic_path(os.fspath(path)) as temporary, open(
            temporary, 'w', encoding='utf-8') as file:
        file.write(f'{text}\n')


def load_parameters(path: str | os.PathLike[str], kind: str,
                    build: Callable[[Mapping[str, Any]], Parameters]
                    ) -> Parameters:
    """Return the parameters in a file; ValueError if it holds others."""
    name = os.fspath(path)
    try:
        with open(name, encoding='utf-8') as file:
            found = json.load(file)
        if found['fuel'] != kind or found['format'] != FORMAT:
            raise ValueError(f'it holds {found["fuel"]!r}, format '
                             f'{found["format"]!r}')
        return build(found)
    except FileNotFoundError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f'{name} does not hold the parameters of {kind}, '
                         f'format {FORMAT}: {error}') from error


def chosen_source(source: str | None,
                  which_sources: Sequence[str] | str | None,
                  default: str) -> str:
    """Return the one source to fit to, named in either way."""
    if which_sources is None:
        return default if source is None else source
    names = as_tuple_of_names(which_sources)
    if source is not None or len(names) != 1:
        raise ValueError(
            'parameters are fitted to one source: name it with source=..., '
            f'got which_sources={which_sources!r} and source={source!r}')
    return str(names[0])


def missing_parameters(stage: str, function: str) -> TypeError:
    """Return the error that a stage was built without fitted parameters."""
    return TypeError(
        f'{stage} needs parameters: fit them to the training stream with '
        f'parameters = {function}(stream), then write '
        f'stream.apply({stage}, parameters)')
