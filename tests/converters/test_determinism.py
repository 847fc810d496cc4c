"""Every set comes out the same on any number of cores, with any hash seed."""
import json

import pytest
from support import raw_data
from support.processes import run_python

CONVERT = """
import json, os, sys
from fuel.bin import fuel_convert
if hasattr(os, 'sched_setaffinity'):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:int(sys.argv[1])])
for kind, command in json.loads(sys.argv[2]).items():
    os.mkdir(kind)
    assert 0 == fuel_convert.main([*command, '-d', f'../raw/{kind}',
                                   '-o', kind])
"""


def converted(folder):
    """Return the content of all files below a folder."""
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob('*') if path.is_file()}


@pytest.mark.timeout(200)
def test_sets_do_not_depend_on_cores_and_hash_seed(tmp_path, monkeypatch):
    """The bytes are equal for any order of sets of strings and of the threads
    that end."""
    for kind, raw in raw_data.SETS.items():
        (tmp_path / 'raw' / kind).mkdir(parents=True)
        raw.write(tmp_path / 'raw' / kind)
    what = json.dumps({kind: raw.command
                       for kind, raw in raw_data.SETS.items()})
    found = []
    for cores, seed in ((1, '1'), (64, '2')):
        folder = tmp_path / seed
        folder.mkdir()
        monkeypatch.chdir(folder)
        status, _, errors = run_python('-c', CONVERT, str(cores), what,
                                       PYTHONHASHSEED=seed)
        assert 0 == status, errors
        found.append(converted(folder))
    assert len(raw_data.SETS) == len(found[0])
    assert [] == [str(name) for name, content in found[0].items()
                  if found[1][name] != content]
