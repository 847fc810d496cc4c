"""Pages that ask for a confirmation before a large file is sent."""
import urllib.parse
from html.parser import HTMLParser

from fuel.downloaders.reply import Reply

# Who asks, and by which protocol: the page is obeyed only by those who may
# be asked again. This is Google Drive, which cannot look for viruses in
# files of more than 100 MB.
HOSTS = {('https', 'drive.google.com'),
         ('https', 'drive.usercontent.google.com')}
FORM = 'download-form'
MAX_PAGE = 1 << 18


class _Form(HTMLParser):
    """Finds a form and what is hidden in it."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str,
                        attrs: list[tuple[str, str | None]]) -> None:
        """Take up the form and its fields."""
        facts = {name: value or '' for name, value in attrs}
        if tag == 'form' and facts.get('id') == FORM:
            self.action = facts.get('action')
        elif tag == 'input' and self.action is not None and (
                facts.get('type') == 'hidden'):
            self.fields[facts.get('name', '')] = facts.get('value', '')


def confirmed_address(reply: Reply) -> str | None:
    """Return the address behind a page that asks for a confirmation, None
    for any other reply, which is not read."""
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
