"""Server and client on two hosts: network namespaces joined by a cable.

Needs the right to make namespaces; where that is missing, the summary lists
these tests by name.
"""
import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.timeout(60)

SERVER = """
    import sys
    from fuel.server import start_server
    from support.process_pipelines import build
    if __name__ == '__main__':
        start_server(build(int(sys.argv[1])), host='10.77.0.1')
"""

CLIENT = """
    import sys
    from fuel.streams import ServerDataStream
    if __name__ == '__main__':
        client = ServerDataStream(('x', 'y'), host='10.77.0.1',
                                  shared_memory=False, timeout=20)
        with client:
            for batch in client.get_epoch_iterator():
                print(*batch[1], flush=True)
        print('end', flush=True)
"""


def command(*words):
    """Run a command that must succeed."""
    return subprocess.run(words, check=True, capture_output=True, text=True)


def can_make_namespaces():
    """Tell whether this machine lets us."""
    if os.geteuid() != 0 or shutil.which('ip') is None:
        return False
    name = f'fuel-probe-{os.getpid()}'
    made = subprocess.run(['ip', 'netns', 'add', name], check=False,
                          capture_output=True)
    if made.returncode:
        return False
    command('ip', 'netns', 'delete', name)
    return True


needs_namespaces = pytest.mark.skipif(
    not can_make_namespaces(),
    reason='needs the right to make network namespaces (root and iproute2)')


class Hosts:
    """Two hosts and the cable between them."""

    def __init__(self):
        self.names = [f'fuel-{side}-{os.getpid()}' for side in 'ab']
        self.processes = []
        for name in self.names:
            command('ip', 'netns', 'add', name)
        command('ip', 'link', 'add', 'cable', 'netns', self.names[0],
                'type', 'veth', 'peer', 'name', 'cable', 'netns',
                self.names[1])
        for place, name in enumerate(self.names):
            self.run(place, 'ip', 'address', 'add', f'10.77.0.{place + 1}/24',
                     'dev', 'cable')
            self.run(place, 'ip', 'link', 'set', 'cable', 'up')
            self.run(place, 'ip', 'link', 'set', 'lo', 'up')
            assert name in command('ip', 'netns', 'list').stdout

    def run(self, place, *words):
        """Run a command on a host."""
        return command('ip', 'netns', 'exec', self.names[place], *words)

    def start(self, place, script, *arguments):
        """Start a script on a host."""
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', self.names[place], sys.executable, '-c',
             textwrap.dedent(script), *map(str, arguments)],
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
        self.processes.append(process)
        return process

    def close(self):
        """End everything."""
        for process in self.processes:
            process.kill()
            process.communicate()
        for name in self.names:
            command('ip', 'netns', 'delete', name)


@pytest.fixture
def hosts():
    """Return two hosts."""
    hosts = Hosts()
    yield hosts
    hosts.close()


def numbers_of(lines):
    """Return the targets that a client printed."""
    return sorted(int(word) for line in lines if line != 'end\n'
                  for word in line.split())


@needs_namespaces
def test_cut_link_is_bridged(hosts):
    """Longer than either side waits for a sign of life; nothing is lost."""
    hosts.start(0, SERVER, 4000)
    client = hosts.start(1, CLIENT)
    lines = [client.stdout.readline() for _ in range(5)]
    hosts.run(1, 'ip', 'link', 'set', 'cable', 'down')
    time.sleep(2.5)
    hosts.run(1, 'ip', 'link', 'set', 'cable', 'up')
    lines += client.stdout.readlines()
    assert lines[-1] == 'end\n'
    assert numbers_of(lines) == list(range(4000))


@needs_namespaces
def test_server_restarted_on_its_host_continues(hosts):
    """Killed and started again, over the network."""
    server = hosts.start(0, SERVER, 4000)
    client = hosts.start(1, CLIENT)
    lines = [client.stdout.readline() for _ in range(5)]
    server.kill()
    server.wait()
    hosts.start(0, SERVER, 4000)
    lines += client.stdout.readlines()
    assert lines[-1] == 'end\n'
    assert numbers_of(lines) == list(range(4000))


@needs_namespaces
def test_slow_link_is_not_taken_for_a_dead_one(hosts):
    """A client stays while a batch takes longer than the heartbeats."""
    if shutil.which('tc') is None:
        pytest.skip('needs tc (iproute2)')
    hosts.run(0, 'tc', 'qdisc', 'add', 'dev', 'cable', 'root', 'tbf', 'rate',
              '4mbit', 'burst', '32kbit', 'latency', '2000ms')
    hosts.start(0, SERVER, 40)
    client = hosts.start(1, CLIENT)
    lines = client.stdout.readlines()
    assert lines[-1] == 'end\n'
    assert numbers_of(lines) == list(range(40))
