"""A server of byte ranges on loopback, with latency, a rate and faults.

It runs in a process of its own, ``python range_server.py FOLDER ...``, for
benchmarks, or in threads of the tests, which may change `plan` and look at
`log` at any time.
"""
import argparse
import contextlib
import email.utils
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Bytes that are sent at once where the rate is limited.
PIECE = 1 << 16


class Rate:
    """So many bytes a second for all connections together."""

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self._free_at = 0.
        self._lock = threading.Lock()

    def wait(self, nbytes):
        """Wait until some more bytes may be sent."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + nbytes / self.nbytes
            left = self._free_at - now
        if left > .002:
            time.sleep(left)


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = 'HTTP/1.1'
    # Head and body are written apart, and acknowledged late.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        """Be quiet."""

    def do_HEAD(self):
        """Answer without a body."""
        self.do_GET(is_head=True)

    def do_GET(self, is_head=False):
        """Answer with a file, or a range of it."""
        server = self.server
        name = self.path.split('?')[0].lstrip('/')
        first, last = self.wanted_range()
        fault = server.begin(self.path, first, last, dict(self.headers))
        time.sleep(server.latency)
        with contextlib.suppress(ConnectionError):
            if fault is not None and fault(self):
                return
            content = server.content(name)
            if content is None:
                self.refuse(404)
            elif server.token and self.headers.get('Authorization') != (
                    server.token):
                self.refuse(403)
            else:
                self.answer(content, first, last, is_head)

    def wanted_range(self):
        """Return the first and last byte asked for; None for all."""
        found = re.match(r'bytes=(\d+)-(\d*)', self.headers.get('Range', ''))
        if found is None:
            return None, None
        return int(found[1]), int(found[2]) if found[2] else None

    def refuse(self, status, **headers):
        """Send a status without a body."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def answer(self, content, first, last, is_head=False, length=None):
        """Send a file or a range of it; `length` bytes of it at most."""
        descriptor, size, etag, changed = content
        try:
            match = self.headers.get('If-Match')
            if match and match != etag:
                self.refuse(412)
                return
            if first is not None and first >= size:
                self.refuse(416, Content_Range=f'bytes */{size}', ETag=etag)
                return
            begin = first or 0
            end = size if last is None else min(size, last + 1)
            self.send_response(200 if first is None else 206)
            if first is not None:
                self.send_header('Content-Range',
                                 f'bytes {begin}-{end - 1}/{size}')
            self.send_header('Content-Length', str(end - begin))
            self.send_header('Accept-Ranges', 'bytes')
            if etag:
                self.send_header('ETag', etag)
            self.send_header('Last-Modified',
                             email.utils.formatdate(changed, usegmt=True))
            self.end_headers()
            if not is_head:
                if length is not None:
                    end = min(end, begin + length)
                    self.close_connection = True
                self.send_part(descriptor, begin, end)
        finally:
            os.close(descriptor)

    def send_part(self, descriptor, begin, end):
        """Send bytes of a file, at the rate of the server."""
        rate = self.server.rate
        while begin < end:
            count = end - begin
            if rate is not None:
                count = min(count, PIECE)
                rate.wait(count)
            begin += os.sendfile(
                self.connection.fileno(), descriptor, begin, count)


class RangeServer(ThreadingHTTPServer):
    """Serves the files of a folder.

    Attributes
    ----------
    log : list of (str, int or None, int or None, dict)
        Path, first and last byte and headers of each request.
    plan : list
        Faults of the next requests, as functions of the handler that return
        whether they answered; None for no fault.
    token : str
        What the header Authorization must be, if it is not empty.

    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder, latency=0., rate=None, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.folder = Path(folder)
        self.latency = latency
        self.rate = Rate(rate) if rate else None
        self.log, self.plan = [], []
        self.token = ''
        self.has_etags = True
        self._lock = threading.Lock()

    def begin(self, path, first, last, headers):
        """Count a request; return its fault."""
        with self._lock:
            self.log.append((path, first, last, headers))
            return self.plan.pop(0) if self.plan else None

    def content(self, name):
        """Return descriptor, size, ETag and time of a file; None if there
        is none."""
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY)
        except OSError:
            return None
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            os.close(descriptor)
            return None
        etag = (f'"{status.st_ino:x}-{status.st_size:x}-'
                f'{status.st_mtime_ns:x}"' if self.has_etags else '')
        return descriptor, status.st_size, etag, status.st_mtime

    def url(self, name):
        """Return the URL of a file."""
        return f'http://127.0.0.1:{self.server_address[1]}/{name}'

    def handle_error(self, *args):
        """Say nothing of clients that go away."""

    def served_bytes(self):
        """Return the bytes of all ranges that were asked for."""
        return sum(last + 1 - first for _, first, last, _ in self.log
                   if first is not None and last is not None)


@contextlib.contextmanager
def serving(folder, **kwargs):
    """Run a server in threads of this process."""
    server = RangeServer(folder, **kwargs)
    thread = threading.Thread(target=server.serve_forever, args=[.05])
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(code, **headers):
    """Return the fault of an answer with some status."""
    def fault(handler):
        handler.refuse(code, **headers)
        return True
    return fault


def reset(handler):
    """Break the connection off before the answer."""
    handler.close_connection = True
    # With data unread or a zero linger, the client gets a reset.
    handler.connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    handler.connection.close()
    return True


def short(handler):
    """Send half of what was asked for, and close the connection."""
    content = handler.server.content(handler.path.lstrip('/'))
    first, last = handler.wanted_range()
    handler.answer(content, first, last, length=(last + 1 - first) // 2)
    return True


def wrong_range(handler):
    """Send another range than the one asked for."""
    content = handler.server.content(handler.path.lstrip('/'))
    first, last = handler.wanted_range()
    handler.answer(content, first + 1, last + 1)
    return True


def whole(handler):
    """Ignore that a range was asked for."""
    content = handler.server.content(handler.path.lstrip('/'))
    handler.answer(content, None, None)
    return True


def answering(status, body=b'', **headers):
    """Return the fault of an answer that a hostile server might give.

    `body`: bytes, or a function of the handler that returns an iterator over
        the pieces of a chunked one.
    `headers`: texts, or functions of the first and last byte asked for and
        the size of the file.
    """
    def fault(handler):
        descriptor, size, _, _ = handler.server.content(
            handler.path.split('?')[0].lstrip('/'))
        os.close(descriptor)
        handler.close_connection = True
        handler.send_response(status)
        asked = *handler.wanted_range(), size
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value(
                *asked) if callable(value) else value)
        if callable(body):
            handler.send_header('Transfer-Encoding', 'chunked')
        handler.end_headers()
        for piece in body(handler) if callable(body) else ():
            handler.wfile.write(b'%x\r\n%b\r\n' % (len(piece), piece))
        if not callable(body):
            handler.wfile.write(body)
        return True
    return fault


def silent(seconds):
    """Return the fault of no answer for some time."""
    def fault(handler):
        time.sleep(seconds)
        return False
    return fault


@contextlib.contextmanager
def server_process(folder, *arguments):
    """Run a server in a process of its own; yield the URL of its root."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder), *arguments],
        stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main():
    """Serve until this process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder')
    parser.add_argument('--latency', type=float, default=0.)
    parser.add_argument('--rate', type=float, default=None)
    arguments = parser.parse_args()
    server = RangeServer(arguments.folder, arguments.latency, arguments.rate)
    sys.stdout.write(server.url('') + '\n')
    sys.stdout.flush()
    server.serve_forever()


if __name__ == '__main__':
    main()
