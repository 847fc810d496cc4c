"""Global arrays whose parts several processes read."""
import json

import pytest
from support import jax_process, processes

from fuel.interop.jax import to_jax

NUM_PROCESSES, NUM_DEVICES = 2, 4


@pytest.fixture(scope='module')
def answers():
    """Return what each of two processes has of an epoch."""
    address = processes.free_address()
    ended = processes.outputs([processes.start_python(
        jax_process.__file__, address, str(NUM_PROCESSES), str(number),
        XLA_FLAGS='--xla_force_host_platform_device_count=2',
        JAX_PLATFORMS='cpu')
        for number in range(NUM_PROCESSES)])
    return [json.loads(output.splitlines()[-1]) for output in ended]


@pytest.mark.timeout(300)
def test_batches_of_processes_are_global_arrays(answers):
    """Each reads its part; together they are the batches of the stream."""
    expected = [
        (rows, numbers) for rows, numbers
        in jax_process.build().get_epoch_iterator()
        if len(numbers) == jax_process.BATCH]
    for answer in answers:
        assert NUM_DEVICES == answer['devices']
        assert len(expected) == len(answer['batches'])
        for (rows, _), batch in zip(
                expected, answer['batches'], strict=True):
            assert list(rows.shape) == batch['shape']
            assert rows.sum() == batch['sum']
    for place, (_, numbers) in enumerate(expected):
        parts = [part for answer in answers
                 for part in answer['batches'][place]['mine']]
        assert NUM_DEVICES == len(parts)
        assert numbers.tolist() == sum(parts, [])


def test_state_of_processes_is_that_of_the_whole_order(answers):
    """One process goes on from that of any."""
    plain = [numbers.tolist() for _, numbers
             in jax_process.build().get_epoch_iterator()]
    for answer in answers:
        restored = to_jax(jax_process.build())
        restored.load_state_dict(answer['state'])
        assert plain[1:] == [
            numbers.tolist() for _, numbers in restored.get_epoch_iterator()]
