"""Each example once, on two real processes, and after a run was killed; and
what their data take is logged.

65 examples in batches of 4 divide by nothing.  The programs are in
tests/support; they write down what each rank was trained on.
"""
import csv
import json
import math
import os
import signal
from pathlib import Path

import pytest
from support import processes
from support.named_classes import find_class, named_classes
from support.trainer_pipelines import epochs, read_log
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator)

# Each process imports a framework, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(600)

SUPPORT = Path(__file__).parents[2] / 'support'
ORDER = epochs(3)
BATCHES = len(ORDER[0])


def run(program, ranks, folder, **options):
    """Run a program on some ranks; return their (status, errors)."""
    started = processes.start_ranks(
        ranks, SUPPORT / f'{program}_program.py',
        json.dumps({'folder': str(folder), **options}))
    return [(status, errors) for status, _, errors
            in processes.end_together(started, timeout=280)]


def check(ran, *statuses):
    """Fail with the errors unless each rank ended as is expected."""
    for status, errors in ran:
        assert status in (statuses or (0,)), errors


def check_read(folder, ranks, num_epochs, first=(0, 0), drop=False):
    """Check which batches each rank has trained on, in order, each once.

    `first`: the epoch, and the batch in its whole order, to begin with.
    `drop`: whether the batches of a last round that is short are left out.
    """
    stop = BATCHES // ranks * ranks if drop else BATCHES
    for rank in range(ranks):
        expected = [
            (epoch, ORDER[epoch][number]) for epoch in range(num_epochs)
            for number in range(rank, stop, ranks) if (epoch, number) >= first]
        assert expected == read_log(folder, rank)


def newest_checkpoint(folder):
    """Return the name of the newest checkpoint of Transformers."""
    return max((name for name in os.listdir(folder)
                if name.startswith('checkpoint-')),
               key=lambda name: int(name.rpartition('-')[2]))


@pytest.mark.parametrize('ranks, workers', [(1, 0), (2, 2)])
def test_accelerate_goes_on_after_a_kill(tmp_path, ranks, workers):
    """It resumes from its own state, with `prepare`; no prefetched batch is
    lost."""
    options = {'workers': workers, 'epochs': 2}
    check(run('accelerate', ranks, tmp_path, kill_at=[1, 3], **options),
          -signal.SIGKILL)
    check(run('accelerate', ranks, tmp_path, resume='state', **options))
    check_read(tmp_path, ranks, 2)


@pytest.mark.parametrize('ranks, workers, stop', [
    (1, 0, 1), (1, 2, 17), (2, 2, 5),
    *[pytest.param(ranks, workers, stop, marks=pytest.mark.full)
      for ranks, workers in ((1, 0), (1, 2), (2, 0), (2, 2))
      for stop in (1, 2, 8)]])
def test_accelerate_saves_the_state_of_a_loader(
        tmp_path, ranks, workers, stop):
    """It is the state of the batch that the program has, not of the prefetched
    one."""
    options = {'workers': workers, 'epochs': 2, 'source': 'own'}
    check(run('accelerate', ranks, tmp_path, kill_at=[1, stop], **options),
          -signal.SIGKILL)
    check(run('accelerate', ranks, tmp_path, resume='state', **options))
    check_read(tmp_path, ranks, 2)


@pytest.mark.full
@pytest.mark.parametrize('at', [[0, 0], [0, 1], [0, 5], 'last', [1, 3]])
@pytest.mark.parametrize('ranks, by_fuel, config', [
    (1, True, {}), (2, True, {}), (2, True, {'dispatch_batches': True}),
    (1, False, {}), (1, False, {'dispatch_batches': True})])
def test_accelerate_goes_on_with_a_loader_from_each_place(
        tmp_path, ranks, by_fuel, config, at):
    """The place is before an epoch, in it or after its last batch, also where
    Accelerate reads the loader of one process and the program counts."""
    options = {'workers': 2, 'source': 'own', 'uneven': 'drop',
               'by_fuel': by_fuel, 'config': config}
    check(run('accelerate', ranks, tmp_path, **options, kill_at=(
        [0, BATCHES // ranks] if at == 'last' else at)), -signal.SIGKILL)
    check(run('accelerate', ranks, tmp_path, resume='state', **options))
    check_read(tmp_path, ranks, 2, drop=True)


def test_accelerate_prepares_a_loader_of_one_process(tmp_path):
    """Its lengths and batches are those of the loader."""
    check(run('accelerate', 1, tmp_path, by_fuel=False, source='own'))
    check_read(tmp_path, 1, 2)


def test_accelerate_skips_the_batches_of_the_epoch_that_is_named(tmp_path):
    """Skipping needs skip_first_batches and set_epoch, and no state."""
    check(run('accelerate', 1, tmp_path, workers=2, skip=5))
    check_read(tmp_path, 1, 2, first=(1, 5))


@pytest.mark.parametrize('options, text', [
    ({'skip': BATCHES + 1}, f'which has {BATCHES}'),
    ({'config': {'use_stateful_dataloader': True}}, 'state_after(count)')])
def test_accelerate_goes_on_nowhere_else(tmp_path, options, text):
    """Positions behind the end of an epoch and the states of its loaders are
    refused."""
    (status, errors), = run('accelerate', 1, tmp_path, **options)
    assert 1 == status
    assert text in errors
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize('config', [
    {}, {'dispatch_batches': True}, {'dispatch_batches': False},
    {'even_batches': False}])
def test_accelerate_does_not_share_twice(tmp_path, config):
    """Each of its modes refuses it."""
    for status, errors in run('accelerate', 2, tmp_path, by_fuel=False,
                              config=config):
        assert 1 == status
        assert 'fuel.interop.accelerate.prepare(accelerator, loader)' in errors
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize('workers', [0, 2])
def test_accelerate_goes_on_with_the_next_epoch_after_a_break(
        tmp_path, workers):
    """Accelerate counts only whole passes."""
    check(run('accelerate', 1, tmp_path, workers=workers, epochs=3,
              leave_at=[1, 4]))
    assert read_log(tmp_path, 0) == [
        (epoch, numbers) for epoch, order in enumerate(ORDER)
        for numbers in (order[:4] if epoch == 1 else order)]


def test_accelerate_is_warned_of_repeated_batches(tmp_path):
    """gather_for_metrics() counts them as others."""
    for status, errors in run('accelerate', 2, tmp_path, uneven='pad',
                              epochs=1):
        assert 0 == status, errors
        assert "uneven='pad' repeats examples" in errors


@pytest.mark.parametrize('config', [{}, {'dispatch_batches': True}])
def test_accelerate_prepares_the_loader_of_one_process(tmp_path, config):
    """One process shares nothing with others."""
    check(run('accelerate', 1, tmp_path, by_fuel=False, config=config))
    check_read(tmp_path, 1, 2)


@pytest.mark.parametrize('config, times', [
    ({}, 72), ({'split_batches': True}, 68), ({'dispatch_batches': True}, 66),
    ({'even_batches': False}, 65)])
def test_accelerate_shares_a_map_style_data_set(tmp_path, config, times):
    """Accelerate's sampler shares it; a warning names repeated examples."""
    ran = run('accelerate', 2, tmp_path, source='map', by_fuel=False,
              epochs=1, config=config)
    check(ran)
    for _, errors in ran if 'dispatch_batches' not in config else ran[:1]:
        assert (times > 65) == (
            'Accelerate repeats some of 65 examples' in errors)
    read = [number for rank in range(2)
            for _, numbers in read_log(tmp_path, rank) for number in numbers]
    assert set(range(65)) == set(read)
    assert times == len(read)


@pytest.mark.parametrize('ranks, workers', [(1, 0), (2, 2)])
def test_transformers_goes_on_after_a_kill(tmp_path, ranks, workers):
    """It resumes from the folder of its checkpoint, in the order of that
    epoch."""
    step = BATCHES // ranks + 3
    check(run('transformers', ranks, tmp_path, kill_at=step,
              workers=workers), -signal.SIGKILL)
    check(run('transformers', ranks, tmp_path, workers=workers,
              resume=newest_checkpoint(tmp_path)))
    check_read(tmp_path, ranks, 2, drop=True)


@pytest.mark.parametrize('ranks, workers, by_fuel, step', [
    (1, 2, True, 17), (2, 0, True, 11),
    *[pytest.param(ranks, 2, True, step, marks=pytest.mark.full)
      for ranks in (1, 2) for step in (0, 1, 8, 9, 14, 16)]])
def test_transformers_goes_on_with_a_loader_after_a_kill(
        tmp_path, ranks, workers, by_fuel, step):
    """A loader that is not prepared goes on too, since it tells the epoch."""
    options = {'workers': workers, 'by_fuel': by_fuel, 'is_own': True}
    check(run('transformers', ranks, tmp_path, kill_at=step, **options),
          -signal.SIGKILL)
    check(run('transformers', ranks, tmp_path, **options, resume=(
        newest_checkpoint(tmp_path) if step else None)))
    check_read(tmp_path, ranks, 2, drop=True)


@pytest.mark.parametrize('ranks, others, examples', [(1, 2, 65), (3, 4, 32)])
def test_transformers_does_not_go_on_with_other_ranks(
        tmp_path, ranks, others, examples):
    """A step of a rank is another batch then, also in epochs as long."""
    check(run('transformers', ranks, tmp_path, kill_at=1, examples=examples),
          -signal.SIGKILL)
    for status, errors in run('transformers', others, tmp_path, resume=(
            newest_checkpoint(tmp_path)), examples=examples):
        assert 1 == status
        assert f'saved by {ranks} ranks, but there are {others} now' in errors


def test_transformers_does_not_skip_in_an_unknown_epoch(tmp_path):
    """A loader of PyTorch is not told which epoch is resumed."""
    options = {'by_fuel': False, 'workers': 2}
    check(run('transformers', 1, tmp_path, kill_at=20, **options),
          -signal.SIGKILL)
    (status, errors), = run('transformers', 1, tmp_path, resume=(
        newest_checkpoint(tmp_path)), **options)
    assert 1 == status
    assert '3 batches of an epoch would be skipped' in errors
    assert 20 == len(read_log(tmp_path, 0))


def test_transformers_does_not_skip_all_epochs_in_one(tmp_path):
    """Transformers counts steps from the first if no length is known."""
    options = {'unknown': True, 'max_steps': 40}
    check(run('transformers', 1, tmp_path, kill_at=20, **options),
          -signal.SIGKILL)
    (status, errors), = run('transformers', 1, tmp_path, resume=(
        newest_checkpoint(tmp_path)), **options)
    assert 1 == status
    assert 'would skip 20 batches, those of all epochs' in errors
    assert 20 == len(read_log(tmp_path, 0))


def test_transformers_makes_no_batches_of_batches(tmp_path):
    """Its own loader collates, by a function that is not PyTorch's."""
    (status, errors), = run('transformers', 1, tmp_path, whole=True)
    assert 1 == status
    assert 'this DataLoader would make batches of them' in errors


@pytest.mark.parametrize('ranks, workers', [(1, 0), (2, 2)])
def test_lightning_goes_on_after_a_kill(tmp_path, ranks, workers):
    """It resumes from its checkpoint; Lightning starts the other rank
    itself."""
    options = {'workers': workers, 'devices': ranks}
    check(run('lightning', 1, tmp_path, kill_at=[1, 3], **options),
          -signal.SIGKILL)
    check(run('lightning', 1, tmp_path, resume='last.ckpt', **options))
    check_read(tmp_path, ranks, 2, drop=True)
    for rank in range(ranks):
        validated = read_log(tmp_path, f'{rank}-val')
        assert ORDER[0][rank::ranks] == [
            numbers for epoch, numbers in validated if epoch == 0]


@pytest.mark.parametrize('ranks, workers, at', [
    (1, 0, [1, 3]), (2, 2, [1, 3]),
    *[pytest.param(ranks, 2, at, marks=pytest.mark.full)
      for ranks in (1, 2) for at in ([0, 1], [0, 7], [1, 0], [1, 1], [1, 7])]])
def test_lightning_goes_on_with_a_loader_after_a_kill(
        tmp_path, ranks, workers, at):
    """The state is saved within a step, with the batches trained on."""
    options = {'workers': workers, 'devices': ranks, 'source': 'own'}
    check(run('lightning', 1, tmp_path, kill_at=at, **options),
          -signal.SIGKILL)
    check(run('lightning', 1, tmp_path, resume='last.ckpt', **options))
    check_read(tmp_path, ranks, 2, drop=True)


@pytest.mark.parametrize('source, workers', [('own', 2), ('module', 0)])
def test_lightning_leaves_steps_out_of_a_checkpoint(
        tmp_path, source, workers):
    """Lightning loads the state; the loader has the arguments."""
    options = {'workers': workers, 'source': source}
    check(run('lightning', 1, tmp_path, kill_at=[1, 3], **options),
          -signal.SIGKILL)
    check(run('lightning', 1, tmp_path, resume='last.ckpt',
              load_options={'leave_out': [BATCHES + 5]}, **options))
    assert read_log(tmp_path, 0) == [
        (epoch, numbers) for epoch in range(2)
        for place, numbers in enumerate(ORDER[epoch])
        if (epoch, place) != (1, 5)]


@pytest.mark.parametrize('workers, settings', [
    (0, {'max_steps': BATCHES + 3}), (2, {'max_steps': 2 * BATCHES}),
    (0, {}), (2, {})])
def test_lightning_goes_on_with_a_loader_where_it_ended(
        tmp_path, workers, settings):
    """The loader ended at its last step, or at the end of an epoch. There,
    Lightning itself restores no state of a loader."""
    options = {'source': 'own', 'workers': workers, 'save_every': 0}
    check(run('lightning', 1, tmp_path, epochs=2, save_at_end=True,
              settings=settings, **options))
    check(run('lightning', 1, tmp_path, epochs=4, resume='last.ckpt',
              settings=settings and {'max_steps': 3 * BATCHES}, **options))
    read = [numbers for _, numbers in read_log(tmp_path, 0)]
    assert sum(ORDER, []) == read[:3 * BATCHES]
    assert len(read) == (3 if settings else 4) * BATCHES


@pytest.mark.parametrize('ranks, at', [(1, [1, 3]), *[
    pytest.param(ranks, at, marks=pytest.mark.full)
    for ranks in (1, 2) for at in ([0, 0], [0, 4], [1, 0], [1, 3])]])
def test_lightning_saves_before_a_step_what_was_used(tmp_path, ranks, at):
    """Lightning's own progress counts, and not what was read."""
    options = {'source': 'own', 'workers': 2, 'saves_before': True,
               'devices': ranks}
    check(run('lightning', 1, tmp_path, kill_at=at, save_every=1000,
              **options), -signal.SIGKILL)
    check(run('lightning', 1, tmp_path, resume='last.ckpt', **options))
    check_read(tmp_path, ranks, 2, drop=True)


def test_lightning_does_not_count_for_a_loader_that_a_hook_reads(tmp_path):
    """Its state is that of what the hook has read."""
    check(run('lightning', 1, tmp_path, source='own', reads_another=True))
    check_read(tmp_path, 1, 2)


@pytest.mark.parametrize('source, unknown', [
    ('module', True), ('own', True), ('iterable', False), ('stage', False)])
def test_lightning_saves_what_was_used(tmp_path, source, unknown):
    """Lightning reads ahead if the length of an epoch is not known."""
    options = {'source': source, 'unknown': unknown}
    check(run('lightning', 1, tmp_path, kill_at=[1, 3], **options),
          -signal.SIGKILL)
    check(run('lightning', 1, tmp_path, resume='last.ckpt', **options))
    check_read(tmp_path, 1, 2)


@pytest.mark.parametrize('save_every', [0, 1])
def test_lightning_goes_on_after_an_epoch_of_unknown_length(
        tmp_path, save_every):
    """It resumes at the last step, and at the end of the epoch with the next
    one."""
    options = {'unknown': True, 'save_every': save_every}
    check(run('lightning', 1, tmp_path, epochs=1, **options))
    check(run('lightning', 1, tmp_path, epochs=3, resume='last.ckpt',
              **options))
    check_read(tmp_path, 1, 3)


def test_lightning_makes_two_iterators_of_a_loader_that_is_reloaded(tmp_path):
    """One of them has read its first batch, and trains on none."""
    check(run('lightning', 1, tmp_path, unknown=True, epochs=3, settings={
        'reload_dataloaders_every_n_epochs': 1}))
    check_read(tmp_path, 1, 3)


def test_lightning_goes_on_where_the_last_step_was(tmp_path):
    """Lightning counts that epoch as ended, but goes on in its middle."""
    check(run('lightning', 1, tmp_path, epochs=3, save_at_end=True,
              settings={'max_steps': BATCHES + 3}))
    check(run('lightning', 1, tmp_path, epochs=4, resume='last.ckpt',
              settings={'max_steps': 3 * BATCHES}))
    assert sum(ORDER, []) == [
        numbers for _, numbers in read_log(tmp_path, 0)]


def test_lightning_does_not_train_and_validate_by_one_iterable(tmp_path):
    """Its position would be that of the last read."""
    (status, errors), = run('lightning', 1, tmp_path, same=True)
    assert 1 == status
    assert 'train, val, test and predict must be different' in errors


@pytest.mark.parametrize('source', ['iterable', 'stage'])
def test_lightning_saves_no_state_while_a_batch_is_trained_on(
        tmp_path, source):
    """The state is ahead of that batch."""
    (status, errors), = run('lightning', 1, tmp_path, source=source,
                            saves_before=True)
    assert 1 == status
    assert 'would lose that batch' in errors


@pytest.mark.parametrize('source', ['iterable', 'loader', 'stage'])
def test_lightning_does_not_begin_with_epoch_0_again(tmp_path, source):
    """Lightning restores no state of a loader at the end of an epoch."""
    options = {'source': source, 'save_every': 0}
    check(run('lightning', 1, tmp_path, epochs=1, **options))
    (status, errors), = run('lightning', 1, tmp_path, resume='last.ckpt',
                            **options)
    assert 1 == status
    assert 'use fuel.interop.torch.Loader or' in errors
    assert 'set_epoch' not in errors
    check_read(tmp_path, 1, 1)


@pytest.mark.parametrize('source', ['iterable', 'stage'])
def test_lightning_does_not_leave_an_epoch_out(tmp_path, source):
    """Lightning takes a state after the last batch for a whole epoch's."""
    check(run('lightning', 1, tmp_path, source=source, epochs=3,
              settings={'max_steps': 2 * BATCHES}))
    (status, errors), = run('lightning', 1, tmp_path, source=source,
                            epochs=3, resume='last.ckpt')
    assert 1 == status
    assert 'after the last batch of an epoch' in errors
    check_read(tmp_path, 1, 2)


def test_lightning_does_not_overfit_on_other_batches(tmp_path):
    """Each epoch would have other batches."""
    (status, errors), = run('lightning', 1, tmp_path, settings={
        'overfit_batches': 2})
    assert 1 == status
    assert 'overfit_batches would read other batches' in errors
    assert not os.path.exists(tmp_path / 'rank0.jsonl')


def test_lightning_overfits_a_loader_on_the_batches_of_its_first_epoch(
        tmp_path):
    """Each epoch gives them again; no state says which they were."""
    options = {'source': 'own', 'settings': {'overfit_batches': 2}}
    check(run('lightning', 1, tmp_path, epochs=3, **options))
    assert [numbers for _, numbers in read_log(tmp_path, 0)] == (
        3 * ORDER[0][:2])
    (status, errors), = run('lightning', 1, tmp_path, epochs=4,
                            resume='last.ckpt', **options)
    assert status == 1
    assert 'which no state holds' in errors


@pytest.mark.parametrize('source, text', [
    ('iterable', 'may be ahead of the batches that were used'),
    ('stage', 'Lightning reads a batch ahead')])
def test_lightning_saves_no_state_that_is_ahead(tmp_path, source, text):
    """Saving a checkpoint refuses it at once."""
    (status, errors), = run('lightning', 1, tmp_path, source=source,
                            unknown=True)
    assert 1 == status
    assert text in errors


@pytest.mark.parametrize('workers', [0, 2])
def test_lightning_does_not_restart_an_epoch_in_its_middle(tmp_path, workers):
    """A loader of PyTorch has no state that it could save."""
    options = {'source': 'loader', 'workers': workers}
    check(run('lightning', 1, tmp_path, kill_at=[1, 3], **options),
          -signal.SIGKILL)
    (status, errors), = run('lightning', 1, tmp_path, resume='last.ckpt',
                            **options)
    assert 1 == status
    assert 'use fuel.interop.lightning.DataModule' in errors


@pytest.mark.parametrize('name', named_classes(
    'torch', 'torchdata', 'accelerate', 'transformers', 'lightning'))
def test_class_that_is_looked_for_by_name_is_there(name):
    """A release that has renamed it would not be met any more."""
    found = find_class(name)
    assert f'{found.__module__}.{found.__qualname__}' == name


# Loggers get the stalls and the rate of a pipeline.

EVERY = 5
STEPS = list(range(EVERY, 2 * BATCHES + 1, EVERY))
RATIO, RATE = 'fuel.pipeline.stall.ratio', 'fuel.pipeline.examples_per_second'


def check_rows(rows):
    """Check what was logged at the steps."""
    assert [int(float(row['step'])) for row in rows] == STEPS
    for row in rows:
        values = {name: float(value) for name, value in row.items()
                  if name.startswith('fuel.')}
        assert all(map(math.isfinite, values.values()))
        assert 0 < values[RATIO] <= 1
        assert values[RATE] > 0
        assert sum(value for name, value in values.items()
                   if name.startswith('fuel.stage.stall.ratio/')
                   ) == pytest.approx(values[RATIO])


@pytest.mark.parametrize('named', [False, True])
def test_lightning_logs_what_data_take(tmp_path, named):
    """Each logger gets it; TensorBoard gets the name of the slowest stage."""
    check(run('lightning', 1, tmp_path, monitor=EVERY, names_stream=named))
    with open(tmp_path / 'csv' / 'metrics.csv') as file:
        check_rows(list(csv.DictReader(file)))
    events = EventAccumulator(str(tmp_path / 'board'))
    events.Reload()
    assert STEPS == [event.step for event in events.Scalars(RATIO)]
    texts = events.Tensors('fuel.pipeline.slowest/text_summary')
    assert STEPS == [event.step for event in texts]
    assert texts[0].tensor_proto.string_val[0].decode().isidentifier()


def test_transformers_log_what_data_take(tmp_path):
    """The call ``trainer.log`` reaches all that Transformers reports to."""
    check(run('transformers', 1, tmp_path, monitor=EVERY))
    history = json.loads((tmp_path / 'history').read_text())
    check_rows([row for row in history if RATIO in row])


@pytest.mark.parametrize('program', ['lightning', 'transformers'])
def test_workers_of_a_loader_are_told_of(tmp_path, program):
    """They are not measured; the warning says which workers are."""
    (status, errors), = run(program, 1, tmp_path, monitor=EVERY, workers=1)
    assert status == 0, errors
    assert errors.count('workers of a DataLoader are not measured') == 1


def test_lightning_without_a_stream_is_refused(tmp_path):
    """The error says what to pass."""
    (status, errors), = run('lightning', 1, tmp_path, monitor=EVERY,
                            source='loader')
    assert status == 1
    assert 'pass the stream, LightningMonitor(stream)' in errors
