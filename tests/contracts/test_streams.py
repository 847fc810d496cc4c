"""Every data set, scheme and stage keeps the promises of every stream."""
from functools import partial

import pytest
from support import pipelines

from fuel.testing import STREAM_PROMISES, check_stream


@pytest.mark.parametrize('promise', STREAM_PROMISES)
@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_pipeline_keeps_promise(name, promise, files, another_process):
    """What is promised to users' objects holds for Fuel's own."""
    check_stream(partial(pipelines.build, name, files), promises=[promise],
                 draws=name in pipelines.DRAWING,
                 another_process=another_process)
