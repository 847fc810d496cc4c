"""A program with Flax that reads with Fuel is exact after a kill."""
import numpy
import pytest
from support import changed_programs

pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize('kill_after', [
    5, pytest.param(1, marks=pytest.mark.full)])
def test_killed_program_ends_with_the_same_weights(kill_after, tmp_path):
    """The program before the change runs on the same file."""
    for folders in changed_programs.check('flax', tmp_path, [kill_after]):
        whole, killed = [numpy.load(folder / 'model.npz')
                         for folder in folders]
        assert whole.files == killed.files
        for part in whole.files:
            numpy.testing.assert_array_equal(whole[part], killed[part])
