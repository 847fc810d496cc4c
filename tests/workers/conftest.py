"""Each way to start workers; the tests of some fixtures run with all."""
import pytest


@pytest.fixture(params=[
    'fork', pytest.param('forkserver', marks=pytest.mark.full),
    pytest.param('spawn', marks=pytest.mark.full)])
def start_method(request):
    """Return how workers are started."""
    return request.param
