"""How the tests run the examples of a docstring or a page."""
import doctest

import numpy

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(test):
    """Run the examples of a doctest; a failure shows what they printed."""
    output = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    # Printed alike whatever a test before has set.
    with numpy.printoptions(precision=8, threshold=1000, linewidth=75):
        runner.run(test, out=output.append)
    assert 0 == runner.failures, ''.join(output)
