"""A log of the examples from which each item of an epoch is made."""
from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any, BinaryIO, Unpack

from fuel.epochs.epoch import asking, asking_examples
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import datasets_of, source_examples
from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.sharding.made import Joined, Made, Merged, Packed, example_ids
from fuel.streams.arguments import StreamOptions
from fuel.streams.stage import StreamStage
from fuel.transformers.base import ALL, Transformer
from fuel.typing import Batch, State, StreamLike
from fuel.utils.checks import saved_count


def log_examples(stream: StreamLike, path: str | os.PathLike[str],
                 ) -> Any:
    """Log the examples from which each item is made, as lines of JSON.

    Each line has the number of the epoch since the first, the number of the
    item among those that the rank gets in the epoch, the rank if the stream
    takes the share of one, and the examples of the item's rows: pairs of the
    number of the data set and of the row, as
    :class:`~fuel.transformers.MarkExamples` counts them. The data do not
    change. Steps that are left out have no line.

    Parameters
    ----------
    stream : AbstractDataStream
        The whole pipeline, but not that of a server.
    path : path-like
        The file. A rank writes a file of its own: ``log.jsonl`` becomes
        ``log-3.jsonl`` for rank 3.

    Returns
    -------
    AbstractDataStream
        A stream of the same items. Its states have the number of lines, so
        save and restore those: a restored stream cuts the file back to the
        lines of its state, and goes on without gaps and without doubles.

    Raises
    ------
    FileExistsError
        By the epoch iterator, if there is a file already and no state was
        restored.
    ValueError
        By the epoch iterator, if the file has fewer lines than the state of
        the rank.

    Notes
    -----
    If another number of ranks takes up a state, each rank cuts its own file
    back, and goes on with a number of the item that is not there yet; rank 0
    cuts the files of ranks that are no more, if it has them. A file that is
    missing, as on another machine, is begun anew. Items that
    :meth:`~fuel.streams.AbstractDataStream.iterate_from` reads and drops have
    lines too.

    If it is not known which row comes from which example, the line has
    ``"of_item"``, the name of the stage that may have changed the rows, and
    all examples of the item; if they are not known either, ``"examples"`` is
    null. A row that :class:`~fuel.transformers.sequences.Pack` makes has a
    list with the example of each segment. Items that
    :class:`~fuel.transformers.image.MixUp` and
    :class:`~fuel.transformers.image.CutMix` mix have ``"partners"``.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.export import log_examples
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(['a', 'b', 'c']), batch_size=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'log.jsonl')
    ...     for batch in log_examples(stream, path):
    ...         pass
    ...     with open(path) as file:
    ...         print(file.read(), end='')
    {"epoch": 0, "item": 0, "examples": [[0, 0], [0, 1]]}
    {"epoch": 0, "item": 1, "examples": [[0, 2]]}
    """
    return ExampleLog(stream, path)


class _Lines:
    """The lines of a log.

    `count`: number of lines.
    `epoch`: number of the epoch that began last.
    `is_begun`: whether an epoch has begun since a state was restored.
    `is_open`: whether the file has this number of lines.
    `is_restored`: whether the numbers are from a state.
    `saved_by`: the rank, and the number of ranks, that saved the state; None
        if they are the present ones.
    """

    def __init__(self) -> None:
        self.count = 0
        self.epoch = -1
        self.is_begun = self.is_open = self.is_restored = False
        self.saved_by: tuple[int, int] | None = None

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the numbers of a state."""
        self.count, self.epoch = [
            saved_count({name: saved[name] + 1}, name) - 1
            for name in ('lines', 'epoch')]
        self.saved_by = saved_count(saved, 'rank'), saved_count(saved, 'ranks')
        self.is_open, self.is_restored = False, True

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Others may have written since the pickle was made.
        self.is_restored |= self.is_open
        self.is_open = False

    def begin(self, path: str, is_resumed: bool) -> int:
        """Begin an epoch, and return its number.

        `path`: path of the file; '' if nothing will be written.
        `is_resumed`: whether it is the epoch of the restored state.
        """
        if not (self.is_open or self.is_restored) and (
                path and os.path.exists(path)):
            raise FileExistsError(
                f'{path} exists: restore the state to which it belongs, '
                'to go on behind it, or log to another file')
        if not is_resumed:
            self.epoch += 1
            if self.is_begun and not self.is_open:
                # Another process may have written the epoch before.
                self.count = -1
        self.is_begun = True
        return self.epoch

    def count_of(self, share: tuple[int, int]) -> int:
        """Return the number of lines of a rank's file; -1 if only the number
        of another rank's file is known."""
        return self.count if self.saved_by in (None, share) else -1

    def open(self, path: str, share: tuple[int, int],
             start: tuple[int, int]) -> None:
        """Cut a file to the lines that were written before an item.

        `path`: path of the file of all ranks.
        `share`: the rank and the number of ranks.
        `start`: number of the epoch and of the item.
        """
        if self.is_open:
            return
        if self.saved_by is not None and share[0] == 0:
            self._cut_others(path, share[1], self.saved_by[1], start)
        path = rank_file(path, *share)
        count, self.count = self.count_of(share), 0
        if os.path.exists(path):
            with open(path, 'r+b') as file:
                self.count, end = _lines_before(file, path, count, start)
                file.truncate(end)
        self.is_open, self.saved_by = True, None

    def _cut_others(self, path: str, ranks: int, before: int,
                    start: tuple[int, int]) -> None:
        """Cut the files of ranks that are no more.

        `before`: the number of ranks that saved the state.
        """
        others = [path] if ranks else []
        most = max(ranks, before)
        for rank in itertools.count(ranks) if most else ():
            other = rank_file(path, rank, most)
            # There may be some of a run that saved no state.
            if rank >= most and not os.path.exists(other):
                break
            others.append(other)
        for other in filter(os.path.exists, others):
            with open(other, 'r+b') as file:
                file.truncate(_lines_before(file, other, -1, start)[1])

    def write(self, path: str, item: dict[str, Any]) -> None:
        """Append a line on an item to a file."""
        line = json.dumps(item)
        with open(path, 'a', encoding='utf-8') as file:
            file.write(line + '\n')
        self.count += 1


def rank_file(path: str, rank: int, ranks: int) -> str:
    """Return the path of a rank's file.

    `path`: path of the file if there are no ranks.
    `ranks`: number of ranks; 0 if the stream takes no share.
    """
    plain = Path(path)
    return str(plain.with_name(
        f'{plain.stem}-{rank}{plain.suffix}')) if ranks else path


_HEAD = re.compile(rb'\{"epoch": (\d+), "item": (\d+), ')


def _lines_before(file: BinaryIO, path: str, count: int,
                  start: tuple[int, int]) -> tuple[int, int]:
    """Return the number of lines of a file that were written before an item,
    and their size in bytes.

    `count`: the number that the state has; -1 if it is that of another rank,
        which may have got more items or fewer.
    """
    found = end = 0
    for line in file:
        head = _HEAD.match(line)
        is_later = head is not None and start <= (
            int(head[1]), int(head[2]))
        if is_later and not found:
            # The file was begun after the state had been saved.
            return 0, 0
        if found == count or (is_later and count < 0):
            break
        if not line.endswith(b'\n'):
            break
        found, end = found + 1, end + len(line)
    if found < count:
        raise ValueError(
            f'{path} has {found} lines, but {count} had been written when the '
            'state was saved: it belongs to another run, or was cut')
    return found, end


class LogStage(StreamStage):
    """The stage of a log, whose states also count its lines between two
    epochs."""

    __slots__ = ()

    def copy(self, is_sought: bool | None = False) -> Any:
        """Return a copy that has no lines yet."""
        ours = super().copy(is_sought)
        vars(ours).update(written=_Lines(), replayed=_Lines())
        return ours

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running."""
        return {**super().state_between(epoch),
                'leftover': {**self.stream.get_leftover(),
                             'epoch': self.stream.lines.epoch}}

    def load(self, state: State) -> None:
        """Load a checked state."""
        super().load(state)
        if state['leftover'] is not None:
            self.stream.lines.is_begun = False
            self.stream.set_leftover(state['leftover'])


class ExampleLog(Transformer):
    """A stream whose items are logged; see :func:`log_examples`."""

    __fuel_stage__ = LogStage
    __fuel_passes_on__ = True
    __fuel_counts__ = True
    one_to_one = True
    keeps_rows = True
    keeps = ALL
    unsaved_arguments = ('path',)
    epoch_attributes = (*Transformer.epoch_attributes, '_datasets', '_number',
                        '_next', '_offset')
    # The data sets that are read, in the order of their numbers.
    _datasets: tuple[Any, ...] = ()
    # Number of the epoch, and of its item that has the next line.
    _number = -1
    _next = 0
    # It is added to the numbers of items, so that they rise if other ranks
    # share the rest of an epoch; None before the first line.
    _offset: int | None = None

    def __init__(self, data_stream: StreamLike,
                 path: str | os.PathLike[str],
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(data_stream, data_stream.produces_examples, **kwargs)
        self.path = os.fspath(path)
        self.written, self.replayed = _Lines(), _Lines()

    def start_epoch(self) -> None:
        """Ask the stages below for the examples of each item."""
        self._number = self.lines.begin(
            '' if asking.is_replay else self.rank_path,
            stage_of(self).resumed() is not None)
        self._next, self._offset = 0, None
        self._datasets = tuple(datasets_of(self.data_stream))
        with asking_examples():
            super().start_epoch()

    @property
    def lines(self) -> _Lines:
        """The lines of the log; of items that are replayed, the numbers of
        their epochs (_Lines)."""
        return self.replayed if asking.is_replay else self.written

    @property
    def rank_path(self) -> str:
        """The path of the rank's file (str)."""
        return rank_file(self.path, *self._share())

    def _share(self) -> tuple[int, int]:
        """Return the rank and the number of ranks, which is 0 if the stream
        takes no share."""
        shard = stage_of(self).shard
        return (0, 0) if shard is None else (shard.rank, shard.num_shards)

    def _pull(self) -> Any:
        """Return the next data of `data_stream`."""
        try:
            return super()._pull()
        except StopIteration:
            # No line of the rest of a restored epoch has cut the file, if
            # other ranks get that rest.
            self._open()
            raise

    def _open(self) -> None:
        """Cut the file to the lines of earlier items."""
        if not asking.is_replay:
            self.lines.open(
                self.path, self._share(), (self._number, self._next))

    def transform_example(self, example: Batch) -> Batch:
        """Log an example, and return it."""
        return self.transform_batch(example)

    def transform_batch(self, batch: Batch) -> Batch:
        """Log the examples of a batch, and return the batch."""
        child = self.child_epoch_iterator
        self._open()
        item = self._next
        if isinstance(child, EpochIterator):
            item = child.epoch.position // child.epoch.step - 1
            if self._offset is None:
                self._offset = max(0, self._next - item)
            item += self._offset
        if not asking.is_replay:
            rank, ranks = self._share()
            self.lines.write(self.rank_path, {
                'epoch': self._number, 'item': item,
                **({'rank': rank} if ranks else {}),
                **self._described(source_examples(child, 1))})
        self._next = item + 1
        return batch

    def _described(self, found: SourceExamples | None) -> dict[str, Any]:
        """Return the examples of an item as plain data."""
        if found is None:
            return {'examples': None}
        numbers = {id(dataset): number
                   for number, dataset in enumerate(self._datasets)}
        if not found.in_order:
            return {'of_item': found.stage, 'examples': [
                _pair(dataset, row, numbers)
                for dataset, row in example_ids(found.made)]}
        partners = _listed(found.made, numbers, is_partner=True)
        return {'examples': _listed(found.made, numbers), **(
            {'partners': partners} if any(partners) else {})}

    def get_leftover(self) -> dict[str, int]:
        """Return the number of lines, those of the epoch and of the next
        item, and the share."""
        rank, ranks = share = self._share()
        # Items that are replayed may have been written, or not.
        lines = -1 if asking.is_replay else self.lines.count_of(share)
        return {'lines': lines, 'epoch': self._number,
                'item': self._next, 'rank': rank, 'ranks': ranks}

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Restore the numbers; the next line cuts the file."""
        self.lines.restore(leftover)
        self._number = self.lines.epoch
        self._next, self._offset = saved_count(leftover, 'item'), None


def _pair(dataset: object, row: Any, numbers: dict[int, int]) -> list[Any]:
    """Return the number of a data set and a row of it, as plain data."""
    return [numbers.get(id(dataset), 0), int(row) if hasattr(
        row, '__index__') else str(row)]


def _listed(made: Made, numbers: dict[int, int], is_partner: bool = False,
            ) -> list[Any]:
    """Return an entry for each row of an item.

    `is_partner`: whether to return the examples mixed with those of the rows;
        an entry is None if there is none.
    """
    if isinstance(made, Merged):
        if made.kind == 'mixed':
            return _listed(made.parts[int(is_partner)], numbers)
        return _listed(made.parts[0], numbers, is_partner)
    if isinstance(made, Packed):
        return [None if is_partner else [
            entry for part in made.parts for entry in _listed(part, numbers)]]
    if isinstance(made, Joined):
        return [entry for part in made.parts
                for entry in _listed(part, numbers, is_partner)]
    return [None if is_partner else _pair(dataset, row, numbers)
            for dataset, row in example_ids(made)]
