"""A pytest plug-in that estimates how long the tests take.

``tests/durations.json`` records, for each file, the seconds of its tests and
of their long forms on one core; ``--record-durations`` writes it anew.
"""
import json
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[1] / 'durations.json'
RECORDED = pytest.StashKey[dict]()


def pytest_addoption(parser):
    """Add ``--record-durations``."""
    parser.addoption('--record-durations', action='store_true', help=(
        f'record how long the tests of each file take in {TABLE.name}'))


def pytest_configure(config):
    """Start with an empty record."""
    config.stash[RECORDED] = {}
    if config.getoption('record_durations'):
        config.pluginmanager.register(Recorder(config.stash[RECORDED]))


def pytest_report_header(config):
    """State about how long this run takes, and what ``--full`` adds."""
    processes = getattr(config.option, 'numprocesses', None) or 1
    short, long = estimate(selected_files(config))
    full = config.getoption('full')
    seconds = (short + long * full) / processes
    where = f'{processes} processes' if processes > 1 else 'one process'
    text = f'estimated time: {in_words(seconds)} in {where}'
    if full:
        return f'{text}, {in_words(long / processes)} of it for long forms'
    return f'{text}; --full adds {in_words(long / processes)}'


def pytest_sessionfinish(session):
    """Write the table, if asked for; files that did not run keep theirs."""
    config = session.config
    recorded = config.stash[RECORDED]
    if not recorded or hasattr(config, 'workerinput'):
        return
    table = read_table()
    for file, (short, long) in recorded.items():
        # Unless the long forms ran, what they took is not known.
        kept = table.get(file, [0, 0])[1]
        table[file] = [round(short, 1), round(
            long if config.getoption('full') else kept, 1)]
    lines = (f'{json.dumps(file)}: {json.dumps(seconds)}'
             for file, seconds in sorted(table.items())
             if (TABLE.parents[1] / file).exists())
    TABLE.write_text('{\n' + ',\n'.join(lines) + '\n}\n')


class Recorder:
    """Adds up the seconds of each file's tests."""

    def __init__(self, recorded):
        self.recorded = recorded

    def pytest_runtest_logreport(self, report):
        """Count one phase of a test."""
        seconds = self.recorded.setdefault(
            report.nodeid.partition('::')[0], [0, 0])
        seconds['full' in report.keywords] += report.duration


def read_table():
    """Return the recorded seconds of each file."""
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def estimate(chosen):
    """Return the seconds of the chosen files' tests and of their long forms.

    Parameters
    ----------
    chosen : callable
        Given the path of a file, whether its tests are run.

    Returns
    -------
    tuple of float

    """
    taken = [seconds for file, seconds in read_table().items()
             if chosen(TABLE.parents[1] / file)]
    return sum(short for short, _ in taken), sum(long for _, long in taken)


def selected_files(config):
    """Return the function that finds whether a file is among the arguments.

    A test in a file, or an expression, chooses less than the file: then the
    estimate is an upper bound. Tests of a bridge run with `--with` only.
    """
    folder = config.invocation_params.dir
    paths = [(folder / argument.partition('::')[0]).resolve()
             for argument in config.args]
    asked = config.getoption('bridges', [])
    return lambda file: any(
        path == file or path in file.parents for path in paths) and (
        file.parent.name in asked
        or not (file.parent / 'environment.cfg').exists())


def in_words(seconds):
    """Return a number of seconds as people say it."""
    if seconds < 90:
        return f'{seconds:.0f} s'
    return f'{seconds / 60:.0f} min'
