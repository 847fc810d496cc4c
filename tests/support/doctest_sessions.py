"""Run the examples of a docstring or a page."""
import doctest
import importlib
import re
import sys
import textwrap
import traceback
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(test):
    """Run the examples of a doctest; a failure shows what they printed."""
    output = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    # Printed alike whatever a test before has set.
    with (numpy.printoptions(precision=8, threshold=1000, linewidth=75),
          whole_errors()):
        runner.run(test, out=output.append)
    assert 0 == runner.failures, ''.join(output)


@contextmanager
def whole_errors():
    """Let doctest see an error's own line: earlier releases compare the last
    line alone, which may be that of a note."""
    original = traceback.format_exception_only
    if sys.version_info >= (3, 11, 7):
        yield
        return
    with mock.patch.object(
            traceback, 'format_exception_only',
            lambda *error: [''.join(original(*error))]):
        yield


def run_module(name):
    """Run the examples of each docstring of a module."""
    module = importlib.import_module(name)
    for value in list(vars(module).values()):
        # The question may import a module, which changes the dict of `fuel`
        # while doctest iterates over it.
        hasattr(value, '__wrapped__')
    for test in doctest.DocTestFinder().find(module):
        run_examples(test)


def run_page(page):
    """Run the examples of a page as one session; return their number.

    Parameters
    ----------
    page : str
        Its path in the checkout.

    Returns
    -------
    int

    """
    path = str(ROOT / page)
    test = doctest.DocTestParser().get_doctest(
        Path(path).read_text('utf-8'), {'__name__': '__main__'}, page, path,
        0)
    run_examples(test)
    return len(test.examples)


def code_blocks(text):
    """Return the programs of a page, of its ``code-block:: python``."""
    return [textwrap.dedent(block).strip() + '\n' for block in re.findall(
        r'\.\. code-block:: python\n\n((?:   .*\n|\n)+)', text)]
