"""One request, and the bytes that answer it."""
import os
import re
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from typing import Protocol, TypeVar

import urllib3
from requests import Response, exceptions

from fuel.downloaders.errors import (EncodingError, NoConnectionError,
                                      SlowError, SourceError, TransientError,
                                      WrongPieceError)
from fuel.downloaders.options import Options
from fuel.version import version

BLOCK = 1 << 18
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
HEADERS = {'User-Agent': f'fuel/{version}',
           # Not compressed: lengths and places count bytes of the file.
           'Accept-Encoding': 'identity'}
# Protocol and host of servers that require a confirmation: Google Drive does
# before it sends files of more than 100 MB, which it cannot scan for viruses.
# The confirmation is sent to these hosts only.
HOSTS = {('https', 'drive.google.com'),
         ('https', 'drive.usercontent.google.com')}
FORM = 'download-form'
MAX_PAGE = 1 << 18

T = TypeVar('T')


class Reply(Protocol):
    """A reply to an HTTP request, such as `requests.Response`."""

    @property
    def headers(self) -> Mapping[str, str]:
        """A mapping from the names of the headers to their texts."""

    def raise_for_status(self) -> None:
        """Raise an error if the server reports one."""

    def iter_content(self, size: int, /) -> Iterator[bytes]:
        """Iterate over the body in blocks of limited size."""


class Get(Protocol):
    """Function that sends a request, such as `requests.get`."""

    def __call__(self, url: str, *, stream: bool, headers: Mapping[str, str],
                 timeout: tuple[float, float],
                 hooks: Mapping[str, object]) -> Reply:
        """Return the reply as soon as its headers have arrived."""


@dataclass
class Remainder:
    """The rest of a file, from byte `start` on.

    `start` is 0 if the server cannot send the file from the requested byte.
    `total` is the length of the whole file, or None if it is not known.
    `encoded` says whether the server compressed the bytes for the transfer.
    `validator` is the server's identifier of this state of the file.
    """

    start: int
    total: int | None
    chunks: Iterator[bytes]
    encoded: bool = False
    validator: str | None = None


def request(get: Get, url: str, headers: Mapping[str, str],
            options: Options) -> Reply:
    """Return a reply as soon as its headers have arrived.

    Raises: SlowError if this takes too long, even if bytes keep arriving.
    """
    def sound(address: str) -> Reply:
        reply = get(address, stream=True, headers=headers, timeout=(
            options.connect_timeout, options.read_timeout),
            hooks={'response': _spare_body})
        try:
            reply.raise_for_status()
        except BaseException:
            close(reply)
            raise
        return reply

    def confirmed() -> Reply:
        reply = sound(url)
        address = confirmed_address(reply)
        if address is None:
            return reply
        close(reply)
        return sound(address)

    return within(options.connect_timeout + options.slow_seconds, confirmed,
                  close)


def _spare_body(reply: Response, **kwargs: object) -> None:
    """Close a reply that redirects, without reading its body into memory."""
    if reply.is_redirect:
        reply.close()


def close(reply: object) -> None:
    """Close a reply, if it can be closed."""
    if (close := getattr(reply, 'close', None)) is not None:
        close()


def content_length(headers: Mapping[str, str]) -> int | None:
    """Return the length of a body; None if it is not stated, or if the body is
    compressed."""
    if _is_encoded(headers):
        return None
    try:
        return int(headers.get('content-length', ''))
    except (TypeError, ValueError):
        return None


@contextmanager
def ask(get: Get, url: str, start: int, options: Options,
        unpack: bool = True, validator: str | None = None
        ) -> Iterator[Remainder]:
    """Request a file from byte `start` on; yield the rest of the file.

    A URL that begins with ``file:`` is read from disk.

    `unpack`: whether to decompress a body that the server says it compressed.
        Some servers say so of files that are themselves compressed.
    `validator`: identifier of the state of the file to which the bytes before
        `start` belong. If the state has changed, the answer begins at 0.

    Raises: TransientError if another attempt may succeed, else SourceError.
    """
    if url.startswith('file:'):
        with _read_local(url, start) as answer:
            yield answer
        return
    headers = dict(HEADERS)
    if start:
        headers['Range'] = f'bytes={start}-'
        if validator:
            headers['If-Range'] = validator
    reply = None
    try:
        reply = request(get, url, headers, options)
        answer = _place(reply, start, unpack)
        with closing(watched(
                answer.chunks, options.slow_seconds, options.slow_rate,
                partial(_abort, reply))) as answer.chunks:
            yield answer
    except exceptions.HTTPError as error:
        _raise_status(error, start)
    except (exceptions.ContentDecodingError,
            urllib3.exceptions.DecodeError) as error:
        raise EncodingError(f'the reply cannot be unpacked: {error}'
                            ) from error
    except (exceptions.ConnectionError, exceptions.Timeout,
            exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError) as error:
        if reply is None:
            raise NoConnectionError(
                f'there is no connection: {_reason(error)}') from error
        raise TransientError(
            f'the transfer broke off: {_reason(error)}') from error
    except exceptions.RequestException as error:
        raise SourceError(str(error)) from error
    finally:
        close(reply)


def _abort(reply: Reply) -> None:
    """End all waits for more bytes of a reply, in all threads."""
    if isinstance(reply, Response):
        # These errors mean that the body is complete, or that an old urllib3
        # lacks the method.
        with suppress(AttributeError, OSError, RuntimeError, ValueError):
            reply.raw.shutdown()


def _reason(error: BaseException) -> str:
    """Return the first cause of an error as plain text."""
    while True:
        parts = [getattr(error, 'reason', None), *error.args]
        below = error.__cause__ or next(
            (part for part in parts if isinstance(part, BaseException)), None)
        if below is None:
            break
        error = below
    said = error.strerror if isinstance(error, OSError) else None
    return str(said or error) or type(error).__name__


def _raise_status(error: exceptions.HTTPError, start: int) -> None:
    status = None if error.response is None else error.response.status_code
    if status == 416 and start:
        raise WrongPieceError('the piece on disk is not a part of the file'
                              ) from error
    kind = TransientError if status in TRY_AGAIN else SourceError
    raise kind(str(error)) from error


def _chunks(reply: Reply, unpack: bool) -> Iterator[bytes]:
    """Iterate over the bytes of a body as they arrive.

    `iter_content` gathers a block: if the transfer breaks off, a part of it is
    lost, and the progress within a block is not seen. So a real reply is read
    more directly.
    """
    if not isinstance(reply, Response) or not hasattr(reply.raw, 'read1'):
        return reply.iter_content(BLOCK)
    raw = reply.raw
    return iter(lambda: raw.read1(BLOCK, decode_content=unpack), b'')


def _is_encoded(headers: Mapping[str, str]) -> bool:
    return headers.get('Content-Encoding', '') not in ('', 'identity')


def _place(reply: Reply, start: int, unpack: bool) -> Remainder:
    """Return the part of the file that a reply has, as its headers say."""
    headers = reply.headers
    encoded = _is_encoded(headers)
    chunks = _chunks(reply, unpack)
    parts = re.fullmatch(r'bytes (\d+)-\d+/(\d+|\*)',
                         headers.get('Content-Range', ''))
    state = _validator(headers)
    if parts is None:
        return Remainder(0, content_length(headers), chunks, encoded, state)
    if int(parts[1]) != start:
        raise SourceError(f'asked for the file from byte {start} on, got '
                          f'{headers["Content-Range"]!r}')
    total = None if parts[2] == '*' else int(parts[2])
    return Remainder(start, total, chunks, encoded, state)


def _validator(headers: Mapping[str, str]) -> str | None:
    """Return the validator for If-Range: a strong ETag, or a time."""
    etag = headers.get('ETag')
    if etag and not etag.startswith('W/'):
        return str(etag)
    return headers.get('Last-Modified') or None


@contextmanager
def _read_local(url: str, start: int) -> Iterator[Remainder]:
    path = urllib.request.url2pathname(urllib.parse.urlparse(url).path)
    try:
        raw = open(path, 'rb')  # noqa: SIM115
    except FileNotFoundError as error:
        raise SourceError('there is no such file') from error
    except OSError as error:
        raise SourceError(error.strerror or str(error)) from error
    with raw:
        raw.seek(start)
        yield Remainder(start, os.fstat(raw.fileno()).st_size,
                        iter(lambda: raw.read(BLOCK), b''))


class _Form(HTMLParser):
    """Finds a form and its hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str,
                        attrs: list[tuple[str, str | None]]) -> None:
        """Record the form and its fields."""
        facts = {name: value or '' for name, value in attrs}
        if tag == 'form' and facts.get('id') == FORM:
            self.action = facts.get('action')
        elif tag == 'input' and self.action is not None and (
                facts.get('type') == 'hidden'):
            self.fields[facts.get('name', '')] = facts.get('value', '')


def confirmed_address(reply: Reply) -> str | None:
    """Return the address to which a page that asks for a confirmation leads.

    None for any other reply; its body is not read.
    """
    if not _is_asker(getattr(reply, 'url', None)) or (
            'text/html' not in reply.headers.get('Content-Type', '')):
        return None
    form = _Form()
    form.feed(next(reply.iter_content(MAX_PAGE), b'').decode(
        'utf8', 'replace'))
    if not _is_asker(form.action):
        return None
    return f'{form.action}?{urllib.parse.urlencode(form.fields)}'


def _is_asker(url: object) -> bool:
    if not isinstance(url, str):
        return False
    parts = urllib.parse.urlsplit(url)
    return (parts.scheme, parts.hostname) in HOSTS


def within(seconds: float, work: Callable[[], T],
           drop: Callable[[T], object]) -> T:
    """Run `work` in a thread and return its result.

    Raises: SlowError if there is no result after `seconds`. A later result is
        passed to `drop`.
    """
    future: Future[T] = Future()

    def run() -> None:
        with suppress(InvalidStateError):  # the caller has stopped waiting
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - raised over there
                future.set_exception(error)
                return
            try:
                future.set_result(result)
            except InvalidStateError:
                drop(result)

    # The thread may wait long for the server, but does not keep the process
    # alive.
    threading.Thread(target=run, daemon=True).start()
    try:
        return future.result(seconds)
    except BaseException as error:
        if not future.cancel():
            return future.result()
        if isinstance(error, TimeoutError):
            raise SlowError(f'there was no answer in {seconds:.0f} seconds'
                            ) from None
        raise


def watched(chunks: Iterator[bytes], seconds: float, rate: float,
            abort: Callable[[], object]) -> Generator[bytes, None, None]:
    """Iterate over the bytes of a transfer.

    `abort`: makes a read that waits for bytes return or fail.

    Raises: SlowError if fewer than `rate` bytes a second arrive, on average
        over `seconds`.
    """
    watch = _Watch(seconds, rate, abort)
    try:
        for chunk in chunks:
            watch.note(len(chunk))
            yield chunk
        watch.note(0)
    except Exception:
        watch.note(0)  # raise the reason of the abort, not its effect
        raise
    finally:
        watch.end()


class _Watch:
    """Checks from a thread whether enough bytes have arrived."""

    def __init__(self, seconds: float, rate: float,
                 abort: Callable[[], object]) -> None:
        self._seconds = seconds
        self._rate = rate
        self._abort = abort
        self._bytes = 0
        self._ended = threading.Event()
        self._problem: str | None = None
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        before = 0
        while not self._ended.wait(self._seconds):
            came = self._bytes - before
            if came < self._rate * self._seconds:
                # Set before the abort: bytes that the read still returns must
                # be refused.
                self._problem = (f'only {came} bytes came in '
                                 f'{self._seconds:.0f} seconds')
                self._abort()
                return
            before += came

    def note(self, size: int) -> None:
        """Count bytes that have arrived; raise `SlowError` if the thread found
        too few."""
        if self._problem is not None:
            raise SlowError(self._problem)
        self._bytes += size

    def end(self) -> None:
        """Stop counting."""
        self._ended.set()
