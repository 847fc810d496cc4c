"""Each way to start workers; the tests of some fixtures run with all."""
import pytest
from support.process_pipelines import Faulty, build

from fuel import config
from fuel.transformers import MultiProcessing


@pytest.fixture(params=[
    'fork', pytest.param('forkserver', marks=pytest.mark.full),
    pytest.param('spawn', marks=pytest.mark.full)])
def start_method(request):
    """Return how workers are started."""
    return request.param


@pytest.fixture
def ahead(start_method, deadlock_timeout):
    """Return a maker of epochs whose second batch has a fault, in workers
    that are judged after a module's `deadlock_timeout`."""
    made = []

    def make(fault, **kwargs):
        made.append(MultiProcessing(
            Faulty(build(), 1, fault), start_method=start_method, **kwargs))
        return made[-1].get_epoch_iterator()

    config.deadlock_timeout = deadlock_timeout
    yield make
    del config.deadlock_timeout
    for stream in made:
        stream.close()
