"""How the tests run the examples of a docstring or a page."""
import doctest
import importlib
from pathlib import Path

import numpy

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(test):
    """Run the examples of a doctest; a failure shows what they printed."""
    output = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    # Printed alike whatever a test before has set.
    with numpy.printoptions(precision=8, threshold=1000, linewidth=75):
        runner.run(test, out=output.append)
    assert 0 == runner.failures, ''.join(output)


def run_module(name):
    """Run the examples of each docstring of a module."""
    module = importlib.import_module(name)
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
