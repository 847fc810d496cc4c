"""Settings of the tests that need JAX."""
import os

# Eight devices on any machine; read when JAX looks for its devices.
os.environ['XLA_FLAGS'] = (
    os.environ.get('XLA_FLAGS', '')
    + ' --xla_force_host_platform_device_count=8')
