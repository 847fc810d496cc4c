"""Stages that mix the examples of a batch with one another, and the targets.

Random numbers are drawn for a whole batch: the share of its own data that each
example keeps, and the other example that it is mixed with. With
``draws='example'`` the share is drawn for each example.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

import numpy
from numpy.typing import NDArray

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.examples import joined, merged
from fuel.epochs.pipeline import source_examples
from fuel.epochs.stage import stage_of
from fuel.kernels.memory import empty
from fuel.sharding.shard_pipeline import WholeBatches
from fuel.transformers.axis_labels import ExpectsAxisLabels
from fuel.transformers.base import check_count
from fuel.transformers.image.base import BATCH_AXES
from fuel.transformers.options import MixerOptions, SeededOptions
from fuel.transformers.seeded import SeededTransformer
from fuel.transformers.source_names import check_known, labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import Batch, StreamLike
from fuel.utils.checks import positive
from fuel.utils.masked import require_unmasked
from fuel.utils.overrides import declares


#: Rows and columns of a part of an image.
Part: TypeAlias = 'tuple[slice, slice]'


class ExampleMixer(WholeBatches, SeededTransformer, SourcewiseTransformer):
    """Base of the stages that mix the examples of a batch.

    Subclasses implement ``_mix(arrays, share, partners, generator)``, which
    changes arrays in place, and returns the share of its own data that each
    example keeps.
    """

    takes_masked = False
    # True if rows stay in their places, beside the mixing by `_mix`.
    mixes_rows = True
    # For each row of the last batch, the row mixed with it; None if none is.
    _partners: NDArray[numpy.int64] | None = None
    whole = 'mixes the examples of whole batches', ''

    def __init__(self, data_stream: StreamLike,
                 num_classes: int | None = None, alpha: float = 1., *,
                 target_source: str | None = 'targets',
                 probability: float = 1.,
                 which_sources: Sequence[str] | str | None = None,
                 **kwargs: Unpack[SeededOptions]) -> None:
        name = type(self).__name__
        if data_stream.produces_examples:
            raise ValueError(
                f'{name} mixes the examples of a batch, but the stream '
                f'{type(data_stream).__name__} produces single ones: put '
                'Batch before this stage')
        if not 0 < alpha < math.inf:
            raise ValueError(
                f'alpha must be positive and finite, got {alpha!r}')
        if not 0 <= probability <= 1:
            raise ValueError('probability must be from 0 to 1, got '
                             f'{probability!r}')
        sources = tuple(data_stream.sources)
        if target_source is not None:
            check_known('target_source', [target_source], sources)
        if which_sources is None:
            which_sources = [source for source in sources
                             if source != target_source]
        self.num_classes = None if num_classes is None else positive(
            'num_classes', num_classes)
        self.alpha = float(alpha)
        self.probability = float(probability)
        self.target_source = target_source
        labels = labels_of(data_stream)
        if labels is not None:
            if target_source is not None:
                labels[target_source] = 'batch', 'class'
            kwargs.setdefault('axis_labels', labels)
        super().__init__(data_stream, False, which_sources, **kwargs)
        if target_source in self.which_sources:
            raise ValueError(
                f'{target_source!r} is the target_source, whose classes '
                'become shares: leave it out of which_sources')

    def known_types(self) -> SourceTypes:
        """Return the known types; targets become shares of classes."""
        found = dict(types_of(self.data_stream))
        if self.target_source is not None:
            known = found.pop(self.target_source, None)
            rows = known.shape[0] if known and known.shape else None
            if self.num_classes is not None:
                found[self.target_source] = SourceType(
                    numpy.dtype('float32'), (rows, self.num_classes))
        return found

    def transform_batch(self, batch: Batch) -> Any:
        """Return a batch with its examples mixed."""
        sources, places = self._chosen_places()
        check_count(batch, sources)
        parts = list(batch)
        for place, source in places:
            require_unmasked(parts[place], source, type(self).__name__)
            part = self._checked(parts[place], source)
            # An upstream function may return one array for two sources.
            others = parts[:place] + parts[place + 1:]
            parts[place] = part.copy() if any(
                isinstance(other, numpy.ndarray)
                and numpy.may_share_memory(part, other)
                for other in others) else part
        target = None if self.target_source is None else (
            sources.index(self.target_source))
        if target is not None:
            require_unmasked(
                parts[target], sources[target], type(self).__name__)
            parts[target] = self._as_shares(parts[target])
        arrays = [parts[place] for place, _ in places]
        shares = None if target is None else parts[target]
        # Not by an assignment, which would look for changes of sources.
        vars(self)['_partners'] = None if not places else (
            self._mix_rows(arrays, shares) if self._by_example
            else self._mix_batch(arrays, shares))
        return tuple(parts)

    def _mix_batch(self, arrays: list[NDArray[Any]],
                   shares: NDArray[numpy.float32] | None,
                   ) -> NDArray[numpy.int64] | None:
        """Mix all rows, with the same draws; return the row that is mixed
        into each, None if none is.

        `shares`: the shares of classes, if there are targets.
        """
        generator = self.generator()
        if generator.random() >= self.probability:
            return None
        partners = generator.permutation(len(arrays[0]))
        share = self._mix(arrays, generator.beta(self.alpha, self.alpha),
                          partners, generator)
        if shares is not None:
            _blend(shares, share, partners)
        return partners

    def _mix_rows(self, arrays: list[NDArray[Any]],
                  shares: NDArray[numpy.float32] | None,
                  ) -> NDArray[numpy.int64] | None:
        """Mix some rows, each with the draws of its example; return the row
        that is mixed into each: -1 if none is, None if none is into any.

        `shares`: the shares of classes, if there are targets.
        """
        count = len(arrays[0])
        others = self._generator().permutation(count)
        drawn = {row: (generator.beta(self.alpha, self.alpha), generator)
                 for row, generator in enumerate(self.generators(count))
                 if generator.random() < self.probability}
        if not drawn:
            return None
        rows = numpy.array(list(drawn))
        partners = numpy.full(count, -1)
        partners[rows] = others[rows]
        kept = self._mix_each(arrays, rows, others[rows], *zip(
            *drawn.values(), strict=True))
        if shares is not None:
            _blend_rows(shares, rows, others[rows], kept)
        return partners

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item, and those mixed with them."""
        if not declares(self, 'mixes_rows') or len(requests) > 1:
            return super().source_examples(requests)
        found = source_examples(self.child_epoch_iterator, 1)
        if found is None or self._partners is None or not found.in_order:
            return found
        partners = self._partners.tolist()
        if -1 not in partners:
            return merged([found, found.pick(partners)], 'mixed')
        return joined([
            found.row(row) if partner < 0 else merged(
                [found.row(row), found.row(partner)], 'mixed')
            for row, partner in enumerate(partners)], are_single=True)

    def _mix(self, arrays: list[NDArray[Any]], share: float,
             partners: NDArray[numpy.int64],
             generator: numpy.random.Generator) -> float:
        raise NotImplementedError

    def _mix_each(self, arrays: list[NDArray[Any]], rows: NDArray[Any],
                  partners: NDArray[Any], shares: tuple[float, ...],
                  generators: tuple[numpy.random.Generator, ...],
                  ) -> Sequence[float]:
        """Mix some rows, each with a share and a generator of its own; return
        the share of its own data that each keeps."""
        raise NotImplementedError

    def _checked(self, part: object, source: str) -> Any:
        """Return the data of a source as an array that may be changed."""
        if not isinstance(part, numpy.ndarray) or part.dtype.hasobject:
            raise ValueError(
                f'{type(self).__name__} needs a batch of {source!r} in one '
                f'array, got {type(part).__name__}: give the examples one '
                'shape, as RandomResizedCrop and Padding do')
        return part if part.flags.writeable else part.copy()

    def _as_shares(self, targets: object) -> NDArray[numpy.float32]:
        """Return targets as the share of each class in each example."""
        array = numpy.asarray(targets)
        wanted = self.num_classes
        if array.dtype.kind in 'biu' and array.shape[1:] in ((), (1,)):
            return self._one_hot(array.ravel())
        if array.dtype.kind not in 'biuf' or (
                wanted is not None and array.shape[1:] != (wanted,)):
            raise ValueError(
                f'{self.target_source!r} must be numbers of classes, of the '
                'shape (batch,) or (batch, 1), or a share of each class, of '
                f'the shape (batch, {wanted or "num_classes"}); got '
                f'{array.dtype} of the shape {array.shape}')
        return array.astype(numpy.float32)

    def _one_hot(self, classes: NDArray[Any]) -> NDArray[numpy.float32]:
        if self.num_classes is None:
            raise ValueError(
                f'{self.target_source!r} has numbers of classes: pass '
                'num_classes, to return the share of each class')
        shares = numpy.zeros((len(classes), self.num_classes), numpy.float32)
        wrong = (classes < 0) | (classes >= self.num_classes)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f'{self.target_source!r} must be from 0 to '
                f'{self.num_classes - 1} for num_classes='
                f'{self.num_classes}, got {classes[place]} in example '
                f'{place} of a batch')
        shares[numpy.arange(len(classes)), classes.astype(int)] = 1
        return shares


class MixUp(ExampleMixer):
    """Blends each example of a batch, and its target, with another example.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    num_classes : int, optional
        Number of classes. Needed if targets are numbers of classes.
    alpha : float, optional
        The share of its own data that an example keeps is drawn from
        Beta(`alpha`, `alpha`), once for each batch, or for each example with
        ``draws='example'``. Defaults to 0.2.
    target_source : str or None, optional
        The targets: integers of the shape (batch,) or (batch, 1), or a share
        of each class, of the shape (batch, num_classes), such as the targets
        that another :class:`MixUp` or :class:`CutMix` returns. Defaults to
        ``'targets'``. None means that there are no targets.
    probability : float, optional
        Probability that a batch is changed, or an example with
        ``draws='example'``. Defaults to 1.
    which_sources : tuple of str or str, optional
        The sources to blend, all with the same draws. Defaults to all
        sources but the targets.
    seed, draws, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If an argument is invalid, or `data_stream` produces examples; when
        data are requested, if the data to blend are not an array of
        floating-point numbers, or the targets are invalid.
    NotImplementedError
        By `shard`, and when data are requested, if ranks split each batch.

    Notes
    -----
    An example becomes ``share * example + (1 - share) * other``, in its own
    dtype. Its target becomes the same blend of both targets, as float32 of
    the shape (batch, num_classes). The other examples are those of the batch
    in a random order, so an example may be blended with itself. The draws
    depend only on the seed, the epoch and the number of the batch. With
    ``draws='example'`` it depends on the example instead whether it is
    changed, and by which share. Its partner is still one of its batch, so the
    results are not the same for batches of another size or order.

    After H. Zhang, M. Cisse, Y. N. Dauphin and D. Lopez-Paz, *mixup: Beyond
    Empirical Risk Minimization*, ICLR 2018.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset({
    ...     'features': numpy.array([[0.], [1.], [2.], [3.]]),
    ...     'targets': numpy.array([0, 1, 2, 3])}), batch_size=4)
    >>> features, targets = next(iter(MixUp(stream, 4, alpha=1., seed=2)))
    >>> targets.shape, targets.dtype, targets.sum(axis=1).tolist()
    ((4, 4), dtype('float32'), [1.0, 1.0, 1.0, 1.0])
    >>> numpy.allclose(features[:, 0], targets @ [0, 1, 2, 3])
    True
    """

    def __init__(self, data_stream: StreamLike,
                 num_classes: int | None = None, alpha: float = .2,
                 **kwargs: Unpack[MixerOptions]) -> None:
        super().__init__(data_stream, num_classes, alpha, **kwargs)

    def _checked(self, part: object, source: str) -> Any:
        array = super()._checked(part, source)
        if array.dtype.kind != 'f':
            raise ValueError(
                f'MixUp needs floating-point numbers, got {array.dtype} of '
                f'{source!r}: put Cast or Normalize before this stage, or '
                'leave the source out of which_sources')
        return array

    def _mix(self, arrays: list[NDArray[Any]], share: float,
             partners: NDArray[numpy.int64],
             generator: numpy.random.Generator) -> float:
        for array in arrays:
            _blend(array, share, partners)
        return share

    def _mix_each(self, arrays: list[NDArray[Any]], rows: NDArray[Any],
                  partners: NDArray[Any], shares: tuple[float, ...],
                  generators: tuple[numpy.random.Generator, ...],
                  ) -> Sequence[float]:
        for array in arrays:
            _blend_rows(array, rows, partners, shares)
        return shares


class CutMix(ExampleMixer, ExpectsAxisLabels):
    """Pastes a part of another image of the batch into each image.

    The target of an image becomes a blend of both targets, by the areas of
    both images.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    num_classes, target_source, probability : optional
        See :class:`MixUp`.
    alpha : float, optional
        The share of its own area that an image keeps is drawn from
        Beta(`alpha`, `alpha`), as for :class:`MixUp`. Defaults to 1, the
        uniform distribution from 0 to 1.
    which_sources : tuple of str or str, optional
        The sources of images. All get the same draws, so an image and its mask
        stay aligned. Defaults to all sources but the targets.
    seed, draws, iteration_scheme, axis_labels
        See :mod:`fuel.transformers`.

    Raises
    ------
    ValueError
        If an argument is invalid, or `data_stream` produces examples; when
        data are requested, if the images of a source are not one array, if
        those of several sources differ in height or width, or if the targets
        are invalid for :class:`MixUp`.
    NotImplementedError
        By `shard`, and when data are requested, if ranks split each batch.

    Notes
    -----
    Images have the axes (batch, channel, height, width), and keep their
    type. The pasted part has the proportions of the image, and its centre is
    drawn uniformly. A part that extends beyond the border is cut off there.
    The area that is left determines the shares of both targets. The targets
    become float32 of the shape (batch, num_classes). The draws depend only on
    the seed, the epoch and the number of the batch. With ``draws='example'``
    it depends on the example whether it is changed, how large the part is and
    where; the partners are those of the batch, as for :class:`MixUp`.

    After S. Yun, D. Han, S. J. Oh, S. Chun, J. Choe and Y. Yoo, *CutMix:
    Regularization Strategy to Train Strong Classifiers with Localizable
    Features*, ICCV 2019.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset({
    ...     'features': numpy.arange(2).repeat(64).reshape(2, 1, 8, 8),
    ...     'targets': numpy.array([[0], [1]])}, axis_labels={
    ...     'features': ('batch', 'channel', 'height', 'width')}),
    ...     batch_size=2)
    >>> features, targets = next(iter(CutMix(stream, 2, seed=1)))
    >>> bool((features.mean(axis=(1, 2, 3)) == targets[:, 1]).all())
    True
    """

    def _checked(self, part: object, source: str) -> Any:
        images = super()._checked(part, source)
        self.verify_axis_labels(
            BATCH_AXES, stage_of(self.data_stream).labels.get(source), source)
        if images.ndim != 4:
            raise ValueError(
                'CutMix needs images of the axes (batch, channel, height, '
                f'width), got the shape {images.shape} of {source!r}: leave '
                'sources that are not images out of which_sources')
        return images

    def _mix(self, arrays: list[NDArray[Any]], share: float,
             partners: NDArray[numpy.int64],
             generator: numpy.random.Generator) -> float:
        height, width = self._size_of(arrays)
        part, kept = _part(height, width, share, generator)
        for images in arrays:
            images[:, :, *part] = images[:, :, *part][partners]
        return kept

    def _mix_each(self, arrays: list[NDArray[Any]], rows: NDArray[Any],
                  partners: NDArray[Any], shares: tuple[float, ...],
                  generators: tuple[numpy.random.Generator, ...],
                  ) -> Sequence[float]:
        height, width = self._size_of(arrays)
        parts, kept = zip(*[
            _part(height, width, share, generator) for share, generator
            in zip(shares, generators, strict=True)], strict=True)
        for images in arrays:
            others = images[partners]
            for row, part, other in zip(rows, parts, others, strict=True):
                images[row, :, *part] = other[:, *part]
        return kept

    def _size_of(self, arrays: list[NDArray[Any]]) -> tuple[int, int]:
        """Return the height and width of all images."""
        height, width = arrays[0].shape[2:]
        for images in arrays:
            if images.shape[2:] != (height, width):
                raise ValueError(
                    f'the images of {self.which_sources} must have one '
                    'height and width, so that one part fits all; got '
                    f'{[images.shape[2:] for images in arrays]}')
        return height, width


def _blend(array: NDArray[Any], share: float,
           partners: NDArray[numpy.int64]) -> None:
    """Blend each row of an array with the row of its partner, in place.

    `share`: the share of its own data that a row keeps.
    """
    others = array.take(partners, 0, empty(array.shape, array.dtype), 'clip')
    others *= array.dtype.type(1 - share)
    array *= array.dtype.type(share)
    array += others


def _blend_rows(array: NDArray[Any], rows: NDArray[Any],
                partners: NDArray[Any], shares: Sequence[float]) -> None:
    """Blend some rows of an array with the rows of their partners, in place.

    `shares`: the share of its own data that each row keeps.
    """
    kept = numpy.array(shares).reshape(-1, *[1] * (array.ndim - 1))
    array[rows] = (array[rows] * kept.astype(array.dtype)
                   + array[partners] * (1 - kept).astype(array.dtype))


def _part(height: int, width: int, share: float,
          generator: numpy.random.Generator) -> tuple[Part, float]:
    """Draw the centre of a part of an image; return the rows and columns of
    the part, and the share of the area that is left.

    `share`: the share that is left if no border cuts the part off.
    """
    side = math.sqrt(1 - share)
    part = [_span(length, side, generator) for length in (height, width)]
    area = math.prod([span.stop - span.start for span in part])
    return (part[0], part[1]), 1 - area / float(height * width)


def _span(length: int, side: float,
          generator: numpy.random.Generator) -> slice:
    """Return the slice of an axis that a part covers; draw its centre."""
    half = int(length * side) // 2
    centre = int(generator.integers(length))
    return slice(max(centre - half, 0), min(centre + half, length))
