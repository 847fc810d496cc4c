"""Conversions that are killed, and conversions at once."""
import os
import signal
import subprocess
import sys

import h5py
from support import raw_data
from support.processes import environment

CONVERT = 'import sys\nfrom fuel.bin.fuel_convert import main\n'
STOP = ('from fuel.converters import base\n'
        'def wait(h5file, data, fill=base.fill_hdf5_file):\n'
        '    fill(h5file, data)\n'
        '    h5file.flush()\n'
        '    print("half", flush=True)\n'
        '    sys.stdin.readline()\n'
        'base.fill_hdf5_file = wait\n')


def start(folder, code):
    """Run code in another process, in a folder."""
    return subprocess.Popen(
        [sys.executable, '-c', code], cwd=folder, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def run(folder, code=''):
    """Start ``fuel-convert iris`` in a process of its own."""
    return start(folder, CONVERT + code + 'sys.exit(main(["iris"]))')


def test_killed_conversion_leaves_nothing_for_long(tmp_path):
    """The file of a killed conversion goes with the next; one that still
    runs keeps its own, and both finish."""
    raw_data.iris(tmp_path)
    killed = run(tmp_path, STOP)
    assert b'half\n' == killed.stdout.readline()
    assert 2 == len(os.listdir(tmp_path))
    killed.kill()
    killed.communicate(timeout=60)
    assert -signal.SIGKILL == killed.returncode
    left, = set(os.listdir(tmp_path)) - {'iris.data'}
    assert left.startswith('.part-')
    living = run(tmp_path, STOP)
    assert b'half\n' == living.stdout.readline()
    own, = set(os.listdir(tmp_path)) - {'iris.data'}
    assert left != own
    other = run(tmp_path)
    other.communicate(timeout=60)
    assert 0 == other.returncode
    assert {'iris.data', 'iris.hdf5', own} == set(os.listdir(tmp_path))
    living.communicate(b'\n', timeout=60)
    assert 0 == living.returncode
    assert ['iris.data', 'iris.hdf5'] == sorted(os.listdir(tmp_path))
    with h5py.File(tmp_path / 'iris.hdf5') as h5file:
        assert 150 == len(h5file['features'])


OTHERS = ('import os, sys\n'
          'from fuel.converters.staging import convert_staged\n'
          'def convert(output_directory, output_filename):\n'
          '    path = os.path.join(output_directory, output_filename)\n'
          '    open(path, "wb").close()\n'
          '    print("half", flush=True)\n'
          '    sys.stdin.readline()\n'
          '    return (path,)\n'
          'convert_staged(convert, {"output_directory": ".",\n'
          '                        "output_filename": "a"}, tuple)\n')


def test_killed_converter_of_another_package_leaves_nothing_for_long(
        tmp_path):
    """Its folder goes with the next conversion; that of a living stays."""
    processes = [start(tmp_path, OTHERS) for _ in range(2)]
    for process in processes:
        assert b'half\n' == process.stdout.readline()
    assert 2 == len(os.listdir(tmp_path))
    processes[0].kill()
    processes[0].communicate(timeout=60)
    last = start(tmp_path, OTHERS)
    assert b'half\n' == last.stdout.readline()
    assert 2 == len(os.listdir(tmp_path))
    for process in (last, processes[1]):
        process.communicate(b'\n', timeout=60)
        assert 0 == process.returncode
    assert ['a'] == os.listdir(tmp_path)
