"""Fuel where PyTables is not installed, which is the extra ``pytables``."""
import pickle
import re
from pathlib import Path

import numpy
import tables
from support.processes import run_python

from fuel.datasets.hdf5 import PytablesDataset
from fuel.streams import DataStream
from fuel.utils.extras import how_to_install

DOCS = Path(__file__).parents[2] / 'docs'
# PyTables is hidden, whether or not it is installed.
HIDE = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == 'tables':
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

sys.meta_path.insert(0, Refusing())
from fuel.datasets import hdf5
from fuel.datasets.hdf5 import H5PYDataset, PytablesDataset
"""


def run_hidden(program, *arguments):
    """Run a program without PyTables; return what it prints."""
    status, output, errors = run_python('-c', HIDE + program, *arguments)
    assert 0 == status, errors.decode()
    return output.decode()


def test_pytablesdataset_without_pytables_names_the_extra(tmp_path):
    """One error is raised at once, whether there is such a file or not."""
    printed = run_hidden("""
try:
    PytablesDataset(sys.argv[1], ('x',))
except ImportError as error:
    assert error.__suppress_context__
    print(error.name, error, sep='\\n')
""", str(tmp_path / 'none.h5'))
    assert ['tables', 'tables is not installed: '
            + how_to_install('pytables')] == printed.splitlines()


def test_module_without_pytables_has_hints_signature_and_help():
    """Hints of each public method of the class itself."""
    printed = run_hidden("""
import inspect, pydoc, typing
from fuel.utils.signatures import signature_of
for name, method in vars(PytablesDataset).items():
    if inspect.isfunction(method) and (
            name == '__init__' or not name.startswith('_')):
        # This alias is text, which typing cannot unite with None.
        names = {**method.__globals__, 'AxisLabels': dict}
        assert set(method.__annotations__) == set(
            typing.get_type_hints(method, names)), name
        print(name)
assert 'data_node' in pydoc.render_doc(PytablesDataset)
print(*signature_of(PytablesDataset).parameters)
""").split()
    assert {'__init__', 'open_file', 'get_data'} <= set(printed)
    assert {'path', 'sources', 'data_node'} <= set(printed)


def test_stream_without_pytables_is_described_and_names_the_extra(tmp_path):
    """A pickle loads and is drawn as where it was made; an epoch needs the
    package."""
    with tables.open_file(str(tmp_path / 'x.h5'), 'w') as file:
        file.create_array('/', 'x', numpy.arange(6))
    stream = DataStream(PytablesDataset(str(tmp_path / 'x.h5'), ('x',)),
                        batch_size=2)
    (tmp_path / 'stream.pkl').write_bytes(pickle.dumps(stream))
    printed = run_hidden("""
import pickle
from fuel.describe import PipelineGraph
with open(sys.argv[1], 'rb') as file:
    stream = pickle.load(file)
print(str(PipelineGraph(stream)), repr(stream.dataset), stream._repr_html_(),
      sep='\\n')
try:
    next(stream.get_epoch_iterator())
except ImportError as error:
    print(error)
""", str(tmp_path / 'stream.pkl'))
    assert 'PytablesDataset' in printed
    assert how_to_install('pytables') in printed.splitlines()[-1]


def mocked_imports():
    """Return the libraries that the manual can be built without."""
    names = re.search(r'autodoc_mock_imports = .*?\((.*?)\)',
                      (DOCS / 'conf.py').read_text('utf-8'), re.DOTALL)[1]
    return re.findall(r"'(\w+)'", names)


def test_api_page_without_pytables_has_the_members_of_the_class():
    """The functions that find them are those that build the manual."""
    printed = run_hidden("""
sys.path.insert(0, sys.argv[1])
import api_pages
api_pages.MOCKED[:] = sys.argv[2:]
name = 'fuel.datasets.hdf5.PytablesDataset'
assert name in api_pages.listed_names()
print(api_pages.find(name)[0] is PytablesDataset,
      len(api_pages.other_members(name)) > 5,
      api_pages.documented_name('get_data', 'fuel.datasets.hdf5',
                                'PytablesDataset'))
""", str(DOCS), *mocked_imports())
    assert ['True', 'True', 'fuel.datasets.hdf5.PytablesDataset.get_data'] == (
        printed.split())
