"""A cluster of two nodes on this machine, for the tests that need Ray."""
import os
import sys
from pathlib import Path

import pytest
import ray
from ray import cloudpickle
from ray.cluster_utils import Cluster

STORE = 100 << 20
# A node that was killed is missed within a second or two.
HEALTH = {'health_check_initial_delay_ms': 0, 'health_check_period_ms': 300,
          'health_check_timeout_ms': 2000,
          'health_check_failure_threshold': 3}


@pytest.fixture(scope='session')
def cluster():
    """Return a cluster of two nodes that this process is connected to."""
    # Its processes import what the tests do, and so do those that connect.
    tests = str(Path(__file__).parents[2])
    paths = os.environ.get('PYTHONPATH')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYTHONPATH', os.pathsep.join(
            [tests, paths] if paths else [tests]))
        patch.setenv('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
        patch.setenv('RAY_TRAIN_V2_ENABLED', '1')
        cluster = Cluster(initialize_head=True, head_node_args={
            'num_cpus': 4, 'object_store_memory': STORE,
            'include_dashboard': False, '_system_config': HEALTH})
        try:
            patch.setenv('RAY_ADDRESS', cluster.address)
            cluster.add_node(num_cpus=4, object_store_memory=STORE,
                             resources={'second': 2})
            ray.init(address=cluster.address, log_to_driver=False)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture(autouse=True)
def on_cluster(cluster):
    """Run every test on the cluster, examples of the manual too."""


@pytest.fixture(autouse=True, scope='module')
def sent_by_value(request):
    """Send what a module of tests defines to the nodes, as of a script.

    They cannot import it: its name begins at the checkout, whose sources must
    not be importable there.
    """
    if request.module.__name__ in sys.modules:
        cloudpickle.register_pickle_by_value(request.module)


@pytest.fixture
def spare_node(cluster):
    """Return a node that may be killed, with a resource ``spare``."""
    node = cluster.add_node(num_cpus=0, object_store_memory=STORE,
                            resources={'spare': 2})
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)
