"""The base of the stages that decode files, such as images and sounds."""
from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy

from fuel.exceptions import FuelError
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.ragged import map_places
from fuel.transformers.source_names import labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.checks import positive


class DecodingStage(SourcewiseTransformer):
    """Base of the stages that decode files, on several threads.

    Each example of the chosen sources is a file. Subclasses implement
    :meth:`_decode_file`. An example that cannot be decoded raises an error,
    or is left out by a stream with ``on_error='skip'``.
    """

    keeps_rows = True
    pure: Any = True
    takes_sparse = False
    takes_masked = False
    unsaved_arguments = ('num_threads',)
    #: Word for an example in the texts of errors.
    noun = 'file'
    #: Class of the error for an example that cannot be decoded.
    undecodable: type[FuelError]

    def __init__(self, data_stream: StreamLike, axes: tuple[str, ...],
                 num_threads: int | None = None, *,
                 produces_examples: bool | None = None,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        if produces_examples is None:
            produces_examples = data_stream.produces_examples
        chosen = self._select(data_stream, kwargs.get('which_sources'))
        if not data_stream.produces_examples:
            axes = ('batch', *axes)
        kwargs.setdefault('axis_labels', {
            **dict.fromkeys(data_stream.sources),
            **(labels_of(data_stream) or {}), **dict.fromkeys(chosen, axes)})
        super().__init__(data_stream, produces_examples, **kwargs)
        self.num_threads = None if num_threads is None else positive(
            'num_threads', num_threads)

    def transform_source_example(self, source_example: object,
                                 source_name: str) -> Any:
        """Return an example, decoded."""
        return self._decode(source_example,
                            f'the {self.noun} of {source_name!r}')

    def transform_source_batch(self, source_batch: Iterable[object],
                               source_name: str) -> list[Any]:
        """Return a list of examples, decoded."""
        files = list(source_batch)
        # In a batch of one, an error need not name the place of the example.
        which = (f'{self.noun} {{}} of a batch' if len(files) > 1
                 else f'the {self.noun}')
        return map_places(
            lambda place: self._decode(
                files[place], f'{which.format(place)} of {source_name!r}'),
            len(files), self.num_threads, self.noun)

    def _decode(self, file: object, which: str) -> Any:
        if not isinstance(file, (bytes, bytearray, memoryview)):
            file = self._bytes_of(file, which)
        if not len(file):
            raise self._error(f'{which} (0 bytes) is empty')
        try:
            return self._decode_file(file)
        except (MemoryError, ImportError):
            # These errors do not mean that the file is damaged.
            raise
        except Exception as error:
            raise self._error(
                f'{which} ({len(file)} bytes, beginning with '
                f'{bytes(file[:8])!r}) cannot be decoded: '
                f"{self._why(error).rstrip('.')}") from error

    def _error(self, text: str) -> FuelError:
        """Return the error for a file that cannot be decoded."""
        undecodable = self.undecodable(text)
        # Reports of skipped examples leave out the notes of their errors.
        undecodable.add_note(
            f'correct the data, or leave such {self.noun}s out with '
            "on_error='skip' of the DataStream")
        if len(self.which_sources) > 1:
            undecodable.add_note(
                'which_sources names what is decoded; it is '
                f'{tuple(self.which_sources)}')
        return undecodable

    def _decode_file(self, file: bytes | bytearray | memoryview) -> Any:
        """Return the array that a file holds."""
        raise NotImplementedError

    def _why(self, error: Exception) -> str:
        """Return the text of a decoder's error."""
        return str(error)

    def _bytes_of(self, file: object, which: str) -> bytes:
        """Return the bytes of a file that comes in another form."""
        if isinstance(file, Mapping) and file.keys() == {'bytes', 'path'}:
            file = self._content_of(file, which)
        if isinstance(file, numpy.ndarray) and file.ndim == 1 and (
                file.dtype == 'uint8'):
            return file.tobytes()
        if isinstance(file, bytes):
            return file
        if file is None:
            raise self._error(f'{which} is missing')
        if isinstance(file, (list, tuple)) or (
                isinstance(file, numpy.ndarray) and file.dtype.hasobject):
            raise TypeError(
                f'{which} must be one file, got {len(file)}, such as '
                f'{next(iter(file), None)!r:.60}: choose one of them before '
                f'this stage, in a Mapping, or make an example of each')
        raise TypeError(
            f'{which} must be bytes, got {file!r:.60} '
            f'({type(file).__name__}): name the sources with files, '
            'which_sources=(...), and put ToBytes before this stage if files '
            'are stored as other arrays than of uint8')

    def _content_of(self, file: Mapping[str, Any], which: str) -> Any:
        """Return the bytes of a file that is a dict, as in Hugging Face."""
        content, path = file['bytes'], file['path']
        if content is not None or not isinstance(path, str):
            return content
        try:
            # Reading a special file, such as a pipe, may never end.
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise OSError('it is not a regular file')
            with open(path, 'rb') as opened:
                return opened.read()
        except OSError as error:
            raise self.undecodable(
                f'{which} is the file {path!r}, which cannot be read: '
                f'{error.strerror or error}. To keep the contents in a data '
                f'set of Hugging Face, decode it once, or call '
                f'embed_table_storage') from error
