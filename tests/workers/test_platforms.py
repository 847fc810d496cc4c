"""Fuel works on systems that lack features of Linux."""
from support.processes import run_python

# Names that only Linux has; macOS has the others of these modules.
WITHOUT_LINUX = """
import fcntl, mmap, os, select
for module, names in (
        (fcntl, ('F_ADD_SEALS', 'F_GET_SEALS', 'F_SEAL_SEAL')),
        (mmap, ('MAP_POPULATE',)), (os, ('memfd_create', 'pidfd_open')),
        (select, ('POLLRDHUP', 'epoll'))):
    for name in names:
        vars(module).pop(name, None)
"""
# Windows has none of these.
WITHOUT_UNIX = WITHOUT_LINUX + """
import socket
for module, names in (
        (os, ('fork', 'forkpty', 'register_at_fork', 'posix_fadvise')),
        (socket, ('AF_UNIX', 'send_fds', 'recv_fds', 'CMSG_LEN')),
        (select, ('poll',))):
    for name in names:
        vars(module).pop(name, None)
"""
EPOCH = """
import numpy
from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.server import Server, start_server
from fuel.streams import ServerDataStream
from fuel.transformers import BackgroundProcess, MultiProcessing
stream = DataStream(IndexableDataset(numpy.zeros((6, 5000))),
                    iteration_scheme=SequentialScheme(6, 2))
"""


def test_workers_need_nothing_that_only_linux_has():
    """Batches come through memory, and dead workers are noticed."""
    status, output, errors = run_python('-c', WITHOUT_LINUX + EPOCH + """
import signal
for method in ('spawn', 'fork', 'forkserver'):
    with MultiProcessing(stream, start_method=method) as parallel:
        for _ in range(2):
            print(len([batch for batch, in parallel.get_epoch_iterator()
                       if batch.shape == (2, 5000)]))
        parallel.max_store = 1
        parallel.close()
        epoch = parallel.get_epoch_iterator()
        next(epoch)
        os.kill(parallel.worker_pids[0], signal.SIGKILL)
        try:
            list(epoch)
        except Exception as error:
            print('SIGKILL' in str(error))
""")
    assert (0, ['3', '3', 'True'] * 3) == (status, output.decode().split()), (
        errors.decode())


def test_workers_and_servers_on_windows_are_an_error_that_says_so():
    """Everything else works, and importing it too."""
    status, output, errors = run_python('-c', WITHOUT_UNIX + EPOCH + """
print(len(list(stream.get_epoch_iterator())))
for make in (MultiProcessing, lambda stream: BackgroundProcess(stream, 2),
             lambda stream: ServerDataStream(('x',)), Server, start_server):
    try:
        make(stream)
    except NotImplementedError as error:
        print(error)
""")
    assert 0 == status, errors.decode()
    count, *messages = output.decode().splitlines()
    assert '3' == count
    starts = ('MultiProcessing needs Unix sockets',
              'BackgroundProcess needs Unix sockets',
              'ServerDataStream waits for sockets and a pipe',
              'the server waits for sockets', 'the server waits for sockets')
    for start, message in zip(starts, messages, strict=True):
        assert message.startswith(start)
        assert 'read the data stream itself' in message
