"""The memory limit of the control group."""
import pytest

from fuel.utils import memory_limit


@pytest.mark.parametrize('own, file', [
    ('0::/a/b', 'a/b/memory.max'), ('0::/a/b', 'a/memory.max'),
    ('0::/', 'memory.max'),
    ('9:name=systemd:/\n4:cpu,memory:/a/b', 'memory/a/b/{}'),
    ('4:memory:/a/b\n0::/', 'memory/a/{}'),
    ('4:memory:/elsewhere', 'memory/{}')])
def test_limit_of_a_group_or_one_above_it_counts(
        tmp_path, monkeypatch, own, file):
    """Both of Linux's trees are read; files without a number are ignored."""
    (tmp_path / 'own').write_text(own + '\n')
    limit = tmp_path / 'groups' / file.format('memory.limit_in_bytes')
    limit.parent.mkdir(parents=True)
    monkeypatch.setattr(memory_limit, 'OWN_GROUPS', tmp_path / 'own')
    monkeypatch.setattr(memory_limit, 'GROUP_ROOT', tmp_path / 'groups')
    without = memory_limit.usable_memory()
    limit.write_text('1234567\n')
    assert 1234567 == memory_limit.usable_memory()
    limit.write_text('max\n')
    assert without == memory_limit.usable_memory()
