"""Settings of the manual; ``python -m sphinx -W docs docs/_build``."""
from importlib.util import find_spec

from fuel.version import version

project = 'Fuel'
author = 'The Fuel contributors'
copyright = '2026, ' + author
release = version
html_title = f'Fuel {release}'
html_theme = 'alabaster'
# Wide enough for the 79 characters of the examples.
html_theme_options = {'page_width': '1040px'}

extensions = [
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
]
exclude_patterns = ['_build']
# Names in single backquotes are code; links say so themselves.
default_role = 'literal'

autodoc_default_options = {
    'members': True,
    'show-inheritance': True,
}
# The libraries of bridges, where they are not installed.
autodoc_mock_imports = [
    name for name in ('pyarrow', 'ray', 'torch', 'zarr')
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
