"""Few calls of Python are made around an epoch and to open files, and they
grow with stages as little as was reached."""
import json

from support import benchmarks, journeys, processes

# Bounds that only go down, by the number of stages: lower one as soon as less
# is reached. What is wanted is in ``benchmarks/calls.py``.
MOST = {
    'building': {1: 81, 8: 270, 32: 918},
    'iter()': {1: 76, 8: 265, 32: 913},
    'first batch': {1: 44, 8: 163, 32: 571},
    'item': {1: 3, 8: 24, 32: 96},
    'second state_dict': {1: 37, 8: 121, 32: 409},
    'load_state_dict': {1: 164, 8: 507, 32: 1683},
    'iter() resumed': {1: 95, 8: 347, 32: 1211},
    'shard': {1: 95, 8: 326, 32: 1118},
}
MOST_OF_A_MIXTURE = {
    'shard': 343, 'iter()': 322, 'first batch': 294, 'further': 66,
    'state_dict': 823, 'load_state_dict': 596}
MOST_OF_OTHERS = {
    'epoch over HDF5 opened, with its first batch': 104,
    # It waits now and then, which takes five calls more.
    'batch of MultiProcessing, in the consumer': 38}
MOST_OF_DATA = {
    'CSVDataset of 1,000 rows and three columns opened': 293,
    'batch of 500 rows of CSV': 45,
    'JSONLDataset of 1,000 rows and four fields opened': 1186,
    'batch of 500 rows of JSON lines': 64,
    'Windows over robomimic opened': 3771,
    'batch of contiguous HDF5': 0,
    'batch of Windows over robomimic': 0,
    'batch of CSR': 5,
    'modules in a first batch of H5PYDataset': 12,
    # One more where the batch waits for a chunk that a thread decodes.
    'modules in a first batch of Windows over robomimic': 17}
# Different functions in Python that data pass, in both processes where there
# are two. A worker and a server also hear that an earlier batch came.
MOST_FUNCTIONS = {
    'hdf5': 19, 'stages': 19, 'worker': 76, 'server': 111, 'convert': 40}


def test_steps_around_an_epoch_make_no_more_calls_than_were_reached(tmp_path):
    """They are counted in a process of its own, where nothing else was built
    before."""
    counts = json.loads(benchmarks.run('calls.py', tmp_path, '--json'))
    more = {f'{step}, {stages} stages': calls
            for step, bounds in MOST.items() for stages, most in bounds.items()
            if (calls := counts['pipelines'][step][str(stages)]) > most}
    more.update({step: calls for step, most in MOST_OF_A_MIXTURE.items()
                 if (calls := counts['mixture'][step]) > most})
    more.update({step: calls for step, most in MOST_OF_OTHERS.items()
                 if (calls := counts[step]) > most})
    more.update({step: calls for step, most in MOST_OF_DATA.items()
                 if (calls := counts['data'][step]) > most})
    assert {} == more


def test_data_pass_no_more_functions_than_were_reached():
    """The test makes a request for rows, batches of three pipelines, and reads
    a raw file."""
    status, output, errors = processes.run_python(journeys.__file__)
    assert 0 == status, errors.decode()
    more = {journey: functions
            for journey, functions in json.loads(output).items()
            if len(functions) > MOST_FUNCTIONS[journey]}
    assert {} == more
