"""The sound of a YouTube video."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.utils import find_in_data_path

__all__ = ['YouTubeAudio']


class YouTubeAudio(H5PYDataset):
    """The sound of one YouTube video, as a single example.

    Source: `features`, of shape ``(1, samples, channels)`` with the axes
    ``('batch', 'time', 'feature')``, in the split 'train'.

    Parameters
    ----------
    youtube_id : str
        The video's identifier, the end of its address.
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `which_sets` defaults
        to ``('train',)``.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``<youtube_id>.hdf5``; ``fuel-download
        youtube_audio`` and ``fuel-convert youtube_audio`` make it.

    """

    def __init__(self, youtube_id: str, **kwargs: Any) -> None:
        kwargs.setdefault('which_sets', ('train',))
        super().__init__(find_in_data_path(f'{youtube_id}.hdf5'), **kwargs)
