"""Facts about raw files: addresses, sizes and digests.

The facts are in ``registry.json``. For each data set it has:

- ``title``, ``about`` (a line), ``kind`` (images, table, text or sound),
  ``terms`` (of use) and ``citation``;
- ``class``, the class of the data set, with its module in ``fuel.datasets``;
- ``splits`` (how many examples each has), ``example`` (the shape of one) and
  ``classes`` (how many);
- ``outputs``, the names of the converted files, and ``described``, the file to
  which the splits and the shape belong if there are several files;
- ``files``: the raw files, each with addresses in the order in which to try
  them, size in bytes, SHA-256 and MD5.

A null means that a fact is not verified, or differs from example to example.
"""
import functools
import hashlib
import json
import os
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from typing import Any, Self


@functools.lru_cache(maxsize=1)
def registered() -> dict[str, Any]:
    """Return the registry: a mapping from the names of data sets to facts."""
    # Imported here: it imports modules that a pipeline does not need.
    from importlib import resources
    text = resources.files('fuel.downloaders').joinpath(
        'registry.json').read_text(encoding='utf8')
    facts: dict[str, Any] = json.loads(text)
    return facts


def dataset_names() -> list[str]:
    """Return the names of the data sets in the registry, sorted."""
    return sorted(registered())


def dataset_facts(dataset: str) -> Mapping[str, Any]:
    """Return the facts about a data set in the registry."""
    facts: Mapping[str, Any] = registered()[dataset]
    return facts


class RawFile(str):
    """The name of a raw file, with the known facts about the file.

    It is an ordinary string wherever only the name counts.

    Parameters
    ----------
    name : str
        Name of the file on disk.
    urls : iterable of str, optional
        Addresses, best first.
    size : int, optional
        Length in bytes.
    sha256, md5 : str, optional
        Hexadecimal digests.
    """

    urls: tuple[str, ...]
    size: int | None
    sha256: str | None
    md5: str | None

    def __new__(cls, name: str, urls: Iterable[str] = (),
                size: int | None = None, sha256: str | None = None,
                md5: str | None = None) -> Self:
        """Make a name with facts."""
        self = super().__new__(cls, name)
        self.urls = tuple(urls)
        self.size = size
        self.sha256 = sha256
        self.md5 = md5
        return self

    @property
    def verifiable(self) -> bool:
        """Whether a digest is known (bool)."""
        return bool(self.sha256 or self.md5)

    def problem(self, path: str) -> str | None:
        """Compare a file on disk with its known size and digests; return a
        text about the first difference, or None."""
        size = os.path.getsize(path)
        if self.size is not None and size != self.size:
            return f'expected {self.size} bytes, got {size}'
        for algorithm, expected in (('sha256', self.sha256),
                                    ('md5', self.md5)):
            if expected is None:
                continue
            digest = digest_of(path, algorithm)
            if digest != expected:
                return f'expected {algorithm} {expected}, got {digest}'
            break  # an MD5 adds nothing to a right SHA-256
        return None


def digest_of(path: str, algorithm: str) -> str:
    """Return the digest of a file, in hexadecimal digits."""
    with open(path, 'rb') as raw:
        return hashlib.file_digest(raw, lambda: hashlib.new(
            algorithm, usedforsecurity=False)).hexdigest()


def raw_files(dataset: str, *names: str) -> list[RawFile]:
    """Return the raw files of a data set.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    *names : str
        Names of some of its files, in the order wanted. Default: all.

    Examples
    --------
    >>> raw_files('iris')
    ['iris.data']
    >>> raw_files('iris')[0].size
    4551
    """
    files = {entry['name']: RawFile(**entry)
             for entry in registered()[dataset]['files']}
    return [files[name] for name in names or files]


def owner_of(name: str, path: str) -> str | None:
    """Return the data set to which a file on disk belongs, as its raw file
    called `name`; None if there is none.

    The file is read only if it has the size of such a raw file.
    """
    for dataset in dataset_names():
        for known in raw_files(dataset):
            if (name == known and known.verifiable and known.size is not None
                    and known.problem(path) is None):
                return dataset
    return None


def known_file(name: str, url: str | None) -> RawFile:
    """Return the raw file in the registry with a name and an address.

    A file without a public address is found by its name alone. For a file that
    is not in the registry, the name is returned without facts.
    """
    if isinstance(name, RawFile):
        return name
    for dataset in dataset_names():
        for file in raw_files(dataset):
            if file == name and (url in file.urls or not file.urls):
                return file
    return RawFile(name)


def set_files(subparser: ArgumentParser, dataset: str, *names: str) -> None:
    """Set the defaults `urls` and `filenames` of a parser.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        The parser of ``fuel-download <dataset>``.
    dataset : str
        Name of the data set.
    *names : str
        Names of some of its files, in the order wanted. Default: all.
    """
    files = raw_files(dataset, *names)
    subparser.set_defaults(
        urls=[file.urls[0] if file.urls else None for file in files],
        filenames=[str(file) for file in files])
