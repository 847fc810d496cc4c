"""The command ``fuel-convert``."""
import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy

from fuel import config
from fuel.bin.commands import CommandParser, pipe_friendly, positive_number
from fuel.bin.listing import add_datasets, registered
from fuel.converters import OWN
from fuel.converters.output import Layout, OutputFolder
from fuel.datasets.hdf5.format import INPUTS_ATTRIBUTE
from fuel.converters.raw.files import BadInputFile
from fuel.converters.staging import convert, made_by, refuse_to_replace
from fuel.downloaders.registry import dataset_names, raw_files
from fuel.exceptions import ConfigurationError, FuelError, MissingInputFiles
from fuel.remote.urls import is_url, shown
from fuel.utils.extensions import Filler
from fuel.utils.h5py_file import H5PYFile

__all__ = ['main', 'make_parser']

EXTENSIONS = ('.hdf5', '.hdf', '.h5')
# If there are more classes, they are counted, but not named.
NAMED = 10


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '-d', '--directory', default=os.getcwd(),
        help='where the raw files are (default: the current folder)')
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        '--install', action='store_true',
        help='put the converted file into the first folder of the data path, '
        'where the data set finds it')
    place.add_argument(
        '-o', '--output-directory', default=os.getcwd(),
        help='an existing folder for the converted file, or the URL of one '
        'in object storage, such as s3://bucket/folder (default: the '
        'current folder)')
    parser.add_argument(
        '-r', '--output_filename', '--output-filename', default=None,
        help='name of the converted file (default: the name by which the '
        'data set finds it; of your own data, that of the file or folder)')
    layout = parser.add_argument_group('layout of the converted file')
    layout.add_argument(
        '--chunk-rows', type=positive_number, default=None, metavar='N',
        help='examples in a chunk (default: no chunks, the fastest to read)')
    layout.add_argument(
        '--compression', type=_compression, default=(None, None),
        metavar='FILTER[:LEVEL]',
        help='HDF5 filter, such as lzf, gzip or gzip:9 (default: none)')
    layout.add_argument(
        '--flat-targets', action='store_true',
        help='give targets the shape (examples,), as loss functions want '
        'them (default: (examples, 1), as Fuel 0.2.0 did)')


def _compression(text: str) -> tuple[str, int | None]:
    name, _, level = text.partition(':')
    if name not in ('gzip', 'lzf') or (level and not (
            name == 'gzip' and level.isdecimal() and int(level) < 10)):
        raise argparse.ArgumentTypeError(
            f'expected lzf, gzip or gzip:0 to gzip:9, got {text!r}')
    return name, int(level) if level else None


def make_parser(datasets: Mapping[str, Filler]) -> CommandParser:
    """Return the parser of the command."""
    parser = CommandParser(
        prog='fuel-convert',
        description='Convert the raw files of a data set to HDF5.',
        examples=['fuel-convert mnist',
                  'fuel-convert mnist -d raw --install',
                  'fuel-convert image_folder -h',
                  'fuel-convert --list'])
    parser.add_version()
    add_datasets(parser, datasets, 'convert', _common_arguments)
    return parser


def _with_extension(name: str) -> str:
    if os.path.splitext(name)[1] not in EXTENSIONS:
        name += '.hdf5'
    return name


def _data_folder() -> str:
    """Return the first folder of the data path; make it if it is missing."""
    folder = config.data_path[0]
    os.makedirs(folder, exist_ok=True)
    return str(folder)


def _is_in_data_path(folder: str) -> bool:
    """Return whether a folder is in the data path."""
    try:
        places = config.data_path
    except ConfigurationError:
        # There is no data path, since the home directory is unknown.
        return False
    return os.path.realpath(folder or os.curdir) in map(
        os.path.realpath, places)


def _report(paths: Iterable[str], is_own: bool) -> None:
    """Print the written files, and whether data sets find them, on standard
    error. Standard output stays empty, for scripts.

    `is_own`: whether the data are the user's own, for which there is no class.
    """
    paths = [shown(path) for path in paths]
    if not paths:
        return
    outside = [path for path in paths
               if not _is_in_data_path(os.path.dirname(path))]
    note = ('in the data path, where data sets find it' if not outside
            else 'in object storage: name it by its URL'
            if is_url(outside[0]) else
            'not in the data path, so open it by its path: '
            f'fuel.load({outside[0]!r})' if is_own else
            'not in the data path: move it there, set FUEL_DATA_PATH='
            f'{os.path.dirname(os.path.abspath(outside[0]))}, or convert '
            'with --install')
    classes = '; '.join(filter(None, map(count_classes, paths))) if (
        is_own) else ''
    print(f'wrote {", ".join(paths)} ({note})'
          f'{classes and ": "}{classes}', file=sys.stderr)


@pipe_friendly('fuel-convert')
def main(args: Sequence[str] | None = None) -> int:
    """Convert a data set.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: 0 if the data set was converted.
    """
    argv = list(sys.argv[1:] if args is None else args)
    parser = make_parser(registered('fuel.converters', 'converters'))
    arguments = vars(parser.parse_args(argv))
    dataset = arguments.pop('which_dataset')
    function = arguments.pop('func')
    compression, level = arguments.pop('compression')
    layout = Layout(arguments.pop('chunk_rows'), compression, level,
                    arguments.pop('flat_targets'))
    # The command is written into the file, which other people read. So secrets
    # in URLs are hidden in it.
    place = arguments.pop('output_directory')
    install = arguments.pop('install')
    if install:
        try:
            place = _data_folder()
        except OSError as error:
            parser.error(f'the folder {config.data_path[0]!r} of the data '
                         f'path cannot be made: {error.strerror}')
    # In Fuel 0.2.0, converters could replace files in the folder given by -o.
    guarded = (install or dataset in OWN) and not is_url(place) and (
        _is_in_data_path(place))
    folder = OutputFolder(place, layout,
                          made_by([shown(word) if is_url(word) else word
                                   for word in argv]),
                          refuse_to_replace(dataset) if guarded else None)
    if arguments['output_filename'] is None:
        del arguments['output_filename']
    else:
        arguments['output_filename'] = _with_extension(
            arguments['output_filename'])
    if not is_url(folder.path) and not os.path.isdir(folder):
        hint = ('; use -r for a file name'
                if folder.path.endswith(EXTENSIONS) else '')
        parser.error(
            f'the output directory does not exist: {folder.path!r}{hint}')
    try:
        paths = convert(function, arguments, folder)
        for line in filter(None, (differences(dataset, path)
                                  for path in paths)):
            print(f'{parser.prog}: {line}', file=sys.stderr)
        _report(paths, dataset in OWN)
    except BrokenPipeError:
        raise
    except (MissingInputFiles, FileNotFoundError) as error:
        missing = str(error)
        advice = f'Did you forget to run fuel-download {dataset}?'
        if isinstance(error, MissingInputFiles):
            advice = error.advice or advice
        else:
            if error.filename is None:
                parser.error(missing)  # its text says what to do
            missing = f'there is no file {error.filename!r}'
        parser.error(f'{missing}. {advice}')
    except BadInputFile as error:
        parser.exit(1, f'{parser.prog}: {error}. Nothing was written.\n')
    except (FuelError, ImportError, OSError, ValueError,
            RuntimeError) as error:
        parser.exit(1, f'{parser.prog}: {error}\n')
    return 0


def count_classes(path: str) -> str:
    """Return a text about the classes of a user's own file; empty if the file
    has no classes, or lacks their names."""
    try:
        with H5PYFile(path, 'r') as h5file:
            targets = h5file['targets']
            names = json.loads(targets.attrs['class_names'])
            counts = numpy.bincount(targets[...].ravel(),
                                    minlength=len(names)).tolist()
            counted = list(zip(map(_shown, names), counts, strict=True))
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        return ''
    if len(names) > NAMED:
        return (f'{len(names)} classes of {min(counts)} to {max(counts)} '
                'examples')
    listed = ', '.join(f'{name} {count}' for name, count in counted)
    return f'{len(names)} class{"es" if len(names) > 1 else ""}: {listed}'


def _shown(name: str) -> str:
    """Return a name without characters that would control a terminal."""
    return f'{name if name.isprintable() else ascii(name):.80}'


def differences(dataset: str, path: str) -> str:
    """Return a text about those raw files of a converted file that differ from
    the registry in size or digest; empty if there are none."""
    if dataset not in dataset_names():
        return ''
    try:
        with H5PYFile(path, 'r') as h5file:
            inputs = json.loads(h5file.attrs[INPUTS_ATTRIBUTE])
    except (OSError, KeyError, ValueError):
        return ''
    found = []
    for file in raw_files(dataset):
        given = inputs.get(str(file))
        if given is None:
            continue
        if file.size is not None and given['size'] != file.size:
            found.append(f'{file} ({given["size"]} bytes instead of '
                         f'{file.size})')
        elif file.sha256 is not None and given['sha256'] != file.sha256:
            found.append(f'{file} (another SHA-256)')
    if not found:
        return ''
    return (f'not the original {", ".join(found)}: results on this '
            f'{dataset} cannot be compared with those of others')


if __name__ == '__main__':
    sys.exit(main())
