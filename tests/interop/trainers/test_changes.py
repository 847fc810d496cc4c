"""Programs that read with Fuel after a change are exact after a kill."""
import pytest
import torch
from support import changed_programs

# Each process imports a framework, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize('name, ranks', [
    ('mnist', 1), ('ranks', 2), ('tokens', 1), ('accelerate', 1),
    ('trainer', 1)])
@pytest.mark.parametrize('kill_after', [
    5, pytest.param(1, marks=pytest.mark.full)])
def test_killed_program_ends_with_the_same_weights(
        name, ranks, kill_after, tmp_path):
    """The program before the change runs on the same files."""
    for folders in changed_programs.check(
            name, tmp_path, [kill_after], ranks):
        whole, killed = [torch.load(folder / 'model.pt', weights_only=True)
                         for folder in folders]
        assert whole.keys() == killed.keys()
        for part, value in whole.items():
            assert torch.equal(value, killed[part]), part
