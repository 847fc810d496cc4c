"""Bridges between Fuel and other libraries, one module for each.

Importing this package loads none of these modules.  If the library of a module
is an optional dependency, an extra with the name of the module installs it:
for :mod:`fuel.interop.torch`, run ``pip install -e '.[torch]'`` in the clone.
If the library is missing, the error names this command.
"""
