"""Serving the batches of a stream to other processes and hosts."""
from fuel.server.server import Server
from fuel.server.start import start_server
from fuel.wire.messages import recv_arrays, send_arrays

__all__ = ['Server', 'recv_arrays', 'send_arrays', 'start_server']

for _name in __all__:
    globals()[_name].__module__ = __name__
