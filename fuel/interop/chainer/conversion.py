"""Conversion of lists of examples to arrays on a device."""
from __future__ import annotations

import importlib
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.interop.chainer.examples import Example
from fuel.utils.masked import holds_masked, masked_refusal
from fuel.utils.sparse import is_sparse

#: A number, or one for each part of an example.
Padding: TypeAlias = (
    'float | tuple[float | None, ...] | Mapping[str, float | None] | None')


class SendsArrays(Protocol):
    """Interface of Chainer's device objects."""

    def send(self, arrays: object, /) -> Any:
        """Return an array on the device."""


#: Number of a device, its name, or Chainer's object; None for no change.
Device: TypeAlias = 'int | str | SendsArrays | None'


class ExampleList(list[Example]):
    """A list of a batch's examples, which also keeps the batch's arrays.

    The examples are rows of these arrays.

    `columns`: the arrays, in a tuple or dict with the structure of an
        example.
    """

    def __init__(self, examples: Iterable[Example], columns: object) -> None:
        super().__init__(examples)
        self._columns = columns
        self._examples = tuple(self)

    @property
    def columns(self) -> Any:
        """The arrays of the batch; None if the list was changed."""
        is_same = len(self) == len(self._examples) and all(
            map(operator.is_, self, self._examples))
        return self._columns if is_same else None

    def __reduce__(self) -> Any:
        return list, (list(self),)


def concat_examples(batch: Sequence[Example], device: Device = None,
                    padding: Padding = None) -> Any:
    """Return the examples of a batch as arrays.

    Parameters
    ----------
    batch : list
        Examples: arrays or numbers, or tuples or dicts of them.
    device : int, optional
        The device of the arrays; see :func:`to_device`. Defaults to None: the
        arrays are not moved.
    padding : float, optional
        The value that fills up arrays of different shapes, to the smallest
        shape that holds all of them. If examples are tuples or dicts, a tuple
        or dict of paddings may be given, one for each part. Defaults to None:
        different shapes are an error.

    Returns
    -------
    numpy.ndarray, tuple or dict
        Arrays of shape (batch, ...), in a tuple or dict with the structure of
        an example. The batches of :func:`as_iterator` are made of arrays,
        which are returned without a copy.

    Raises
    ------
    ValueError
        If the batch is empty, shapes differ without a padding, or the type
        of the arrays cannot hold the padding.
    TypeError
        If examples are strings or other objects that are not numbers.

    Examples
    --------
    >>> import numpy
    >>> concat_examples([(numpy.arange(2), 5), (numpy.arange(2), 6)])
    (array([[0, 1],
           [0, 1]]), array([5, 6]))
    >>> concat_examples([numpy.arange(1), numpy.arange(3)], padding=-1)
    array([[ 0, -1, -1],
           [ 0,  1,  2]])
    """
    if not len(batch):
        raise ValueError('the batch is empty: there is nothing to convert')
    columns = batch.columns if isinstance(batch, ExampleList) else None
    first = batch[0]
    if not isinstance(first, (tuple, dict)):
        return _as_array(batch, device, padding, 'the example')
    _check_alike(batch, first)
    keys = tuple(first) if isinstance(first, dict) else range(len(first))
    parts = [_as_array(_column(batch, columns, key), device,
                       _padding(padding, key), f'part {key!r}')
             for key in keys]
    return (dict(zip(keys, parts, strict=True)) if isinstance(first, dict)
            else tuple(parts))


def _check_alike(batch: Sequence[Example], first: Example) -> None:
    """Raise ValueError unless all examples have the parts of the first."""
    def parts(example: Example) -> Any:
        if isinstance(example, dict):
            return set(example)
        return len(example) if isinstance(example, tuple) else None

    expected = parts(first)
    for number, example in enumerate(batch):
        if parts(example) != expected:
            raise ValueError(
                'all examples of a batch must have the parts of the first, '
                f'{first!r:.100}, but number {number} is {example!r:.100}')


def _column(batch: Sequence[Any], columns: Any, key: Any) -> Any:
    """Return one part of all examples: the batch's array, or else a list."""
    if columns is not None and isinstance(columns[key], numpy.ndarray) \
            and not columns[key].dtype.hasobject:
        return columns[key]
    return [example[key] for example in batch]


def _padding(padding: object, key: Any) -> Any:
    """Return the padding of one part of the examples."""
    if isinstance(padding, (tuple, Mapping)):
        try:
            return padding[key]
        except (IndexError, KeyError):
            raise ValueError(
                'padding must have one value for each part of an example, '
                f'but there is none for {key!r} in {padding!r}') from None
    return padding


def _as_array(parts: Sequence[Any] | NDArray[Any], device: Device,
              padding: object, name: str) -> Any:
    if holds_masked(parts):
        raise masked_refusal(f'concat_examples cannot keep the mask of {name}')
    if not isinstance(parts, numpy.ndarray):
        parts = _stacked(parts, padding, name)
    return to_device(device, parts)


def _stacked(parts: Sequence[Any], padding: object, name: str) -> Any:
    """Return arrays or numbers as one array, with padding if needed."""
    if is_sparse(parts[0]):
        raise TypeError(
            f'{name} is sparse, and no array of Chainer is: make arrays of '
            'it before, with ToDense(stream, which_sources=(...))')
    module = _module_of(parts[0]) or 'numpy'
    if module != 'numpy':
        return importlib.import_module(module).stack(parts)
    arrays = [numpy.asarray(part) for part in parts]
    for number, array in enumerate(arrays):
        if array.dtype.kind not in 'biufc':
            raise TypeError(
                f'{name} of example {number} is {parts[number]!r:.80}, which '
                'is not an array of numbers: leave it out, or encode it, in '
                'the data set or in a converter of your own')
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        return numpy.stack(arrays)
    if padding is None or len({array.ndim for array in arrays}) > 1:
        raise ValueError(
            f'{name} has different shapes in the batch, '
            f'{sorted(shapes)!r:.100}: ' + (
                'padding=0 would fill them up' if padding is None else
                'padding does not add axes'))
    return _padded(arrays, padding, name)


def _padded(arrays: list[Any], padding: object, name: str) -> Any:
    dtype = numpy.result_type(*arrays)
    filler = _as_filler(padding, dtype)
    if filler is None:
        raise ValueError(f'padding {padding!r} is not a valid {dtype}, the '
                         f'type of {name} of the examples')
    shape = numpy.max([array.shape for array in arrays], axis=0)
    batch = numpy.full((len(arrays), *shape), filler, dtype)
    for row, array in zip(batch, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return batch


def _as_filler(padding: object, dtype: numpy.dtype[Any]) -> Any:
    """Return a number as a type; None if the type cannot hold the number.

    Floating-point types may round the number, but a finite number must stay
    finite.
    """
    number = numpy.asarray(padding)
    if number.ndim or number.dtype.kind not in 'biufc' or (
            number.dtype.kind == 'c' and dtype.kind != 'c'):
        return None
    with numpy.errstate(over='ignore', invalid='ignore'):
        filler = number.astype(dtype)
    fits = (numpy.isfinite(filler) == numpy.isfinite(number)
            if dtype.kind in 'fc' else filler == number)
    return filler if fits else None


def to_device(device: Device, x: Any) -> Any:
    """Return an array on a device.

    Parameters
    ----------
    device : int, str or object with a method ``send``
        The number of a GPU, which needs CuPy; a negative number for the
        memory of the host; a name, ``'@numpy'`` or ``'@cupy:0'``; or a device
        of Chainer. None: the array is not moved.
    x : numpy.ndarray or cupy.ndarray

    Returns
    -------
    numpy.ndarray or cupy.ndarray

    Raises
    ------
    ImportError
        If CuPy is needed and not installed.
    ValueError
        If the device does not exist.

    Examples
    --------
    >>> to_device(-1, [1, 2])
    array([1, 2])
    """
    if device is None:
        return x
    if hasattr(device, 'send'):
        return device.send(x)
    number = _device_number(device)
    if number < 0:
        return x.get() if _module_of(x) == 'cupy' else numpy.asarray(x)
    try:
        cupy = importlib.import_module('cupy')
    except ImportError as error:
        raise ImportError(
            f'device {device!r} is a GPU, and arrays get there by CuPy, '
            'which is not installed: install it, or pass device=-1 for the '
            'memory of the host') from error
    with cupy.cuda.Device(number):
        return cupy.asarray(x)


def _device_number(device: Any) -> int:
    """Return the number of a device; -1 for the host."""
    if isinstance(device, str):
        kind, _, number = device.partition(':')
        if kind == '@numpy' and not number:
            return -1
        if kind == '@cupy' and number.isdigit():
            return int(number)
        raise ValueError(
            f"device must be a number, '@numpy', or '@cupy:' and a number, "
            f'got {device!r}')
    try:
        return operator.index(device)
    except TypeError:
        raise ValueError(
            'device must be a number (negative: the host), a name, a device '
            f'of Chainer, or None, got {device!r}') from None


def _module_of(x: object) -> str | None:
    """Return the package of an array's class; None if `x` is not an array."""
    if not hasattr(x, 'dtype'):
        return None
    return type(x).__module__.partition('.')[0]
