"""Every benchmark runs, so that none rots; no time is asserted."""
import pytest
from support import benchmarks


@pytest.mark.parametrize('script', benchmarks.scripts())
def test_benchmark_prints_its_table(script, tmp_path):
    """At a tiny size it prints a table with a target on some line."""
    assert 'at least' in benchmarks.run_tiny(script, tmp_path)
