"""Where an unfinished file comes from, if nothing else tells if it is right.

A file with a known digest may be put together from any addresses, since it is
verified at the end. Of any other, two pieces must come from one address and
one state of the file there.
"""
import json
from contextlib import suppress
from typing import IO, Any

from fuel.downloaders._errors import TransientError
from fuel.downloaders._replies import Answer
from fuel.downloaders.registry import RawFile

__all__ = ['Origin', 'origin_path']


def origin_path(part: str) -> str:
    """Return the path of the note beside an unfinished file."""
    return f'{part}.origin'


class Origin:
    """A note beside an unfinished file.

    Parameters
    ----------
    part : file
        The unfinished file.
    known : RawFile
        What is known about the file. If that is a digest, there is no note.
    """

    def __init__(self, part: IO[bytes], known: RawFile) -> None:
        self._part = part
        self._path = origin_path(part.name)
        self._needed = not known.verifiable
        self._facts: dict[str, Any] = {}
        if self._needed:
            with (suppress(FileNotFoundError, ValueError),
                  open(self._path, encoding='utf8') as note):
                self._facts = dict(json.load(note))

    @property
    def validator(self) -> str | None:
        """What the server called the state of the file, if it did."""
        return self._facts.get('validator')

    def suits(self, source: str) -> bool:
        """Tell whether the piece may be continued from an address. Without a
        note it was put there by somebody who knows."""
        return bool(self._facts.get('source', source) == source)

    def note(self, source: str, answer: Answer) -> None:
        """Note where a piece begins; check one that is continued."""
        if not self._needed:
            return
        if answer.start and self._facts.get('total') not in (
                None, answer.total):
            self._part.truncate(0)
            raise TransientError(
                f'the file has {answer.total} bytes now; the piece on disk '
                f'was of one of {self._facts["total"]}, and is deleted')
        if not answer.start:
            self._facts = {'source': source, 'total': answer.total,
                           'validator': answer.validator}
            with open(self._path, 'w', encoding='utf8') as note:
                json.dump(self._facts, note)
