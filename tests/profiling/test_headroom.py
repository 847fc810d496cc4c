"""A profile says how fast the training could be if data cost nothing."""
import json
import threading
import time

import numpy
import pytest

import fuel
from fuel.datasets import IndexableDataset
from fuel.profiling import Headroom
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing

NAP = .004
N, SIZE = 205, 10


def source():
    """Return a stream of 21 batches an epoch, the last of five examples."""
    return DataStream(IndexableDataset({
        'x': numpy.arange(2 * N).reshape(N, 2), 'y': numpy.arange(N)}),
        batch_size=SIZE)


def slow(batch):
    """Take as long as a step."""
    time.sleep(NAP)
    return batch


def step(batch):
    """Train."""
    time.sleep(NAP)


def test_headroom_is_what_the_data_cost():
    """They cost half of the time here, so twice as many could be trained."""
    profile = fuel.profile(Mapping(source(), slow), batches=30, step=step,
                           headroom=True)
    found = profile.headroom
    assert isinstance(found, Headroom)
    assert 1.1 < found.factor
    assert 0 < found.steps_per_second < 1 / NAP
    assert found.examples_per_second == pytest.approx(
        SIZE * found.steps_per_second)
    assert found.factor == pytest.approx(
        found.examples_per_second / found.examples_per_second_now)
    assert (profile.batches_per_second, profile.examples_per_second) == (
        found.steps_per_second_now, found.examples_per_second_now)


def test_no_headroom_where_the_step_is_the_bottleneck():
    """Faster data would change nothing."""
    profile = fuel.profile(source(), batches=30, step=step, headroom=True)
    assert .3 < profile.headroom.factor < 3
    assert profile.bottleneck.startswith('The training step takes')


def test_a_trace_has_no_step_of_the_batch_that_is_repeated():
    """It has only what was measured."""
    profile = fuel.profile(source(), batches=5, warm_up=2, step=step,
                           headroom=True)
    spans = {one.kind: len(one.spans) for one in profile.spans
             if one.kind in ('step', 'wait')}
    assert {'step': 5, 'wait': 7} == spans


def test_a_step_may_change_its_batch():
    """Each gets a new copy of a whole batch, also one from workers."""
    seen = []

    def spoil(batch):
        seen.append((batch[0].copy(), len(batch[1])))
        batch[0][...] = -1

    with MultiProcessing(source(), start_method='fork') as stream:
        # The batches that are timed end with the short one.
        profile = fuel.profile(stream, batches=20, warm_up=1, step=spoil,
                               headroom=True)
    assert 20 == profile.batches
    # One warms up, without being timed, and 20 are timed.
    repeated = seen[20:]
    assert 21 == len(repeated)
    assert {SIZE} == {count for _, count in repeated}
    assert all((rows == repeated[0][0]).all() and (rows >= 0).all()
               for rows, _ in repeated)


def test_copies_are_made_while_the_clock_stands():
    """The time of copies does not count."""
    class Heavy:
        def __deepcopy__(self, memo):
            time.sleep(5 * NAP)
            return Heavy()

    stream = Mapping(source(), lambda batch: (batch[0], Heavy()))
    profile = fuel.profile(stream, batches=10, step=step, headroom=True)
    assert profile.headroom.factor > .2


def test_workers_of_the_profile_are_gone_before_data_are_free():
    """They would take time from the steps."""
    stream = MultiProcessing(source(), start_method='fork')
    pids = []
    fuel.profile(stream, batches=5, warm_up=0, headroom=True,
                 step=lambda batch: pids.append(stream.worker_pids))
    assert [1] * 5 + [0] * 5 == [len(found) for found in pids]


def test_headroom_is_in_text_data_and_picture(tmp_path):
    """The headroom is left out if it was not measured."""
    profile = fuel.profile(source(), batches=5, step=step, headroom=True)
    text = str(profile.headroom)
    assert str(profile).splitlines()[-1] == text
    assert text.startswith('If data cost nothing: ')
    assert f'{profile.headroom.factor:.2f} times as many as now' in text
    profile.save(tmp_path / 'found.json')
    data = json.loads((tmp_path / 'found.json').read_text())
    assert profile.headroom == Headroom(**data['headroom'])
    assert 'If data cost nothing: ' in profile.svg()
    without = fuel.profile(source(), batches=5, step=step)
    assert without.headroom is None is without.as_dict()['headroom']
    assert 'nothing' not in str(without) + without.svg()


def test_headroom_needs_a_step_and_copies():
    """The message says what to do."""
    with pytest.raises(ValueError, match=r'pass step=\.\.\.'):
        fuel.profile(source(), headroom=True)
    locked = Mapping(source(), lambda batch: (threading.Lock(), batch[1]))
    with pytest.raises(TypeError, match='this batch cannot be copied'):
        fuel.profile(locked, batches=2, step=step, headroom=True)
    # Without data there is nothing to repeat.
    nothing = DataStream(IndexableDataset([]), batch_size=2)
    assert fuel.profile(nothing, step=step, headroom=True).headroom is None
