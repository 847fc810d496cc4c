"""A process that kills itself at a chosen moment."""
import json
import os
import signal
import sys

import numpy

# Where it may happen: in the middle of what these functions do.
PLACES = {
    'send': ('fuel.transport.channel', 'Channel', 'send'),
    'receive': ('fuel.transport.channel', 'Channel', '_read'),
    'slot copy': ('fuel.workers.batch_maker', None, 'write_into'),
    'state': ('fuel.epochs.state_delta', 'StateDelta', 'changes'),
    'lend': ('fuel.transport.leases', 'Leases', 'lend'),
    'server send': ('fuel.server.server', 'Server', '_send'),
    'server receive': ('fuel.server.server', 'Server', '_handle'),
    'server slot copy': ('fuel.workers.batch_maker', None, 'write_into'),
    'server state': ('fuel.epochs.state_delta', 'StateDelta', 'changes'),
    'client send': ('fuel.client.connection', 'Connection', '_send'),
    'client receive': ('fuel.client.connection', 'Connection', '_handle'),
    'client take': ('fuel.client.session', 'ServerSession', 'count'),
    'save': (__name__, None, 'save'),
}


def arm(place, count, spare=None, only=None):
    """Let this process be killed at call number `count` of a function.

    Parameters
    ----------
    place : str
        A key of `PLACES`.
    count : int
    spare : int, optional
        A process that is not killed, though it has the same code.
    only : int, optional
        The one process that is killed.

    Returns
    -------
    callable
        Undoes it.

    """
    module_name, class_name, name = PLACES[place]
    __import__(module_name)
    owner = sys.modules[module_name]
    if class_name is not None:
        owner = getattr(owner, class_name)
    original = getattr(owner, name)
    calls = [0]

    def counted(*args, **kwargs):
        if os.getpid() == spare or only not in (None, os.getpid()):
            return original(*args, **kwargs)
        calls[0] += 1
        if calls[0] == count:
            # Before, or after it has happened.
            if count % 2:
                original(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(owner, name, counted)
    return lambda: setattr(owner, name, original)


def save(path, fields):
    """Replace a file of JSON in one step."""
    with open(path + '.new', 'w') as file:
        json.dump(fields, file)
    os.replace(path + '.new', path)


def consume(stream, path, num_epochs):
    """Read epochs, saving what came and the state after each batch.

    Started again, it goes on with what was saved.
    """
    seen, epoch_number = [], 0
    if os.path.exists(path):
        with open(path) as file:
            saved = json.load(file)
        seen, epoch_number = saved['seen'], saved['epoch']
        stream.load_state_dict(saved['state'])
    while epoch_number < num_epochs:
        for batch in stream.get_epoch_iterator():
            seen.append([batch[1].tolist(), float(numpy.sum(batch[0]))])
            # Looked up anew, since it may be armed.
            sys.modules[__name__].save(path, {
                'seen': seen, 'epoch': epoch_number,
                'state': stream.state_dict()})
        epoch_number += 1
        sys.modules[__name__].save(path, {
            'seen': seen, 'epoch': epoch_number,
            'state': stream.state_dict()})
