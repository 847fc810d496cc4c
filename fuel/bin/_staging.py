"""Staging directories for converters of other packages."""
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from fuel.utils.atomic_files import atomic_path
from fuel.utils.temporary import scratch_folder

__all__ = ['convert_staged', 'is_built_in']


def is_built_in(function: Callable[..., Any]) -> bool:
    """Return whether a converter is Fuel's own, which writes a file as a whole
    or not at all; those of other packages open theirs in place."""
    return (getattr(function, '__module__', None) or '').startswith(
        'fuel.converters.')


def convert_staged(function: Callable[..., Any], arguments: dict[str, Any],
                   finish: Callable[[Iterable[str]], None]
                   ) -> tuple[str, ...]:
    """Run a converter on a staging directory inside its `output_directory`,
    and move its files; return the paths that it returned, as they are then.
    `finish` is called with the paths before. Files elsewhere stay there."""
    arguments = dict(arguments)
    # A name with folders in it would not be found, or lead out again.
    folder, name = os.path.split(arguments.get('output_filename') or '')
    if folder:
        arguments['output_filename'] = name
    directory = os.path.join(arguments['output_directory'], folder)
    with scratch_folder('.fuel-convert-', directory or os.curdir) as staging:
        arguments['output_directory'] = staging
        paths = tuple(function(**arguments) or ())
        finish(paths)
        for root, _, names in os.walk(staging):
            target = os.path.join(directory, os.path.relpath(root, staging))
            os.makedirs(target, exist_ok=True)
            for name in names:
                _move(os.path.join(root, name), os.path.join(target, name))
    return tuple(_moved(path, staging, directory) for path in paths)


def _moved(path: str, staging: str, directory: str) -> str:
    inside = os.path.relpath(path, staging)
    if inside.startswith(os.pardir):
        return path
    return os.path.join(directory, inside)


def _move(source: str, target: str) -> None:
    """Put a file in the place of another, in one step."""
    target = os.path.realpath(target)
    if os.path.isfile(target):
        shutil.copymode(target, source)
    if os.path.isdir(target):
        raise IsADirectoryError(
            f'cannot write the file {target!r}: it is a folder')
    try:
        os.replace(source, target)
    except OSError:
        # A link led to another file system.
        with atomic_path(target) as part:
            shutil.copyfile(source, part)
