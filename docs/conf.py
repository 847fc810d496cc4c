"""Settings of the manual, which ``bin/docs`` builds."""
import sys
from importlib.util import find_spec
from pathlib import Path

from fuel.version import version

sys.path.insert(0, str(Path(__file__).parent))

project = 'Fuel'
author = 'The Fuel contributors'
copyright = '2026, ' + author
release = version
html_title = f'Fuel {release}'
# The extra `docs` brings both; without them, as where only the tests of other
# parts run, the pages are built plainly.
html_theme = 'furo' if find_spec('furo') else 'alabaster'
html_static_path = ['_static']
html_css_files = ['fuel.css']
html_copy_source = True
html_show_sphinx = False

extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'dataset_cards',
    *(['sphinx_copybutton'] if find_spec('sphinx_copybutton') else []),
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
    name for name in ('grain', 'jax', 'pyarrow', 'ray', 'torch',
                      'zarr')
    if find_spec(name) is None]
autodoc_member_order = 'bysource'
# The docstrings give the types in words; the signatures stay readable.
autodoc_typehints = 'none'
napoleon_google_docstring = False
napoleon_use_rtype = False
# In a type such as `array, shape (batch,)`, `shape` is a word, no reference.
suppress_warnings = ['ref.python']
# Attributes are lists of names with a type, not objects with a page.
napoleon_use_ivar = True
