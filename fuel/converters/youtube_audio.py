"""The sound of a YouTube video, decoded by ffmpeg."""
import os
import shutil
import subprocess
from argparse import ArgumentParser
from typing import Any

import numpy

from fuel.converters.base import Converter, write_file
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.utils.atomic_files import scratch_folder

__all__ = ['convert_youtube_audio', 'fill_subparser']


def convert_youtube_audio(directory: Folder, output_directory: Folder,
                          youtube_id: str, channels: int = 1,
                          sample: int = 16000,
                          output_filename: str | None = None) -> tuple[str]:
    """Convert the sound of a video to HDF5.

    The file has a split 'train' with one example of the source 'features',
    int16 of shape ``(1, samples, channels)`` and axes (batch, time,
    feature).

    `youtube_id`: the video's identifier, the end of its address.
    `channels`: number of channels. Default 1.
    `sample`: samples per second. Default 16,000.
    """
    output_filename = output_filename or f'{youtube_id}.hdf5'
    path, = input_paths(directory, [f'{youtube_id}.m4a'])
    sound = _decode(path, channels, sample)
    return write_file(
        output_directory, output_filename, [path],
        [('train', 'features', sound[None])],
        {'features': ('batch', 'time', 'feature')})


def _decode(path: str, channels: int,
            sample: int) -> numpy.ndarray[Any, Any]:
    """Return the sound of a file, of shape ``(samples, channels)``."""
    from scipy.io import wavfile
    ffmpeg = shutil.which('ffmpeg')
    if ffmpeg is None:
        raise RuntimeError('the program ffmpeg is needed to decode sound and '
                           'was not found: install it')
    with scratch_folder('fuel-audio-') as folder:
        wav = os.path.join(folder, 'sound.wav')
        done = subprocess.run(  # noqa: S603 - a list, without a shell
            # Read local files only: a playlist could name addresses.
            [ffmpeg, '-y', '-protocol_whitelist', 'file', '-i',
             os.path.abspath(path), '-ac', str(channels),
             '-ar', str(sample), wav], check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            lines = done.stderr.decode('utf8', 'replace').splitlines()
            raise BadInputFile(path, 'ffmpeg cannot decode it: ' +
                               ' '.join(lines[-2:]))
        _, sound = wavfile.read(wav)
    # Not -1: another number of channels must be an error.
    return sound.reshape(len(sound), channels)  # type: ignore[no-any-return]


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert youtube_audio``."""
    subparser.add_argument('--youtube-id', required=True,
                           help='the end of the address of the video')
    subparser.add_argument('--channels', type=int, default=1,
                           help='number of channels (default: 1)')
    subparser.add_argument('--sample', type=int, default=16000,
                           help='samples per second (default: 16000)')
    return convert_youtube_audio
