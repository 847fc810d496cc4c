"""Folders and room on the disk."""
import os
import shutil
import stat

import pytest

from fuel.utils.disk import check_enough_space, disk_usage, safe_mkdir


@pytest.fixture
def umask():
    """Set the usual umask."""
    old = os.umask(0o022)
    yield
    os.umask(old)


def test_disk_usage_agrees_with_the_system(tmp_path):
    """Total and used bytes of the disk."""
    total, used = disk_usage(str(tmp_path))
    assert shutil.disk_usage(tmp_path).total == total
    assert 0 < used <= total


def test_new_folders_are_not_writable_for_everybody(tmp_path, umask):
    """Nobody else can plant data in a folder that was made."""
    safe_mkdir(str(tmp_path / 'a' / 'b'))
    for folder in (tmp_path / 'a', tmp_path / 'a' / 'b'):
        assert 0o755 == stat.S_IMODE(folder.stat().st_mode)


def test_safe_mkdir_forced_permissions_are_for_new_folders_only(
        tmp_path, umask):
    """Folders that were there keep their permissions."""
    (tmp_path / 'a').mkdir(mode=0o755)
    safe_mkdir(str(tmp_path / 'a' / 'b' / 'c'), 0o770)
    assert [0o755, 0o770, 0o770] == [
        stat.S_IMODE((tmp_path / name).stat().st_mode)
        for name in ('a', 'a/b', 'a/b/c')]
    safe_mkdir(str(tmp_path / 'a'), 0o700)
    assert 0o755 == stat.S_IMODE((tmp_path / 'a').stat().st_mode)


def test_safe_mkdir_file_in_the_way_raises(tmp_path):
    """A file is not a folder."""
    (tmp_path / 'a').touch()
    with pytest.raises(FileExistsError, match='a'):
        safe_mkdir(str(tmp_path / 'a'))


@pytest.mark.parametrize('size, free, fits', [
    (100, 500, True),
    # 600 of 1000 used: 300 more would make exactly 90 %.
    (299, 400, True),
    (300, 400, False),
    # Reserved blocks and quotas: less is free than is not used.
    (100, 100, False),
])
def test_check_enough_space_leaves_a_tenth_free(
        tmp_path, monkeypatch, size, free, fits):
    """A copy must fit and leave the disk at most 90 % full."""
    usage = type(shutil.disk_usage(tmp_path))(1000, 600, free)
    monkeypatch.setattr(shutil, 'disk_usage', lambda path: usage)
    (tmp_path / 'a').write_bytes(b'x' * size)
    assert fits is check_enough_space(
        str(tmp_path), str(tmp_path / 'a'), str(tmp_path / 'b'))
