"""Metadata of an unfinished file, where no digest will verify it.

A file with a known digest may be put together from any addresses, since it is
verified at the end. Of any other, two pieces must come from one address, and
its server must have said by a validator that the file has not changed.
"""
import json
from contextlib import suppress
from typing import IO

from fuel.downloaders.errors import TransientError
from fuel.downloaders.replies import Remainder
from fuel.downloaders.registry import RawFile


def metadata_path(part: str) -> str:
    """Return the path of the metadata of an unfinished file."""
    return f'{part}.origin'


class PartialMetadata:
    """Address, length and validator of an unfinished file, in a file beside
    it; none if a digest of the file is known."""

    def __init__(self, part: IO[bytes], known: RawFile) -> None:
        self._part = part
        self._path = metadata_path(part.name)
        self._verifiable = known.verifiable
        self._facts: dict[str, object] = {}
        if not self._verifiable:
            with (suppress(FileNotFoundError, ValueError, TypeError),
                  open(self._path, encoding='utf8') as file):
                self._facts = dict(json.load(file))

    @property
    def validator(self) -> str | None:
        """How the server named this state of the file, if it did."""
        found = self._facts.get('validator')
        return found if isinstance(found, str) else None

    def allows_resume(self, source: str) -> bool:
        """Return whether the piece may be continued from an address."""
        return self._verifiable or (
            self.validator is not None and
            self._facts.get('source') == source)

    def record(self, source: str, answer: Remainder) -> None:
        """Record where a piece begins; check one that is continued."""
        if self._verifiable:
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
            with open(self._path, 'w', encoding='utf8') as file:
                json.dump(self._facts, file)
