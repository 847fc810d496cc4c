"""Whitening: fitted once from a stream, saved, applied on the fly."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy
from numpy.typing import DTypeLike, NDArray

import fuel
from fuel.epochs.stage import stage_of
from fuel.describe.source_types import SourceType
from fuel.streams.arguments import StreamOptions
from fuel.transformers.fitted import FittedStage, numbers_of
from fuel.transformers.moments import Covariance, Moments, as_exact
from fuel.transformers.ragged import as_matrix
from fuel.transformers.source_names import check_known, labels_of
from fuel.typing import StreamLike
from fuel.utils.arguments import PlainArgument
from fuel.utils.atomic_files import atomic_path

__all__ = ['Whitening', 'WhiteningParameters', 'fit_whitening']

FORMAT = 1
KINDS = ('pca', 'zca')
# Limit of the ratio of the largest variance of a feature to the smallest.
# Above it, a slower method finds the axes without a loss of digits.
GRADED = 1e3


@dataclass(frozen=True, eq=False)
class WhiteningParameters(PlainArgument):
    """Mean and matrix that :func:`fit_whitening` computed.

    Attributes
    ----------
    kind : {'pca', 'zca'}
    mean : numpy.ndarray, shape (features,), dtype float64
    matrix : numpy.ndarray, shape (features, components), dtype float64
        The matrix with which centred data are multiplied.
    shape : tuple of int
        Shape of an example; ``features`` is its product.
    provenance : dict
        Origin of the parameters: the ``source``, the number of ``examples``,
        their ``dtype``, ``epsilon``, the ``stages`` of the stream, and the
        version of ``fuel``.
    """

    kind: str
    mean: Any
    matrix: Any
    shape: tuple[int, ...]
    provenance: dict[str, Any]

    @property
    def source(self) -> str:
        """The source that the parameters were fitted to (str)."""
        return str(self.provenance['source'])

    def plain(self) -> Mapping[str, object]:
        """Return the values that a saved state must match.

        The matrix is left out: if variances are equal, different processors
        may compute different axes.
        """
        mean = numpy.asarray(self.mean, numpy.float64)
        return {'kind': self.kind, 'shape': self.shape,
                'mean': numpy.array([f'{one:.9g}' for one in mean.flat])}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters; replace an old file in one step.

        Parameters
        ----------
        path : str
            Name of the file, which must end in ``.npz``. Equal parameters give
            equal files.

        Raises
        ------
        ValueError
            If the name does not end in ``.npz``.
        """
        name = os.fspath(path)
        if not name.endswith('.npz'):
            raise ValueError('whitening parameters are saved as .npz, got '
                             f'the name {name!r}')
        about = json.dumps({
            'format': FORMAT, 'kind': self.kind, 'shape': self.shape,
            'provenance': self.provenance}, sort_keys=True)
        with atomic_path(name) as temporary, open(temporary, 'wb') as file:
            numpy.savez(file, about=numpy.array(about), mean=self.mean,
                        matrix=self.matrix)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WhiteningParameters:
        """Load parameters that :meth:`save` saved.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file does not hold such parameters.
        """
        name = os.fspath(path)
        try:
            with open(name, 'rb') as file, numpy.load(
                    file, allow_pickle=False) as saved:
                about = json.loads(str(saved['about']))
                mean, matrix = saved['mean'], saved['matrix']
            version = about['format']
        except FileNotFoundError:
            raise
        except Exception as error:
            # NumPy treats a file that is not an archive as a pickle, and its
            # error says how to load that. Do not pass on this advice.
            raise ValueError(
                f'{name} does not hold whitening parameters, as '
                'WhiteningParameters.save writes them') from error
        if version != FORMAT:
            raise ValueError(
                f'{name} holds whitening parameters of format {version!r}, '
                f'but this version of Fuel reads format {FORMAT}')
        try:
            found = cls(about['kind'], mean, matrix, tuple(about['shape']),
                        about['provenance'])
            found._check()
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f'{name} holds damaged whitening parameters: '
                             f'{error}') from error
        return found

    def _check(self) -> None:
        """Raise ValueError for fields that do not fit each other."""
        features = math.prod(self.shape)
        if self.kind not in KINDS or 'source' not in self.provenance:
            raise ValueError(f'the kind {self.kind!r}, the provenance '
                             f'{self.provenance!r}')
        columns = self.matrix.shape[1:]
        if (self.mean.shape != (features,)
                or self.matrix.shape != (features, *columns)
                or (columns != (features,) if self.kind == 'zca'
                    else len(columns) != 1)
                or {self.mean.dtype, self.matrix.dtype} != {
                    numpy.dtype(numpy.float64)}):
            raise ValueError(
                f'a mean of {self.mean.dtype} and shape {self.mean.shape}, '
                f'a matrix of {self.matrix.dtype} and shape '
                f'{self.matrix.shape} for examples of shape {self.shape}')


def fit_whitening(data_stream: StreamLike, source: str | None = None,
                  kind: str = 'zca', epsilon: float = 1e-5,
                  num_components: int | None = None) -> WhiteningParameters:
    """Fit the whitening of a source in one epoch of a stream.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches or examples, all of one shape.
    source : str, optional
        The source to whiten. Defaults to the first.
    kind : {'pca', 'zca'}, optional
        ``'pca'`` gives uncorrelated components, the largest variance first.
        ``'zca'`` (the default) rotates them back to the original axes, so
        that images still look like images.
    epsilon : float, optional
        Added to variances, so that directions of almost no variance are not
        amplified. Defaults to 1e-5; the variance of pixels from 0 to 1 is
        about 0.06.
    num_components : int, optional
        Number of components of largest variance to keep. Defaults to all.

    Raises
    ------
    ValueError
        If an argument is invalid, the stream is empty, or its examples
        differ in shape or are not finite numbers. If their covariance is too
        large for float64.

    Notes
    -----
    Neither offsets nor the scales of features cost precision: the covariance
    is computed from differences to the first example, and if features have
    very different scales the axes are found from correlations. A feature
    whose values are all equal has the variance 0, and becomes 0.

    The time to find the axes grows with the third power of the number of
    features. If the variances, with `epsilon` added, differ by a factor of
    1,000 or more, it takes 2.5 times as long: 0.4 seconds of one core for 800
    features, instead of 0.16. Standardization before whitening avoids that.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> rows = numpy.random.RandomState(0).normal(size=(500, 2)) * [1, 9]
    >>> stream = DataStream(IndexableDataset({'x': rows}),
    ...                     iteration_scheme=SequentialScheme(500, 100))
    >>> parameters = fit_whitening(stream)
    >>> white = numpy.concatenate([x for x, in Whitening(
    ...     stream, parameters).get_epoch_iterator()])
    >>> abs(numpy.cov(white.T).round(1))
    array([[1., 0.],
           [0., 1.]])
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be 'pca' or 'zca', got {kind!r}")
    if not epsilon >= 0:
        raise ValueError(f'epsilon must not be negative, got {epsilon!r}')
    if source is None:
        source = data_stream.sources[0]
    check_known('source', (source,), data_stream.sources)
    spread, count = None, 0
    for batch in numbers_of(data_stream, source, 'whitening', 'whitened'):
        shape, dtype = batch.shape[1:], batch.dtype
        rows = as_exact(as_matrix(batch))
        if spread is None:
            spread = Covariance(rows[0])
            moments = Moments(rows.shape[1])
        spread.add(rows)
        moments.add(rows)
        count += len(rows)
    if spread is None:
        raise ValueError(f'the stream has no examples of {source!r} to learn '
                         'whitening from')
    covariance = spread.result()
    if not numpy.isfinite(covariance).all():
        raise ValueError(
            f'source {source!r} has a covariance that float64 does not hold: '
            'scale it before it is whitened, with ScaleAndShift')
    features = len(covariance)
    if num_components is None:
        num_components = features
    if not 1 <= num_components <= features:
        raise ValueError(f'num_components must be from 1 to {features}, got '
                         f'{num_components!r}')
    variances, axes = _principal_axes(covariance, epsilon)
    # The sign of an axis is arbitrary: make its largest element positive.
    variances, axes = variances[:num_components], axes[:, :num_components]
    largest = axes[abs(axes).argmax(axis=0), numpy.arange(num_components)]
    axes = axes * numpy.where(largest < 0, -1, 1)
    with numpy.errstate(divide='ignore'):
        factors = 1 / numpy.sqrt(variances + epsilon)
    matrix = axes * numpy.where(numpy.isfinite(factors), factors, 0)
    if kind == 'zca':
        matrix = matrix @ axes.T
    mean = numpy.array(moments.means())
    return WhiteningParameters(kind, mean, matrix, shape, {
        'source': source, 'examples': count, 'dtype': str(dtype),
        'epsilon': float(epsilon), 'stages': _stages(data_stream),
        'fuel': fuel.__version__})


def _principal_axes(covariance: NDArray[Any], epsilon: float,
                    ) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the variances and the principal axes, largest variance first."""
    deviations = numpy.sqrt(covariance.diagonal())
    alive = numpy.flatnonzero(deviations)
    dead = numpy.flatnonzero(deviations == 0)
    added = covariance.diagonal()[alive] + epsilon
    if not len(alive) or added.max() < GRADED * added.min():
        # Features that do not vary are left out: rounding would mix them with
        # directions of other features in which nothing varies either.
        found, turned = numpy.linalg.eigh(covariance[numpy.ix_(alive, alive)])
        found, turned = numpy.maximum(found[::-1], 0), turned[:, ::-1]
    else:
        # Features of very different scales: `eigh` finds small variances
        # only as precisely as the largest allows. Correlations have one
        # scale, and the singular values of a factor of the covariance are the
        # square roots of the variances.
        alive = alive[numpy.argsort(-deviations[alive], kind='stable')]
        scales = deviations[alive]
        factor = _factor(
            covariance[numpy.ix_(alive, alive)] / scales / scales[:, None])
        turned, roots, _ = numpy.linalg.svd(factor * scales[:, None])
        found = roots ** 2
    variances = numpy.zeros(len(covariance))
    variances[:len(alive)] = found
    axes = numpy.zeros(covariance.shape)
    axes[alive, :len(alive)] = turned
    axes[dead, numpy.arange(len(alive), len(covariance))] = 1
    return variances, axes


def _factor(correlations: NDArray[Any]) -> NDArray[Any]:
    """Return a matrix F; ``F @ F.T`` is the matrix of correlations."""
    try:
        factor: NDArray[Any] = numpy.linalg.cholesky(correlations)
    except numpy.linalg.LinAlgError:
        # Some features depend on others.
        squares, vectors = numpy.linalg.eigh(correlations)
        factor = vectors * numpy.sqrt(numpy.maximum(squares, 0))
    return factor


def _stages(data_stream: StreamLike | None) -> list[str]:
    """Return the names of the stages of a stream, and of its data set."""
    names = []
    while data_stream is not None:
        stage = stage_of(data_stream)
        names.append(stage.name)
        if stage.dataset is not None:
            names.append(type(stage.dataset).__name__)
        data_stream = next(iter(stage.inputs), None)
    return names


class Whitening(FittedStage):
    """Whitens data: components have mean 0, variance 1, no correlation.

    Parameters
    ----------
    parameters : WhiteningParameters or str
        From :func:`fit_whitening`, or the name of the file that they were
        saved in.
    dtype : dtype, optional
        Type of the results. Defaults to ``'floatX'``, the value of
        ``config.floatX`` when the stage is built.
    which_sources : tuple of str, optional
        Defaults to the source that the parameters were fitted to.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis
        labels default to those of `data_stream`; PCA gives the axes
        (batch, component).

    Raises
    ------
    ValueError
        When data are requested, if examples have another shape than the
        examples that the parameters were fitted to.

    Notes
    -----
    With ZCA examples keep their shape; with PCA each example becomes a vector
    of components. See :func:`fit_whitening` for an example.
    """

    pure = True
    keeps_rows = True
    _parameters_class = WhiteningParameters
    _fit = 'fit_whitening'

    def __init__(self, data_stream: StreamLike,
                 parameters: WhiteningParameters | str,
                 dtype: DTypeLike = 'floatX',
                 which_sources: Sequence[str] | str | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        super().__init__(
            data_stream, parameters, dtype, which_sources, **kwargs)

    def _labels(self, data_stream: StreamLike, chosen: Sequence[str]) -> Any:
        labels = labels_of(data_stream)
        if labels is None or self.parameters.kind != 'pca':
            return labels
        new = ('component',) if data_stream.produces_examples else (
            'batch', 'component')
        return {**labels, **dict.fromkeys(chosen, new)}

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type of whitened data."""
        shape: tuple[int | None, ...] = self.parameters.shape
        if self.parameters.kind == 'pca':
            shape = self.parameters.matrix.shape[1:]
        if not self.produces_examples:
            shape = (known.shape[0] if known.shape else None, *shape)
        return SourceType(self.dtype, shape)

    def _mask_after(self, mask: NDArray[Any]) -> NDArray[Any]:
        # Each component is made of all numbers of an example.
        hidden = as_matrix(mask).any(axis=1)
        axes = 1 if self.parameters.kind == 'pca' else mask.ndim - 1
        return numpy.reshape(hidden, (-1, *[1] * axes))

    def _transform(self, batch: NDArray[Any]) -> Any:
        parameters = self.parameters
        if batch.shape[1:] != parameters.shape:
            raise ValueError(
                'whitening was fitted to examples of the shape '
                f'{parameters.shape}, but these have the shape '
                f'{batch.shape[1:]}: fit it to data that were prepared in '
                'the same way')
        # Single precision for single-precision results is twice as fast.
        kind = (numpy.float32 if self.dtype == numpy.float32
                else numpy.float64)
        rows = as_matrix(batch) - parameters.mean
        white = rows.astype(kind, copy=False) @ parameters.matrix.astype(
            kind, copy=False)
        if parameters.kind == 'zca':
            white = white.reshape(batch.shape)
        return white.astype(self.dtype, copy=False)
