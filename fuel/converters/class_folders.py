"""Files of a user's own, such as images, in a folder for each class."""
from __future__ import annotations

import hashlib
import logging
import os
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import h5py

from fuel.converters.base import consecutive, create_source, write_splits
from fuel.converters.custom_data import add_split_options, as_classes
from fuel.converters.images import ordered_map
from fuel.converters.output import write_inputs, write_names
from fuel.converters.raw.files import BadInputFile, Folder, require_regular
from fuel.datasets.random_splits import held_out
from fuel.epochs.skipped import check_skipping, skip_limit
from fuel.exceptions import BadRecordsError, MissingInputFiles

log = logging.getLogger(__name__)

T = TypeVar('T')

SPLITS = {'train': 'train', 'training': 'train', 'valid': 'valid',
          'val': 'valid', 'validation': 'valid', 'test': 'test',
          'testing': 'test'}


@contextmanager
def naming_option() -> Iterator[None]:
    """Return a context in which errors about bad files also mention the option
    that leaves out bad files."""
    try:
        yield
    except BadInputFile as error:
        error.advice = ('Mend the file, or leave out a few such ones with '
                        '--on-error skip')
        raise


class ClassFile(NamedTuple):
    """A file of a folder of classes."""

    split: str
    label: str
    path: str


class Kind(NamedTuple):
    """A kind of files, such as images, in a folder of classes.

    `noun`: the word for a file of this kind.
    `extensions`: the file extensions, in lower case.
    """

    noun: str
    extensions: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Return whether a file is of this kind, by its extension."""
        return name.lower().endswith(self.extensions)


class ClassFolder:
    """The files in a folder for each class. The folders of classes may be in
    folders named train, valid and test.

    `hold_out`: splits to draw at random, and their shares. Not for folders
        that come with splits.
    `seed`, `stratify`: how to draw them; see `held_out`.

    `splits`: the files of each split.
    """

    def __init__(self, directory: Folder, kind: Kind,
                 hold_out: Sequence[tuple[str, float]] | None, seed: int,
                 stratify: bool) -> None:
        self.directory = os.fspath(directory)
        self.kind = kind
        self.splits = self._find_splits(hold_out, seed, stratify)
        self._targets, self._names = as_classes(
            [file.label for file in self.files])
        self._num_left_out = 0
        # Size and SHA-256 of each file.
        self._digests: dict[str, tuple[int, str]] = {}

    @property
    def files(self) -> list[ClassFile]:
        """The files of all splits."""
        return [file for part in self.splits.values() for file in part]

    def output_name(self, given: str | None) -> str:
        """Return the name of the file to write."""
        return given or os.path.basename(
            os.path.abspath(self.directory)) + '.hdf5'

    def decoded(self, decode: Callable[[bytes, str], T]) -> Iterator[T]:
        """Iterate over the decoded files, which threads decode.

        `decode`: function that is called with the content and the path of a
            file; it raises `BadInputFile` if the file is damaged.
        """
        def one(file: ClassFile) -> T:
            content = _content_of(file.path)
            self._digests[file.path] = (
                len(content), hashlib.sha256(content).hexdigest())
            return decode(content, file.path)

        files = self.files
        return ordered_map(one, files, f'{self.kind.noun}s', len(files))

    def leave_out_bad(self, on_error: str,
                      decode: Callable[[bytes, str], object]) -> None:
        """Leave out files that cannot be decoded, if `on_error` is 'skip'.

        All files are decoded to find them.

        Raises: BadRecordsError if the number of such files is too large, or if
            no other files are left.
        """
        check_skipping(on_error, None, 0)
        if on_error == 'raise':
            return

        def found(file: ClassFile) -> BadInputFile | None:
            try:
                decode(_content_of(file.path), file.path)
            except BadInputFile as error:
                return error
            return None

        files = self.files
        errors = list(ordered_map(found, files, 'checks', len(files)))
        reasons = [f'{error.path}: {error.problem}' for error in errors
                   if error is not None]
        for reason in reasons:
            log.warning('left out: %s', reason)
        most = skip_limit(None, len(files))
        if len(reasons) > most or len(reasons) == len(files):
            raise BadRecordsError(
                f'{len(reasons)} of {len(files)} {self.kind.noun}s cannot be '
                f'decoded, and at most {min(most, len(files) - 1)} are left '
                'out: ' + '; '.join(reasons[:5]))
        good = {file for file, error in zip(files, errors, strict=True)
                if error is None}
        # A class keeps its number even if all its files are left out.
        self._targets = self._targets[[file in good for file in files]]
        self._num_left_out = len(reasons)
        self.splits = {split: [file for file in part if file in good]
                       for split, part in self.splits.items()}

    def write_classes(self, h5file: h5py.File, source: str) -> None:
        """Write the targets, the names of the classes, the splits, and a
        digest of the files.

        `source`: the source that has the same splits as 'targets'.
        """
        create_source(h5file, 'targets', self._targets.shape,
                      self._targets.dtype)[...] = self._targets
        write_splits(h5file, consecutive(
            {split: len(part) for split, part in self.splits.items()},
            (source, 'targets')))
        write_names(h5file, 'class_names', {'targets': self._names})
        write_inputs(h5file, self._digest())

    def _digest(self) -> dict[str, dict[str, Any]]:
        """Return the digest of the folder, for `write_inputs`.

        It is the digest of a list of the files, sorted by name, in the form
        that ``sha256sum`` prints.
        """
        directory = os.path.abspath(self.directory)
        names = {os.fsencode(os.path.relpath(path, directory)).replace(
            os.fsencode(os.sep), b'/'): path for path in self._digests}
        listed = hashlib.sha256()
        for name, path in sorted(names.items()):
            listed.update(
                f'{self._digests[path][1]}  '.encode() + name + b'\n')
        left_out = self._num_left_out
        return {os.path.basename(directory): {
            'files': len(names),
            **({'left_out': left_out} if left_out else {}),
            'size': sum(size for size, _ in self._digests.values()),
            'sha256': listed.hexdigest()}}

    def _find_splits(self, hold_out: Sequence[tuple[str, float]] | None,
                     seed: int, stratify: bool) -> dict[str, list[ClassFile]]:
        directory = self.directory
        own = self._find_own_splits()
        self._warn_of_loose([directory, *(
            os.path.join(directory, name) for name in _folders(directory)
            if own and name.lower() in SPLITS)])
        if own:
            if hold_out:
                raise ValueError(f'{directory!r} comes with the splits '
                                 f'{", ".join(own)}: none can be held out')
            return own
        found = self._find(directory, 'train')
        if not found:
            raise MissingInputFiles(
                f'No {self.kind.noun}s in folders of classes', [directory])
        return {split: [found[row] for row in rows.tolist()] for split, rows
                in held_out(len(found), hold_out, seed, [
                    file.label for file in found] if stratify else None
                    ).items()}

    def _find_own_splits(self) -> dict[str, list[ClassFile]]:
        """Return the files in folders that are named like splits and contain
        folders of classes."""
        found, others = [], []
        for name in _folders(self.directory):
            path = os.path.join(self.directory, name)
            part = (self._find(path, SPLITS[name.lower()])
                    if name.lower() in SPLITS else [])
            found += part
            if not part and any(self.kind.has(file) for _, _, files
                                in os.walk(path) for file in files):
                others.append(name)
        if found and others:
            # Otherwise "train" and "test" would be treated as classes.
            raise ValueError(
                f'{self.directory!r} has folders of splits with folders of '
                f'classes in them, and beside them {self.kind.noun}s in '
                f'{", ".join(others)}: expected train, valid or test, each '
                'with a folder for each class. Move the others elsewhere, or '
                'give the folder of one split (-d)')
        return {split: part for split in ('train', 'valid', 'test')
                if (part := [file for file in found if file.split == split])}

    def _warn_of_loose(self, directories: Iterable[str]) -> None:
        for directory in directories:
            loose = sorted(entry.name for entry in os.scandir(directory)
                           if entry.is_file() and self.kind.has(entry.name))
            if loose:
                log.warning(
                    '%d %ss in %s, such as %s, are in no folder of a class, '
                    'and left out', len(loose), self.kind.noun, directory,
                    loose[0])

    def _find(self, directory: str, split: str) -> list[ClassFile]:
        """Return the files of all classes, sorted."""
        found: list[ClassFile] = []
        others: list[str] = []
        for name in _folders(directory):
            for parent, folders, files in os.walk(
                    os.path.join(directory, name)):
                folders.sort()
                for file in sorted(files):
                    path = os.path.join(parent, file)
                    if self.kind.has(file):
                        found.append(ClassFile(split, name, path))
                    elif not file.startswith('.'):
                        others.append(path)
        noun = self.kind.noun
        if found and len(others) == 1:
            log.warning('1 file beside the %ss, %s, has the extension of no '
                        '%s, and is left out', noun, others[0], noun)
        elif found and others:
            log.warning('%d files beside the %ss, such as %s, have the '
                        'extension of no %s, and are left out', len(others),
                        noun, others[0], noun)
        self._warn_of_nested(directory, found)
        return found

    def _warn_of_nested(self, directory: str,
                        found: Sequence[ClassFile]) -> None:
        """Warn if all files are of one class, in several folders within its
        folder."""
        classes = {file.label for file in found}
        if len(classes) != 1:
            return
        parent = os.path.join(directory, *classes)
        inside = sorted({os.path.relpath(file.path, parent).split(os.sep)[0]
                         for file in found
                         if os.path.dirname(file.path) != parent})
        if len(inside) < 2 or any(os.path.dirname(file.path) == parent
                                  for file in found):
            return
        log.warning('all %ss are of one class, %s, whose folder has the '
                    'folders %s%s: did you mean %s?', self.kind.noun,
                    os.path.basename(parent), ', '.join(inside[:5]),
                    ', ...' if len(inside) > 5 else '', parent)


def _folders(directory: str) -> list[str]:
    if not os.path.isdir(directory):
        raise MissingInputFiles('There is no such folder', [directory])
    return sorted(entry.name for entry in os.scandir(directory)
                  if entry.is_dir() and not entry.name.startswith('.'))


def _content_of(path: str) -> bytes:
    require_regular(path)
    with open(path, 'rb') as raw:
        return raw.read()


def add_folder_options(subparser: ArgumentParser, kind: Kind) -> None:
    """Add options for the folder, bad files, and the splits."""
    subparser.add_argument(
        'directory', nargs='?', default=SUPPRESS, metavar='FOLDER',
        help='the folder, instead of -d')
    subparser.add_argument(
        '--on-error', choices=('raise', 'skip'), default='raise',
        help=f'what to do with {kind.noun}s that cannot be decoded; with skip '
        'a few are left out and listed (default: raise)')
    add_split_options(subparser)
