"""Fuel streams and data sets in JAX and Grain, and Grain's in Fuel."""
from fuel.interop.extras import from_extra

with from_extra('jax', 'jax', 'grain'):
    from fuel.interop.jax.stage import ToJax, to_jax

__all__ = ['ToJax', 'to_jax']

# Classes are pickled, and shown, under the name that users import.
for _class in (ToJax,):
    _class.__module__ = __name__
