"""Settings of the tests that need JAX."""
import os

import pytest
from absl import flags

# Eight devices on any machine; read when JAX looks for its devices.
os.environ['XLA_FLAGS'] = (
    os.environ.get('XLA_FLAGS', '')
    + ' --xla_force_host_platform_device_count=8')


@pytest.fixture(scope='session', autouse=True)
def _parsed_flags():
    """Parse the flags of absl, as programs that use Grain's workers do."""
    flags.FLAGS(['pytest'], known_only=True)
