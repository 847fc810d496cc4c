"""Find the format of files: of binary files by their first bytes, of text
files by their extension."""
from __future__ import annotations

import os
import re
import zipfile

from fuel.datasets.json_values import begins_with_object
from fuel.datasets.text_files import COMPRESSIONS
from fuel.remote.location import RemotePath
from fuel.remote.urls import file_name
from fuel.storage.file_bytes import raw_file_at
from fuel.storage.raw_arrays import has_header
from fuel.storage.token_index import (
    MAGIC, indexes_beside, is_stem, is_stem_at_url)

HDF5_SIGNATURE = b'\x89HDF\r\n\x1a\n'
# Places where an HDF5 file may begin: a program may have put a block of 512,
# 1024 and so on bytes before it.
USER_BLOCKS = [0, *[512 << number for number in range(8)]]
SIGNATURES = {b'\x93NUMPY': 'npy', b'PAR1': 'parquet', b'ARROW1': 'arrow',
              MAGIC[:8]: 'binary'}
# First bytes of a message of an Arrow stream; its length follows.
ARROW_MESSAGE = b'\xff\xff\xff\xff'
ZIP_SIGNATURE = b'PK\x03\x04'
# Its place, and the signature; archives of the first form have none.
TAR_SIGNATURE = 257, b'ustar'
# The folder of a Zarr array or group contains one of these files.
ZARR_FILES = ('zarr.json', '.zarray', '.zgroup')
# The folder of shards of MDS, or of LitData, contains this file.
INDEX = 'index.json'
# Formats by extension, since text has no signature.
TABLES_OF_TEXT = {'.csv': 'csv', '.tsv': 'tsv', '.jsonl': 'jsonl',
                  '.ndjson': 'jsonl'}
TEXTS = {**TABLES_OF_TEXT, '.txt': 'text'}
# Extensions of the data files in a folder.
HDF5_ENDINGS = ('.hdf5', '.hdf', '.h5', '.h5ad', '.he5', '.mat', '.nc',
                '.nc4', '.nwb')
TABLES_OF_ARROW = ('.arrow', '.feather', '.parquet')
SHARDS = ('.tar', '.tfrecord', '.tfrecords')
DATA_ENDINGS = (*HDF5_ENDINGS, *TABLES_OF_ARROW, '.npy', '.npz')
COMPRESSED_TARS = ('.tar.bz2', '.tar.gz', '.tar.xz', '.tar.zst', '.tbz2',
                   '.tgz', '.txz')
# TensorFlow puts the number of a shard behind the extension:
# train.tfrecord-00000-of-00002.
SHARD_NUMBER = re.compile(r'(?<=\.tfrecord)s?-\d+-of-\d+$')
# Usual extensions of files that contain only numbers.
RAW_ENDINGS = ('.bin', '.dat', '.raw')
# The kind that the JSON of an index of wids states.
WIDS = b'"wids-shard-index-v1"'
LITDATA = ('LitData is not read by Fuel: write the samples as tar archives, '
           'such as with webdataset.ShardWriter')
# Advice on other formats that users try, by extension.
ADVICE = {
    '.json': 'a file with an object in each line is read by JSONLDataset, '
             'one with a single document by json.load, and its arrays by '
             'IndexableDataset',
    '.tfrecord': 'the first 12 bytes of a TFRecord file are a length and its '
                 'checksum, and these are not: it is damaged, or compressed '
                 'as a whole (decompress it)',
    '.safetensors': 'safetensors.numpy.load_file reads it, and its arrays go '
                    'into an IndexableDataset',
    '.zip': 'archives are not read by Fuel: unpack it',
    **dict.fromkeys(
        ('.bz2', '.gz', '.tbz2', '.tgz', '.txz', '.xz', '.zst'),
        'samples of a .tar are read at their places, so it must not be '
        'compressed: decompress it, such as with gunzip; another archive is '
        'not read by Fuel: unpack it'),
    **dict.fromkeys(
        ('.ckpt', '.pickle', '.pkl', '.pt', '.pth'),
        'a pickle may run any code, so that Fuel does not read it; arrays '
        'are saved with numpy.savez'),
    **dict.fromkeys(
        ('.xls', '.xlsx'), 'read it with pandas.read_excel, and pass the '
                           'table to ArrowDataset of fuel.interop.arrow'),
    **dict.fromkeys(
        ('.bmp', '.gif', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp'),
        "FilesDataset('FOLDER') reads a folder of pictures, with or without a "
        'folder for each class, and so does fuel.load'),
    **dict.fromkeys(
        ('.aif', '.aiff', '.flac', '.mp3', '.oga', '.ogg', '.opus', '.wav'),
        "FilesDataset('FOLDER') reads a folder of audio files, with or "
        'without a folder for each class, and so does fuel.load'),
    **dict.fromkeys(
        ('.avi', '.mkv', '.mov', '.mp4', '.webm'),
        'video is not read by Fuel: extract its frames, such as with ffmpeg')}

# Extensions of all files that are read, or that users try.
ENDINGS = (*DATA_ENDINGS, *TEXTS, *SHARDS, *RAW_ENDINGS, *ADVICE, '.idx',
           '.zarr')

LISTING = ('a folder at a URL is not listed: list the URLs of its files, or '
           'write braces, such as {000..012}; of MDS, name the folder of an '
           'index.json, or a split that is a folder in it; copy a folder of '
           'pictures or of audio files, or pack the files into tar archives')


def format_of(path: str, is_raw: bool = False) -> str:
    """Return the format of a file: 'hdf5', 'npy', 'npz', 'parquet', 'arrow',
    'zarr', 'tar', 'wids', 'tfrecord', 'mds', 'csv', 'tsv', 'jsonl', 'text' or
    'binary'.

    `is_raw`: whether an argument is given that only files of numbers take.
        The file is then a binary file, unless it has the extension of another
        format.

    Raises: ValueError if it has another format.
    """
    if not isinstance(path, RemotePath) and os.path.isdir(path):
        if is_zarr(path):
            return 'zarr'
        raise ValueError(
            f'{path!r} is a folder, and no Zarr array or group: load it by '
            f'itself, or list the files in it')
    if is_raw and not without_number(file_name(path).lower()).endswith(
            (*DATA_ENDINGS, *SHARDS, *TEXTS, *ADVICE)):
        return 'binary'
    try:
        return _format_of_file(path)
    except TimeoutError:
        raise
    except (OSError, ValueError) as error:
        if is_stem(path):
            return 'binary'
        # For a folder, a server may answer with any error.
        if isinstance(path, RemotePath) and os.path.splitext(
                file_name(path))[1] in ('', '.zarr'):
            if is_zarr(path):
                return 'zarr'
            if has_object(path.joined(INDEX)):
                return 'mds'
            if is_stem_at_url(path):
                return 'binary'
            if isinstance(error, FileNotFoundError) or not file_name(path):
                raise FileNotFoundError(f'{error}; {LISTING}') from None
        raise


def _format_of_file(path: str) -> str:
    """Return the format of a file; see `format_of`."""
    from fuel.datasets.shards.tfrecord import is_tfrecord
    # Errors name this file, and not its index.
    file = raw_file_at(path)
    if '.bin' in path and indexes_beside([path]):
        # Tokens may begin like any other file.
        return 'binary'
    start = file.read(0, 12)
    head = start[:8]
    if is_tfrecord(start):
        return 'tfrecord'
    for signature, name in SIGNATURES.items():
        if head.startswith(signature):
            return name
    if _begins_arrow_stream(head):
        return 'arrow'
    if has_header(head):
        return 'binary'
    if head.startswith(ZIP_SIGNATURE) and _has_arrays(path):
        return 'npz'
    if any(file.size >= place + 8
           and file.read(place, 8) == HDF5_SIGNATURE
           for place in USER_BLOCKS):
        return 'hdf5'
    if file.read(TAR_SIGNATURE[0], 5) == TAR_SIGNATURE[1]:
        return 'tar'
    stem, ending = os.path.splitext(without_number(file_name(path).lower()))
    compression = ending if ending in COMPRESSIONS else ''
    if compression:
        ending = os.path.splitext(stem)[1]
    if compression and ending == '.tar':
        ending = compression
    kind = TEXTS.get(ending)
    if kind is not None and compression and kind != 'text':
        raise ValueError(
            f'{str(path)!r} is compressed, and files of the format {kind!r} '
            f'are read by rows, which needs one that is not: decompress it; '
            f'it begins with {head!r}')
    if kind in ('csv', 'tsv'):
        with file.open() as stream:
            # Programs export JSON lines under these extensions too.
            return 'jsonl' if begins_with_object(stream) else kind
    if kind is not None:
        return kind
    if not head:
        raise ValueError(
            f'{str(path)!r} is empty: perhaps it is still written, or its '
            f'download was broken off')
    if ending in HDF5_ENDINGS:
        raise ValueError(
            f'{str(path)!r} is not an HDF5 file, which begins with '
            f'{HDF5_SIGNATURE!r}: it begins with {head!r}; perhaps it is '
            f'damaged, or has another format than its name says')
    advice = advice_for(ending).replace('PATH', repr(str(path)))
    is_page = head.lstrip().startswith(b'<')
    if ending == '.tar' and not is_page:
        return 'tar'
    if ending == '.json' and WIDS in file.read(0, 1 << 12):
        return 'wids'
    if file_name(path) == INDEX and is_mds(path):
        return 'mds'
    if ending == '.json' and is_litdata(path):
        advice = LITDATA
    elif is_page:
        advice = ('it may be a web page: take the address under which the '
                  'file itself is downloaded')
    raise ValueError(
        f'{str(path)!r} has no format that is known: it begins with {head!r}'
        f'; HDF5, .npy, .npz, Parquet, Arrow, Zarr, tar and TFRecord are '
        f'recognised by their content, {", ".join(TEXTS)} by the name; '
        f'{advice}')


def without_number(path: str) -> str:
    """Return a path in lower case without the number of a shard behind its
    extension."""
    return SHARD_NUMBER.sub('', path) if '-of-' in path else path


def advice_for(ending: str, folder: str = 'FOLDER') -> str:
    """Return advice on how to read files with a given extension."""
    if ending in TEXTS:
        return (f'{ending} is text, which is read when the files are named, '
                f'as in fuel.load(PATH)')
    if ending in RAW_ENDINGS:
        return ("a file of nothing but numbers is read if their type is "
                "passed, such as fuel.load(PATH, dtype='uint16')")
    return ADVICE.get(
        ending, 'give other data to IndexableDataset or IterableDataset, or '
                "convert it; FilesDataset('FOLDER') reads a folder of any "
                'files as bytes').replace('FOLDER', folder)


def is_litdata(path: str) -> bool:
    """Return whether a file is the index of a data set of LitData."""
    head = raw_file_at(path).read(0, 1 << 12)
    return head.lstrip().startswith(b'{') and all(
        name in head for name in (b'"chunks"', b'"chunk_bytes"'))


def is_mds(path: str) -> bool:
    """Return whether a file is the index of shards of MDS."""
    head = raw_file_at(path).read(0, 1 << 12)
    return head.lstrip().startswith(b'{') and b'"shards"' in head


def is_zarr(folder: str) -> bool:
    """Return whether a folder, or a URL, is a Zarr array or group."""
    if isinstance(folder, RemotePath):
        return any(map(has_object, map(folder.joined, ZARR_FILES)))
    return any(os.path.isfile(os.path.join(folder, name))
               for name in ZARR_FILES)


def has_object(path: RemotePath) -> bool:
    """Return whether a server has a file that begins like a JSON object.

    A web page about a missing file does not begin like that.
    """
    try:
        head = path.open(is_kept=False).read(0, 64)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        # Servers report a missing file in many ways.
        return False
    return head.lstrip().startswith(b'{')


def _begins_arrow_stream(head: bytes) -> bool:
    """Return whether eight bytes are the start of an Arrow stream.

    Hugging Face's `save_to_disk` writes such files.
    """
    # Lengths are multiples of eight; a file of ones has no such length.
    return len(head) == 8 and head[:4] == ARROW_MESSAGE and (
        int.from_bytes(head[4:], 'little') % 8 == 0)


def _has_arrays(path: str) -> bool:
    """Return whether a ZIP archive has arrays of NumPy."""
    try:
        with raw_file_at(path).open() as stream, zipfile.ZipFile(
                stream) as archive:
            return any(name.endswith('.npy') for name in archive.namelist())
    except zipfile.BadZipFile:
        # The error is raised when the file is opened.
        return str(path).endswith('.npz')
