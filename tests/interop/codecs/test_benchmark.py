"""The benchmark measures the plug-ins where they are installed."""
import pytest
from support.benchmarks import run_tiny


@pytest.mark.timeout(300)
def test_rows_of_plugins_are_printed(tmp_path):
    """The benchmark reads two rows of each."""
    printed = run_tiny('hdf5.py', tmp_path)
    for layout in ('blosc', 'blosc2', 'zstd', 'lz4', 'bitshuffle'):
        assert f'{layout}, a tenth in memory, in order' in printed
        assert f'{layout}, first epoch in order' in printed
