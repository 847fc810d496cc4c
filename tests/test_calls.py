"""Few calls of Python are made around an epoch, and they grow with stages as
little as was reached."""
import json

from support import benchmarks

# Bounds that only go down, by the number of stages: lower one as soon as less
# is reached. What is wanted is in ``benchmarks/calls.py``.
MOST = {
    'building': {1: 104, 8: 391, 32: 2119},
    'iter()': {1: 107, 8: 667, 32: 5563},
    'first batch': {1: 55, 8: 349, 32: 2845},
    'item': {1: 6, 8: 104, 32: 1184},
    'second state_dict': {1: 45, 8: 213, 32: 1533},
    'load_state_dict': {1: 201, 8: 845, 32: 3797},
    'iter() resumed': {1: 122, 8: 850, 32: 7810},
    'shard': {1: 153, 8: 594, 32: 2106},
}
MOST_OF_A_MIXTURE = {
    'shard': 1003, 'iter()': 531, 'first batch': 571, 'further': 157,
    'state_dict': 838, 'load_state_dict': 1157}
MOST_OF_OTHERS = {
    'epoch over HDF5 opened, with its first batch': 119,
    # It waits now and then, which takes five calls more.
    'batch of MultiProcessing, in the consumer': 50}


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
