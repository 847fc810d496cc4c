"""The programs of the page on JAX run as they stand there."""
import doctest

import jax
import pytest
from support import processes
from support.bridges import ROOT
from support.doctest_sessions import code_blocks

from fuel.interop.jax import to_jax

pytestmark = pytest.mark.timeout(300)

PAGE = (ROOT / 'docs' / 'jax.rst').read_text('utf-8')
BLOCKS = code_blocks(PAGE)
HEAD = PAGE[:PAGE.index('A training loop\n')]
DEFINITIONS = '\n'.join(example.source for example in (
    doctest.DocTestParser().get_examples(HEAD)))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return what runs a program in several processes at once."""
    # The programs save files where they run.
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'digits.py').write_text(DEFINITIONS)

    def run(program, environments):
        path = tmp_path / 'program.py'
        path.write_text(program)
        ended = processes.outputs([processes.start_python(str(path), **{
            'JAX_PLATFORMS': 'cpu', **environment})
            for environment in environments])
        # JAX prints lines of its own first.
        return [[line for line in output.splitlines()
                 if not line.startswith('[')] for output in ended]
    return run


@pytest.fixture
def digits():
    """Return the names that the page defines at its top."""
    names = {}
    exec(DEFINITIONS, names)
    return names


def test_programs_of_the_page_are_those_below():
    """Another program needs a test of its own."""
    several, workers = BLOCKS
    assert 'jax.distributed.initialize()' in several
    assert 'mp_prefetch' in workers
    assert PAGE.count('code-block::') == 2


def test_program_of_several_processes_trains_one_network(run, digits):
    """Each process has the weights that one process alone has."""
    address = processes.free_address()
    # Fuel and JAX find the ranks as those of a job of SLURM.
    found = run(BLOCKS[0], [{
        'SLURM_JOB_ID': '1', 'SLURM_STEP_NODELIST': 'localhost',
        'SLURM_NTASKS': '2', 'SLURM_PROCID': str(place),
        'SLURM_LOCALID': '0', 'JAX_COORDINATOR_ADDRESS': address,
        'XLA_FLAGS': '--xla_force_host_platform_device_count=2'}
        for place in range(2)])
    weights = digits['build']()
    stream = digits['open_stream']().shard(
        0, 1, by='example', uneven='drop')
    for features, targets in to_jax(stream).get_epoch_iterator():
        weights = digits['update'](weights, features, targets)
    assert found[0] == found[1]
    assert float(found[0][0]) == pytest.approx(
        float(abs(weights['W']).sum()), rel=1e-4)
    assert jax.process_count() == 1


def test_program_with_workers_of_grain_reads_the_epoch(run, digits):
    """Its guard and its flags are those that Grain's workers need."""
    found, = run(BLOCKS[1], [{}])
    assert list(map(int, found)) == [
        int(targets.sum()) for _, targets
        in digits['open_stream']().get_epoch_iterator()]
