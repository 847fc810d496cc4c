"""Vocabularies: dicts from tokens to integers, built, saved and loaded."""
from __future__ import annotations

import io
import json
import os
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, overload

import numpy
from numpy.typing import NDArray

from fuel.datasets.text_files import (
    COMPRESSIONS, Paths, TextLines, as_files, check_exists, open_binary,
    split_lines)
from fuel.exceptions import UnknownTokenError
from fuel.remote.location import as_path
from fuel.remote.urls import file_name
from fuel.utils.atomic_files import atomic_path
from fuel.utils.progress import progress

__all__ = ['Vocabulary', 'build_vocabulary', 'load_vocabulary',
           'save_vocabulary']

SPECIAL_TOKENS = ('<S>', '</S>', '<UNK>')


class Vocabulary(NamedTuple):
    """The result of :func:`build_vocabulary`.

    Attributes
    ----------
    dictionary : dict
        Maps tokens to integers from 0. After the special tokens, the most
        frequent tokens come first.
    counts : dict
        Maps each of these tokens that occurs in the files to the number of its
        occurrences.
    num_tokens : int
        Number of tokens in the files.
    num_unknown : int
        Number of tokens in the files that are not in `dictionary`.
    level : {'word', 'character'}
        The kind of the tokens.
    preprocessed : bool
        Whether a function was applied to each line before its tokens were
        counted. :class:`~fuel.datasets.text.TextFile` needs the same function.
    """

    dictionary: dict[str, int]
    counts: dict[str, int]
    num_tokens: int
    num_unknown: int
    level: str = 'word'
    preprocessed: bool = False

    def encode(self, text: str | Iterable[str],
               unk_token: str | None = '<UNK>',  # noqa: S107 (no password)
               *, bos_token: str | None = None,
               eos_token: str | None = None) -> NDArray[numpy.int64]:
        r"""Return the numbers of the tokens of a text.

        Parameters
        ----------
        text : str or iterable of str
            A text of any length. Its lines are split into words or characters,
            the `level` of this vocabulary, like the lines of files. Or an
            iterable of tokens, which counts as one line. If
            :func:`build_vocabulary` was called with a function `preprocess`,
            apply that function to the text first.
        unk_token : str or None, optional
            The token that stands for tokens that are not in `dictionary`.
            With None, a token that is not in `dictionary` is an error.
        bos_token, eos_token : str or None, optional
            The tokens put before and after each line, as
            :class:`~fuel.datasets.text.TextFile` does. Default to None: no
            token marks the start or the end of a line.

        Returns
        -------
        numpy.ndarray
            int64, one number for each token.

        Raises
        ------
        fuel.exceptions.UnknownTokenError
            If a token is not in `dictionary`, and `unk_token` is None or is
            not in `dictionary` either.
        ValueError
            If `bos_token` or `eos_token` is not in `dictionary`.

        Examples
        --------
        >>> vocabulary = Vocabulary(
        ...     {'<UNK>': 0, '</S>': 1, 'the': 2, 'cat': 3}, {}, 2, 0)
        >>> vocabulary.encode('the old\ncat\n')
        array([2, 0, 3])
        >>> vocabulary.encode('the old\ncat\n', eos_token='</S>')
        array([2, 0, 1, 3, 1])
        """
        check_token('bos_token', bos_token, self.dictionary)
        check_token('eos_token', eos_token, self.dictionary)
        before, after = ([] if token is None else [token]
                         for token in (bos_token, eos_token))
        lines: Iterable[Iterable[str]] = [text]
        if isinstance(text, str):
            lines = (line.split() if self.level == 'word' else line.strip()
                     for line in split_lines(text))
        unknown = None if unk_token is None else self.dictionary.get(unk_token)
        numbers = []
        for token in chain.from_iterable(
                chain(before, line, after) for line in lines):
            number = self.dictionary.get(token, unknown)
            if number is None:
                raise UnknownTokenError(
                    f'{token!r} is not in the vocabulary, and no other token '
                    f'stands for it: unk_token is {unk_token!r}'
                    + ('' if unk_token is None
                       else ', which is not there either'))
            numbers.append(number)
        return numpy.array(numbers, numpy.int64)

    @overload
    def decode(self, numbers: Iterable[int]) -> list[str]: ...

    @overload
    def decode(self, numbers: Iterable[Iterable[int]]) -> list[list[str]]: ...

    def decode(self, numbers: Iterable[Any]) -> list[Any]:
        """Return the tokens that numbers stand for.

        Parameters
        ----------
        numbers : iterable of int
            The numbers of one sequence; or a batch of sequences, which may
            have different lengths.

        Returns
        -------
        list of str
            The tokens of the sequence. For a batch, a list of such lists.
            Join words with ``' '.join``, characters with ``''.join``.

        Raises
        ------
        ValueError
            If a number stands for no token.

        Examples
        --------
        >>> vocabulary = Vocabulary({'<UNK>': 0, 'the': 1, 'cat': 2}, {}, 2, 0)
        >>> vocabulary.decode(vocabulary.encode('the old cat'))
        ['the', '<UNK>', 'cat']
        >>> vocabulary.decode([[1, 2], [1]])
        [['the', 'cat'], ['the']]
        """
        return _decoded(numbers, {
            number: token for token, number in self.dictionary.items()})

    def __repr__(self) -> str:
        # Without the words: there may be a million of them.
        return (f'<Vocabulary: {len(self.dictionary)} tokens in the '
                f'dictionary; {self.num_unknown} of {self.num_tokens} in the '
                'files are not>')


def _decoded(numbers: Iterable[Any], tokens: dict[int, str]) -> list[Any]:
    """Return the tokens of a sequence, or of each row of a batch."""
    values = numbers if isinstance(numbers, numpy.ndarray) else list(numbers)
    first: Any = next(iter(values), None)
    if isinstance(first, (list, tuple)) or numpy.ndim(first):
        return [_decoded(row, tokens) for row in values]
    try:
        return [tokens[number] for number in numpy.asarray(values).tolist()]
    except KeyError as error:
        raise ValueError(
            f'{error} is not the number of any of the {len(tokens)} tokens '
            'of the vocabulary') from None


#: A dict from tokens to numbers, a `Vocabulary`, or the name of a file.
Dictionary: TypeAlias = (
    'Mapping[str, int] | Vocabulary | str | os.PathLike[str]')


def build_vocabulary(
        files: Paths, size: int | None = None,
        minimum_count: int = 1, level: str = 'word',
        preprocess: Callable[[str], str] | None = None,
        encoding: str | None = None,
        special_tokens: Iterable[str] = SPECIAL_TOKENS) -> Vocabulary:
    r"""Count the tokens of text files and number the most frequent ones.

    If counting takes long, a progress bar or two lines show its progress.

    Parameters
    ----------
    files : list of str
        As for :class:`~fuel.datasets.text.TextFile`.
    size : int, optional
        Largest number of tokens in the dictionary, including the special
        tokens. By default there is no limit.
    minimum_count : int, optional
        Leave out tokens that occur less often. Defaults to 1.
    level : {'word', 'character'}, optional
        As for :class:`~fuel.datasets.text.TextFile`.
    preprocess : callable, optional
        Called with each line before it is split, such as ``str.lower``. Pass
        the same function to :class:`~fuel.datasets.text.TextFile`: otherwise
        the tokens that it changes are not in the dictionary. Default: none.
    encoding : str, optional
        As for :class:`~fuel.datasets.text.TextFile`.
    special_tokens : tuple of str, optional
        Tokens that get the first numbers. Defaults to ``('<S>', '</S>',
        '<UNK>')``.

    Returns
    -------
    Vocabulary
        Equally frequent tokens are in alphabetical order, so the same files
        give the same dictionary.

    Raises
    ------
    ValueError
        If an argument is invalid, or bytes cannot be decoded.
    FileNotFoundError
        If a file does not exist.

    Examples
    --------
    >>> with open('sentences.txt', 'w') as f:
    ...     _ = f.write('b a b\nc b a\n')
    >>> found = build_vocabulary(['sentences.txt'], size=5)
    >>> found.dictionary
    {'<S>': 0, '</S>': 1, '<UNK>': 2, 'b': 3, 'a': 4}
    >>> found.counts, found.num_tokens, found.num_unknown
    ({'b': 3, 'a': 2}, 6, 1)
    """
    paths = as_files(files)
    if isinstance(special_tokens, str):
        raise ValueError('special_tokens must be a tuple of tokens, got the '
                         f'single one {special_tokens!r}: write '
                         f'({special_tokens!r},)')
    for path in paths:
        check_exists(path, 'text')
    special = list(dict.fromkeys(special_tokens))
    check_level(level)
    if size is not None and size < len(special):
        raise ValueError(f'size must be at least {len(special)}, the number '
                         f'of special tokens, got {size}')
    if size is not None and size == len(special) > 0:
        warnings.warn(
            f'size is {size}, and there are {len(special)} special tokens, '
            'which it includes: no token of the files gets a number',
            stacklevel=2)
    counter: Counter[str] = Counter()
    for block in _read_lines(paths, encoding or 'utf-8'):
        lines = block if preprocess is None else [
            preprocess(line + '\n') for line in block]
        if level == 'word':
            counter.update('\n'.join(lines).split())
        else:
            for line in lines:
                counter.update(line.strip())
    total = sum(counter.values())
    ranked = sorted(
        ((token, count) for token, count in counter.items()
         if count >= minimum_count and token not in special),
        key=lambda entry: (-entry[1], entry[0]))
    if size is not None:
        del ranked[size - len(special):]
    tokens = [*special, *(token for token, _ in ranked)]
    counts = {token: counter[token] for token in tokens if token in counter}
    return Vocabulary({token: i for i, token in enumerate(tokens)}, counts,
                      total, total - sum(counts.values()), level,
                      preprocess is not None)


def _read_lines(paths: list[str], encoding: str) -> Iterator[list[str]]:
    """Read the lines of files, a block at a time."""
    sizes = [os.path.getsize(path) for path in paths]
    done = 0
    with progress('Counting tokens', sum(sizes), True, delay=True) as bar:
        for path, size in zip(paths, sizes, strict=True):
            reader = TextLines(path, encoding)
            try:
                reader.read()
                while reader.lines:
                    yield reader.lines
                    # The progress in a compressed file is not known.
                    bar.update(done + min(reader.start, size))
                    reader.read()
            finally:
                reader.close()
            done += size
            bar.update(done)


def save_vocabulary(dictionary: Mapping[str, int],
                    path: str | os.PathLike[str]) -> None:
    """Save a dictionary of tokens as JSON.

    An existing file is replaced as a whole.

    Parameters
    ----------
    path : str
        The file; its name must end in ``.json``.

    Raises
    ------
    ValueError
        If the name has another ending, or `dictionary` is not a vocabulary.
    """
    name = os.fspath(path)
    if not name.endswith('.json'):
        raise ValueError('a vocabulary is saved as JSON, so its name must '
                         f'end in .json, got {name!r}')
    check_dictionary(dict(dictionary), name)
    with atomic_path(name) as temporary, open(
            temporary, 'w', encoding='utf-8') as file:
        json.dump(dictionary, file, ensure_ascii=False, indent=0)


def load_vocabulary(path: str | os.PathLike[str]) -> dict[str, int]:
    r"""Load a dictionary of tokens.

    Parameters
    ----------
    path : str
        The file. With the extension ``.json``, an object that maps tokens to
        integers, or a list of tokens. With ``.pkl`` or ``.pickle``, a pickled
        dict, which is loaded without running code that the file may name. With
        any other extension, text in UTF-8 with a token in each line; the
        tokens are numbered from 0. Each kind of file may also be compressed,
        with ``.gz``, ``.bz2`` or ``.xz`` at the end of the name.

    Returns
    -------
    dict
        Maps strings to integers.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds anything else.

    Examples
    --------
    >>> with open('tokens.txt', 'w') as file:
    ...     _ = file.write('<UNK>\nthe\n')
    >>> load_vocabulary('tokens.txt')
    {'<UNK>': 0, 'the': 1}
    """
    name = as_path(os.fspath(path))
    check_exists(name, 'vocabulary')
    plain, extension = os.path.splitext(file_name(name))
    if extension in COMPRESSIONS:
        extension = os.path.splitext(plain)[1]
    with open_binary(name) as file:
        content = file.read()
    try:
        if extension == '.json':
            found = json.loads(content)
        elif extension in ('.pkl', '.pickle'):
            found = unpickle(content)
        else:
            found = split_lines(content.decode('utf-8'))
    except UnicodeDecodeError as error:
        line = content.count(b'\n', 0, error.start) + 1
        raise ValueError(
            f'{name}, in line {line}: a vocabulary must be UTF-8, got the '
            f'bytes {error.object[error.start:error.start + 4]!r}'
        ) from error
    except Exception as error:
        # A damaged or hostile file makes a pickle raise nearly anything.
        raise ValueError(
            f'{name} cannot be read as a vocabulary: {error}') from error
    if isinstance(found, list):
        found = number_tokens(found, name)
    return check_dictionary(found, name)


def as_vocabulary(dictionary: Dictionary) -> dict[str, int]:
    """Return a dictionary of tokens; load it if a file is named."""
    if isinstance(dictionary, Vocabulary):
        return dictionary.dictionary
    if isinstance(dictionary, (str, os.PathLike)):
        return load_vocabulary(dictionary)
    if isinstance(dictionary, dict):
        return dictionary
    if isinstance(dictionary, Mapping):
        return dict(dictionary)
    raise ValueError(
        'dictionary must map tokens to integers, or name a file of them, '
        f'got {dictionary!r:.60} ({type(dictionary).__name__})')


def check_level(level: str) -> None:
    """Refuse a level other than words or characters."""
    if level not in ('word', 'character'):
        raise ValueError(f"level must be 'word' or 'character', got {level!r}")


def check_token(name: str, token: str | None,
                vocabulary: Mapping[str, int]) -> None:
    """Refuse a special token that is not in the vocabulary.

    `name`: the argument that names the token, for the error.
    """
    if token is not None and token not in vocabulary:
        raise ValueError(
            f'{name} is {token!r}, which is not among the '
            f'{len(vocabulary)} tokens of the dictionary: add it there, or '
            f'pass {name}=None')


class _PlainUnpickler(pickle.Unpickler):
    """Loads built-in types only, so that loading runs no other code."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(
            f'it names {module}.{name}, but a pickled vocabulary may hold '
            'nothing but a dict of strings to integers')


def unpickle(content: bytes) -> object:
    """Unpickle built-in types only."""
    # Bytes that Python 2 pickled are text.
    return _PlainUnpickler(io.BytesIO(content), encoding='utf-8').load()


def number_tokens(tokens: list[object], name: str) -> dict[str, int]:
    """Return a dict from the tokens in a list to their numbers, from 0 on."""
    numbers: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise ValueError(f'{name}: entry {i + 1} is {token!r}, but must '
                             'be a token')
        if token in numbers:
            raise ValueError(
                f'{name}: {token!r} is there twice, as entry '
                f'{numbers[token] + 1} and as entry {i + 1}')
        numbers[token] = i
    return numbers


def check_dictionary(found: object, name: str) -> dict[str, int]:
    """Return `found` if it is a dictionary of tokens; else raise an error."""
    if not isinstance(found, dict):
        raise ValueError(
            f'{name} must hold a dictionary of tokens, but holds '
            f'{found!r:.60} ({type(found).__name__})')
    for token, number in found.items():
        if not isinstance(token, str) or type(number) is not int:
            raise ValueError(
                f'{name} must map strings to integers, but maps {token!r} '
                f'to {number!r}')
    return found
