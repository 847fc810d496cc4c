"""Check the arguments of streams, and make an iteration scheme of them."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from inspect import Parameter
from typing import Any, Literal, TypeAlias, TypedDict

import numpy

from fuel.describe.pipeline import short
from fuel.epochs.readers import known_length, takes_requests
from fuel.schemes.iteration_scheme import (
    BatchScheme, IndexScheme, batch_size_of, chooses_examples,
    is_random_access, is_scheme, num_examples_of)
from fuel.schemes import (
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.typing import AxisLabels, DatasetLike, SchemeLike
from fuel.utils.arguments import NamedArguments, is_stream, try_call
from fuel.utils.other_libraries import (
    FOR_STREAMS, class_for, no_member, short_repr)
from fuel.utils.overrides import covers, is_own
from fuel.utils.signatures import constructors_of


#: Value of `axis_labels`: keep the labels of the stream that a stage reads.
KeptLabels: TypeAlias = Literal['kept']
KEPT: KeptLabels = 'kept'


class LabelOptions(TypedDict, total=False):
    """The keyword arguments of streams that make their own scheme."""

    axis_labels: AxisLabels | KeptLabels | None


class StreamOptions(LabelOptions, total=False):
    """The keyword arguments that streams hand on to `AbstractDataStream`."""

    iteration_scheme: SchemeLike | None


class LoadOptions(TypedDict, total=False):
    """The keyword arguments of `load_state_dict` of streams, for objects that
    load the states of a stream."""

    leave_out: Iterable[int | range] | None
    accumulate: int
    accept: Sequence[str]


def checked_load_options(options: LoadOptions | None) -> LoadOptions:
    """Return keyword arguments for `load_state_dict`, which may be passed to
    it many times; raise TypeError if there are others."""
    found: LoadOptions = {} if options is None else {**options}
    known = LoadOptions.__annotations__
    for name in found:
        if name not in known:
            raise TypeError(
                f'load_options has {name!r}, which load_state_dict does not '
                f'take: it takes {", ".join(known)}')
    steps = found.get('leave_out')
    if steps is not None:
        from fuel.orders.omitted import steps_as_list
        found['leave_out'] = steps_as_list(steps)
    return found


def refuse_no_scheme(stream: object, scheme: object) -> None:
    """Raise TypeError unless a scheme is an iteration scheme or None."""
    if scheme is None or is_scheme(scheme):
        return
    name = type(stream).__name__
    if isinstance(scheme, int) and not isinstance(scheme, bool):
        advice = (f'for batches of {scheme} examples write {name}(dataset, '
                  f'batch_size={scheme}), or iteration_scheme='
                  f'SequentialScheme(dataset.num_examples, {scheme})')
    elif isinstance(scheme, type):
        advice = f'make one, {scheme.__name__}(...)'
    else:
        advice = 'such as SequentialScheme(dataset.num_examples, batch_size)'
    raise TypeError(
        f'iteration_scheme of {name} must be an IterationScheme, got '
        f'{scheme!r:.80} ({type(scheme).__name__}): {advice}')


def refuse_positional(stream: object, arguments: tuple[object, ...]) -> None:
    """Raise TypeError for positional arguments that follow the data set."""
    if not arguments:
        return
    name, value = type(stream).__name__, arguments[0]
    if isinstance(value, int):
        written = f'batch_size={value!r}'
    elif is_scheme(value):
        written = f'iteration_scheme={type(value).__name__}(...)'
    else:
        written = '...=...'
    raise TypeError(
        f'{name} takes one argument without a name, the data set; write the '
        f'{type(value).__name__} behind it as {name}(dataset, {written})')


def refuse_no_dataset(dataset: object) -> None:
    """Raise TypeError for an object that is not a data set.

    The text names the class that reads such an object.
    """
    is_class = isinstance(dataset, type) and issubclass(
        dataset, NamedArguments)
    if not is_class and hasattr(dataset, 'open') and hasattr(
            dataset, 'get_data'):
        return
    if is_stream(dataset) and not is_class:
        raise TypeError(
            f'dataset must be a Dataset, got the stream '
            f'{type(dataset).__name__}: a stage reads a stream, as in '
            'stream.apply(Batch, batch_size=32)')
    raise TypeError(
        'dataset must be a Dataset, or have its open() and get_data(), got '
        f'{short_repr(dataset)}: {class_for(dataset)}')


def check_visited(dataset: DatasetLike, scheme: object) -> None:
    """Raise ValueError, or warn, if a scheme does not fit the data set.

    The error is raised if the scheme gives only batch sizes, or if its number
    of examples and its batch size are swapped. The warning is given if the
    scheme visits fewer examples than a batch has, or more than exist.
    """
    count = known_length(dataset)
    if scheme is None or not takes_requests(dataset) or not is_own(
            type(scheme)):
        return
    if not chooses_examples(scheme):
        raise ValueError(
            f'{type(scheme).__name__} says how many examples to take, and '
            f'{type(dataset).__name__} has to know which: pass batch_size='
            f'{batch_size_of(scheme)}, or a scheme such as SequentialScheme('
            f'dataset.num_examples, {batch_size_of(scheme)})')
    if count is None or not isinstance(scheme, (BatchScheme, IndexScheme)):
        return
    visited, size = scheme.num_examples, batch_size_of(scheme)
    if not isinstance(scheme.indices, range) or visited != len(
            scheme.indices):
        return
    name = type(scheme).__name__
    text = (f'{name} visits {visited} examples, and '
            f'{type(dataset).__name__} has {count}')
    if size is not None and 0 < visited < size <= count:
        text += (f', in batches of {size}: its arguments are the number of '
                 f'examples and the size of a batch, as in {name}('
                 f'dataset.num_examples, {visited})')
        if size == count:
            raise ValueError(f'{text}; here they are swapped')
        warnings.warn(text, stacklevel=3)
    elif visited > count:
        warnings.warn(f'{text}: so each epoch ends in an error; pass '
                      'dataset.num_examples', stacklevel=3)


def refuse_scheme_misfit(stream: Any) -> None:
    """Raise ValueError if a scheme is missing, or the data set takes none.

    This is checked only if it is known whether the data set takes requests
    (see `takes_requests`), and what the stream and the scheme request.
    """
    needed = takes_requests(stream.dataset)
    scheme = stream.iteration_scheme
    if (needed is None or bool(needed) == (scheme is not None)
            or not covers(stream, 'open_reader', ('get_data',))):
        return
    name = type(stream.dataset).__name__
    if scheme is None:
        raise ValueError(
            f'{short(stream)} has no iteration scheme, which says which '
            f'examples of {name} come next: write {type(stream).__name__}('
            'dataset, batch_size=128, shuffle=True), or give it an '
            'iteration_scheme such as ShuffledScheme(dataset.num_examples, '
            '128)')
    if is_random_access(scheme) or not chooses_examples(scheme):
        raise ValueError(
            f'{short(stream)} has the iteration scheme {scheme!r}, but {name} '
            'is read in order and takes no requests: leave it out; batches '
            'come from a stage, Batch(DataStream(dataset), '
            'iteration_scheme=ConstantScheme(128)), and a random order from '
            'ShuffleBuffer(stream, buffer_size)')


def scheme_of(dataset: DatasetLike, batch_size: int | None,
              shuffle: bool | None, drop_last: bool, seed: int | None,
              given: object = None) -> IterationScheme | None:
    """Return the iteration scheme that a stream's arguments describe.

    `shuffle`: None if the caller did not pass it, which means False.
    `given`: the iteration scheme that the caller passed too, if any.
    """
    shuffle, is_said = bool(shuffle), shuffle is not None
    if seed is not None and not shuffle and (
            not is_said or given is not None):
        raise ValueError(
            f'seed={seed!r} is that of shuffle=True: pass both; an iteration '
            'scheme, and each stage that draws, has a seed of its own')
    if batch_size is None and not shuffle:
        if drop_last:
            raise ValueError('drop_last=True leaves out a short batch, so it '
                             'needs batch_size')
        return None
    name = type(dataset).__name__
    count: Any = num_examples_of(dataset)
    if takes_requests(dataset) is False or not isinstance(
            count, (int, numpy.integer)):
        batches = '' if batch_size is None else (
            '; batches come from a stage, Batch(DataStream(dataset), '
            f'iteration_scheme=ConstantScheme({batch_size}))')
        shuffled = (
            '; a stage shuffles, ShuffleBuffer(stream, buffer_size)'
            if shuffle else '')
        raise ValueError(
            f'{name} is read in order and takes neither batch_size nor '
            f'shuffle{batches}{shuffled}')
    count = int(count)
    if batch_size is None:
        return ShuffledExampleScheme(count, seed=seed)
    if shuffle:
        return ShuffledScheme(
            count, batch_size, drop_last=drop_last, seed=seed)
    return SequentialScheme(count, batch_size, drop_last=drop_last)


# The kinds of parameters that are given without their names.
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def takes_stream_by_name(stage: type) -> bool:
    """Return whether a class takes its stream by the name `data_stream`.

    It does if the stream is not the first argument. A constructor that takes
    only ``*args`` does not decide: the constructor of the next base does.
    """
    for parameters in constructors_of(stage):
        kinds = {parameter.kind for parameter in parameters}
        if not kinds.isdisjoint(_POSITIONAL):
            return 'data_stream' in [
                parameter.name for parameter in parameters[1:]]
        if Parameter.VAR_POSITIONAL not in kinds:
            return True
    return False


def no_stream_member(stream: Any, name: str) -> AttributeError:
    """Return the error for a method that only another library has."""
    sources = try_call((), lambda: tuple(stream.sources))
    return no_member(stream, name, FOR_STREAMS, sources or ('data',),
                     item_name(stream))


def item_name(stream: Any) -> str:
    """Return 'example' if the stream produces examples, else 'batch'."""
    is_example = try_call(False, lambda: stream.produces_examples)
    return 'example' if is_example is True else 'batch'
