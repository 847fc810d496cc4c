"""Check of saved states: they may be damaged, or belong to another
pipeline."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from fuel.epochs.state import (
    FINISHED, NOT_STARTED, RUNNING, as_text, available, is_share_state,
    read_share_state)
from fuel.epochs.accepted import Acceptance, are_accepted, is_id
from fuel.epochs.identity import data_differences
from fuel.epochs.omitted import is_omitted
from fuel.epochs.pipeline import datasets_of
from fuel.epochs.past import is_past
from fuel.epochs.readers import close_state, position_in, takes_positions
from fuel.epochs.fingerprint import FORMAT, encoded_fingerprint
from fuel.epochs.moved_names import with_first_names
from fuel.epochs.sealing import checksum
from fuel.epochs.shared_draws import find_shared
from fuel.epochs.skipped import Skipped
from fuel.epochs.stage import Stage, stage_of
from fuel.exceptions import StateMismatchError
from fuel.schemes.iteration_scheme import (
    ShardedScheme,
    keeps_generator_before,
    num_requests_of,
    parts_of_scheme,
    scheme_state,
)
from fuel.schemes.shard import is_layout
from fuel.typing import SchemeLike, State, StreamLike
from fuel.utils import rng_state
from fuel.utils.arguments import NamedArguments
from fuel.utils.checks import MOST
from fuel.utils.overrides import is_default, is_original, is_own
from fuel.utils.signatures import parameters_of

_FIELDS = frozenset({
    'format', 'stream', 'epoch', 'position', 'requested', 'scheme',
    'dataset', 'rng', 'leftover', 'failed', 'children'})
# Fields that states of some streams, or the state of the last stage, have.
_FURTHER = frozenset({
    'accepted', 'data_id', 'omitted', 'order_id', 'past', 'ranks', 'skipped'})

# Errors that restoring a damaged value raises. A stage raises StopIteration
# if it reads its input again, beyond the end.
DAMAGE = (TypeError, ValueError, KeyError, IndexError, AttributeError,
          OverflowError, StopIteration)


def checked_state(stream: StreamLike, state: Any,
                  accept: Sequence[str] = ()) -> State:
    """Return a copy of a saved state without the fingerprint.

    StateMismatchError is raised if a field is damaged, or if the state does
    not fit the stream.

    `accept`: what may differ, 'data' or 'order'. The copy has a record of
        what differs.
    """
    owner = stage_of(stream).state_owner
    if owner is None:
        # The state of a foreign stream has a form of its own.
        return state  # type: ignore[no-any-return]
    if is_share_state(state):
        share = read_share_state(state)
        if share['num_workers']:
            raise StateMismatchError(
                f'the state is that of worker {share["worker"]} of '
                f'{share["num_workers"]}: save state_after(count) of '
                'as_iterable(), which is that of the stream')
        state = share['stream']
    if not isinstance(state, dict) or 'format' not in state:
        raise StateMismatchError(
            'a state must be a dict that state_dict() returned, with the '
            f"field 'format', got {type(state).__name__}")
    acceptance = Acceptance(accept)
    try:
        checked = _checked(owner, state, owner.shard is not None, acceptance)
        if 'data_id' in checked:
            _check_data(stream, checked['data_id'], acceptance)
    except StateMismatchError:
        # It may be due to what differs.
        acceptance.check()
        raise
    acceptance.check()
    if acceptance.found:
        acceptance.record(checked)
        acceptance.warn()
    return checked


def _check_data(stream: StreamLike, saved: str,
                acceptance: Acceptance) -> None:
    """Record whether a state was saved with other data."""
    differ = data_differences(datasets_of(stream), saved)
    if differ:
        acceptance.add(
            'data', f"by the field 'data_id', {differ} were not what they are "
            'here')


def _checked(stage: Stage, state: State, is_sharded: bool,
             acceptance: Acceptance) -> State:
    """Return a checked copy of the state of a stage and of stages below it.

    `is_sharded`: whether the pipeline may take a rank's share.
    """
    with stage.lock:
        crc = state.get('crc', ...)
        if crc is not ...:
            state = {**state}
            del state['crc']
        _check_frame(stage, state)
        is_sharded = is_sharded and stage.own_shard is None
        is_other = _check_fingerprint(stage, state, is_sharded, acceptance)
        own = {**state, 'children': []}
        if is_other:
            own['scheme'] = _scheme_of_other(stage, state['scheme'])
        _check_fields(stage, own)
        children = _checked_children(stage, state, is_sharded, acceptance)
        if crc is not ...:
            _check_sum(crc, state)
        del own['format'], own['stream']
        return {**copy.deepcopy(own), 'children': children}


def _check_sum(crc: object, state: State) -> None:
    """Raise StateMismatchError if a state does not have the checksum that was
    saved with it."""
    try:
        is_intact = type(crc) is int and crc == checksum(as_text(state))
    except (TypeError, ValueError, RecursionError):
        is_intact = False
    if not is_intact:
        raise StateMismatchError(
            "the field 'crc' of the state is not the checksum of the "
            'others, which were changed or damaged since it was saved: '
            'take an older state')


def _checked_children(stage: Stage, state: State, is_sharded: bool,
                      acceptance: Acceptance) -> list[State]:
    states, inputs = state['children'], stage.inputs
    if len(inputs) != len(states):
        _refuse(stage, 'children', states, f'{len(inputs)} states')
    checked = []
    for child, part in zip(map(stage_of, inputs), states, strict=True):
        owner = child.state_owner
        if owner is None:
            # The state of a foreign stream, in a form of its own.
            checked.append(part)
            continue
        if not isinstance(part, dict) or 'format' not in part:
            _refuse(stage, 'children', states, 'a list of states')
        checked.append(_checked(owner, part, is_sharded, acceptance))
        if state['epoch'] == RUNNING and checked[-1]['epoch'] != RUNNING:
            _refuse(child, 'epoch', checked[-1]['epoch'],
                    f'that of the stage that reads it, {state["epoch"]!r}')
    return checked


def _refuse(stage: Stage, field: str, value: object,
            expected: str) -> NoReturn:
    try:
        shown = f'{value!r:.200}'
    except RecursionError:
        shown = 'a value that is nested too deeply'
    raise StateMismatchError(
        f'the field {field!r} of the state of stage {stage.name} '
        f'must be {expected}, got {shown}: the state is damaged')


def _check_frame(stage: Stage, state: State) -> None:
    """Raise StateMismatchError if a state has another format, or lacks or adds
    fields."""
    if type(state['format']) is not int or state['format'] != FORMAT:
        raise StateMismatchError(
            f'the state has format {state["format"]!r:.200}, but this '
            f'version of Fuel reads format {FORMAT}')
    for field in sorted((_FIELDS ^ state.keys()) - _FURTHER, key=str):
        raise StateMismatchError(
            f'the field {field!r:.200} of the state of stage '
            f'{stage.name} is '
            f'{"missing" if field in _FIELDS else "not known"}: the state is '
            'damaged')
    if not isinstance(state['stream'], dict):
        _refuse(stage, 'stream', state['stream'], 'a dict')
    if not isinstance(state['children'], list):
        _refuse(stage, 'children', state['children'], 'a list')


def _check_fingerprint(stage: Stage, state: State, is_sharded: bool,
                       acceptance: Acceptance) -> bool:
    """Raise StateMismatchError if other stages have saved a state; record what
    else differs.

    Returns: whether another scheme is accepted.
    """
    saved = state['stream']
    known, _ = encoded_fingerprint(stage, is_sharded, is_copied=False)
    with suppress(TypeError, ValueError, RecursionError):
        # Nearly always.
        if as_text(saved) == known:
            return False
    present: State = encoded_fingerprint(stage, is_sharded)[1]()
    _check_shard(stage, saved.get('shard'), present.get('shard'))
    # Older states name only the classes of a scheme's parts.
    # A number of examples says more than the checksum of indices.
    is_other = False
    for key in sorted(saved.keys() | present.keys(), key=lambda key: (
            'scheme examples' == key, str(key))):
        owner, _, name = str(key).rpartition(' ')
        if not (is_same(saved.get(key), present.get(key))
                or (_is_argument_of_fuel(stage, owner, name)
                    and _said_before(name, saved.get(key), present.get(key)))
                or ('scheme parts' == key and key not in saved)
                or _is_moved(stage, saved.get(key), present.get(key))):
            kind = _kind_of(owner, name)
            hint = _meaning(stage, owner, name) + _declaration(
                name, present.get(owner or 'class'))
            text = (f'{key} was {saved.get(key)!r:.200}, but here it is '
                    f'{present.get(key)!r:.200} (stage {stage.name})')
            if kind:
                acceptance.add(kind, f"by the field 'stream', {text}{hint}")
                is_other = is_other or kind == 'order'
                continue
            # Nothing can be accepted then.
            acceptance.refused.clear()
            raise StateMismatchError(
                "the field 'stream' of the state says that it was saved by "
                f'another pipeline: {text}: build the stream as it was when '
                f'the state was saved{hint}')
    return is_other


def _kind_of(owner: str, name: str) -> str:
    """Return what differs where a value of the fingerprint differs: 'data',
    'order', or '' for the stages.

    `owner`, `name`: the two parts of the key.
    """
    if 'data set' in (owner, f'{owner} {name}') or name == 'sources':
        return 'data'
    return 'order' if 'scheme' in (owner, name) else ''


def _is_moved(stage: Stage, saved: object, present: object) -> bool:
    """Return whether a value fits if moved classes and functions have their
    first names."""
    try:
        return is_same(with_first_names(saved), present)
    except RecursionError:
        raise StateMismatchError(
            f"the field 'stream' of the state of stage {stage.name} is nested "
            'too deeply: the state is damaged') from None


def _is_argument_of_fuel(stage: Stage, owner: str, name: str) -> bool:
    """Return whether a class of Fuel defines an argument.

    `owner`: '' for an argument of the stage, 'scheme' or 'data set'.
    """
    keeper: Any = {'': stage.stream, 'data set': stage.dataset,
                   'scheme': stage.scheme}.get(owner)
    if isinstance(keeper, ShardedScheme):
        keeper = keeper.scheme
    if is_original(keeper, 'kept_arguments') and not is_default(
            keeper, 'kept_arguments'):
        return True
    return any(is_own(base) and name in parameters_of(base)
               for base in type(keeper).__mro__)


def _said_before(name: str, saved: object, present: object) -> bool:
    """Return whether an older version of Fuel has saved an equal argument in
    another way, or has not saved it."""
    if present is None:
        # Saved next to `shape`, or although there were no options.
        return name == 'window_shape' or (
            name == 'storage_options' and saved == {})
    if name in ('drop_last', 'flat_targets', 'shrink'):
        # Releases without this argument behaved as if it were False.
        return saved is None and present is False
    if name == 'files':
        # Tables did not name their files.
        return saved is None
    if name == 'missing':
        # Tables of text marked nothing as missing.
        return saved is None and present == []
    # Older states have only the class of the fitted parameters.
    return (isinstance(present, dict) and isinstance(saved, str)
            and saved == present.get('class'))


def _meaning(stage: Stage, owner: str, name: str) -> str:
    """Return what a checksum that differs says, by the class of the data set;
    '' if it says nothing."""
    text = stage.dataset.kept_meanings.get(name) if (
        owner == 'data set' and isinstance(stage.dataset, NamedArguments)
        ) else None
    return '' if text is None else f': {text}'


def _declaration(name: str, owner: object) -> str:
    """Return a hint to name an argument of a user's class in
    unsaved_arguments; '' for a class of Fuel."""
    if not isinstance(owner, str) or owner.startswith('fuel.') or (
            name in ('class', 'num_examples', 'rng', 'sources')):
        return ''
    return (f'; or, if {name} decides neither the values nor their order, '
            f'name it in unsaved_arguments of {owner}')


def _check_shard(stage: Stage, saved: object, present: object) -> None:
    """Raise StateMismatchError if another rank has saved the state of a stage
    that depends on the data."""
    if not is_same(saved, present):
        raise StateMismatchError(
            f'the order of stage {stage.name} depends on the data, or on '
            'which of them its rank reads, so its state belongs to one rank: '
            'it was saved by '
            f'{_rank_of(saved)}, but here it is {_rank_of(present)}. Resume '
            'with the same number of ranks, each with its own state; or, for '
            'any number, put the stage before the sharded stream, as shard() '
            'of the whole pipeline does where it can')


def _rank_of(shard: object) -> str:
    if isinstance(shard, list) and len(shard) == 2:
        return f'rank {shard[0]!r:.20} of {shard[1]!r:.20}'
    return 'a stream that is not sharded'


def is_same(one: object, other: object) -> bool:
    """Return whether two plain values are equal, and have the same types.

    A tuple and a list may be the same, since JSON decodes both to a list.
    """
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if {dict, list, tuple}.isdisjoint(map(type, one)):
            return (list(map(type, one)) == list(map(type, other))
                    and [*one] == [*other])
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def _check_fields(stage: Stage, state: State) -> None:
    """Raise StateMismatchError for values that no position of a stream
    has."""
    epoch = state['epoch']
    if epoch not in (NOT_STARTED, RUNNING, FINISHED):
        _refuse(stage, 'epoch', epoch,
                f'{NOT_STARTED!r}, {RUNNING!r} or {FINISHED!r}')
    for field in ('position', 'requested'):
        # As `_is_count` does, for each stage.
        if type(state[field]) is not int or not 0 <= state[field] < MOST:
            _refuse(stage, field, state[field], 'a number from 0 on')
        if epoch != RUNNING and state[field]:
            _refuse(stage, field, state[field], f'0 where epoch is {epoch!r}')
    if state['failed'] != [] and (
            epoch != RUNNING or not _are_offsets(state['failed'])):
        _refuse(stage, 'failed', state['failed'],
                'a list of ascending numbers from 0 on')
    if state['leftover'] is not None and (
            stage.dataset is not None or stage.inputs) and (
            (epoch != RUNNING and not stage.counts_epochs)
            or not stage.keeps_leftovers):
        _refuse(stage, 'leftover', state['leftover'], 'None')
    if 'skipped' in state:
        try:
            is_right = Skipped.of_plain(state['skipped']).count > 0
        except DAMAGE:
            is_right = False
        if not is_right or epoch == NOT_STARTED:
            _refuse(stage, 'skipped', state['skipped'],
                    'the examples that were left out of an epoch')
    if 'omitted' in state and not is_omitted(state['omitted']):
        _refuse(stage, 'omitted', state['omitted'],
                'ascending ranges of items of epochs')
    for field in ('order_id', 'data_id'):
        if field in state and not is_id(state[field]):
            _refuse(stage, field, state[field], 'an id of 20 characters')
    if 'accepted' in state and not are_accepted(state['accepted']):
        _refuse(stage, 'accepted', state['accepted'],
                'the differences that were accepted')
    if 'ranks' in state and not is_layout(state['ranks']):
        _refuse(stage, 'ranks', state['ranks'],
                'the number of ranks and how they shared the order')
    if 'past' in state and not is_past(state['past']):
        _refuse(stage, 'past', state['past'],
                'the numbers of items of the epochs that were begun before')
    _check_scheme(stage, state)
    _check_dataset(stage, state)
    _check_generator(stage, state)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST


def _are_offsets(values: object) -> bool:
    return isinstance(values, list) and all(
        map(_is_count, values)) and values == sorted(set(values))


def _check_scheme(stage: Stage, state: State) -> None:
    saved = state['scheme']
    if stage.scheme is None:
        if saved is not None:
            _refuse(stage, 'scheme', saved, 'None')
        if state['requested'] < state['position']:
            _refuse(stage, 'requested', state['requested'],
                    f'at least the position, {state["position"]}')
        return
    scheme = _whole_scheme(stage)
    count = num_requests_of(scheme)
    if isinstance(count, int) and state['requested'] > count:
        _refuse(stage, 'requested', state['requested'],
                f'at most {count}, the number of requests of an epoch')
    try:
        is_taken = _is_taken_up(scheme, saved)
    except DAMAGE as error:
        raise StateMismatchError(
            f"the field 'scheme' of the state of stage {stage.name} cannot "
            f'be restored by {type(scheme).__name__}: {error!r:.300}'
            ) from error
    if not is_taken:
        _refuse(stage, 'scheme', saved,
                f'a state of {type(scheme).__name__}')


def _whole_scheme(stage: Stage) -> Any:
    """Return the scheme of a stage, before ranks share it; None without."""
    scheme: Any = stage.scheme
    return scheme.scheme if isinstance(scheme, ShardedScheme) else scheme


def _scheme_of_other(stage: Stage, saved: Any) -> Any:
    """Return the state of an accepted scheme: what another scheme has saved,
    or its present state if it does not take that up."""
    scheme = _whole_scheme(stage)
    if scheme is None:
        return None
    with suppress(*DAMAGE):
        if _is_taken_up(scheme, saved):
            return saved
    return scheme_state(scheme)


def _is_taken_up(scheme: Any, saved: State) -> bool:
    """Return whether a scheme restores a state exactly as it was saved."""
    if keeps_generator_before(scheme) and is_original(
            scheme, 'load_state_dict'):
        # It has no other state.
        rng = rng_state.saved_again(scheme.rng, saved['rng'])
        return as_text({'rng': rng}) == as_text(saved)
    before = scheme_state(scheme)
    try:
        # The state of a user's scheme may have any keys.
        scheme.load_state_dict(copy.deepcopy(saved))
        # A user's scheme may restore a state of its older version.
        return is_same(scheme.state_dict(), saved) or not (
            _has_own_state(scheme))
    finally:
        scheme.load_state_dict(before)


def _has_own_state(scheme: SchemeLike) -> bool:
    """Return whether the whole state of a scheme is made and restored by
    Fuel's classes."""
    return is_original(scheme, 'state_dict') and is_original(
        scheme, 'load_state_dict') and all(
            map(_has_own_state, parts_of_scheme(scheme)))


def _check_dataset(stage: Stage, state: State) -> None:
    saved = state['dataset']
    if saved is None:
        if state['epoch'] == RUNNING and vars(stage.stream).get(
                'data_state') is not None:
            _refuse(stage, 'dataset', saved, 'a position')
        return
    dataset: Any = stage.dataset
    name = type(dataset).__name__
    if dataset is None or state['epoch'] == NOT_STARTED or (
            not takes_positions(dataset)):
        _refuse(stage, 'dataset', saved, 'None')
    try:
        opened = dataset.open_at(copy.deepcopy(saved))
        try:
            is_taken = not is_original(dataset, 'open_at') or is_same(
                available(position_in(dataset, opened)), saved)
        finally:
            close_state(dataset, opened)
    except DAMAGE as error:
        raise StateMismatchError(
            f"the field 'dataset' of the state of stage {stage.name} is not "
            f'a position of {name}: {error!r:.300}') from error
    if not is_taken:
        _refuse(stage, 'dataset', saved, f'a position of {name}')


def _check_generator(stage: Stage, state: State) -> None:
    rng, saved = stage.generator, state['rng']
    if isinstance(saved, dict) and 'shared' in saved:
        _check_shared(stage, saved['shared'])
        if saved.keys() == {'shared'}:
            saved = None
    if rng is None:
        if saved is not None:
            _refuse(stage, 'rng', saved, 'None')
        return
    try:
        rng_state.check_generator_state(rng, saved)
    except ValueError as error:
        raise StateMismatchError(
            f"the field 'rng' of the state of stage {stage.name}: {error}"
            ) from error


def _check_shared(stage: Stage, saved: object) -> None:
    """Raise StateMismatchError if the inputs of a stage do not share what
    they shared when a state was saved."""
    sources = find_shared(stage).sources
    if not isinstance(saved, list) or len(saved) != len(sources):
        raise StateMismatchError(
            f"the field 'rng' of the state of stage {stage.name} says that "
            'parts of the pipeline drew from the same generators or schemes, '
            f'but here they share {len(sources)} of them: build the stream '
            'as it was when the state was saved')
    for source, part in zip(sources, saved, strict=True):
        try:
            if rng_state.is_generator(source):
                rng_state.check_generator_state(source, part)
            elif not _is_taken_up(source, part):
                _refuse(stage, 'rng', part,
                        f'a state of {type(source).__name__}')
        except DAMAGE as error:
            raise StateMismatchError(
                f"the field 'rng' of the state of stage {stage.name}: "
                f'{error!r:.300}') from error
