"""Files that are replaced at random moments while epochs read them.

An epoch has rows of one version, or ends in an error; the next one has the
newest. The long form prints how many replacements fell between two reads of
one epoch.
"""
import pytest
from support.changing_files import FILES, changing_file, report


@pytest.mark.parametrize('kind', FILES)
def test_epochs_over_a_changing_file_have_one_version(tmp_path, kind):
    """An epoch may end in an error; the next one has the newest version."""
    changing_file(tmp_path, kind, 1).check(3)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('kind', FILES)
def test_many_epochs_over_a_changing_file_have_one_version(
        tmp_path, capsys, kind, seed):
    """Two reads of one epoch see two hundred replacements between them."""
    changing = changing_file(tmp_path, kind, seed)
    changing.check(200)
    report(kind, changing, capsys)
