"""One Billion Word: text files, only unpacked."""
import os
import re

from fuel.converters.base import filler_of, progress_bar
from fuel.converters.raw.archives import check_size
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.tar import open_tar
from fuel.utils.atomic_files import scratch_folder

__all__ = ['convert_one_billion_word', 'fill_subparser']

ARCHIVE = '1-billion-word-language-modeling-benchmark-r13output.tar.gz'
FOLDER = '1-billion-word'
# Most bytes of all files together; the original files have 4 GB.
MAX_TEXT = 1 << 34
# Names of the text files in the archive: their folder and their own name.
TEXT = re.compile(
    r'[^/]+/((?:training|heldout)-monolingual\.tokenized\.shuffled)'
    r'/(news\.en[\w.-]*)')


def convert_one_billion_word(
        directory: Folder, output_directory: Folder,
        output_filename: str = FOLDER) -> tuple[()]:
    """Unpack One Billion Word into the folder where `OneBillionWord` finds it.

    Returns: an empty tuple, since there is no HDF5 file.
    """
    path, = input_paths(directory, [ARCHIVE])
    target = os.path.join(output_directory, output_filename)
    if os.path.exists(target):
        raise FileExistsError(f'{target!r} is there already: delete it to '
                              'unpack the archive again')
    with scratch_folder('.fuel-unpack-', os.fspath(
            output_directory)) as scratch:
        if not _unpack(path, os.path.join(scratch, FOLDER)):
            raise BadInputFile(path, 'there is no text of the benchmark')
        # Only the owner may enter the scratch folder: move the text out of it.
        os.rename(os.path.join(scratch, FOLDER), target)
    return ()


def _unpack(path: str, folder: str) -> int:
    """Unpack the text files; return their number."""
    count = size = 0
    with open_tar(path) as archive, progress_bar(ARCHIVE, None) as bar:
        for member in archive.walk():
            parts = TEXT.fullmatch(member.name)
            if parts is None:
                continue
            size += member.size
            check_size(path, member.name, size, MAX_TEXT)
            os.makedirs(os.path.join(folder, parts[1]), exist_ok=True)
            with open(os.path.join(folder, parts[1], parts[2]), 'xb') as out:
                out.writelines(archive.blocks(member))
            count += 1
            bar.update(count)
    return count


fill_subparser = filler_of(convert_one_billion_word)
