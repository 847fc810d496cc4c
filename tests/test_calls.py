"""Few calls of Python are made around an epoch, and they grow with stages as
little as was reached."""
import json

from support import benchmarks

# Bounds that only go down, by the number of stages: lower one as soon as less
# is reached. What is wanted is in ``benchmarks/calls.py``.
MOST = {
    'building': {1: 104, 8: 293, 32: 941},
    'iter()': {1: 80, 8: 276, 32: 948},
    'first batch': {1: 46, 8: 172, 32: 604},
    'item': {1: 3, 8: 24, 32: 96},
    'second state_dict': {1: 41, 8: 132, 32: 444},
    'load_state_dict': {1: 172, 8: 669, 32: 2373},
    'iter() resumed': {1: 98, 8: 357, 32: 1245},
    'shard': {1: 117, 8: 418, 32: 1450},
}
MOST_OF_A_MIXTURE = {
    'shard': 805, 'iter()': 336, 'first batch': 478, 'further': 122,
    'state_dict': 857, 'load_state_dict': 1003}
MOST_OF_OTHERS = {
    'epoch over HDF5 opened, with its first batch': 110,
    # It waits now and then, which takes five calls more.
    'batch of MultiProcessing, in the consumer': 38}


def test_steps_around_an_epoch_make_no_more_calls_than_were_reached(tmp_path):
    """In a process of its own, where nothing else was built before."""
    counts = json.loads(benchmarks.run('calls.py', tmp_path, '--json'))
    more = {f'{step}, {stages} stages': calls
            for step, bounds in MOST.items() for stages, most in bounds.items()
            if (calls := counts['pipelines'][step][str(stages)]) > most}
    more.update({step: calls for step, most in MOST_OF_A_MIXTURE.items()
                 if (calls := counts['mixture'][step]) > most})
    more.update({step: calls for step, most in MOST_OF_OTHERS.items()
                 if (calls := counts[step]) > most})
    assert {} == more
