"""File names out of addresses and of what servers say."""
import os
import posixpath
import re
import urllib.parse
import urllib.request
from email.message import Message

# Whatever could lead out of a folder, on any system, ends a component.
SEPARATORS = re.compile(r'[/\\:]')
UNPRINTABLE = re.compile(r'[\x00-\x1f\x7f]')


def _safe(name: str) -> str:
    """Return the last component of a name, empty if it is invalid."""
    name = UNPRINTABLE.sub('', SEPARATORS.split(name)[-1]).strip()
    return '' if name in ('.', '..', '~') else name


def name_from_header(header: str | None) -> str:
    """Return the file name in a Content-Disposition, '' if none is safe."""
    message = Message()
    message['content-disposition'] = UNPRINTABLE.sub('', header or '')
    return _safe(message.get_filename('') or '')


def name_from_path(url: str) -> str:
    """Return the last part of the path of an address, '' if it is empty."""
    path = urllib.parse.unquote(urllib.parse.urlparse(url).path)
    return _safe(posixpath.basename(path))


def with_slash(prefix: str) -> str:
    """Return a prefix of addresses, given as such or as a folder on disk,
    in the form to which a file name can be added."""
    if os.path.isdir(prefix):
        prefix = 'file:' + urllib.request.pathname2url(
            os.path.abspath(prefix))
    return prefix if prefix.endswith(('/', '=')) else prefix + '/'


def join(prefix: str, name: str) -> str:
    """Return the address of the file `name` below `prefix`."""
    prefix = with_slash(prefix)
    quote = prefix.startswith('file:')
    return prefix + (urllib.parse.quote(name) if quote else name)
