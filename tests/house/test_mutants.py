"""Which tests ``bin/mutants`` runs on a fault, and in which order."""
import pytest
from support.mutant_tests import (PACKAGE, PARTS, all_tests,
                                  choose_tests, expand)


@pytest.mark.parametrize('part', PARTS)
def test_tests_of_a_part_exist(part):
    """Neither they nor the part have moved away."""
    assert (PACKAGE.parent / part).exists()
    assert all(expand(test) for test in PARTS[part])


def test_closest_tests_come_first():
    """Those that are named after a file, then those that import it."""
    chosen = choose_tests('fuel/server/ledger.py')
    assert 'server/test_ledger.py' == chosen[0]
    assert set(chosen) <= set(all_tests())
    assert {'server/test_kills.py', 'wire/test_data.py'} <= set(chosen)


def test_faults_are_put_into_all_of_the_core():
    """Orders, profiles and general stages are parts of it."""
    for path, first in {
            'fuel/sharding/dealer.py': 'sharding/test_dealer.py',
            'fuel/profiling/profiler.py': 'profiling/test_profile.py',
            'fuel/transformers/cache.py': 'transformers/test_cache.py',
            'fuel/transformers/mixture/mix.py': 'transformers/test_mix.py',
            }.items():
        assert first in choose_tests(path)[:4], choose_tests(path)[:4]


def test_file_outside_of_the_core_has_no_tests():
    """Faults are put into the core alone."""
    assert [] == choose_tests('fuel/describe/text.py')
