"""A real HTTP server on loopback that misbehaves as its paths ask for.

``/ok/NAME`` answers properly, with ranges. The first part of any other path
names a fault; what each does is beside `FAULTS`.
"""
import contextlib
import gzip
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b'<!DOCTYPE html>\n<html><body>Sorry, not today.</body></html>\n'


class Handler(BaseHTTPRequestHandler):
    """Serves the files of its server, with faults."""

    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        """Be quiet."""

    def do_GET(self):
        """Answer a request."""
        _, fault, *rest = self.path.split('?')[0].split('/')
        self.server.requests.append((self.path, dict(self.headers)))
        content = self.server.files.get(rest[-1] if rest else '')
        answer = getattr(self, 'do_' + fault, None)
        if content is None or answer is None:
            return self.do_404(b'')
        # A client that goes away is none of the server's business.
        with contextlib.suppress(ConnectionError):
            return answer(content, *rest[:-1])

    def reply(self, body, status=200, length=None, **headers):
        """Send a whole reply."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        if length is None:
            length = len(body)
        self.send_header('Content-Length', str(length))
        self.end_headers()
        self.wfile.write(body)

    def start(self):
        """Return the first byte that is asked for."""
        found = re.match(r'bytes=(\d+)-', self.headers.get('Range', ''))
        return int(found[1]) if found else 0

    def do_ok(self, content, *rest):
        """Answer properly."""
        start = self.start()
        if not start:
            return self.reply(content)
        if start >= len(content):
            return self.reply(b'', 416)
        return self.reply(
            content[start:], 206, Content_Range=f'bytes {start}-'
            f'{len(content) - 1}/{len(content)}')

    def do_404(self, content, *rest):
        """Answer that there is no such file, with a page."""
        self.reply(PAGE, 404, Content_Type='text/html')

    def do_500(self, content, *rest):
        """Answer that the server is broken."""
        self.reply(PAGE, 500, Content_Type='text/html')

    def do_page(self, content, *rest):
        """Answer with a page as if it were the file."""
        self.reply(PAGE, 200, Content_Type='text/html')

    def do_redirect(self, content, *rest):
        """Send the client to a page."""
        self.reply(b'', 302, Location='/page/' + self.path.split('/')[-1])

    def do_stall(self, content, *rest):
        """Send half of the file, then nothing."""
        self.send_response(200)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content[:len(content) // 2])
        self.wfile.flush()
        self.server.ended.wait(30)
        self.close_connection = True

    def do_cut(self, content, eighths, *rest):
        """Send so many eighths of the whole file at most, then hang up."""
        start = self.start()
        stop = min(len(content), start + len(content) * int(eighths) // 8)
        if start:
            self.send_response(206)
            self.send_header('Content-Range', f'bytes {start}-'
                             f'{len(content) - 1}/{len(content)}')
        else:
            self.send_response(200)
        self.send_header('Content-Length', str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:stop])
        self.close_connection = True

    def do_cutonce(self, content, eighths, *rest):
        """Hang up as in `do_cut` once, answer properly from then on."""
        if self.path in self.server.seen:
            return self.do_ok(content)
        self.server.seen.add(self.path)
        return self.do_cut(content, eighths)

    def do_changing(self, content, *rest):
        """Hang up in the middle the first time, and have another file of
        the same length from then on."""
        if self.path not in self.server.seen:
            self.server.seen.add(self.path)
            return self.cut_with_tag(content, '"first"')
        content = content[::-1]
        if self.headers.get('If-Range', '"second"') != '"second"':
            return self.reply(content, ETag='"second"')
        return self.do_ok(content)

    def do_growing(self, content, *rest):
        """Hang up in the middle the first time, and have a longer file with
        the same tag from then on."""
        if self.path not in self.server.seen:
            self.server.seen.add(self.path)
            return self.cut_with_tag(content, '"first"')
        return self.do_ok(content + content)

    def cut_with_tag(self, content, tag):
        """Send half, and the tag of the file."""
        self.reply(content[:len(content) // 2], length=len(content),
                   ETag=tag)
        self.close_connection = True

    def do_norange(self, content, *rest):
        """Ignore Range; hang up in the middle the first time."""
        if self.path in self.server.seen:
            return self.reply(content)
        self.server.seen.add(self.path)
        self.reply(content[:len(content) // 2], length=len(content))
        self.close_connection = True
        return None

    def do_crawl(self, content, *rest):
        """Send a byte every twentieth of a second, with ranges."""
        start = self.start()
        self.send_response(206 if start else 200)
        if start:
            self.send_header('Content-Range', f'bytes {start}-'
                             f'{len(content) - 1}/{len(content)}')
        self.send_header('Content-Length', str(len(content) - start))
        self.end_headers()
        for i in range(start, len(content)):
            self.wfile.write(content[i:i + 1])
            self.wfile.flush()
            if self.server.ended.wait(.05):
                return

    def crawl(self, endless):
        """Send the same again and again, every fiftieth of a second."""
        while not self.server.ended.wait(.02):
            self.wfile.write(endless)
            self.wfile.flush()

    def do_crawlhead(self, content, *rest):
        """Begin a head that never ends."""
        self.wfile.write(b'HTTP/1.1 200 OK\r\nX-Much: ')
        self.crawl(b'x')

    def do_crawlpacked(self, content, *rest):
        """Send the head of a packed file, which may be of any length."""
        self.send_response(200)
        self.send_header('Content-Encoding', 'gzip')
        self.end_headers()
        # A name follows, up to a zero.
        self.wfile.write(b'\x1f\x8b\x08\x08' + bytes(6))
        self.crawl(b'x')

    def do_crawlchunk(self, content, *rest):
        """Send a piece, and the length of the next for ever."""
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.wfile.write(b'4\r\n' + content[:4] + b'\r\n1;')
        self.crawl(b'x')

    def do_endlessredirect(self, content, *rest):
        """Send the client elsewhere, with a body that never ends."""
        self.send_response(302)
        self.send_header('Location', '/ok/' + self.path.split('/')[-1])
        self.end_headers()
        self.close_connection = True
        self.crawl(bytes(1 << 16))

    def do_confirm(self, content, *rest):
        """Ask for a confirmation with a form, as Google Drive does."""
        if 'confirm=t' in self.path:
            return self.do_ok(content)
        name = self.path.split('?')[0].split('/')[-1]
        action = ('http://127.0.0.2:1/' if rest else
                  self.server.url(f'confirm/{name}'))
        return self.reply(f'<!DOCTYPE html><html><form id="download-form" '
                          f'action="{action}" method="get"><input '
                          'type="hidden" name="id" value="a&amp;b"><input '
                          'type="hidden" name="confirm" value="t"></form>'
                          '</html>'.encode(),
                          Content_Type='text/html; charset=utf-8')

    def do_short(self, content, *rest):
        """Send a file that lacks its last byte."""
        self.reply(content[:-1])

    def do_long(self, content, *rest):
        """Send too much, without saying how much."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content * 3)
        self.close_connection = True

    def do_wrong(self, content, *rest):
        """Send a file with one other byte."""
        self.reply(bytes([content[0] ^ 1]) + content[1:])

    def do_gzip(self, content, *rest):
        """Pack the file for the way."""
        self.reply(gzip.compress(content, 1), Content_Encoding='gzip')

    def do_mislabelled(self, content, *rest):
        """Say that the file was packed for the way, which it was not."""
        self.reply(content, Content_Encoding='gzip')

    def do_nolength(self, content, *rest):
        """Do not say how long the file is."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def do_hostile(self, content, *rest):
        """Propose a name outside the folder."""
        self.reply(content, Content_Disposition='attachment; '
                   'filename="../../pwned.txt"')

    def do_named(self, content, *rest):
        """Propose a name."""
        self.reply(content, Content_Disposition='attachment; '
                   'filename="named.bin"')

    def do_trickle(self, content, *rest):
        """Send a little every tenth of a second."""
        self.send_response(200)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        for i in range(0, len(content), 10_000):
            self.wfile.write(content[i:i + 10_000])
            self.wfile.flush()
            if self.server.ended.wait(.1):
                return

    def do_slow(self, content, *rest):
        """Send half, wait until the test says so, send the rest."""
        self.send_response(200)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        self.wfile.flush()
        self.server.half_sent.set()
        self.server.go_on.wait(30)
        self.wfile.write(content[half:])


class FaultyServer(ThreadingHTTPServer):
    """Serves `files` on a free port of the loopback interface."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(('127.0.0.1', 0), Handler)
        self.files = files
        self.requests = []
        self.seen = set()
        self.ended, self.half_sent, self.go_on = (
            threading.Event(), threading.Event(), threading.Event())

    def url(self, path):
        """Return the address of a path."""
        return f'http://127.0.0.1:{self.server_port}/{path}'

    def handle_error(self, request, client_address):
        """Be quiet about clients that were killed."""


@contextlib.contextmanager
def serving(files):
    """Serve `files`, a mapping of names to bytes, in a thread."""
    with FaultyServer(files) as server:
        thread = threading.Thread(target=server.serve_forever,
                                  kwargs={'poll_interval': .02})
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.go_on.set()
            server.shutdown()
            thread.join()
