"""A user's function as a stage."""
from __future__ import annotations

import collections.abc
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self, Unpack

from fuel.describe.source_types import SourceTypes, types_of
from fuel.sharding.shard_pipeline import WholeBatches
from fuel.streams.arguments import StreamOptions
from fuel.transformers.sourcewise import AgnosticTransformer
from fuel.transformers.base import as_tuple, check_count
from fuel.transformers.ragged import pick_examples
from fuel.transformers.seeded import SeededTransformer, check_kind_of_draws
from fuel.transformers.source_names import as_names, item_of
from fuel.typing import Batch, StreamLike
from fuel.utils.checks import in_order, takes_one
from fuel.utils.overrides import is_own
from fuel.utils.sparse import iterate_rows
from fuel.workers.global_random import (
    Seeds, SetsGenerators, call_with_seeds)


class Mapping(AgnosticTransformer):
    """Applies a function to each example or batch.

    Parameters
    ----------
    mapping : callable
        Takes a tuple with the data of each source, and returns one. It may
        change the data in place.
    add_sources : tuple of str, optional
        If given, the result of the function is appended to the data under
        these names. Otherwise it replaces the data.
    mapping_accepts : {list, dict}, optional
        With dict, the function takes and returns a dict whose keys are
        names of sources. Defaults to list, which means a tuple.
    pure : bool, optional
        Whether the function gives the same result for the same data, in any
        order and in several threads at a time. Then `MultiThreading` calls
        it in several threads. Defaults to False.
    axis_labels : dict or 'kept', optional
        The axis labels of the results; ``'kept'`` means those of
        `data_stream`, for a function that keeps the axes. Defaults to None:
        nothing is known.
    seed : int, optional
        Seeds the global generators of Python, NumPy and PyTorch for each
        item, so that the function can draw from them; see below. Defaults to
        None: they are not seeded.
    draws : {'item', 'example'}, optional
        What the draws belong to, with a `seed`: the number of the item, or,
        of a stream of examples, the example of the data set. See
        :class:`SeededTransformer`. Defaults to ``'item'``.
    iteration_scheme
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If `mapping_accepts` is neither list nor dict; if a `pure` function
        gets a `seed`; if `draws` is ``'example'`` without a `seed`, or the
        stream makes batches, or hides the examples of its rows.
    TypeError
        If a class that is derived from this one gets a `seed`; when data are
        requested, if the function returns None.
    NotImplementedError
        By `shard`, and when data are requested, if there is a `seed` and
        ranks split each batch.
    RuntimeError
        When data are requested, if there is a `seed` and the function is the
        first to import PyTorch, and draws from it.

    Notes
    -----
    With a `seed` the function may draw from ``random``, ``numpy.random`` and,
    if PyTorch is imported, its generator on the CPU. Before each item these
    generators are seeded from `seed`, the epoch and the number of the item.
    After the item their states are restored, so your program draws the same
    numbers as without the stage. The function draws the same numbers after a
    resume, and with any number of workers and ranks, if it does not draw from
    anything else, such as a generator of its own. A function of batches needs
    whole batches: if ranks split each batch (``by='example'``), apply it to
    examples, before they are batched.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset({'x': [1, 2, 3]}))
    >>> squares = Mapping(stream, lambda data: (data[0] ** 2,),
    ...                   add_sources=('square',))
    >>> squares.sources
    ('x', 'square')
    >>> list(squares.get_epoch_iterator())
    [(1, 1), (2, 4), (3, 9)]

    >>> import random
    >>> def jitter(data):
    ...     return (data[0] + random.random(),)
    >>> list(Mapping(stream, jitter, seed=3)) == list(
    ...     Mapping(stream, jitter, seed=3))
    True
    """

    # A mapping may change the rows of a batch.
    keeps_rows = False
    pure = False
    draws: str | None = None
    unsaved_arguments = ('pure',)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return a new stage, of the class SeededMapping if it has a seed."""
        kind: Any = SeededMapping if cls is Mapping and (
            kwargs.get('seed') is not None) else cls
        stage: Self = super().__new__(kind, *args, **kwargs)
        return stage

    def __init__(self, data_stream: StreamLike, mapping: Callable[[Any], Any],
                 add_sources: Sequence[str] | None = None,
                 mapping_accepts: type = list, *, pure: bool = False,
                 seed: int | None = None, draws: str = 'item',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if draws != 'item' and seed is None:
            check_kind_of_draws(draws)
            raise ValueError(
                f'draws={draws!r} needs a seed: pass seed= too, so that the '
                'function draws from generators that the stage seeds')
        if seed is not None:
            raise TypeError(
                f'{type(self).__name__} takes no seed: pass a function to '
                'Mapping itself, or derive the class from SeededTransformer')
        if mapping_accepts not in (list, dict):
            raise ValueError('mapping_accepts must be list or dict, got '
                             f'{mapping_accepts!r}')
        if add_sources is not None:
            in_order('add_sources', add_sources)
            add_sources = as_names('add_sources', add_sources)
        if is_own(type(self)):
            takes_one('mapping', mapping, lambda: item_of(
                data_stream, mapping_accepts))
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)
        self.mapping = mapping
        self.add_sources = add_sources
        self.mapping_accepts = mapping_accepts
        if pure:
            self.pure = True

    # True once the first result of the function was checked.
    _is_checked = False

    def _get_sources(self) -> Any:
        sources = self.data_stream.sources
        if not self.add_sources:
            return sources
        return tuple(sources) + tuple(self.add_sources)

    def known_types(self) -> SourceTypes:
        """Return the known types of the sources that the function keeps."""
        return types_of(self.data_stream) if self.add_sources else {}

    def _check_first(self, image: object, came: int) -> None:
        """Warn if the function does not return one part for each source."""
        if hasattr(image, 'shape'):
            what = f'an array of shape {image.shape}'
        elif isinstance(image, (tuple, list)) and (
                len(image) != came and len(image) != len(
                    self.add_sources or self.sources)):
            what = f'a {type(image).__name__} of {len(image)}'
        elif isinstance(image, dict):
            what = 'a dict, for which to pass mapping_accepts=dict,'
        else:
            return
        text = (
            f'{self._returned(what)}: return (part,) with a comma even if '
            'there is one, and name parts that are new in add_sources')
        code = getattr(self.mapping, '__code__', None)
        if code is None:
            warnings.warn(text, stacklevel=2)
        else:
            # With the line where the function begins.
            warnings.warn_explicit(
                text, UserWarning, code.co_filename, code.co_firstlineno)

    @property
    def _function(self) -> str:
        name: str = getattr(self.mapping, '__qualname__',
                            type(self.mapping).__name__)
        return name

    def _returned(self, what: str) -> str:
        """Return a text on the function's result and the expected one."""
        sources = tuple(self.add_sources or self.sources)
        kind = 'dict' if self.mapping_accepts is dict else 'tuple'
        return (f'the function {self._function} of {type(self).__name__} '
                f'returned {what}, where a {kind} of {len(sources)} is '
                f'expected, one part for each of the sources {sources}')

    def _note_what_comes(self, error: Exception) -> None:
        """Add a note to an error; the note says what the function gets."""
        error.add_note(
            f'the function {self._function} gets '
            f'{item_of(self.data_stream, self.mapping_accepts)}'
            + ('' if self.mapping_accepts is dict else
               '; with mapping_accepts=dict, a dict'))

    def transform_any(self, data: Batch) -> Any:
        """Return an example or a batch with the function applied."""
        is_named = self.mapping_accepts is dict
        sources = self.data_stream.sources if (
            is_named or self.add_sources) else ()
        # Copied before the function runs, since it may change a list.
        kept = tuple(data)[:len(sources)] if self.add_sources else ()
        given: Any = data
        came = len(data)
        if is_named:
            check_count(data, sources)
            given = dict(zip(sources, data, strict=False))
        try:
            image = self.mapping(given)
        except (AttributeError, KeyError, TypeError) as error:
            self._note_what_comes(error)
            raise
        if image is None:
            raise TypeError(
                f"{self._returned('None')}: end it with return, also where "
                'it changes the data in place')
        if is_named:
            image = self._unname(image)
        else:
            image = as_tuple(image)
            if not self._is_checked:
                self._is_checked = True
                self._check_first(image, came)
        return kept + tuple(image) if self.add_sources else image

    def _unname(self, image: object) -> Any:
        """Return a tuple of the data that a dict has under the names."""
        if not isinstance(image, collections.abc.Mapping):
            return as_tuple(image)
        names = self.add_sources or self.sources
        missing = [name for name in names if name not in image]
        if missing:
            raise ValueError(
                f'the mapping must return a dict with the keys '
                f'{tuple(names)}, but among {tuple(image)} there is no '
                f'{missing[0]!r}: return all of these keys. Name new sources '
                f'in add_sources; to leave out sources, use FilterSources '
                f'after {type(self).__name__}')
        return tuple([image[name] for name in names])


class SeededMapping(SetsGenerators, WholeBatches, SeededTransformer, Mapping):
    """The class of `Mapping` with a seed."""

    whole = ('calls a function that draws for a batch',
             'put Mapping before the stage that makes batches, or ')

    def __init__(self, data_stream: StreamLike, mapping: Callable[[Any], Any],
                 add_sources: Sequence[str] | None = None,
                 mapping_accepts: type = list, *, pure: bool = False,
                 seed: int | None = None, draws: str = 'item',
                 **kwargs: Unpack[StreamOptions]) -> None:
        if pure:
            raise ValueError(
                'a function with a seed draws from generators that threads '
                'share, so it is not pure: leave out pure or seed')
        if draws == 'example' and not data_stream.produces_examples:
            raise ValueError(
                'a function of batches draws for a whole batch: for '
                "draws='example', put Mapping before the stage that makes "
                'batches')
        super().__init__(data_stream, mapping, add_sources, mapping_accepts,
                         seed=seed, draws=draws, **kwargs)

    def transform_any(self, data: Batch) -> Any:
        """Return an example or a batch with the function applied.

        The global generators are seeded for this item.
        """
        return call_with_seeds(
            Seeds.of(self._place()), super().transform_any, data)


# Errors and reports show this name; pickles have the qualified name.
SeededMapping.__name__ = Mapping.__name__


class SortMapping:
    """A function for :class:`Mapping` that sorts the examples of a batch.

    Parameters
    ----------
    key : callable
        Takes an example, a tuple with one item for each source, and returns
        the value to sort by.
    reverse : bool, optional
        Whether to sort in descending order. Defaults to False.

    Notes
    -----
    The order of examples with equal keys is kept. An array stays an array, a
    sparse batch stays a sparse batch, and other data become a list.

    Examples
    --------
    >>> by_length = SortMapping(lambda example: len(example[0]))
    >>> by_length((['ccc', 'a', 'bb'], [3, 1, 2]))
    (['a', 'bb', 'ccc'], [1, 2, 3])
    """

    def __init__(self, key: Callable[[Any], Any],
                 reverse: bool = False) -> None:
        self.key = key
        self.reverse = reverse

    def __call__(self, batch: Batch) -> tuple[Any, ...]:
        """Return a batch with its examples in sorted order."""
        keys = [self.key(example) for example in zip(
            *map(iterate_rows, batch), strict=True)]
        order = sorted(
            range(len(keys)), key=keys.__getitem__, reverse=self.reverse)
        return tuple([pick_examples(data, order) for data in batch])
