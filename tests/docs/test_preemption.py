"""The manual's program for jobs that are ended, with real signals."""
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.doctest_sessions import ROOT, code_blocks

from fuel.datasets import IndexableDataset
from fuel.schemes import ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing


def programs():
    """Return the programs of the page."""
    return code_blocks(Path(ROOT, 'docs/resuming.rst').read_text('utf-8'))


def whole_program():
    """Return the one that handles signals."""
    program, = [one for one in programs() if 'signal.signal(' in one]
    return program


def run(path, after=None, number=signal.SIGUSR1):
    """Run a program, and send it a signal after some lines.

    Returns: The lines, and its status.
    """
    lines = []
    with subprocess.Popen([sys.executable, path], cwd=path.parent, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            lines.append(line)
            if len(lines) == after:
                process.send_signal(number)
        error = process.stderr.read()
    assert process.returncode in (0, 1), error
    assert (process.returncode == 1) == ('saved, to be' in error), error
    return lines, process.returncode


@pytest.mark.parametrize('number', [
    signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_program_that_is_ended_goes_on_with_the_next_batch(tmp_path, number):
    """No batch is lost or repeated by any number of signals."""
    rng = random.Random(int(number))
    paths = [tmp_path / name / 'train.py' for name in ('whole', 'ended')]
    for path in paths:
        path.parent.mkdir()
        path.write_text(whole_program())
    expected, status = run(paths[0])
    assert (75, 0) == (len(expected), status)
    found, ended = [], 0
    while len(found) < len(expected):
        lines, status = run(paths[1], rng.randint(10, 40), number)
        found += lines
        ended += status
        if status == 0:
            break
    assert expected == found
    assert ended


def test_loop_that_fetches_ahead_saves_before_it_fetches(tmp_path):
    """The state that it kept is that after the batch it has trained on."""
    loop, = [one for one in programs() if 'following' in one]

    def build():
        return DataStream(IndexableDataset(list(range(40))),
                          iteration_scheme=ShuffledScheme(40, 4, seed=3))

    expected = [batch for batch, in build()]
    for wanted in range(1, 11):
        trained, path = [], tmp_path / f'{wanted}.json'
        with MultiProcessing(build(), start_method='fork') as stream:
            names = {'stream': stream, 'PATH': str(path), 'json': json,
                     'os': os, 'sys': sys, 'is_ending': False}

            def train(batch, names=names, trained=trained, wanted=wanted):
                trained.append(batch)
                names['is_ending'] = len(trained) == wanted

            names['train'] = train
            exec(loop, names)
            with pytest.raises(SystemExit, match='to be started again'):
                names['train_ahead'](2)
        saved = json.loads(path.read_text())
        assert 2 == saved['epoch']
        resumed = build()
        resumed.load_state_dict(saved['stream'])
        rest = [batch for batch, in resumed.get_epoch_iterator()]
        assert expected == trained + rest
