"""Fuel feeds training loops: data sets, iteration schemes, streams."""
from fuel.config_parser import config
from fuel.version import version as __version__

__all__ = ['__version__', 'config']
