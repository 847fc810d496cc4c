"""Pipelines that run in workers, in threads, or behind a server."""
import warnings
from contextlib import ExitStack

from support import pipelines

from fuel.server import Server
from fuel.streams import ServerDataStream
from fuel.transformers import MultiProcessing, MultiThreading

# Ends the servers that were started here.
SERVERS = ExitStack()


def in_worker(name, folder):
    """Return a new pipeline that a worker process runs."""
    return MultiProcessing(pipelines.build(name, folder))


def in_workers(name, folder):
    """Return a new pipeline that two worker processes run."""
    return MultiProcessing(pipelines.build(name, folder), num_workers=2)


def in_threads(name, folder):
    """Return a new pipeline that threads run."""
    return MultiThreading(pipelines.build(name, folder), num_threads=2)


def behind_server(name, folder):
    """Return a client of a new server of a new pipeline."""
    pipeline = pipelines.build(name, folder)
    with warnings.catch_warnings():
        # Nothing draws beside those that set the global generators.
        warnings.filterwarnings('ignore', 'Mapping with a seed sets')
        server = SERVERS.enter_context(Server(pipeline, port=0))
    return ServerDataStream(
        tuple(pipeline.sources), port=server.port, reconnect=5)
