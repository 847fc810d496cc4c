"""Trainings on random pipelines, which leave out steps, are killed, and go on
with the same or another number of ranks.

The oracle is what the iterators deliver that leave out nothing and are not
killed: each row holds its number and its data set.
"""
import json
import random
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy

from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.orders import leave_out
from support import random_orders
from support.random_orders import MOST

BUILDERS = {kind.__name__: kind for kind in (
    random_orders.Build, random_orders.Shareable, random_orders.Showing,
    random_orders.Tangled)}
EPOCHS = 3


def rows_of(item):
    """Return the rows of an item that was delivered, of its first source."""
    return numpy.atleast_1d(numpy.asarray(item[0])).tolist()


def make(number, builder, rank=0, ranks=1, by='batch', uneven='uneven'):
    """Return a random pipeline, or a rank's share of it."""
    stream = random_orders.build(number, BUILDERS[builder])
    return stream if ranks == 1 else stream.shard(rank, ranks, by, uneven)


def epochs_of(stream, count):
    """Return the rows of each item of some epochs."""
    return [list(map(rows_of, stream)) for _ in range(count)]


def counted(items):
    """Return how often each row comes in items."""
    return Counter(row for item in items for row in item)


class Life:
    """One training.

    `done`: counts what was done.
    """

    def __init__(self, number, builder, done):
        self.number = number
        self.builder = builder
        self.done = done
        self.random = random.Random(f'{builder} {number}')
        built = BUILDERS[builder](number)
        stream = built.pipeline()
        # Parts share a generator, or one is read twice.
        self.is_tangled = built.num_shared > 1
        self.starts = random_orders.starts_of(stream)
        # True if items have examples of other sources than the first.
        self.merges = len(stream.sources) > 1

    def run(self):
        """Compare all answers with replays; return what another process has
        to deliver, if it is asked."""
        try:
            if len(make(self.number, self.builder).order) > MOST:
                self.done['endless'] += 1
                return None
        except UnknownOrderError:
            self.done['unknown'] += 1
            return None
        try:
            self.whole = epochs_of(make(self.number, self.builder), EPOCHS)
        except ValueError:
            # Streams that stand beside each other differ in size.
            self.done['not read'] += 1
            return None
        self.done['pipelines'] += 1
        self.goes_on = make(self.number, self.builder).order.goes_on
        self._ask()
        self._choose_ranks()
        self._choose_steps()
        try:
            return self._train()
        except TypeError as error:
            if not (self.is_tangled and 'draw from one object' in str(error)):
                raise
            self.done['not saved'] += 1
            return None

    def said(self, table):
        """Return what the rows of a table hold."""
        return [self.starts[dataset] + row for dataset, row in table]

    def _ask(self):
        """Compare all answers with what comes."""
        stream = make(self.number, self.builder)
        self.digests = []
        for epoch, items in enumerate(self.whole):
            order = stream.order
            self._compare(order, epoch, items)
            self.digests.append(order.digest())
            iterator = iter(stream)
            if next(iterator, None) is not None:
                self._compare(stream.order, epoch, items)
            list(iterator)
        if not self.goes_on:
            first = make(self.number, self.builder).order
            for epoch, items in enumerate(self.whole):
                try:
                    order = first.epoch(epoch)
                except UnknownOrderError:
                    self.done['later epochs unknown'] += 1
                    break
                self._compare(order, epoch, items)

    def _compare(self, order, epoch, items):
        """Compare the answers of an order with the items of its epoch."""
        assert order.epoch_number == epoch
        assert len(order) == len(items)
        assert [self.said(table) for table in order] == items
        assert self.said(order[:]) == sum(items, [])
        first = self.random.randint(0, len(items))
        stop = self.random.randint(0, len(items))
        assert self.said(order[first:stop]) == sum(items[first:stop], [])
        cut = self.random.randint(0, len(order[:]))
        assert (order.digest(0, cut) + order.digest(cut)) % 2 ** 64 == (
            order.digest())
        for example in {*order[:]}:
            places = order.index(example[1], example[0])
            row = self.said([example])[0]
            came = {(item, None if places[0].row is None else place)
                    for item, rows in enumerate(items)
                    for place, one in enumerate(rows) if one == row}
            # Streams that are merged have places, too.
            assert came <= {(place.item, place.row) for place in places}
            if not self.merges:
                assert len(came) == len(places)

    def _share(self, rank, ranks=None):
        return make(self.number, self.builder, rank, ranks or self.ranks,
                    self.by, self.uneven)

    def _choose_ranks(self):
        """Choose how many ranks share it, and replay each."""
        self.uneven = self.random.choice([*['uneven'] * 5, 'drop', 'pad'])
        self.accumulate = self.random.randint(1, 3)
        self.ranks = self.random.randint(1, 4)
        for by in self.random.choice([['example', 'batch'], ['batch']]):
            self.by = by
            try:
                self.shares = [epochs_of(self._share(rank), EPOCHS)
                               for rank in range(self.ranks)]
                break
            except (TypeError, ValueError, NotImplementedError):
                # They cannot share it so.
                continue
        else:
            self.ranks, self.shares = 1, [self.whole]
        if self.ranks > 1:
            self.done['ranks'] += 1
        self.rounds = [max(len(share[epoch]) for share in self.shares)
                       for epoch in range(EPOCHS)]
        for rank in range(self.ranks):
            order = self._share(rank).order
            assert order.digest() == self.digests[0]
            own = order.share(rank) if self.ranks > 1 else order
            assert [self.said(table) for table in own] == (
                self.shares[rank][0])
        # The first round of each step, for each epoch.
        self.steps = [(epoch, first) for epoch, count in enumerate(self.rounds)
                      for first in range(0, count, self.accumulate)]
        self._check_steps(self._share(self.ranks - 1), len(self.steps))

    def _check_steps(self, stream, most):
        """Compare steps with the rounds of all ranks."""
        order = stream.order
        for number, (epoch, first) in enumerate(self.steps[:most]):
            try:
                table = order.step(number, self.accumulate)
            except UnknownOrderError as error:
                if not (epoch or order.epoch_number
                        or 'has begun anew before' in str(error)):
                    raise
                self.done['steps unknown'] += 1
                return
            ranks = (table.rank.tolist() if self.ranks > 1
                     else [0] * len(table))
            for rank, share in enumerate(self.shares):
                found = [row for one, row in zip(
                    ranks, self.said(table), strict=True) if one == rank]
                expected = sum(share[epoch][
                    first:first + self.accumulate], [])
                # Rows that are repeated, to pad, are left out.
                assert found == expected or (
                    self.uneven == 'pad'
                    and not counted([found]) - counted([expected]))

    def _choose_steps(self):
        """Choose which steps are left out."""
        self.left_out = set()
        until = sum(epoch < (1 if self.goes_on else 2)
                    for epoch, _ in self.steps)
        if self.random.random() < .7 and until:
            self.left_out = set(self.random.sample(
                range(until), self.random.randint(1, min(3, until))))
            try:
                self._new(0)
            except (UnknownOrderError, ValueError) as error:
                if not isinstance(error, UnknownOrderError) and not (
                        self.uneven == 'pad' and 'repeats' in str(error)):
                    raise
                self.left_out = set()
                self.done['not left out'] += 1
        if self.left_out:
            self.done['left out'] += 1
        self.bad = [{number for step, (one, first) in enumerate(self.steps)
                     if one == epoch and step in self.left_out
                     for number in range(first, first + self.accumulate)}
                    for epoch in range(EPOCHS)]

    def _new(self, rank):
        """Return a stream that leaves out the steps."""
        stream = self._share(rank)
        return leave_out(stream, self.left_out, accumulate=(
            self.accumulate)) if self.left_out else stream

    def _expected(self, rank, epoch, first=0):
        """Return the items of a rank from a round on."""
        return [item for number, item in enumerate(self.shares[rank][epoch])
                if number >= first and number not in self.bad[epoch]]

    def _train(self):
        """Deliver rounds, save the state, and go on elsewhere."""
        epoch = self.random.randint(0, 1)
        count = min(len(self._expected(rank, epoch))
                    for rank in range(self.ranks))
        stop = self.random.randint(0, count)
        saver = self.random.randrange(self.ranks)
        states = []
        for rank in range(self.ranks):
            stream = self._new(rank)
            for before in range(epoch):
                assert list(map(rows_of, stream)) == (
                    self._expected(rank, before))
            iterator = iter(stream)
            came = list(map(rows_of, self._stepping(
                stream, epoch, islice(iterator, stop))))
            assert came == self._expected(rank, epoch)[:stop]
            states.append(json.dumps(stream.state_dict()))
            if came:
                self._check_digest(stream, epoch)
            assert list(map(rows_of, self._stepping(
                stream, epoch, iterator, stop))) == (
                    self._expected(rank, epoch)[stop:])
        state = json.loads(states[saver])
        self.done['killed'] += 1
        going = [number for number in range(len(self.shares[saver][epoch]))
                 if number not in self.bad[epoch]][:stop]
        first = going[-1] + 1 if going else 0
        rest, used = [], []
        for rank in range(self.ranks):
            stream = self._share(rank)
            used.append(self._load(stream, state, json.loads(states[rank])))
            assert stream.order.epoch_number == epoch
            self._check_step(stream, epoch, first - 1)
            self._check_digest(stream, epoch)
            self._check_left_out(stream, epoch)
            self._check_steps(stream, len(self.steps))
            expected = [self._expected(rank, epoch, first), *[
                self._expected(rank, later)
                for later in range(epoch + 1, EPOCHS)]]
            assert epochs_of(stream, EPOCHS - epoch) == expected
            rest.append(expected)
        self._change_ranks(state, epoch, first)
        rank = self.random.randrange(self.ranks)
        return ((self.number, self.builder, rank, self.ranks, self.by,
                 self.uneven, used[rank], EPOCHS - epoch), rest[rank])

    def _stepping(self, stream, epoch, iterator, done=0):
        """Return the items of an iterator; compare the step of each.

        `done`: number of items that came before.
        """
        rounds = [number for number in range(self.rounds[epoch])
                  if number not in self.bad[epoch]]
        for number, item in enumerate(iterator, done):
            self._check_step(stream, epoch, rounds[number])
            yield item

    def _check_step(self, stream, epoch, number):
        """Compare the step of the last batch; it was in this round, or before
        the epoch if that is -1."""
        step = sum(one < epoch for one, _ in self.steps) + (
            number // self.accumulate)
        try:
            assert stream.current_step(self.accumulate) == step
            self.done['steps of batches'] += 1
        except UnknownOrderError:
            self.done['steps of batches unknown'] += 1

    def _load(self, stream, state, own):
        """Load a state, or that of the rank if it belongs to one."""
        try:
            stream.load_state_dict(state)
        except StateMismatchError as error:
            if 'its state belongs to one rank' not in str(error):
                raise
            stream.load_state_dict(own)
            self.done['states of one rank'] += 1
            return own
        return state

    def _check_digest(self, stream, epoch):
        """Compare the digest of a restored order with that of the epoch."""
        if epoch and self.goes_on:
            # A rank leaves the mixture where it has read it to.
            return
        try:
            assert stream.order.digest() == self.digests[epoch]
        except UnknownOrderError as error:
            if 'has begun anew before the state was saved' not in str(error):
                raise
            self.done['digests unknown'] += 1

    def _check_left_out(self, stream, epoch):
        """Compare what the places say of each item with what comes."""
        order = stream.order
        if self.ranks > 1 or self.merges:
            return
        for item, rows in enumerate(self.whole[epoch]):
            try:
                table = order[item]
                order.index(table.row[0], int(table.dataset[0]))
            except UnknownOrderError:
                # A stream of a mixture has begun anew since.
                continue
            assert self.said(table) == rows
            for number, row in table:
                assert {place.left_out for place in order.index(row, number)
                        if place.item == item} == {item in self.bad[epoch]}

    def _change_ranks(self, state, epoch, first):
        """Go on with another number of ranks."""
        others = self.random.choice(
            [ranks for ranks in range(1, 6) if ranks != self.ranks])
        if self.ranks > 1 and self.uneven != 'uneven':
            return
        self.uneven = 'uneven'
        if self.ranks == 1:
            self.by = 'batch'
        came, after = [], []
        try:
            for rank in range(others):
                stream = self._share(rank, others)
                stream.load_state_dict(state)
                self._check_digest(stream, epoch)
                came += map(rows_of, stream)
                if epoch + 1 < EPOCHS:
                    after += map(rows_of, stream)
        except StateMismatchError:
            self.done['refused on other ranks'] += 1
            return
        except (TypeError, ValueError, NotImplementedError):
            self.done['not shared'] += 1
            return
        self.done['other ranks'] += 1
        for later, found in ((epoch, came), (epoch + 1, after)):
            start = first if later == epoch else 0
            if later and self.goes_on and (later > epoch or self.left_out):
                continue
            wanted = [item for rank in range(self.ranks)
                      for item in self._expected(rank, later, start)]
            bad = [item for rank in range(self.ranks)
                   for number, item in enumerate(self.shares[rank][later])
                   if number >= start and number in self.bad[later]]
            if not bad:
                assert counted(found) == counted(wanted)
                continue
            # Whole rounds are left out, also of items that are not named.
            assert not counted(found) - counted(wanted)
            ranges = self._ranges(later, start)
            missing = counted(wanted) - counted(found)
            assert sum(missing.values()) <= ranges * 2 * (others - 1) * max(
                map(len, sum(self.shares[0], []) or [[]]))
            self.done['left out on other ranks'] += 1

    def _ranges(self, epoch, start):
        """Return how many ranges of rounds are left out."""
        bad = {number for number in self.bad[epoch] if number >= start}
        return sum(number - 1 not in bad for number in bad)


PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
from support.random_lives import epochs_of, make
answers = []
for *built, state, count in json.load(sys.stdin):
    stream = make(*built)
    stream.load_state_dict(state)
    answers.append(epochs_of(stream, count))
json.dump(answers, sys.stdout)
"""


def in_another_process(jobs):
    """Return what streams deliver in a new process from their states on."""
    program = PROGRAM.format(tests=str(Path(__file__).parents[1]))
    answer = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        input=json.dumps(jobs), capture_output=True, check=True, text=True)
    return json.loads(answer.stdout)
