"""Commands whose reader goes away, or that are interrupted."""
import os
import signal
import subprocess
import sys

import pytest
from support import raw_data
from support.processes import environment

MAIN = ('import sys\nfrom fuel.bin.{0} import main\n'
        'sys.exit(main(sys.argv[1:]))')


@pytest.mark.parametrize('command, arguments', [
    ('fuel_download', ['--list']), ('fuel_download', ['iris', '--check']),
    ('fuel_convert', ['--list']), ('fuel_info', ['iris.hdf5']),
    ('fuel_info', ['--json', 'iris.hdf5']),
    ('fuel_server', ['keys', 'keys', 'client'])])
def test_command_into_a_closed_pipe_is_quiet(tmp_path, command, arguments):
    """An example is ``fuel-download --list | head``."""
    raw_data.iris(tmp_path)
    subprocess.run([sys.executable, '-c', MAIN.format('fuel_convert'),
                    'iris'], cwd=tmp_path, env=environment(), check=True)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, '-c', MAIN.format(command), *arguments],
            cwd=tmp_path, env=environment(), stdout=writer,
            stderr=subprocess.PIPE, check=False, timeout=60)
    finally:
        os.close(writer)
    assert b'' == done.stderr
    assert 128 + signal.SIGPIPE == done.returncode


def test_interrupted_command_says_one_line(capsys):
    """Ctrl-C needs no traceback."""
    from fuel.bin.commands import pipe_friendly

    @pipe_friendly('fuel')
    def main():
        raise KeyboardInterrupt
    with pytest.raises(SystemExit, match='130'):
        main()
    assert 'interrupted\n' == capsys.readouterr().err
