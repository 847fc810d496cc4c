"""The command ``fuel-convert``."""
import argparse
import os
import sys
from collections.abc import Sequence


from fuel.bin.listing import add_list_option
from fuel.bin.pipes import pipe_friendly
from fuel.bin.registries import Filler, registered
from fuel.converters.output import Layout, OutputFolder
from fuel.converters.raw.files import BadInputFile
from fuel.converters.staging import convert, made_by
from fuel.exceptions import FuelError, MissingInputFiles
from fuel.remote.urls import is_url, shown

__all__ = ['main']

EXTENSIONS = ('.hdf5', '.hdf', '.h5')


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '-d', '--directory', default=os.getcwd(),
        help='where the raw files are (default: the current folder)')
    parser.add_argument(
        '-o', '--output-directory', default=os.getcwd(),
        help='an existing folder for the converted file, or the URL of one '
        'in object storage, such as s3://bucket/folder (default: the '
        'current folder)')
    parser.add_argument(
        '-r', '--output_filename', '--output-filename', default=None,
        help='name of the converted file (default: the name by which the '
        'data set finds it)')
    layout = parser.add_argument_group('layout of the converted file')
    layout.add_argument(
        '--chunk-rows', type=_positive, default=None, metavar='N',
        help='examples in a chunk (default: no chunks, the fastest to read)')
    layout.add_argument(
        '--compression', type=_compression, default=(None, None),
        metavar='FILTER[:LEVEL]',
        help='HDF5 filter, such as lzf, gzip or gzip:9 (default: none)')


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f'expected a positive number, got {text!r}')
    return int(text)


def _compression(text: str) -> tuple[str, int | None]:
    name, _, level = text.partition(':')
    if name not in ('gzip', 'lzf') or (level and not (
            name == 'gzip' and level.isdecimal() and int(level) < 10)):
        raise argparse.ArgumentTypeError(
            f'expected lzf, gzip or gzip:0 to gzip:9, got {text!r}')
    return name, int(level) if level else None


def _parser(datasets: dict[str, Filler]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='fuel-convert',
        description='Convert the raw files of a data set to HDF5.')
    add_list_option(parser, datasets)
    subparsers = parser.add_subparsers(
        dest='which_dataset', metavar='DATASET', required=True,
        help='one of ' + ', '.join(datasets))
    for name, fill_subparser in datasets.items():
        subparser = subparsers.add_parser(
            name, help=f'convert {name}')
        _common_arguments(subparser)
        subparser.set_defaults(func=fill_subparser(subparser))
    return parser


def _with_extension(name: str) -> str:
    if os.path.splitext(name)[1] not in EXTENSIONS:
        name += '.hdf5'
    return name


@pipe_friendly
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
    parser = _parser(registered(
        'fuel-convert', 'fuel.converters', 'converters'))
    arguments = vars(parser.parse_args(argv))
    dataset = arguments.pop('which_dataset')
    function = arguments.pop('func')
    compression, level = arguments.pop('compression')
    layout = Layout(arguments.pop('chunk_rows'), compression, level)
    # The command is written into the file, which others read.
    folder = OutputFolder(arguments.pop('output_directory'), layout,
                          made_by([shown(word) if is_url(word) else word
                                   for word in argv]))
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
        convert(function, arguments, folder)
    except BrokenPipeError:
        raise
    except (MissingInputFiles, FileNotFoundError) as error:
        advice = getattr(error, 'advice', None) or (
            f'Did you forget to run fuel-download {dataset}?')
        if isinstance(error, FileNotFoundError) and error.filename is None:
            parser.error(str(error))  # no input file: it says what to do
        parser.error(f'{error}. {advice}')
    except BadInputFile as error:
        parser.exit(1, f'{parser.prog}: {error}. Nothing was written.\n')
    except (FuelError, OSError, ValueError, RuntimeError) as error:
        parser.exit(1, f'{parser.prog}: {error}\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
