"""Run converters, including converters of other packages, with a staging
directory; refuse to replace a file of the data path with other data."""
import dataclasses
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fuel.converters import __version__
from fuel.converters.output import Layout, OutputFolder
from fuel.datasets.hdf5 import H5PYDataset
from fuel.downloaders.registry import dataset_facts, dataset_names
from fuel.remote.location import RemotePath
from fuel.remote.local_copies import upload
from fuel.remote.urls import is_url
from fuel.utils.atomic_files import atomic_path, scratch_folder
from fuel.utils.h5py_file import H5PYFile


def made_by(argv: Sequence[str]) -> dict[str, str]:
    """Return the attributes of files that ``fuel-convert`` writes."""
    return {'h5py_interface_version': H5PYDataset.interface_version,
            'fuel_convert_version': __version__,
            'fuel_convert_command': shlex.join(['fuel-convert', *argv])}


def convert(function: Callable[..., Any], arguments: Mapping[str, Any],
            folder: OutputFolder) -> tuple[str, ...]:
    """Run a converter; return the paths of the files that it wrote.

    The folder is on this disk or in object storage.
    """
    if is_url(folder.path):
        return _convert_and_send(function, arguments, folder)
    if is_built_in(function):
        return tuple(function(**arguments, output_directory=folder) or ())
    if folder.layout != Layout():
        raise ValueError(
            '--chunk-rows, --compression and --flat-targets are for data '
            'sets of Fuel; '
            f'{function.__module__} chooses the layout of its files itself')
    return convert_staged(
        function, {**arguments, 'output_directory': folder.path},
        lambda paths: _finish(paths, folder))


def _convert_and_send(function: Callable[..., Any],
                      arguments: Mapping[str, Any], folder: OutputFolder,
                      ) -> tuple[str, ...]:
    """Run a converter on this disk, and upload the files that it wrote."""
    target = RemotePath(folder.path)
    sent = []
    with scratch_folder('.fuel-convert-') as staging:
        convert(function, arguments, dataclasses.replace(
            folder, path=staging))
        for root, _, names in os.walk(staging):
            for name in sorted(names):
                path = os.path.join(root, name)
                place = target.joined(os.path.relpath(path, staging))
                upload(path, place)
                sent.append(str(place))
    return tuple(sent)


def _finish(paths: Iterable[str], folder: OutputFolder) -> None:
    """Check the target paths of staged files, and write the folder's
    attributes into the files."""
    for path in paths:
        if folder.check_target is not None:
            folder.check_target(
                os.path.join(folder.path, os.path.basename(path)))
        with H5PYFile(path, 'r+') as h5file:
            h5file.attrs.update(folder.attributes)


def is_built_in(function: Callable[..., Any]) -> bool:
    """Return whether a converter is Fuel's own.

    Such a converter writes a file as a whole or not at all. Converters of
    other packages may open a file in place.
    """
    return (getattr(function, '__module__', None) or '').startswith(
        'fuel.converters.')


def convert_staged(function: Callable[..., Any], arguments: dict[str, Any],
                   finish: Callable[[Iterable[str]], None]
                   ) -> tuple[str, ...]:
    """Run a converter that writes to a staging directory inside its
    `output_directory`, then move the files out of it; return the final paths.

    `finish`: called with the paths before the files are moved.

    Files outside of the staging directory are not moved.
    """
    arguments = dict(arguments)
    # Folders in the name may not exist in the staging directory, or may
    # lead out of it.
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
    """Replace the file `target` by the file `source`, in one step."""
    target = os.path.realpath(target)
    if os.path.isfile(target):
        shutil.copymode(target, source)
    if os.path.isdir(target):
        raise IsADirectoryError(
            f'cannot write the file {target!r}: it is a folder')
    try:
        os.replace(source, target)
    except OSError:
        # The target is a link to another file system.
        with atomic_path(target) as part:
            shutil.copyfile(source, part)


def converter_of(path: str) -> str | None:
    """Return the name of the converter of ``fuel-convert`` that wrote a file;
    None if it is not known."""
    try:
        with H5PYFile(path, 'r') as h5file:
            words = shlex.split(str(h5file.attrs['fuel_convert_command']))
    except (OSError, KeyError, ValueError):
        return None
    return words[1] if len(words) > 1 else None


def refuse_to_replace(converter: str) -> Callable[[str], None]:
    """Return a function that raises an error if a converter must not write a
    file to a path.

    The converter must not if another converter made the file at the path, or
    if the name of the file belongs to another built-in data set.
    """
    def refuse(path: str) -> None:
        name = os.path.basename(path)
        owners = [dataset for dataset in dataset_names()
                  if name in dataset_facts(dataset)['outputs']]
        found = converter_of(path)
        if found not in (None, converter):
            reason = f"was made by 'fuel-convert {found}'"
        elif owners and converter not in owners:
            reason = f'is the file of the built-in data set {owners[0]!r}'
        else:
            return
        raise FileExistsError(
            f'{path} {reason}, and is not replaced by one of '
            f"'fuel-convert {converter}': choose another name with "
            f'-r other.hdf5, or another folder with -o')
    return refuse
