"""Check what a stream promises about saved positions."""
from __future__ import annotations

import json
import pickle
from typing import Any

from fuel.testing.replay import (
    Followed, Saved, StreamCase, counted_requests, follow)
from fuel.testing.data import Frozen, freeze, freeze_all
from fuel.testing.promises import Promises, expect

#: Limit of the bytes of a state as JSON: a state holds counts, never data.
MOST_BYTES = 20000


def check_states(case: StreamCase) -> None:
    """A state saved at any step continues exactly in another process."""
    replay_all(case, 'state')


def check_pickles(case: StreamCase) -> None:
    """A pickled stream and iterator continue exactly in another process."""
    replay_all(case, 'pickle')


def replay_all(case: StreamCase, kind: str) -> None:
    """Save at each step, continue from all, and compare the items that follow.

    The steps of the first epoch are: before the first item; after each item;
    after ``StopIteration``.  The step of the second epoch is the one after
    its first item.
    """
    total = len(case.epochs[0])
    steps = [(0, step) for step in range(total + 2)] + [(1, 1)]
    saved, expected = zip(*[save_at(case, kind, epoch, step)
                            for epoch, step in steps], strict=True)
    found = case.replay(case.build, saved)
    for (epoch, step), wanted, got in zip(
            steps, expected, found, strict=True):
        where = f'Saved in epoch {epoch} at item {step} of {total}'
        case.expect_epoch(wanted.rest, got.rest,
                          f'{where}: in the rest of the epoch')
        case.expect_epoch(wanted.following, got.following,
                          f'{where}: in the next epoch')
        # Resuming may make the requests of the rest, and a few more for the
        # batch from which examples were left over.
        expect((kind == 'state' and step > total)
               or got.requests <= wanted.requests + 2,
               f'{where}: {got.requests} requests were made, but '
               f'{wanted.requests} were left.')


def save_at(case: StreamCase, kind: str, epoch: int, step: int
            ) -> tuple[Saved, Followed]:
    """Return the position saved at a step, and the items that follow it."""
    with case.stream() as stream:
        # Count from the start: `follow` reads with counted requests too.
        with counted_requests(stream):
            for _ in range(epoch):
                freeze_all(stream.get_epoch_iterator())
            iterator = stream.get_epoch_iterator()
            for _ in range(step):
                next(iterator, None)
        saved = Saved(
            kind, json.dumps(stream.state_dict()).encode()
            if kind == 'state' else pickle.dumps((stream, iterator)))
        followed = follow(stream, iterator)
        if kind == 'state' and step > len(case.epochs[0]):
            # A state saved after the end of an epoch begins the next epoch.
            followed = followed._replace(
                rest=followed.following,
                following=freeze_all(stream.get_epoch_iterator()))
        return saved, followed


def check_plain_state(case: StreamCase) -> None:
    """A state is plain data ready for JSON, and small."""
    with case.stream() as stream:
        states = [stream.state_dict()]
        epoch = stream.get_epoch_iterator()
        for _ in range(2):
            states.append(stream.state_dict())
            next(epoch)
    for state in states:
        text = json.dumps(state)
        expect(json.loads(text) == state,
               f'JSON changes the state {state}.')
        expect(len(text) < MOST_BYTES,
               f'A state has {len(text)} bytes: it holds data.')


def check_restored_again(case: StreamCase) -> None:
    """A position survives being restored and saved again at every step."""
    expected, state = case.epochs[0], None
    found: list[Frozen] = []
    for _ in expected:
        with case.stream() as stream:
            if state is not None:
                stream.load_state_dict(state)
                expect(state == stream.state_dict(),
                       'A stream that just loaded a state returns another.')
            found.append(freeze(next(stream.get_epoch_iterator())))
            state = stream.state_dict()
    case.expect_epoch(expected, found, 'Restored before each item')
    with case.stream() as stream:
        assert state is not None
        stream.load_state_dict(state)
        expect(not list(stream.get_epoch_iterator()),
               'After the last item more came.')


def check_interleaved_states(case: StreamCase) -> None:
    """States of two epochs at once are each their own."""
    if case.draws:
        return
    with case.stream() as stream:
        first = stream.get_epoch_iterator()
        for _ in case.epochs[0]:
            next(first)
        second = stream.get_epoch_iterator()
        next(second)
        states = first.state_dict(), second.state_dict()
    for state, rest in zip(states, ([], case.epochs[1][1:]), strict=True):
        with case.stream() as stream:
            stream.load_state_dict(state)
            case.expect_epoch(rest, freeze_all(stream.get_epoch_iterator()),
                              'From the state of one of two epochs')


def check_iterator_alone(case: StreamCase) -> None:
    """An iterator pickled by itself continues where it stood."""
    for step in (0, 1, len(case.epochs[0])):
        with case.stream() as stream:
            epoch = stream.get_epoch_iterator()
            for _ in range(step):
                next(epoch)
            copy = pickle.loads(pickle.dumps(epoch))
            try:
                case.expect_epoch(case.epochs[0][step:], freeze_all(copy),
                                  f'Pickled at item {step}')
            finally:
                copy.data_stream.close()


def check_stream_alone(case: StreamCase) -> None:
    """A stream pickled by itself begins an epoch."""
    for step in (None, 1):
        with case.stream() as stream:
            epoch: Any = None
            if step is not None:
                epoch = stream.get_epoch_iterator()
                next(epoch)
            copy = pickle.loads(pickle.dumps(stream))
            try:
                got = freeze_all(copy.get_epoch_iterator())
            finally:
                copy.close()
        if not case.draws:
            case.expect_epoch(case.epochs[step or 0], got,
                              'Of a pickled stream')


#: A dict from names to the checks of saved positions.
RESUMING_PROMISES: Promises[StreamCase] = {
    'state in another process': check_states,
    'pickle in another process': check_pickles,
    'plain state': check_plain_state,
    'restored again': check_restored_again,
    'states of interleaved epochs': check_interleaved_states,
    'iterator alone': check_iterator_alone,
    'stream alone': check_stream_alone,
}
