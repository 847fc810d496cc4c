"""Make arrays of numbers that JAX can copy to its devices."""
from __future__ import annotations

from typing import Any

import jax
import numpy
from numpy.typing import NDArray
from jax import numpy as jnp

from fuel.interop.number_arrays import list_as_array, refusal

_NUMBERS = (bool, int, float, complex, numpy.generic)
_HOLDER = 'array of JAX'
_ENABLE = "jax.config.update('jax_enable_x64', True)"


def as_host_array(value: object, source: str) -> Any:
    """Return the data of one source as an array of numbers.

    Arrays of NumPy and of JAX are not copied, except to the byte order of
    this machine.
    """
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, _NUMBERS):
        value = numpy.asarray(value)
    elif isinstance(value, (list, tuple)):
        value = list_as_array(value, source, _HOLDER)
    if not isinstance(value, numpy.ndarray) or not is_number(value.dtype):
        raise refusal(value, source, _HOLDER)
    return (value if value.dtype.isnative
            else value.astype(value.dtype.newbyteorder('=')))


def is_number(dtype: numpy.dtype[Any]) -> bool:
    """Return whether JAX has a type of numbers, or of truth values."""
    # NumPy counts spans of time as integers.
    return dtype.kind == 'b' or bool(
        jnp.issubdtype(dtype, jnp.number) and dtype.char not in 'gGm')


def narrowed(array: NDArray[Any], source: str) -> Any:
    """Return an array in the type that JAX gives it.

    With 64-bit types disabled, as by default, these become 32-bit ones;
    integers that do not fit are refused rather than cut off.
    """
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    if array.dtype.kind in 'iu' and array.size:
        bounds = jnp.iinfo(dtype)
        for value in (array.min(), array.max()):
            if not bounds.min <= value <= bounds.max:
                raise ValueError(
                    f'source {source!r} holds {value}, which {dtype} does '
                    'not, and JAX has 64-bit types only after '
                    f'{_ENABLE}; or leave the source out, '
                    'which_sources=(...), so that it stays as it is')
    return array.astype(dtype)


def name_of_type(dtype: object) -> str:
    """Return the name of a type of JAX; refuse what is none."""
    try:
        found = jnp.dtype(dtype)
        known = is_number(found)
    except TypeError:
        known = False
    if not known:
        raise ValueError(
            'dtype must be a type of JAX, such as jax.numpy.bfloat16 or '
            f"'bfloat16', got {dtype!r}")
    if jax.dtypes.canonicalize_dtype(found) != found:
        raise ValueError(
            f'dtype {found.name!r} is one of 64 bits, which JAX has only '
            f'after {_ENABLE}')
    return str(found.name)


def is_floating(dtype: object) -> bool:
    """Return whether a type, or that of a name, has floating numbers."""
    return bool(jnp.issubdtype(jnp.dtype(dtype), jnp.floating))
