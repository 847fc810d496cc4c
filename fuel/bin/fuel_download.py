"""The command ``fuel-download``."""
import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuel.bin.commands import CommandParser, pipe_friendly, positive_number
from fuel.bin.listing import add_datasets, registered
from fuel.downloaders.base import Options, RawFile, ensure_directory_exists
from fuel.exceptions import NeedURLPrefix
from fuel.utils.extensions import Filler
from fuel.utils.signatures import signature_of

__all__ = ['main', 'make_parser']


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '-d', '--directory', default=os.getcwd(),
        help='where the raw files go (default: the current folder)')
    parser.add_argument(
        '--clear', action='store_true',
        help='delete the raw files instead of downloading them')


def _prefix(text: str) -> str:
    if not (os.path.isdir(text) or text.lower().startswith(
            ('https://', 'http://', 'file:'))):
        raise argparse.ArgumentTypeError(
            'expected a folder that exists, or the start of an address, such '
            f'as https://example.org/data/, got {text!r}')
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.
    if not 0 < seconds < 1e9:  # this refuses NaN too
        raise argparse.ArgumentTypeError(
            f'expected a number of seconds above 0, got {text!r}')
    return seconds


def _takes_options(function: Callable[..., object]) -> bool:
    """Return whether a download function takes an argument `options`."""
    parameters = signature_of(function).parameters.values()
    return any(parameter.name == 'options' or
               parameter.kind is parameter.VAR_KEYWORD
               for parameter in parameters)


def _option_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the common options, except those that a data set's parser has
    already."""
    for flags, settings in (
            (['--check'], {
                'action': 'store_true', 'dest': 'check',
                'help': 'verify the files on disk instead'}),
            (['-P', '--url-prefix'], {
                'dest': 'mirror', 'type': _prefix, 'metavar': 'PREFIX',
                'help': 'a folder, or the start of an address, to take all '
                'files from'}),
            (['--jobs'], {
                'type': positive_number, 'default': Options.jobs,
                'metavar': 'N', 'help': 'files to download at once (default: '
                '%(default)s)'}),
            (['--timeout'], {
                'type': _seconds, 'default': Options.read_timeout,
                'metavar': 'SECONDS', 'help': 'longest wait for the next '
                'bytes (default: %(default)s)'}),
            (['--attempts'], {
                'type': positive_number, 'default': Options.attempts,
                'metavar': 'N', 'help': 'attempts without progress before an '
                'address is given up (default: %(default)s)'})):
        try:
            parser.add_argument(*flags, **settings)
        except argparse.ArgumentError:
            continue


def make_parser(datasets: Mapping[str, Filler]) -> CommandParser:
    """Return the parser of the command."""
    parser = CommandParser(
        prog='fuel-download', description='Download the raw files of a data '
        'set, or delete them.',
        examples=['fuel-download mnist',
                  'fuel-download mnist -d raw --jobs 4',
                  'fuel-download mnist -d raw --check',
                  'fuel-download --list'])
    parser.add_version()
    add_datasets(parser, datasets, 'download', _common_arguments)
    for subparser in parser.subparsers().values():
        if _takes_options(subparser.get_default('func')):
            _option_arguments(subparser)
    return parser


def _options(arguments: dict[str, Any], checker: '_Checker') -> Options:
    """Remove the fields of `Options` from the arguments, and return them."""
    timeout = arguments.pop('timeout', Options.read_timeout)
    return Options(
        check=checker if arguments.pop('check', False) else None,
        mirror=arguments.pop('mirror', None),
        jobs=max(1, arguments.pop('jobs', Options.jobs)),
        connect_timeout=min(timeout, Options.connect_timeout),
        read_timeout=timeout,
        slow_seconds=max(timeout, Options.slow_seconds),
        attempts=max(1, arguments.pop('attempts', Options.attempts)))


class _Checker:
    """Prints, for each file, whether it exists and is correct."""

    def __init__(self) -> None:
        self.status = 0

    def __call__(self, path: str, known: RawFile) -> None:
        """Print whether one file exists and is correct."""
        if not os.path.isfile(path):
            verdict, self.status = 'missing', 1
        elif problem := known.problem(path):
            verdict, self.status = f'wrong: {problem}', 1
        elif known.verifiable:
            verdict = 'verified'
        else:
            verdict = 'there, but no digest of it is known'
        print(f'{known}: {verdict}')


def _check_directory(parser: argparse.ArgumentParser,
                     arguments: dict[str, Any]) -> None:
    """Make the folder for the files; report an error if that fails."""
    if arguments['clear'] or arguments.get('check'):
        return
    directory = arguments['directory']
    try:
        ensure_directory_exists(directory)
    except OSError as error:
        parser.error(f'the directory {directory!r} cannot be made: '
                     f'{error.strerror}')


@pipe_friendly('fuel-download')
def main(args: Sequence[str] | None = None) -> int:
    """Download the raw files of a data set.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: 0 if all files are there.
    """
    argv = list(sys.argv[1:] if args is None else args)
    parser = make_parser(registered('fuel.downloaders', 'downloaders'))
    arguments = vars(parser.parse_args(argv))
    arguments.pop('which_dataset')
    function = arguments.pop('func')
    if arguments['clear'] and arguments.get('check'):
        parser.error('choose one of --check and --clear')
    _check_directory(parser, arguments)
    checker = _Checker()
    if _takes_options(function):
        arguments['options'] = _options(arguments, checker)
    try:
        function(**arguments)
    except NeedURLPrefix as error:
        parser.error(f'{error} (--url-prefix)')
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        print(f'{parser.prog}: {error}', file=sys.stderr)
        return 1
    return checker.status


if __name__ == '__main__':
    sys.exit(main())
