"""The command ``fuel``, whose subcommands are the other commands, and the
scripts by which a shell completes them."""
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

from fuel.bin.commands import CommandParser, pipe_friendly
from fuel.suggestions import did_you_mean
from fuel.version import version

__all__ = ['COMMANDS', 'main']

# Name and description by the group that the help shows it in.
COMMANDS = {
    'download': 'download the raw files of a data set',
    'convert': 'convert raw files to HDF5',
    'info': 'show what data files hold, or the settings',
    'order': 'show which examples come when in a stream',
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
  fuel order mine:build_stream --step 12345 --ranks 8
  fuel server mine:build_stream
  eval "$(fuel completion bash)"

fuel COMMAND -h shows the options of a command. Each command also has a name
of its own: fuel-download, fuel-convert, fuel-info, fuel-order and
fuel-server."""


SHELLS = ('bash', 'zsh', 'fish')

BASH = """_fuel() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[0]##*/}}
    local at=1
    if [[ $command == fuel ]]; then
        if (( COMP_CWORD == 1 )); then
            COMPREPLY=($(compgen -W '{commands}' -- "$word"))
            return
        fi
        command=fuel-${{COMP_WORDS[1]}} at=2
    fi
    if [[ $word == -* ]]; then
        case "$command ${{COMP_WORDS[at]}}" in
{options}
        esac
    elif (( COMP_CWORD == at )); then
        case $command in
        fuel-download) COMPREPLY=($(compgen -W '{downloads}' -- "$word")) ;;
        fuel-convert) COMPREPLY=($(compgen -W '{conversions}' -- "$word")) ;;
        fuel-completion) COMPREPLY=($(compgen -W '{shells}' -- "$word")) ;;
        esac
    fi
}}
complete -o default -F _fuel {programs}"""
BASH_OPTIONS = """\
        {patterns}) COMPREPLY=($(compgen -W '{options}' -- "$word")) ;;"""

FISH = """complete -c fuel -n __fish_use_subcommand -a '{commands}'
complete -c fuel -n '__fish_seen_subcommand_from download' -a '{downloads}'
complete -c fuel -n '__fish_seen_subcommand_from convert' -a '{conversions}'
complete -c fuel -n '__fish_seen_subcommand_from completion' -a '{shells}'
complete -c fuel-download -a '{downloads}'
complete -c fuel-convert -a '{conversions}'
{options}"""
SEEN = '__fish_seen_subcommand_from'


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
    if len(rest) != 1 or rest[0] not in SHELLS:
        print(f'usage: fuel completion {{{",".join(SHELLS)}}}',
              file=sys.stderr)
        return 0 if rest[:1] == ['-h'] else 2
    print(completion_script(rest[0], [*COMMANDS, *OTHERS]))
    return 0


def completion_script(shell: str, commands: Sequence[str]) -> str:
    """Return a script for one of `SHELLS` that completes subcommands, the
    names of built-in data sets, options, and files."""
    # Only this subcommand needs all commands and data sets.
    from fuel import converters, downloaders
    from fuel.bin import (
        fuel_convert, fuel_download, fuel_info, fuel_order, fuel_server)
    parsers = {
        'fuel-download': fuel_download.make_parser(
            dict(downloaders.all_downloaders)),
        'fuel-convert': fuel_convert.make_parser(
            dict(converters.all_converters)),
        'fuel-info': fuel_info.make_parser(),
        'fuel-order': fuel_order.make_parser(),
        'fuel-server': fuel_server.make_parser()}
    words = {
        'commands': ' '.join(commands), 'shells': ' '.join(SHELLS),
        'programs': ' '.join(['fuel', *parsers]),
        'downloads': ' '.join(parsers['fuel-download'].subparsers()),
        'conversions': ' '.join(parsers['fuel-convert'].subparsers())}
    if shell == 'fish':
        return FISH.format(options='\n'.join(_in_fish(parsers)), **words)
    start = 'autoload -U +X bashcompinit && bashcompinit\n'
    return (start if shell == 'zsh' else '') + BASH.format(
        options='\n'.join(_in_bash(parsers)), **words)


def _in_bash(parsers: Mapping[str, CommandParser]) -> Iterable[str]:
    """Yield a ``case`` pattern for each group of data sets with the same
    options."""
    for program, parser in parsers.items():
        same: dict[str, list[str]] = {}
        for name, subparser in parser.subparsers().items():
            same.setdefault(' '.join(subparser.options()), []).append(
                f"'{program} {name}'")
        same.setdefault(' '.join(parser.options()), []).append(
            f"'{program} '*")
        for options, patterns in same.items():
            yield BASH_OPTIONS.format(patterns='|'.join(patterns),
                                      options=options)


def _in_fish(parsers: Mapping[str, CommandParser]) -> Iterable[str]:
    """Yield the lines that complete each option, for the commands that have
    it."""
    for program, parser in parsers.items():
        names: dict[str, list[str]] = {}
        for name, subparser in parser.subparsers().items():
            for option in subparser.options():
                names.setdefault(option, []).append(name)
        command = program.partition('-')[2]
        for option in parser.options():
            yield f'complete -c {program} -l {option[2:]}'
            yield f"complete -c fuel -n '{SEEN} {command}' -l {option[2:]}"
        for option, having in names.items():
            seen = f'{SEEN} {" ".join(having)}'
            yield f"complete -c {program} -n '{seen}' -l {option[2:]}"
            yield (f"complete -c fuel -n '{SEEN} {command}; and {seen}' "
                   f'-l {option[2:]}')


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
