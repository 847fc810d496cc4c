"""STL-10, from Adam Coates."""
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from fuel.downloaders.base import default_downloader, set_files

__all__ = ['fill_subparser']


def fill_subparser(subparser: ArgumentParser) -> Callable[..., Any]:
    """Set up the parser of ``fuel-download stl10``:
    ``stl10_binary.tar.gz``."""
    set_files(subparser, 'stl10')
    return default_downloader
