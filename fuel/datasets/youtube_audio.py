"""The sound of a YouTube video."""
from collections.abc import Sequence
from typing import Unpack

from fuel.datasets.built_in import BuiltInDataset
from fuel.datasets.options import BuiltInOptions

__all__ = ['YouTubeAudio']


class YouTubeAudio(BuiltInDataset):
    """The sound of one YouTube video, as a single example.

    Source: `features`, of shape ``(1, samples, channels)`` with the axes
    ``('batch', 'time', 'feature')``, in the split 'train'.

    Parameters
    ----------
    youtube_id : str
        The video's identifier, the end of its address.
    which_sets : tuple of str, optional
        The only split is 'train'.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = ''
    _filename = '{}.hdf5'

    def __init__(self, youtube_id: str,
                 which_sets: Sequence[str] = ('train',),
                 **kwargs: Unpack[BuiltInOptions]) -> None:
        self.filename = self.filename_for(youtube_id)
        super().__init__(which_sets, **kwargs)
