"""The command ``fuel``, whose subcommands are the other commands."""
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from fuel.bin.pipes import pipe_friendly
from fuel.suggestions import did_you_mean
from fuel.version import version

__all__ = ['COMMANDS', 'main']

# Name and description by the group that the help shows it in.
COMMANDS = {
    'download': 'download the raw files of a data set',
    'convert': 'convert raw files to HDF5',
    'info': 'show what converted files hold, or the settings',
    'server': 'serve a stream to other processes'}
OTHERS = {
    'list': 'list the data sets',
    'completion': 'print a script that completes commands in a shell'}

HELP = """usage: fuel COMMAND ...

Data pipelines for training loops.

commands:
{commands}

others:
{others}

options:
  -h, --help  show this help
  --version   show the version

examples:
  fuel list
  fuel download mnist -d raw
  fuel convert mnist -d raw --install
  fuel info mnist.hdf5
  fuel server mine:build_stream
  eval "$(fuel completion bash)"

fuel COMMAND -h shows the options of a command. Each command also has a name
of its own: fuel-download, fuel-convert, fuel-info and fuel-server."""


@pipe_friendly('fuel')
def main(args: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    args : sequence of str, optional
        The name of a command and its arguments. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status: that of the command, 2 without one.
    """
    given = list(sys.argv[1:] if args is None else args)
    name, rest = ''.join(given[:1]), given[1:]
    if name in ('-h', '--help'):
        print(_help())
        return 0
    if name == '--version':
        print(f'Fuel {version}')
        return 0
    if name in COMMANDS:
        run: Callable[[list[str]], int] = import_module(
            f'fuel.bin.fuel_{name}').main
        return run(rest)
    if name == 'list':
        return int(import_module('fuel.bin.fuel_convert').main(
            ['--list', *rest]))
    if name == 'completion':
        return _complete(rest)
    return _refuse(name)


def _help() -> str:
    def table(rows: dict[str, str]) -> str:
        return '\n'.join(f'  {name:11} {text}' for name, text in rows.items())
    return HELP.format(commands=table(COMMANDS), others=table(OTHERS))


def _complete(rest: Sequence[str]) -> int:
    # Only this subcommand needs all data sets.
    from fuel.bin.completion import SHELLS, completion_script
    if len(rest) != 1 or rest[0] not in SHELLS:
        print(f'usage: fuel completion {{{",".join(SHELLS)}}}',
              file=sys.stderr)
        return 0 if rest[:1] == ['-h'] else 2
    print(completion_script(rest[0], [*COMMANDS, *OTHERS]))
    return 0


def _refuse(name: str) -> int:
    known = [*COMMANDS, *OTHERS]
    wrong = (f'there is no command {name!r}'
             + did_you_mean(name, known, '; {}')) if name else (
        'expected a command')
    print(f'usage: fuel COMMAND ...\nfuel: error: {wrong} '
          f'(choose from {", ".join(known)}; fuel -h describes them)',
          file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
