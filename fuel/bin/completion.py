"""Scripts that complete the commands in a shell."""
from collections.abc import Iterable, Mapping, Sequence

from fuel import converters, downloaders
from fuel.bin import fuel_convert, fuel_download, fuel_info, fuel_server
from fuel.bin.parsers import CommandParser

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


def completion_script(shell: str, commands: Sequence[str]) -> str:
    """Return a script for one of `SHELLS` that completes subcommands, the
    names of built-in data sets, options, and files."""
    parsers = {
        'fuel-download': fuel_download.make_parser(
            dict(downloaders.all_downloaders)),
        'fuel-convert': fuel_convert.make_parser(
            dict(converters.all_converters)),
        'fuel-info': fuel_info.make_parser(),
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
    """Yield a case for all data sets of a command with the same options."""
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
    """Yield a line for each option: who has it, under both names."""
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
