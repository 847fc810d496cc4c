"""CalTech 101 Silhouettes: a MATLAB file for each size."""
from typing import Any

from fuel.converters.base import filler_of, write_image_file
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.matlab import as_bytes, read_variables

__all__ = ['convert_silhouettes', 'fill_subparser']

SIZES = (16, 28)
SPLITS = {'train': 'train', 'valid': 'val', 'test': 'test'}


def convert_silhouettes(size: int, directory: Folder, output_directory: Folder,
                        output_filename: str | None = None) -> tuple[str]:
    """Convert CalTech 101 Silhouettes to HDF5.

    The file has the splits 'train', 'valid' and 'test' with the sources
    'features', uint8 of shape ``(examples, 1, size, size)`` and axes (batch,
    channel, height, width), each pixel 0 or 1, and 'targets', uint8 of shape
    ``(examples, 1)``, the class from 1 to 101. As in all versions of Fuel, the
    images are transposed: the raw rows are columns of the silhouettes.

    `size`: {16, 28}; height and width of the images, in pixels.
    """
    if size not in SIZES:
        raise ValueError(f'CalTech 101 Silhouettes has the sizes 16 and 28, '
                         f'got {size!r}')
    output_filename = (output_filename or
                       f'caltech101_silhouettes{size}.hdf5')
    path, = input_paths(directory,
                        [f'caltech101_silhouettes_{size}_split1.mat'])
    content = read_variables(path, [
        f'{prefix}_{kind}' for prefix in SPLITS.values()
        for kind in ('data', 'labels')])
    return write_image_file(
        output_directory, output_filename, [path],
        ((split, *_arrays(content, prefix, size, path))
         for split, prefix in SPLITS.items()))


def _arrays(content: dict[str, Any], prefix: str, size: int,
            path: str) -> tuple[Any, Any]:
    features = as_bytes(content[f'{prefix}_data'], path, f'{prefix}_data')
    targets = as_bytes(content[f'{prefix}_labels'], path, f'{prefix}_labels')
    if features.ndim != 2 or features.shape[1] != size * size or (
            targets.size != len(features)):
        raise BadInputFile(
            path, f'expected {prefix}_data of shape (n, {size * size}) and n '
            f'labels, got {features.shape} and {targets.shape}')
    return features.reshape(-1, 1, size, size), targets.reshape(-1, 1)


fill_subparser = filler_of(
    convert_silhouettes, 'size', type=int, choices=SIZES,
    help='height and width of the images')
