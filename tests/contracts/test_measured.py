"""The time of a pipeline is the sum of its stages' shares."""
import pytest
from support.pipelines import build


@pytest.mark.pipelines
def test_parts_add_up(pipeline, files):
    """Of all stages, whatever they read and keep."""
    stream = build(pipeline, files)
    for _ in range(2):
        for _ in stream:
            pass
    found = stream.measurements()
    assert found.stall_seconds > 0
    assert found.stall_seconds == pytest.approx(
        sum(stage.stall_seconds for stage in found.stages), abs=1e-8)
    # The work of workers is waiting time of the stage that runs them.
    here = [stage for stage in found.stages if len(stage.path) == 1]
    assert found.stall_seconds == pytest.approx(sum(
        stage.work_seconds + stage.input_seconds for stage in here),
        rel=.05, abs=1e-4)
