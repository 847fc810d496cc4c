"""The command ``fuel-server``."""
import argparse
import json
import os
import sys
from collections.abc import Sequence

from fuel.bin.commands import CommandParser, build_stream, pipe_friendly

__all__ = ['main', 'make_parser']


def make_parser() -> CommandParser:
    """Return the parser of the command."""
    parser = CommandParser(
        prog='fuel-server',
        description='Serve the batches of a data stream to other processes, '
                    'or print the status of one.',
        epilog='fuel-server keys DIRECTORY CLIENT... makes the keys for '
               'encrypted connections.',
        examples=['fuel-server mine:build_stream',
                  'fuel-server mine:build_stream --port 0 --sharing all',
                  'fuel-server --status tcp://localhost:5557',
                  'fuel-server --status tcp://localhost:5557 --watch',
                  'fuel-server keys keys alice bob'])
    parser.add_version()
    parser.add_argument(
        'stream', nargs='?', metavar='module:function',
        help='what builds the stream: a function without arguments, in a '
             'module that can be imported from here')
    parser.add_argument('--port', type=_port, default=5557,
                        help='default: %(default)s; 0 takes a free one')
    parser.add_argument('--host', default='127.0.0.1',
                        help="where to listen; default: %(default)s, which "
                             "only this host reaches; '*' is everywhere")
    parser.add_argument('--hwm', type=int, default=10,
                        help='batches under way to each client; default: '
                             '%(default)s')
    parser.add_argument('--sharing', choices=('split', 'all', 'rank'),
                        default='split',
                        help='what several clients get; default: '
                             '%(default)s, each batch goes to one of them')
    parser.add_argument('--num-clients', type=int,
                        help='how many clients the first epoch waits for')
    parser.add_argument('--curve', metavar='DIRECTORY',
                        help='keys, for encrypted connections')
    parser.add_argument('--journal', metavar='FILE',
                        help='where to record which client got which batch, '
                             'for the server that follows if this one is '
                             'killed; default: a file named after host and '
                             'port in the directory of the setting '
                             'server_journal')
    parser.add_argument('--no-journal', dest='journal', action='store_false',
                        help='keep no such record', default=None)
    parser.add_argument('--no-restart', dest='restart', action='store_false',
                        help='do not start the server again when a crash '
                             'ended it; default: it is, if it keeps a '
                             'journal')
    parser.add_argument('--supervised', type=int, help=argparse.SUPPRESS)
    parser.add_argument('--reconnect', type=float, metavar='SECONDS',
                        help='how long batches of a client that vanished are '
                             'held for its successor; default: the setting '
                             'reconnect_timeout')
    parser.add_argument('--metrics-port', type=_port, metavar='PORT',
                        help='where Prometheus gets the numbers of clients '
                             'and stages; 0 takes a free one; default: '
                             'nowhere')
    parser.add_argument('--metrics-host', default='127.0.0.1', metavar='HOST',
                        help='where to listen for Prometheus; default: '
                             "%(default)s, which only this host reaches; '' "
                             'is everywhere, and asks for no keys')
    parser.add_argument('--status', metavar='ADDRESS',
                        help='print the statistics of the server at, say, '
                             'tcp://localhost:5557')
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument('--json', action='store_true',
                       help='with --status: as JSON, with all clients and '
                            'stages')
    shown.add_argument('--watch', action='store_true',
                       help='with --status: a page with clients and stages '
                            'that is drawn anew each second, until Ctrl-C')
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(
            f'expected a port, 0 to 65535, got {text!r}')
    return int(text)


def _print_status(address: str, curve: str | None, *, as_json: bool) -> int:
    from fuel.client.measures import take_status
    from fuel.exceptions import ServerError
    from fuel.wire.messages import ask_status
    try:
        found = ask_status(address, curve=curve)
        status = take_status(found).numbers
    except (ServerError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(found, indent=1))
        return 0
    width = max(map(len, status))
    for name, value in status.items():
        shown = f'{value:.3f}' if isinstance(value, float) else value
        print(f'{name:{width}}  {shown}')
    return 0


def _make_keys(args: Sequence[str]) -> int:
    from fuel.wire.curve import make_keys
    parser = argparse.ArgumentParser(
        prog='fuel-server keys',
        description='Make the keys of a server and its clients.')
    parser.add_argument('directory', help='where the keys go')
    parser.add_argument('clients', nargs='+', metavar='client',
                        help='a name for each client')
    options = parser.parse_args(args)
    try:
        made = make_keys(options.directory, options.clients)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    server = os.path.join(options.directory, 'server')
    print(f'start the server with --curve {server}')
    for directory in made:
        print(f'copy {directory} to its host, and give it to '
              'ServerDataStream as curve=')
    return 0


@pipe_friendly('fuel-server')
def main(args: Sequence[str] | None = None) -> int:
    """Serve a stream, print the statistics of a server, or make keys.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command. Default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit status.
    """
    given = list(sys.argv[1:] if args is None else args)
    if given[:1] == ['keys']:
        return _make_keys(given[1:])
    parser = make_parser()
    options = parser.parse_args(given)
    if (options.stream is None) == (options.status is None):
        parser.error('give either module:function or --status ADDRESS')
    if options.status is not None and options.watch:
        from fuel.bin.watch import watch
        return watch(options.status, options.curve)
    if options.status is not None:
        return _print_status(options.status, options.curve,
                             as_json=options.json)
    if options.json or options.watch:
        parser.error('--json and --watch show the --status of a server')
    if options.restart and options.supervised is None and _keeps_journal(
            options):
        from fuel.server.start import serve_again
        return serve_again([sys.executable, '-m', 'fuel.bin.fuel_server',
                            *given, '--supervised'])
    return _serve(parser, options)


def _keeps_journal(options: argparse.Namespace) -> bool:
    """Return whether the server keeps a journal, from which it can resume
    after a restart."""
    from fuel import config
    from fuel.server.journal import default_path
    if options.journal is not None or not options.port:
        return bool(options.journal and options.port)
    return default_path(
        config.server_journal, options.host, options.port) is not None


def _serve(parser: argparse.ArgumentParser,
           options: argparse.Namespace) -> int:
    """Serve the user's stream in this process, and return the exit status."""
    from zmq import ZMQError

    from fuel.server.start import end_with_supervisor, start_server
    from fuel.utils.remote_errors import notes_of
    if options.supervised is not None:
        end_with_supervisor(options.supervised)
    try:
        start_server(
            build_stream(parser, options.stream), options.port, options.hwm,
            host=options.host, sharing=options.sharing,
            num_clients=options.num_clients, curve=options.curve,
            journal=options.journal, reconnect=options.reconnect,
            metrics_port=options.metrics_port,
            metrics_host=options.metrics_host)
    except ZMQError as error:
        print(f'fuel-server: {error.strerror}; choose another --port, 0 for '
              'a free one, or a --host of this machine', file=sys.stderr)
        return 1
    except (OSError, ValueError, NotImplementedError) as error:
        notes = ' '.join(notes_of(error))
        print(f'fuel-server: {error} {notes}'.rstrip(), file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
