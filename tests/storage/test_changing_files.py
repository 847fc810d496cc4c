"""Files that are replaced at random moments while epochs read them.

An epoch has rows of one version, or ends in an error; the next one has the
newest. The long form prints how many replacements fell between two reads of
one epoch.
"""
import sys

import numpy
import pytest
from support.changing_files import (
    FILES, FOLDERS, TABLES, WAYS, Changing, replace_file, replace_folder)

LOCAL = {**FILES, **TABLES, **FOLDERS}


def changing_file(tmp_path, kind, seed):
    """Return a local file, or folder, of some kind that changes."""
    write, open_set = LOCAL[kind]
    generator = numpy.random.RandomState(seed)
    path, new = tmp_path / 'data', tmp_path / 'new'
    suffix = {'csv': '.csv', 'packed text': '.gz'}.get(kind, '')
    path = path.with_suffix(suffix)
    put = replace_folder if kind in FOLDERS else replace_file
    written = []

    def replace(version):
        if not path.exists():
            write(path, version)
            written.append(version)
            return version
        how = WAYS[generator.randint(len(WAYS))]
        if how != 'touch':
            written.append(version)
        write(new, written[-1])
        put(path, new, how)
        return written[-1]

    return Changing(replace, lambda: open_set(path), generator)


@pytest.mark.parametrize('kind', LOCAL)
def test_epochs_over_a_changing_file_have_one_version(tmp_path, kind):
    """Or end in an error, and the next one has the newest."""
    changing_file(tmp_path, kind, 1).check(3)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize('seed', [1, 2])
@pytest.mark.parametrize('kind', LOCAL)
def test_many_epochs_over_a_changing_file_have_one_version(
        tmp_path, capsys, kind, seed):
    """For two hundred replacements between two reads of one epoch."""
    changing = changing_file(tmp_path, kind, seed)
    changing.check(200)
    with capsys.disabled():
        sys.stdout.write(
            f'{kind}: {changing.num_between} replacements between two reads '
            f'of one epoch; {changing.num_whole} epochs of one version, '
            f'{changing.num_errors} errors\n')
