"""The parser and the exit statuses of all commands.

The parser adds a version, examples and suggestions for typos. A command prints
one line if it is interrupted or if a setting is invalid, and nothing if its
pipe is closed.
"""
import argparse
import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from fuel.exceptions import ConfigurationError
from fuel.suggestions import did_you_mean
from fuel.version import version

# argparse quotes the choices in some versions of Python.
INVALID_CHOICE = re.compile(
    r"invalid choice: '([^']*)' \(choose from (.*)\)$", re.DOTALL)
UNKNOWN = 'unrecognized arguments: '
# An argument of a program cannot have the first character.
DASHES = '\0--'
F = TypeVar('F', bound=Callable[..., Any])
# A shell reports 128 + the number of the signal that ended a program.
CLOSED_PIPE = 128 + 13
INTERRUPTED = 128 + 2
USAGE = 2


def positive_number(text: str) -> int:
    """Return a positive integer from the text of an argument."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(
            f'expected a positive number, from 1 on, got {text!r}')
    return int(text)


class CommandParser(argparse.ArgumentParser):
    """Parses the arguments of a command, or of one of its data sets.

    `examples`: command lines, which the help shows at its end.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (),
                 **kwargs: Any) -> None:
        if examples:
            kwargs['formatter_class'] = argparse.RawDescriptionHelpFormatter
            epilog = kwargs.get('epilog')
            kwargs['epilog'] = '\n'.join(
                [*([epilog, ''] if epilog else []), 'examples:',
                 *(f'  {line}' for line in examples)])
        super().__init__(*args, **kwargs)

    def add_version(self) -> None:
        """Add the option ``--version``."""
        self.add_argument('--version', action='version',
                          version=f'Fuel {version}')

    def options(self) -> list[str]:
        """Return the options' names that begin with ``--``."""
        return [name for action in self._actions
                for name in action.option_strings if name.startswith('--')]

    def subparsers(self) -> dict[str, 'CommandParser']:
        """Return the parsers of the data sets, by name."""
        return {name: parser for action in self._actions
                if isinstance(action.choices, dict)
                for name, parser in action.choices.items()}

    def parse_known_args(  # type: ignore[override]
            self, args: Sequence[str] | None = None,
            namespace: argparse.Namespace | None = None,
            ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments; report an unknown one as an error of this
        parser."""
        parsed, rest = super().parse_known_args(
            self._without_dashes(sys.argv[1:] if args is None else args),
            namespace)
        for name, value in vars(parsed).items():
            if value == DASHES:
                setattr(parsed, name, '--')
            elif isinstance(value, list) and DASHES in value:
                value[:] = ['--' if one == DASHES else one for one in value]
        if rest:
            self.error(UNKNOWN + ' '.join(rest))
        return parsed, rest

    def _without_dashes(self, args: Sequence[str]) -> list[str]:
        """Return arguments with a placeholder for each ``--`` that is the
        value of an option, since argparse takes it for the end of the
        options."""
        takers = {name for parser in (self, *self.subparsers().values())
                  for action in parser._actions
                  if action.nargs is None and action.type is None
                  for name in action.option_strings}
        found: list[str] = []
        for word in args:
            name, _, value = word.partition('=')
            if word == '--' and found and found[-1] in takers:
                found[-1] += f'={DASHES}'
            elif value == '--' and name in takers:
                found.append(f'{name}={DASHES}')
            else:
                found.append(word)
        return found

    def error(self, message: str) -> NoReturn:
        """Print the usage and an error, with the nearest known name, and
        exit."""
        super().error(message + self._suggestion(message))

    def _suggestion(self, message: str) -> str:
        if found := INVALID_CHOICE.search(message):
            return did_you_mean(found[1], re.findall(r'[\w-]+', found[2]),
                                '; {}')
        if message.startswith(UNKNOWN):
            flag = message.removeprefix(UNKNOWN).split()[0].partition('=')[0]
            flags = re.findall(r'--[\w-]+', self.format_help())
            return did_you_mean(flag, flags, '; {}')
        return ''


def build_stream(parser: argparse.ArgumentParser, name: str) -> Any:
    """Call the user's function and return the stream that it makes."""
    module_name, colon, function_name = name.partition(':')
    if not colon:
        parser.error(f'expected module:function, got {name!r}: write '
                     f'{name}:build_stream for a function build_stream of '
                     f'the module {name!r}')
    # As with `python -m`, modules in the working directory are found.
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition('.')[0]:
            raise
        parser.error(f'there is no module {module_name!r} here or among the '
                     'installed ones')
    function = getattr(module, function_name, None)
    if not callable(function):
        parser.error(f'the module {module_name!r} has no function '
                     f'{function_name!r}' + did_you_mean(
                         function_name, [name for name in vars(module)
                                         if callable(vars(module)[name])],
                         '; {}'))
    return function()


def pipe_friendly(program: str) -> Callable[[F], F]:
    """Decorate a command: it ends silently if its output is a closed pipe, and
    with one line if it is interrupted or a setting is invalid."""
    def decorate(main: F) -> F:
        @functools.wraps(main)
        def quiet(*args: object, **kwargs: object) -> object:
            try:
                try:
                    return main(*args, **kwargs)
                finally:
                    if sys.stdout is not None:
                        sys.stdout.flush()
            except BrokenPipeError:
                # The interpreter flushes again when it ends.
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, sys.stdout.fileno())
                os.close(nowhere)
                sys.exit(CLOSED_PIPE)
            except ConfigurationError as error:
                print(f'{program}:', *str(error).split(), file=sys.stderr)
                sys.exit(USAGE)
            except KeyboardInterrupt:
                print('interrupted', file=sys.stderr)
                sys.exit(INTERRUPTED)
        # The decorated function keeps its signature.
        return quiet  # type: ignore[return-value]
    return decorate
