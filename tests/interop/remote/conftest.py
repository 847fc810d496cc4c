"""A server of S3's protocol on loopback, and a bucket of each test."""
import itertools

import boto3
import pytest
from moto.server import DomainDispatcherApplication, ThreadedMotoServer

from fuel import config

KEY, SECRET = 'an-access-key', 'a-secret-key'
NUMBERS = itertools.count()
ASKED = []


class NotingApplication(DomainDispatcherApplication):
    """Adds the path and the range of each request to ``ASKED``."""

    def __call__(self, environ, start_response):
        """Answer a request."""
        ASKED.append((environ['PATH_INFO'], environ.get('HTTP_RANGE', '')))
        return super().__call__(environ, start_response)


@pytest.fixture
def asked():
    """Return the list of requests that the server gets from now on."""
    ASKED.clear()
    return ASKED


@pytest.fixture(scope='session')
def endpoint():
    """Run the server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('moto.moto_server.threaded_moto_server.'
                      'DomainDispatcherApplication', NotingApplication)
        yield from run_server()


def run_server():
    """Yield the URL of a server, which then ends."""
    server = ThreadedMotoServer(ip_address='127.0.0.1', port=0,
                                verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f'http://{host}:{port}'
    server.stop()


@pytest.fixture
def options(endpoint, tmp_path):
    """Return the storage options of the server; cache in the test."""
    config.remote_cache_path = str(tmp_path / 'cache')
    config.remote_timeout = 20
    return {'key': KEY, 'secret': SECRET, 'endpoint_url': endpoint}


@pytest.fixture
def client(endpoint):
    """Return a client of the server that is not Fuel's."""
    return boto3.client(
        's3', endpoint_url=endpoint, region_name='us-east-1',
        aws_access_key_id=KEY, aws_secret_access_key=SECRET)


@pytest.fixture
def bucket(client):
    """Return the name of a new bucket."""
    name = f'bucket-{next(NUMBERS)}'
    client.create_bucket(Bucket=name)
    return name
