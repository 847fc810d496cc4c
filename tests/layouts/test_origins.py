"""Files of each format are opened from where the manual says."""
import pytest
from support import origins

from fuel import config


@pytest.mark.parametrize('name, origin, answer', origins.cells(
    *origins.WRITERS))
def test_files_are_opened_from_each_origin(name, origin, answer, tmp_path):
    """Others are an error that says what to do."""
    config.remote_cache_path = str(tmp_path / 'cache')
    origins.check_origin(
        tmp_path, origins.WRITERS[name], name, origin, answer)


def test_manual_has_the_table_that_is_tested():
    """The whole table is tested."""
    assert origins.TABLE == origins.table_of_manual()
