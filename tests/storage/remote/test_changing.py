"""Remote files that are replaced at random moments while epochs read them.

See :mod:`tests.storage.test_changing_files`.
"""
import itertools
import os
import sys

import fsspec
import pytest
from support.async_filesystem import ObjectFilesystem
from support.changing_files import FILES, changing_object

from fuel import config

NUMBERS = itertools.count()
SYSTEMS = 'http', 'objects', 'memory'


def remote_file(server, monkeypatch, kind, system, seed):
    """Return a remote file of some kind that changes."""
    name = f'{next(NUMBERS)}{".gz" if kind == "packed text" else ""}'

    def put(path):
        if system == 'objects':
            ObjectFilesystem.put(f'changing/{name}', path.read_bytes())
        elif system == 'memory':
            fsspec.filesystem('memory').pipe(
                f'/changing/{name}', path.read_bytes())
        else:
            os.replace(path, server.folder / name)

    url = (server.url(name) if system == 'http'
           else f'{system}://changing/{name}')
    return changing_object(monkeypatch, server.folder / f'new-{name}', kind,
                           put, url, seed)


def use_cache(cache):
    """Cache on disk, or as little as can be in memory."""
    if cache == 'off':
        config.remote_cache_path, config.remote_memory_bytes = 'off', 0


@pytest.mark.parametrize('kind', ['contiguous', 'compressed', 'text'])
@pytest.mark.parametrize('cache', ['on', 'off'])
@pytest.mark.parametrize('system', SYSTEMS)
def test_epochs_over_a_changing_object_have_one_version(
        server, monkeypatch, system, cache, kind):
    """An epoch may end in an error; the next one has the newest version."""
    use_cache(cache)
    remote_file(server, monkeypatch, kind, system, 1).check(1)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize('cache', ['on', 'off'])
@pytest.mark.parametrize('kind', FILES)
def test_many_epochs_over_a_changing_object_have_one_version(
        server, monkeypatch, capsys, cache, kind):
    """Two reads of one epoch see two hundred replacements between them."""
    use_cache(cache)
    for seed, system in enumerate(SYSTEMS):
        changing = remote_file(server, monkeypatch, kind, system, seed)
        changing.check(70)
        with capsys.disabled():
            sys.stdout.write(
                f'{kind}, {system}, cache {cache}: {changing.num_between} '
                f'replacements between two reads of one epoch; '
                f'{changing.num_whole} epochs of one version, '
                f'{changing.num_errors} errors\n')
