"""Every data set, scheme and stage keeps the promises of every stream."""
from functools import partial

import pytest
from support import pipelines

from fuel.testing import check_stream


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_pipeline_keeps_promises(name, files, another_process):
    """What is promised to users' objects holds for Fuel's own.

    All promises in one test: they compare with the same two epochs, and an
    error names the broken one.
    """
    check_stream(partial(pipelines.build, name, files),
                 draws=name in pipelines.DRAWING,
                 another_process=another_process)
