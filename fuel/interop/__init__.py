"""Bridges between Fuel and other libraries, one module for each.

Importing this package loads none of them.  A bridge to a library that is an
optional dependency is installed with an extra of the same name: ``pip install
-e '.[torch]'`` in the clone, for :mod:`fuel.interop.torch`. Where it
is missing, the error names the command.
"""
