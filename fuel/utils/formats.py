"""Open text files and archives, compressed or not."""
import bz2
import gzip
import lzma
import os
import sys
import tarfile
from typing import IO, Any

__all__ = ['open_', 'tar_open']

_OPENERS: dict[str, Any] = {
    '.gz': gzip.open, '.bz2': bz2.open, '.xz': lzma.open}


def open_(filename: str | os.PathLike[str], mode: str = 'r',
          encoding: str | None = None) -> IO[Any]:
    """Open a file; decompress it if its file extension names a compression.

    Parameters
    ----------
    filename : str or path-like
        A name that ends in ``.gz``, ``.bz2`` or ``.xz`` means a compressed
        file.
    mode : str, optional
        As for :func:`open`: without a ``b`` it means text, also for
        compressed files. Defaults to ``'r'``.
    encoding : str, optional
        Encoding of the text. Defaults to the platform's encoding.

    Returns
    -------
    file object
        It reads and writes str in text mode, and bytes in binary mode.

    Raises
    ------
    ValueError
        If an encoding is given for a binary mode.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.formats import open_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'words.gz')
    ...     with open_(path, 'w', encoding='utf-8') as file:
    ...         _ = file.write('a b')
    ...     with open_(path, encoding='utf-8') as file:
    ...         file.read()
    'a b'
    """
    if 'b' in mode and encoding is not None:
        raise ValueError(
            f'an encoding, {encoding!r}, is for text, but the mode {mode!r} '
            f'is binary; leave one of them out for {os.fspath(filename)!r}')
    if 'b' not in mode and 't' not in mode:
        # For `open`, 'r' alone means text; for gzip, bz2 and lzma, bytes.
        mode += 't'
    extension = os.path.splitext(filename)[1].lower()
    opener = _OPENERS.get(extension, open)
    file: IO[Any] = opener(filename, mode, encoding=encoding)
    return file


def tar_open(f: str | os.PathLike[str] | IO[bytes]) -> tarfile.TarFile:
    """Open a TAR archive, compressed or not, for reading.

    Parameters
    ----------
    f : str, path-like or binary file object
        The archive. An open file is read from its present position, and stays
        open when the archive is closed.

    Returns
    -------
    tarfile.TarFile
        It does not extract members to places outside of the given folder.

    Raises
    ------
    tarfile.ReadError
        If the file is not a TAR archive.

    Examples
    --------
    >>> import io, tarfile
    >>> from fuel.utils.formats import tar_open
    >>> file = io.BytesIO()
    >>> tarfile.open(fileobj=file, mode='w').close()
    >>> _ = file.seek(0)
    >>> with tar_open(file) as archive:
    ...     archive.getnames()
    []
    """
    named = {'name': f} if isinstance(f, (str, os.PathLike)) else {
        'fileobj': f}
    if sys.version_info < (3, 11, 4):
        return CheckedArchive.open(**named)
    archive: tarfile.TarFile = tarfile.open(**named)  # noqa: SIM115
    archive.extraction_filter = tarfile.data_filter
    return archive


class CheckedArchive(tarfile.TarFile):
    """An archive that does not extract members outside of a folder.

    From 3.11.4 on, Python itself checks this and more.
    """

    def extract(self, member: str | tarfile.TarInfo,
                path: (str | bytes | os.PathLike[str]
                       | os.PathLike[bytes]) = '',
                *args: Any, **kwargs: Any) -> None:
        """Extract a member; raise TarError unless it is a file, a folder or a
        link, and both it and the target of a link are inside of the folder."""
        info = self.getmember(member) if isinstance(member, str) else member
        folder = os.path.realpath(os.fsdecode(path))
        places = [os.path.join(folder, info.name)]
        if info.issym():
            places.append(os.path.join(
                os.path.dirname(places[0]), info.linkname))
        elif info.islnk():
            places.append(os.path.join(folder, info.linkname))
        elif not (info.isfile() or info.isdir()):
            raise tarfile.TarError(
                f'{info.name!r} is neither a file nor a folder')
        for place in map(os.path.realpath, places):
            if os.path.commonpath([folder, place]) != folder:
                raise tarfile.TarError(
                    f'{info.name!r} would be extracted to, or link to, '
                    f'{place!r}, which is outside of {folder!r}')
        super().extract(info, path, *args, **kwargs)
