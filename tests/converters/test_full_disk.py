"""Conversions onto real disks that are too small."""
import errno
import os
import re
import subprocess
import sys

import numpy
import pytest
from PIL import Image
from support import raw_data
from support.processes import environment

from fuel.converters._failsafe_file import Sink
from fuel.converters.base import converted_file, create_source, fill_hdf5_file

PRIVATE = ['unshare', '--map-root-user', '--mount', 'sh', '-c']
MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$0"'
RUN = ('shift; "$@"; echo "status $?"; '
       'for name in $(ls -A "$0"); do echo "left $name"; done')
FILL = 'dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null'
SIZES = ('16k', '100k', '256k', '1m')


def images(folder):
    """Write images of different sizes."""
    rng = numpy.random.default_rng(0)
    for i in range(40):
        (folder / str(i % 2)).mkdir(exist_ok=True)
        pixels = rng.integers(0, 256, (60 + i, 80, 3), dtype='uint8')
        Image.fromarray(pixels).save(folder / str(i % 2) / f'{i}.png')


def mnist(folder):
    """Write digits, more than a megabyte of them as float64."""
    raw_data.mnist(folder, train=150, test=40)


def small_disk(folder, size, command, before='true'):
    """Run a command that may use a disk mounted in a folder; return its
    status, what is left on the disk, and the errors."""
    done = subprocess.run(
        [*PRIVATE, f'{MOUNT} && {before}; {RUN}', str(folder), size,
         *command], env=environment(), capture_output=True, text=True,
        check=False, timeout=60)
    status = re.search(r'^status (\d+)$', done.stdout, re.MULTILINE)
    return (int(status[1]), re.findall('^left (.*)$', done.stdout,
                                       re.MULTILINE), done.stderr)


@pytest.fixture
def small(tmp_path):
    """Return a folder where a small disk can be mounted."""
    folder = tmp_path / 'small'
    folder.mkdir()
    try:
        subprocess.run([*PRIVATE, MOUNT, str(folder), '16k'], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('no small disk can be mounted here')
    return folder


def check_refusal(small, status, left, error):
    """Check that it is one line that says which disk, and how much."""
    assert (1, []) == (status, left), error
    assert 1 == error.count('\n'), error
    found = re.search(r'no room on the disk of (.*): the file needs at least '
                      r'(\d+) bytes, and there are (\d+)', error)
    assert repr(str(small)) == found[1]
    assert int(found[2]) > int(found[3])


@pytest.mark.parametrize('write, arguments', [
    (mnist, ['mnist', '--dtype', 'float64']),
    (mnist, ['mnist', '--dtype', 'float64', '--chunk-rows', '8']),
    (mnist, ['mnist', '--dtype', 'float64', '--compression', 'lzf',
             '--chunk-rows', '3']),
    (images, ['image_folder']),
    (images, ['image_folder', '--compression', 'gzip', '--chunk-rows', '4']),
    (images, ['image_folder', '--size', '128x64'])],
    ids=['contiguous', 'chunked', 'compressed', 'ragged',
         'ragged-compressed', 'resized'])
def test_conversion_on_a_small_disk_says_so_and_leaves_nothing(
        small, tmp_path, write, arguments):
    """HDF5 ended the process, at whatever size it met the end of the disk."""
    raw = tmp_path / 'raw'
    raw.mkdir()
    write(raw)
    command = [sys.executable, '-m', 'fuel.bin.fuel_convert', *arguments,
               '-d', str(raw), '-o', str(small), '-r', 'a.hdf5']
    refused = 0
    for size in SIZES:
        status, left, error = small_disk(small, size, command)
        if status == 0:
            assert ['a.hdf5'] == left
        else:
            check_refusal(small, status, left, error)
            refused += 1
    assert refused > 1
    status, left, said = small_disk(small, '8m', command)
    assert (0, ['a.hdf5']) == (status, left)
    # Miniatures are not the original files, and classes are listed.
    assert re.search(r'^wrote \S+/a\.hdf5 \(.*\)(: .*)?\n', said,
                     re.MULTILINE)
    status, left, error = small_disk(small, '1m', command, FILL)
    check_refusal(small, status, [n for n in left if n != 'fill'], error)


def test_source_larger_than_the_disk_is_refused_before_it_is_written(
        tmp_path):
    """The error does not come after hours."""
    with (pytest.raises(OSError, match='needs at least 8') as caught,
          converted_file(str(tmp_path), 'a.hdf5') as h5file):
        create_source(h5file, 'x', (10 ** 17,), 'float64')
    assert errno.ENOSPC == caught.value.errno
    assert [] == os.listdir(tmp_path)


def test_sources_together_larger_than_the_disk_are_refused(tmp_path):
    """Each might fit by itself."""
    half = os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize // 2
    with (pytest.raises(OSError, match='no room'),
          converted_file(str(tmp_path), 'a.hdf5') as h5file):
        for name in 'abc':
            create_source(h5file, name, (half,), 'uint8')
    assert [] == os.listdir(tmp_path)


def test_conversion_in_a_conversion_has_room_of_its_own(tmp_path):
    """The inner file ends, the outer goes on."""
    with converted_file(str(tmp_path), 'a.hdf5') as outer:
        with converted_file(str(tmp_path), 'b.hdf5') as inner:
            fill_hdf5_file(inner, [('train', 'x', numpy.arange(3))])
        fill_hdf5_file(outer, [('train', 'x', numpy.arange(4))])
    assert ['a.hdf5', 'b.hdf5'] == sorted(os.listdir(tmp_path))


@pytest.mark.parametrize('failing', [0, 50, 200])
def test_sink_reads_what_was_written_also_after_an_error(tmp_path, failing):
    """Random reads and writes, as an array of bytes does them; the first
    are on the disk."""
    rng = numpy.random.default_rng(failing)
    path = tmp_path / 'a'
    path.touch()
    sink = Sink(str(path))
    expected = numpy.zeros(50000, 'uint8')
    for step in range(200):
        if step == failing:
            kept = path.read_bytes()
            sink.error = OSError(errno.ENOSPC, 'full')
        start, size = rng.integers(0, 40000), rng.integers(0, 10000)
        data = rng.integers(0, 256, size, dtype='uint8')
        sink.seek(start)
        assert size == sink.write(memoryview(data))
        expected[start:start + size] = data
        start, size = rng.integers(0, 40000), rng.integers(0, 10000)
        sink.seek(start)
        assert expected[start:start + size].tobytes() == sink.read(size)
    end = sink.seek(0, os.SEEK_END)
    assert sink.end == end == sink.tell()
    sink.close()
    assert path.read_bytes() == (
        kept if failing < 200 else expected[:end].tobytes())
