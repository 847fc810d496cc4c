"""Text files. Each line is an example: a list of token numbers."""
from __future__ import annotations

import codecs
import warnings
from collections.abc import Callable, Iterator, Sequence

from fuel.datasets.base import Dataset
from fuel.datasets.rows import only_in_order
from fuel.datasets.text_files import (
    Paths, TextPosition, as_files, check_exists)
from fuel.datasets.vocabulary import (
    Dictionary, Vocabulary, as_vocabulary, check_level, check_token)
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import ExamplesInOrder
from fuel.exceptions import UnknownTokenError
from fuel.kernels.text import MissingTokenError, numberize
from fuel.remote.location import WithStorageOptions
from fuel.remote.urls import StorageOptions
from fuel.schemes.requests import RequestIterator
from fuel.typing import Batch, EpochReader, State

__all__ = ['TextFile']


class TextFile(Dataset, WithStorageOptions):
    r"""Reads text files, and converts their words or characters to numbers.

    Parameters
    ----------
    files : list of str
        The text files, in the order in which to read them, with a sentence
        in each line. Files with the extension ``.gz``, ``.bz2`` or ``.xz``
        are decompressed.
    dictionary : dict, Vocabulary or str
        A dict from tokens to integers; the result of
        :func:`~fuel.datasets.vocabulary.build_vocabulary`; or the name of a
        file that holds such a dict: a JSON object, a text file with a token
        in each line, or a pickled dict; see
        :func:`~fuel.datasets.vocabulary.load_vocabulary`.
    bos_token : str or None, optional
        The token put before each sentence. Defaults to ``'<S>'``; None
        means none.
    eos_token : str or None, optional
        The token put behind each sentence. Defaults to ``'</S>'``; None
        means none.
    unk_token : str or None, optional
        The token that stands for tokens that are not in `dictionary`.
        Defaults to ``'<UNK>'``. With None, a token that is not in
        `dictionary` is an error.
    level : {'word', 'character'}, optional
        Whether tokens are words, split at white space, or characters; white
        space at both ends of a line does not count. Defaults to words.
    preprocess : callable, optional
        Called with each line, its line break included, before the line is
        split; returns a string. For example ``str.lower``. It must be the
        function that was passed to
        :func:`~fuel.datasets.vocabulary.build_vocabulary`.
    encoding : str, optional
        Encoding of the files. Defaults to UTF-8.
    storage_options : dict, optional
        For files that are URLs, as for
        :class:`~fuel.datasets.hdf5.H5PYDataset`.

    Attributes
    ----------
    files : list of str
    dictionary : dict
    encoding : str
    storage_options : dict or None
        Options without credentials; options with credentials may be
        assigned. None for local files.

    Raises
    ------
    ValueError
        If `files` is a string, if one of the three special tokens is not in
        `dictionary`, or if `level` is not known. When data are read, if bytes
        cannot be decoded: the error then names the file and the line.
    FileNotFoundError
        If a file does not exist when reading begins.
    fuel.exceptions.UnknownTokenError
        When data are read, if a token is not in `dictionary` and `unk_token`
        is None. The error names the file and the line.

    Notes
    -----
    Examples are lists of integers; the only source is ``'features'``. Files
    of any size are read a block at a time. A saved position is a file and a
    place in it. A plain file resumes there at once; a compressed file is
    decompressed up to that place.

    Examples
    --------
    >>> with open('sentences.txt', 'w') as f:
    ...     _ = f.write("This is a sentence\n")
    ...     _ = f.write("This another one")
    >>> dictionary = {'<UNK>': 0, '</S>': 1, 'this': 2, 'a': 3, 'one': 4}
    >>> text_data = TextFile(files=['sentences.txt'],
    ...                      dictionary=dictionary, bos_token=None,
    ...                      preprocess=str.lower)
    >>> from fuel.streams import DataStream
    >>> for data in DataStream(text_data).get_epoch_iterator():
    ...     print(data)
    ([2, 0, 3, 0, 1],)
    ([2, 0, 4, 1],)
    """

    provides_sources = ('features',)
    example_iteration_scheme = None
    takes_requests = False
    unsaved_arguments = ('files', 'storage_options')
    paths_in = 'files'

    def __init__(self, files: Paths, dictionary: Dictionary | None = None,
                 bos_token: str | None = '<S>',  # noqa: S107 (no password)
                 eos_token: str | None = '</S>',  # noqa: S107
                 unk_token: str | None = '<UNK>',  # noqa: S107
                 level: str = 'word',
                 preprocess: Callable[[str], str] | None = None,
                 encoding: str | None = None,
                 storage_options: StorageOptions | None = None) -> None:
        self.files = as_files(files, storage_options)
        if dictionary is None:
            raise TypeError(
                f'TextFile needs a dictionary of the tokens in '
                f'{str(self.files[0])!r}: count one with '
                'vocabulary = build_vocabulary(files), of '
                'fuel.datasets.vocabulary, then write '
                'TextFile(files, vocabulary)')
        self.dictionary = as_vocabulary(dictionary)
        check_level(level)
        for name, token in (('bos_token', bos_token),
                            ('eos_token', eos_token),
                            ('unk_token', unk_token)):
            check_token(name, token, self.dictionary)
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.unk_token = unk_token
        self.level = level
        self.preprocess = preprocess
        self.encoding = 'utf-8' if encoding is None else encoding
        if isinstance(dictionary, Vocabulary):
            _compare(dictionary, level, preprocess is not None)
        codecs.lookup(self.encoding)
        super().__init__()

    def details(self) -> Sequence[str]:
        """Return the files, their level, and the vocabulary's size."""
        files = [str(path) for path in self.files]
        more = f' and {len(files) - 1} more' if len(files) > 1 else ''
        return [f'{files[0]}{more}', f'by {self.level}',
                f'{len(self.dictionary)} in the vocabulary']

    def open(self) -> TextPosition:
        """Return a position before the first line.

        Raises
        ------
        FileNotFoundError
            If a file does not exist.
        """
        for path in self.files:
            check_exists(path, 'text')
        return self.open_at(None)

    def get_position(self, state: TextPosition) -> dict[str, int]:
        """Return the position of an open data set, ready for JSON."""
        return state.get_position()

    def open_at(self, position: State | None) -> TextPosition:
        """Return a state that resumes at a saved position."""
        return TextPosition(
            self.files, self.encoding, self._make_examples,
            self.preprocess is not None, position)

    def close(self, state: object) -> None:
        """Close the file that is being read."""
        if isinstance(state, TextPosition):
            state.close()

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: object) -> EpochReader | None:
        """Return a reader that makes several examples at a time, or None."""
        if requests is not None or not isinstance(state, TextPosition):
            return None
        return ExamplesInOrder(self, state)

    def get_data(self, state: object = None, request: object = None) -> Batch:
        """Return the next sentence.

        Parameters
        ----------
        state : object
            The state that :meth:`open` returned.
        request : None
            Text is read in order.

        Raises
        ------
        ValueError
            If there is a request, or no state.
        StopIteration
            If there are no more lines.
        """
        if not isinstance(state, Iterator) or request is not None:
            raise only_in_order(self, 'sentences', state, request)
        sentence: Batch = next(state)
        return sentence

    def _make_examples(self, lines: list[str],
                       position: TextPosition) -> list[Batch]:
        """Return lines as examples.

        `position`: the position of the reader, for errors.
        """
        if self.preprocess is not None:
            lines = [self.preprocess(line) for line in lines]
        vocabulary = self.dictionary
        before, after = (
            [] if token is None else [vocabulary[token]]
            for token in (self.bos_token, self.eos_token))
        unknown = (None if self.unk_token is None
                   else vocabulary[self.unk_token])
        try:
            sentences = numberize(lines, vocabulary, self.level == 'word',
                                  before, after, unknown)
        except MissingTokenError as error:
            raise UnknownTokenError(
                f'{position.where(error.place)}: {error.token!r} is not in '
                f'the dictionary of {len(vocabulary)} tokens: add it, or '
                'pass the unk_token that stands for such tokens') from None
        return list(zip(sentences, strict=True))


def _compare(vocabulary: Vocabulary, level: str, preprocesses: bool) -> None:
    """Warn if a vocabulary was counted with another `level` than the text is
    read with, or if only one of the two had a `preprocess`."""
    if vocabulary.level != level:
        warnings.warn(
            f'the vocabulary was counted with level={vocabulary.level!r}, but '
            f'the text is read with level={level!r}: most of its tokens will '
            'be unknown', stacklevel=3)
    elif vocabulary.preprocessed != preprocesses:
        one, other = (('build_vocabulary', 'TextFile') if
                      vocabulary.preprocessed
                      else ('TextFile', 'build_vocabulary'))
        warnings.warn(
            f'{one} got a function preprocess, but {other} did not: give '
            'both the same one, or tokens that it changes are unknown',
            stacklevel=3)
