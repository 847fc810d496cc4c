"""Trainings on random pipelines: every answer is compared with a replay.

They leave out steps, are killed, go on in another process, and on another
number of ranks; see `support.random_lives`.
"""
import sys
from collections import Counter
from itertools import cycle

import pytest
from support.random_lives import Life, in_another_process

from fuel.datasets import IndexableDataset
from fuel.exceptions import UnknownOrderError
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Cache, Mix, Take, Unpack

pytestmark = pytest.mark.filterwarnings(
    'ignore:the streams merged', 'ignore:an epoch')
BUILDERS = 'Shareable', 'Shareable', 'Build', 'Shareable', 'Tangled'
# Of so many trainings, the states of one may be refused: parts of its pipeline
# draw from a generator in turns that depend on how far each part has read.
RARE = 50


def run(numbers, every):
    """Run trainings, and go on with some in another process; return how often
    each thing was done.

    `every`: of so many trainings, one goes on there.
    """
    done, jobs = Counter(), []
    for number, builder in zip(numbers, cycle(BUILDERS), strict=False):
        job = Life(number, builder, done).run()
        if job is not None and number % every == 0:
            jobs.append(job)
    answers = in_another_process([given for given, _ in jobs])
    assert answers == [expected for _, expected in jobs]
    done['in another process'] = len(jobs)
    return done


def report(done):
    """Print how often each thing was done; pytest shows it with -rP or -s."""
    sys.stdout.write(f'{dict(done)}\n')


def test_answers_hold_over_random_trainings():
    """Steps are left out, some trainings are killed, some change ranks."""
    done = run(range(60), 5)
    report(done)
    assert done['pipelines'] > 40
    for thing in ('left out', 'killed', 'ranks', 'other ranks',
                  'in another process'):
        assert done[thing] >= 5, thing
    assert done['not saved'] <= 60 / RARE


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_answers_hold_over_two_thousand_random_trainings():
    """Each thing is done in at least four hundred."""
    done = run(range(2000), 4)
    report(done)
    for thing in ('left out', 'killed', 'ranks', 'other ranks'):
        assert done[thing] >= 400, thing
    assert done['in another process'] >= 200
    assert done['not saved'] <= 2000 / RARE


def test_steps_are_found_behind_an_epoch_without_items():
    """The draws of a mixture decide which of its epochs are empty."""
    def make():
        return Mix([DataStream(
            IndexableDataset({'y': [0, 1]}),
            iteration_scheme=SequentialScheme(2, 1)), Take(DataStream(
                IndexableDataset({'y': [2]}), batch_size=1), 0)],
            seed=0, stop='first')
    stream = make()
    came = [[rows for rows, in stream] for _ in range(12)]
    assert [] in came[:3]
    rows = sum(came, [])
    assert rows
    assert [make().order.step(number).row.tolist()
            for number in range(len(rows))] == rows


def endless(size, count):
    """Return a mixture of batches of two sizes, whose epochs go on."""
    return Mix([DataStream(
        IndexableDataset({'y': list(range(first, first + count))}),
        iteration_scheme=SequentialScheme(count, size))
        for first, count in ((0, 4), (1000, count))], seed=7,
        stop='forever', epoch_size=5)


def test_epochs_of_as_many_batches_may_differ_in_examples():
    """So each is counted, to find a step."""
    came = [[row for row, in Unpack(stream)]
            for stream in [endless(4, 25)] for _ in range(4)]
    assert len(set(map(len, came))) > 1
    order = Unpack(endless(4, 25)).order
    assert sum(came, []) == [order.step(number).row[0] + 1000 * order.step(
        number).dataset[0] for number in range(sum(map(len, came)))]


def test_order_that_is_not_known_any_more_has_a_reason():
    """The attribute is there; a question is refused."""
    def make():
        return Cache(Cache(Mix([DataStream(
            IndexableDataset({'y': list(range(4))}),
            iteration_scheme=ShuffledScheme(4, 3, seed=1))], seed=7,
            stop='forever', epoch_size=5), ConstantScheme(2)),
            ConstantScheme(1))
    stream, loaded = make(), make()
    list(stream)
    iterator = iter(stream)
    for _ in range(9):
        next(iterator)
    loaded.load_state_dict(stream.state_dict())
    assert 'has begun anew' in repr(loaded.order)
    with pytest.raises(UnknownOrderError, match='has begun anew'):
        len(loaded.order)
