"""Stages that make none, one or several items of each item they read."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NoReturn

from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import can_seek, length_of
from fuel.epochs.stage import stage_of
from fuel.epochs.state import position_of
from fuel.exceptions import UnknownOrderError
from fuel.iterator import DataIterator
from fuel.sharding.asking import StageEpoch
from fuel.sharding.made import Made
from fuel.sharding.order import ENDLESS, EpochOrder, ItemPart, Unordered
from fuel.sharding.places import ItemPlace
from fuel.sharding.planned import seek
from fuel.sharding.stage_orders import OrderPlan
from fuel.transformers.base import as_tuple, missing
from fuel.transformers.leftovers import LazyPieces, LeftoverStage, Pieces
from fuel.typing import Batch, Request, StreamLike
from fuel.utils.checks import not_negative
from fuel.utils.overrides import is_own

# Marks the end of an item's pieces; None may be a wrong piece of a user's.
_END = object()


class PieceOrder(EpochOrder):
    """The order of pieces, if each item has the same number of them.

    Each piece is made of all rows of its item.

    `times`: number of pieces of an item.
    `is_single`: whether the pieces are single examples.
    `name`: name of the stage.
    """

    def __init__(self, below: EpochOrder, times: int, is_single: bool,
                 name: str) -> None:
        self.inputs = below,
        self.times = times
        self.is_single = is_single
        self.name = name

    @property
    def num_items(self) -> Any:
        """The number of pieces."""
        count = self.inputs[0].num_items
        return count and count * self.times

    @property
    def unsized(self) -> str:
        """The reason why a piece's rows are unknown, '' if they are known."""
        if self.is_single and self.inputs[0].is_single:
            return ''
        return (f'which rows a piece of {self.name} has is not known, since '
                'expand makes it')

    def size(self, item: int) -> int:
        """Raise an error unless a piece is a single example."""
        if self.unsized:
            raise UnknownOrderError(self.unsized)
        return 1

    def make(self, item: int) -> Made:
        """Return all rows that a piece is made of."""
        number, _ = self.find(item)
        if not self.times or self.inputs[0].count_to(number + 1) <= number:
            raise IndexError(f'the epoch has no item {item}')
        return super().make(item)

    def find(self, item: int) -> tuple[int, int]:
        """Return the item of a piece, and the piece's number in the item."""
        return divmod(item, self.times) if self.times else (0, 0)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        if not self.times:
            return
        for item, places in groupby(
                self.inputs[0].places_of(
                    dataset, row, -(-stop // self.times)),
                attrgetter('item')):
            offsets = [place.offset for place in places]
            for piece in range(item * self.times, (item + 1) * self.times):
                for offset in offsets:
                    yield ItemPlace(piece, offset)

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the item that a piece is made of."""
        return ItemPart(0, (self.find(item)[0],)),


class PiecePlan(OrderPlan):
    """Makes a piece by its number, from a stream that can seek.

    Each item has the same number of pieces.
    """

    # The item whose pieces are made, and how many of them were made.
    _number = -1
    _used = 0

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return whether pieces have random access."""
        return (stream.pieces_of_each() is not None and not (
                stage_of(stream.data_stream).most_skipped)
                and can_seek(stream.data_stream))

    @staticmethod
    def resume(stream: Any, leftover: Any) -> None:
        """Restore the left-overs that the plan needs in a stage."""
        stream.resume_plan(leftover)

    def read(self, item: int) -> Any:
        """Return a piece."""
        number, piece = self.order.find(item)
        is_new = number != self._number or piece < self._used
        if is_new:
            seek(self.children[0], number)
        self._number = -1
        found = self.stream.read_piece(number, piece, is_new)
        self._number, self._used = number, piece + 1
        if self.is_asked:
            self.examples = self.stream.source_examples([item])
        return found

    def end(self, item: int) -> None:
        """Move the stream to where the stage leaves it at the end."""
        if self.num_items:
            child = self.children[0]
            seek(child, self.order.find(self.num_items)[0])
            position_of(child)

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the input's position at a piece."""
        child = self.children[0]
        number, used = self.order.find(item)
        besides = self.stream.inherited_leftover_at(number)
        seek(child, number)
        return ({**(besides or {}), 'used': used} if used else besides,
                [position_of(child)])


class Expand(LeftoverStage):
    """A stage that makes none, one or several items of each item it reads.

    Subclasses only implement :meth:`expand`. This class handles pieces that
    are not yet delivered, saved states, errors and several epochs at a time.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream to read.
    produces_examples : bool, optional
        Whether the pieces are examples (as opposed to batches). Defaults to
        what `data_stream` produces.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.Transformer`.

    See Also
    --------
    Transformer : Makes one item of each.
    Filter : Leaves out items.

    Notes
    -----
    A state holds no data, but the number of an item's pieces that were
    delivered. Restoring it calls :meth:`expand` again with that item. So
    :meth:`expand` must make equal pieces of equal items. To draw at random,
    derive from `Expand` first and from :class:`SeededTransformer` second: its
    generators depend on the item, not on the piece.

    An error in :meth:`expand` is raised in the place of a piece. The stage,
    or one that is restored there, then continues with the next item. If
    :meth:`expand` returned a sequence, it continues with the next piece. With
    ``on_error='skip'``, all pieces of an item are made before the first of
    them is delivered, and an item that fails is left out with all its pieces.

    Ranks share the items that the stage reads, and each rank has a state of
    its own. If :meth:`num_pieces` is known without an item, they share the
    pieces instead.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Words(Expand):
    ...     def expand(self, item):
    ...         for word in item[0].split():
    ...             yield (word,)
    >>> stream = DataStream(IterableDataset(['to be', '', 'or not']))
    >>> [word for word, in Words(stream)]
    ['to', 'be', 'or', 'not']
    """

    one_to_one = False
    __fuel_plan__: type[OrderPlan] = PiecePlan
    makes_pieces = True
    _kept: tuple[Pieces, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[:cls.__mro__.index(Expand)]:
            if is_own(base) and not issubclass(base, Expand) and (
                    'get_leftover' in vars(base)):
                raise TypeError(
                    f'Expand must come before {base.__name__} among the '
                    f'bases of {cls.__name__}, so that a state holds the '
                    f'left-overs of both: class {cls.__name__}(Expand, '
                    f'{base.__name__})')

    def __init__(self, data_stream: StreamLike,
                 produces_examples: bool | None = None,
                 **kwargs: Any) -> None:
        if produces_examples is None and (
                kwargs.get('iteration_scheme') is None):
            produces_examples = data_stream.produces_examples
        super().__init__(data_stream, produces_examples, **kwargs)

    def expand(self, item: Batch) -> Iterable[Any]:
        """Return the pieces of an item.

        Parameters
        ----------
        item : tuple
            The data of each source of `data_stream`.

        Returns
        -------
        iterable of tuple
            Each piece has the data of each source of the stage. A generator
            makes a piece when it is requested; after a state is restored, it
            makes the earlier pieces of the item again. A sequence, such as a
            list, is indexed by the number of the piece.
        """
        raise NotImplementedError(missing(self, 'expand'))

    def num_pieces(self, item: Batch | None = None) -> int | None:
        """Return the number of pieces of an item, if it is known beforehand.

        A hook for stages that know the number. Such a stage has a length, and
        ranks share its pieces: each rank reads the items that its own pieces
        are made of.

        Parameters
        ----------
        item : tuple, optional
            The item, as :meth:`expand` gets it. Defaults to None: return the
            number of pieces that every item has.

        Returns
        -------
        int or None
            None, the default, if it is not known.
        """
        return None

    def get_data(self, request: Request = None) -> Any:
        """Return the next piece.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while True:
            if not self._kept:
                self._keep_next()
            pieces = self._kept[0]
            try:
                piece = next(pieces.made, _END)
            except Exception as error:  # noqa: BLE001 - raised there
                if isinstance(pieces.parts, Sequence):
                    # The other pieces can still be made.
                    pieces.used += 1
                else:
                    self._kept = ()
                self._raise_explained(error, pieces.item)
            except BaseException:
                # An interruption, such as Ctrl-C, ends only a generator.
                self._kept = ()
                if isinstance(pieces.parts, Sequence):
                    pieces.skip(pieces.used)
                    self._kept = (pieces,)
                raise
            if piece is not _END:
                pieces.used += 1
                return piece if type(piece) is tuple else self._checked(piece)
            self._kept = ()
            if pieces.error is not None:
                raise pieces.error

    def _keep_next(self) -> None:
        """Read an item, and begin with its pieces."""
        position = position_of(self.child_epoch_iterator)
        before = self.inherited_leftover()
        item = self._pull()
        try:
            size = None if type(self).num_pieces is Expand.num_pieces else (
                self.pieces_of_each(item))
            found = self.expand(item)
            if type(found) is not LazyPieces:
                found = self._as_pieces(found, size)
            child = self.child_epoch_iterator
            if isinstance(child, DataIterator) and (
                    child.epoch.limit is not None):
                # An item that is left out must not be delivered in part.
                found = list(map(self._checked, found))
        except Exception as error:  # noqa: BLE001 - raised there
            self._raise_explained(error, item)
        self._kept = Pieces(position, found, size, before, item),
        if self._asked is not None:
            self._kept[0].note(child)

    def examples_read(self) -> SourceExamples | None:
        """Return the examples of the item whose pieces are made; None if they
        are not known."""
        found = self._kept[0].examples if self._kept else None
        return found and found[0]

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the item that the last piece was made of."""
        found = self.examples_read()
        if found is None or (
                self.produces_examples and self.data_stream.produces_examples):
            return found
        return found.unordered(stage_of(self).name)

    def _as_pieces(self, found: Any, size: int | None) -> Any:
        """Return the checked result of :meth:`expand`.

        It is a sequence, or an iterator that makes pieces on demand.
        """
        if not isinstance(found, Iterable):
            raise TypeError(
                f'expand of {type(self).__name__} must return the pieces of '
                f'an item, got {found!r:.80} ({type(found).__name__}): write '
                'it as a generator, with `yield` for each piece')
        if not isinstance(found, Sequence):
            return found if size is None else self._counted(found, size)
        if size not in (None, len(found)):
            raise self._wrong_count(size, str(len(found)))
        return found

    def _counted(self, pieces: Iterable[Any], size: int) -> Iterator[Any]:
        """Yield pieces; raise ValueError unless there are `size` of them."""
        count = 0
        for piece in pieces:
            count += 1
            if count > size:
                raise self._wrong_count(size, 'more')
            yield piece
        if count < size:
            raise self._wrong_count(size, str(count))

    def _wrong_count(self, size: object, made: str) -> ValueError:
        return ValueError(
            f'num_pieces of {type(self).__name__} says that the item makes '
            f'{size} pieces, but expand makes {made}')

    def _checked(self, piece: Any) -> Any:
        """Return a piece that is a list or an iterator of its parts."""
        made = as_tuple(piece)
        if isinstance(made, (tuple, list)):
            return made
        raise TypeError(
            f'a piece of {type(self).__name__} must be a tuple with the data '
            f'of each source, got {made!r:.80} ({type(made).__name__}): if '
            'it is the data of the only source, put it into a tuple, '
            '(data,)')

    def _raise_explained(self, error: Exception, item: Batch) -> NoReturn:
        """Raise an error of :meth:`expand` with a note of its examples."""
        explained = self._explained(
            error, self.child_epoch_iterator, item, 'expand')
        if explained is error:
            raise error
        raise explained from error

    def get_leftover(self) -> Any:
        """Return the number of pieces of the item that were delivered."""
        if stage_of(self).draws == 'in_order':
            raise TypeError(
                f'the position of {type(self).__name__} cannot be saved as '
                'plain data: taking it up makes the pieces of an item again, '
                'but it draws from rng, so they would be others. Derive the '
                'class from Expand and SeededTransformer, and draw from '
                'generator()')
        leftover = super().get_leftover()
        besides = (self.inherited_leftover() if leftover is None
                   else self._kept[0].before)
        if not isinstance(besides, dict | None) or 'used' in (besides or {}):
            raise TypeError(
                f'the position of {type(self).__name__} cannot be saved: '
                'get_leftover of the class behind Expand among its bases '
                "must return a dict or None, without the key 'used', which "
                f'counts the pieces of an item, got {besides!r:.80}')
        return besides if leftover is None else {
            **(besides or {}), **leftover}

    def pieces_of_each(self, item: Batch | None = None) -> int | None:
        """Return the checked result of :meth:`num_pieces`."""
        count = self.num_pieces(item)
        name = f'num_pieces of {type(self).__name__}'
        return None if count is None else not_negative(name, count)

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        length, count = length_of(self.data_stream), self.pieces_of_each()
        return None if length is None or count is None else length * count

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        times = self.pieces_of_each()
        if times is None:
            return Unordered(
                f'the stage {type(self).__name__} makes pieces of each item, '
                'and how many is not known before it is read: let '
                'num_pieces() return it where it is called without an item')
        return PieceOrder(inputs[0], times, bool(self.produces_examples),
                          type(self).__name__)

    def read_piece(self, number: int, piece: int, is_new: bool) -> Any:
        """Return a piece of an item by its number, for a plan.

        `number`: number of the item.
        `is_new`: whether to read the item, which is the child's next item.
        """
        if is_new:
            self._kept = ()
            besides = self.inherited_leftover_at(number)
            if besides is not None:
                self.resume_plan(besides)
            self._keep_next()
        pieces = self._kept[0]
        while pieces.used <= piece:
            found = self.get_data()
            if self._kept[:1] != (pieces,):
                raise self._wrong_count(self.num_pieces(), str(pieces.used))
        return found

    def inherited_leftover_at(self, number: int) -> Any:
        """Return the inherited left-overs of the position before an item."""
        besides = self.inherited_leftover()
        # A seeded stage counts the items that it reads.
        return besides and {**besides, 'item': number}
