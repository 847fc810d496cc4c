"""A user's own audio files, in a folder for each class."""
from __future__ import annotations

import logging
import os
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence

import h5py
import numpy

from fuel.converters.base import (Converter, converted_file, create_source,
                                  label_axes)
from fuel.converters.class_folders import (ClassFolder, Kind,
                                           add_folder_options, naming_option)
from fuel.converters.custom_data import advise
from fuel.converters.output import LABELS, write_arrays
from fuel.converters.raw.files import BadInputFile, Folder
from fuel.exceptions import UndecodableAudioError

__all__ = ['convert_audio_folder', 'fill_subparser']

log = logging.getLogger(__name__)

KIND = Kind('audio file', ('.wav', '.flac', '.ogg', '.oga', '.opus', '.mp3',
                           '.aif', '.aiff', '.aifc', '.au', '.caf', '.w64',
                           '.rf64'))


@advise
@naming_option()
def convert_audio_folder(
        directory: Folder, output_directory: Folder,
        output_filename: str | None = None,
        hold_out: Sequence[tuple[str, float]] | None = None,
        seed: int = 1, stratify: bool = False,
        on_error: str = 'raise') -> tuple[str]:
    """Convert a folder of audio files to an HDF5 file for `H5PYDataset`.

    The folder has a folder of audio files for each class, or folders named
    train, valid and test, each with a folder for each class. In the HDF5 file,
    the source 'audio' has the unchanged bytes of the files, which
    `AudioFromBytes` decodes. The source 'targets' has the numbers of the
    classes, in alphabetical order. The attribute 'class_names' of 'targets' is
    a list of the names of the classes, in JSON. All files are decoded once, to
    find damaged files.

    `hold_out`, `seed`, `stratify`: splits to draw at random; see
        `convert_image_folder`.
    `on_error`: {'raise', 'skip'}; what to do with files that cannot be
        decoded. With 'skip' they are logged and left out, if they are at most
        10, or at most a hundredth of the files; all files are decoded once
        more to find them. Default 'raise'.
    """
    from fuel.interop.audio import probe

    def check(content: bytes, path: str) -> tuple[bytes, int]:
        try:
            return content, probe(content)
        except UndecodableAudioError as error:
            raise BadInputFile(path, f'cannot be decoded as audio ({error})'
                               ) from error

    folder = ClassFolder(directory, KIND, hold_out, seed, stratify)
    folder.leave_out_bad(on_error, check)
    rates: Counter[int] = Counter()
    output_filename = folder.output_name(output_filename)
    with converted_file(output_directory, output_filename) as h5file:
        audio = create_source(h5file, 'audio', (len(folder.files),),
                              h5py.vlen_dtype(numpy.dtype('uint8')))
        for row, (content, rate) in enumerate(folder.decoded(check)):
            write_arrays(audio, slice(row, row + 1), [
                numpy.frombuffer(content, 'uint8')])
            rates[rate] += 1
        folder.write_classes(h5file, 'audio')
        label_axes(h5file, {'audio': ('batch',), 'targets': LABELS})
    if len(rates) > 1:
        log.warning(
            'the files have different numbers of samples a second, %s: '
            'AudioFromBytes(..., sample_rate=%d, resample=True) brings them '
            'to one', ', '.join(f'{rate} ({count} files)' for rate, count
                                in rates.most_common()),
            rates.most_common(1)[0][0])
    return (os.path.join(output_directory, output_filename),)


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert audio_folder``."""
    add_folder_options(subparser, KIND)
    return convert_audio_folder
