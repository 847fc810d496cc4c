"""Find the tests that concern a file of the core, the closest first."""
import ast
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = Path(__file__).parents[2] / 'fuel'

#: The stages that are not about images, values or sequences.
GENERAL_STAGES = ['fuel/transformers/mixture', *(
    f'fuel/transformers/{name}.py' for name in (
        'base', 'batch', 'cache', 'expand', 'filter', 'leftovers', 'mapping',
        'multiprocessing', 'multithreading', 'options', 'seeded',
        'sequence_stage', 'several', 'shuffling', 'sourcewise',
        'worker_stage'))]

#: Files and folders of tests that concern a part of the core: the first match
#: counts. Those that are as close as others keep this order.
PARTS = {
    'fuel/schemes': [
        'contracts/test_schemes.py', 'test_schemes.py',
        'test_compact_requests.py', 'test_computed_schemes.py',
        'compat/test_schemes_and_streams.py', 'test_sampling_schemes.py',
        'test_block_orders.py', 'test_streams.py',
        'sharding/test_shards.py'],
    'fuel/epochs': [
        'test_streams.py', 'epochs', 'contracts/test_epochs.py',
        'transformers/test_base.py', 'transformers/test_origin.py',
        'transformers/test_one_to_one.py', 'datasets/test_hdf5_direct.py',
        'transport/test_changes.py', 'sharding/test_shards.py',
        'contracts/test_streams.py', 'workers',
        'transformers/test_multiprocessing.py',
        'contracts/test_details.py'],
    'fuel/streams': [
        'test_streams.py', 'compat/test_schemes_and_streams.py',
        'test_stream_protocols.py', 'test_messages.py',
        'contracts/test_epochs.py', 'transformers/test_base.py',
        'sharding/test_shards.py', 'contracts/test_streams.py',
        'server/test_server.py'],
    'fuel/sharding': [
        'sharding', 'transformers/test_mix.py', 'transformers/test_base.py',
        'contracts/test_streams.py', 'test_streams.py'],
    'fuel/profiling': ['profiling', 'contracts/test_details.py'],
    **{stage: [
        'transformers', 'test_streams.py', 'contracts/test_epochs.py',
        'sharding/test_orders.py', 'sharding/test_shards.py',
        'contracts/test_streams.py'] for stage in GENERAL_STAGES},
    'fuel/iterator.py': [
        'test_streams.py', 'transformers/test_base.py',
        'contracts/test_streams.py', 'transformers/test_multiprocessing.py'],
    'fuel/datasets': [
        'datasets', 'test_compact_requests.py', 'compat/test_datasets.py',
        'compat/test_hdf5.py', 'test_loading.py', 'describe',
        'contracts/test_datasets.py', 'storage/test_reader.py',
        'storage/test_prefetch.py', 'storage/remote/test_reading.py',
        'contracts/test_streams.py'],
    'fuel/storage': [
        'storage', 'kernels/test_gather.py', 'kernels/test_filters.py',
        'datasets/test_hdf5.py', 'datasets/test_hdf5_direct.py',
        'datasets/test_hdf5_properties.py', 'datasets/test_hdf5_damage.py',
        'datasets/test_hdf5_overwritten.py',
        'datasets/test_hdf5_processes.py', 'datasets/test_npy.py',
        'datasets/test_csv.py'],
    'fuel/transport': [
        'transport', 'workers', 'transformers/test_multiprocessing.py',
        'server/test_server.py', 'server/test_edges.py',
        'contracts/test_details.py', 'testing/test_faults.py'],
    'fuel/workers': [
        'workers', 'transformers/test_multiprocessing.py', 'transport',
        'utils/test_parallel.py', 'server/test_interruptions.py',
        'contracts/test_details.py', 'testing/test_faults.py',
        'contracts/test_processes.py'],
    'fuel/wire': [
        'wire', 'server/test_server.py', 'server/test_interruptions.py',
        'server/test_edges.py'],
    'fuel/server': [
        'server/test_ledger.py', 'server/test_server.py',
        'server/test_edges.py', 'server/test_guarantee.py', 'server',
        'cli/test_server.py', 'wire', 'testing/test_faults.py',
        'contracts/test_processes.py'],
    'fuel/client': [
        'server/test_server.py', 'server/test_edges.py', 'server', 'wire',
        'testing/test_faults.py', 'contracts/test_processes.py'],
}

#: A file that more files of tests import does not tell their subject.
WIDELY = 8

#: Tests that need other libraries, or that a fault cannot fail in a copy.
NEVER = ('interop/', 'packaging/', 'typing/')


def choose_tests(path):
    """Return the test files that concern ``'fuel/...'``, closest first.

    First those that are named after the file, then those that import it, then
    those that use a public name of it, then the others of its part.
    """
    part = next((tests for part, tests in PARTS.items()
                 if path == part or path.startswith(part + '/')), None)
    if part is None:
        return []
    listed = [file for test in part for file in expand(test)]
    closeness = {file: closeness_of(file, path) for file in (*listed, *(
        file for file in all_tests() if not file.startswith(NEVER)))}
    return sorted(
        dict.fromkeys([*listed, *(file for file, close in closeness.items()
                                  if close < 2)]),
        key=closeness.__getitem__)


def check_parts():
    """End if a part or its tests have moved away."""
    for part, tests in PARTS.items():
        for path in (PACKAGE.parent / part, *(TESTS / one for one in tests)):
            if not path.exists():
                sys.exit(f'{path} is not there, but PARTS names it')


def expand(test):
    """Return the files of a folder of tests, or the file itself."""
    return [file for file in all_tests()
            if file == test or file.startswith(test + '/')]


@cache
def all_tests():
    """Return the paths of all test files, below the folder of tests."""
    return sorted(path.relative_to(TESTS).as_posix()
                  for path in TESTS.rglob('test_*.py'))


def closeness_of(test, path):
    """Return how far a test is from a file: 0, 1, 2, or 3."""
    modules, words = used_by(test)
    stem = Path(path).stem
    # The same word in another part of the package says nothing.
    same_part = Path(path).parent.name == Path(test).parent.name
    if same_part and Path(test).stem == f'test_{stem}':
        return 0
    if path.removesuffix('.py').replace('/', '.') in modules or any(
            test in importers(name) for name in facade_names(path)):
        return 1
    return 2 if words & public_names(path) else 3


@cache
def used_by(test):
    """Return the modules that a test imports, and the names that it uses."""
    modules, words = set(), set()
    for node in ast.walk(ast.parse((TESTS / test).read_text('utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f'{node.module}.{alias.name}'
                                       for alias in node.names)}
            words |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
    return modules, words


@cache
def facade_names(path):
    """Return the names under which packages above a file may offer what it
    defines."""
    package = Path(path).parent
    return [f'{folder.as_posix().replace("/", ".")}.{name}'
            for folder in (package, *package.parents[:-1])
            for name in sorted(public_names(path))]


@cache
def importers(name):
    """Return the tests that import a name, none if that is used widely."""
    found = [test for test in all_tests() if name in used_by(test)[0]]
    return found if len(found) <= WIDELY else []


@cache
def public_names(path):
    """Return the public classes and functions that a file defines."""
    tree = ast.parse((PACKAGE.parent / path).read_text('utf-8'))
    return {node.name for node in tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef))
            and not node.name.startswith('_')}
