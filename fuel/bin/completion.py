"""Scripts that complete the commands in a shell."""
from collections.abc import Sequence

from fuel import converters, downloaders

__all__ = ['SHELLS', 'completion_script']

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
    if (( COMP_CWORD == at )) && [[ $word != -* ]]; then
        case $command in
        fuel-download) COMPREPLY=($(compgen -W '{downloads}' -- "$word")) ;;
        fuel-convert) COMPREPLY=($(compgen -W '{conversions}' -- "$word")) ;;
        fuel-completion) COMPREPLY=($(compgen -W '{shells}' -- "$word")) ;;
        esac
    fi
}}
complete -o default -F _fuel {programs}"""

FISH = """complete -c fuel -n __fish_use_subcommand -a '{commands}'
complete -c fuel -n '__fish_seen_subcommand_from download' -a '{downloads}'
complete -c fuel -n '__fish_seen_subcommand_from convert' -a '{conversions}'
complete -c fuel -n '__fish_seen_subcommand_from completion' -a '{shells}'
complete -c fuel-download -a '{downloads}'
complete -c fuel-convert -a '{conversions}'"""

PROGRAMS = 'fuel fuel-download fuel-convert fuel-info fuel-server'


def completion_script(shell: str, commands: Sequence[str]) -> str:
    """Return a script for one of `SHELLS` that completes subcommands, the
    names of built-in data sets, and files."""
    words = {
        'commands': ' '.join(commands), 'shells': ' '.join(SHELLS),
        'programs': PROGRAMS,
        'downloads': _names(downloaders.all_downloaders),
        'conversions': _names(converters.all_converters)}
    if shell == 'fish':
        return FISH.format(**words)
    start = 'autoload -U +X bashcompinit && bashcompinit\n'
    return (start if shell == 'zsh' else '') + BASH.format(**words)


def _names(datasets: Sequence[tuple[str, object]]) -> str:
    return ' '.join(name for name, _ in datasets)
