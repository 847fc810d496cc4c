"""Settings of the manual, which ``bin/docs`` builds."""
import os
import sys
from importlib.util import find_spec
from pathlib import Path

# Set before NumPy is imported: the tutorials multiply small matrices, for
# which several threads wait for each other.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

from fuel.version import version

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from inventories import write_inventories  # noqa: E402 (beside this)

project = 'Fuel'
author = 'The Fuel contributors'
copyright = '2026, ' + author
release = version
html_title = f'Fuel {release}'
html_theme = 'furo'
html_static_path = ['_static']
html_css_files = ['fuel.css']
html_search_scorer = str(HERE / 'search_scorer.js')
html_copy_source = True
html_show_sphinx = False

extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.intersphinx',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'api_pages',
    'dataset_cards',
    'redirects',
    'sphinx_copybutton',
    'sphinx_gallery.gen_gallery',
]
# Prompts are not copied, nor what is printed.
copybutton_prompt_text = r'>>> |\.\.\. |\$ '
copybutton_prompt_is_regexp = True
exclude_patterns = ['_build']
# Names in single backquotes are code; links say so themselves.
default_role = 'literal'

autodoc_default_options = {
    'members': True,
    'show-inheritance': True,
}
# The libraries of bridges, where they are not installed.
autodoc_mock_imports = [
    name for name in ('accelerate', 'grain', 'jax', 'keras', 'lightning',
                      'pyarrow', 'ray', 'soundfile', 'torch', 'transformers',
                      'zarr')
    if find_spec(name) is None]
autodoc_member_order = 'bysource'
# The docstrings give the types in words; the signatures stay readable, and
# long ones have a line for each argument.
autodoc_typehints = 'none'
maximum_signature_line_length = 79
napoleon_google_docstring = False
napoleon_use_rtype = False
# Attributes are lists of names with a type, not objects with a page.
napoleon_use_ivar = True

templates_path = ['_templates']
# Each reference must be found, here or in what other projects have.
nitpicky = True
intersphinx_mapping = write_inventories(HERE / '_build' / 'inventories')

# The tutorials are programs: run once for each build, shown with their output
# and offered as notebooks. The others need arguments.
sphinx_gallery_conf = {
    'examples_dirs': '../examples',
    'gallery_dirs': 'tutorials',
    'filename_pattern': r'(photographs|sentences)\.py$',
    'ignore_pattern': r'(digits_pytorch|iris_quickstart|many_ranks)\.py$',
    'within_subsection_order': 'FileNameSortKey',
    'capture_repr': ('_repr_html_', '__repr__'),
    'image_scrapers': (),
    'reset_modules': (),
    'download_all_examples': False,
    'remove_config_comments': True,
    'show_signature': False,
    'show_memory': False,
    'write_computation_times': False,
    'abort_on_example_error': True,
}
