"""Google's One Billion Word benchmark."""
from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Unpack

from fuel.datasets.options import TextOptions
from fuel.datasets.text import TextFile
from fuel.datasets.vocabulary import Dictionary
from fuel.utils import find_in_data_path

__all__ = ['OneBillionWord']

# For each set: its folder, the names of its files, and their numbers.
SETS = {
    'training': ('training-monolingual.tokenized.shuffled',
                 'news.en-{:05d}-of-00100', range(1, 100)),
    'heldout': ('heldout-monolingual.tokenized.shuffled',
                'news.en.heldout-{:05d}-of-00050', range(50)),
}


class OneBillionWord(TextFile):
    """Sentences of the One Billion Word benchmark, as lists of token numbers.

    This monolingual corpus has 829,250,940 tokens, sentence boundaries
    included. It is split into 100 partitions. One partition is held out, and
    is divided again into 50. The files are expected in the folder
    ``1-billion-word`` of the data path.

    Parameters
    ----------
    which_set : {'training', 'heldout'}
    which_partitions : list of int
        From 1 to 99 for the training set, from 0 to 49 for the heldout set.
    dictionary : dict or str
        Maps tokens, including ``<S>``, ``</S>`` and ``<UNK>``, to integers;
        see :class:`~fuel.datasets.text.TextFile`.
    bos_token, eos_token, unk_token, level, preprocess, encoding
        Other arguments of :class:`~fuel.datasets.text.TextFile`.
    storage_options
        Other arguments of :class:`~fuel.datasets.text.TextFile`.

    Raises
    ------
    ValueError
        If there is no such set or partition.
    OSError
        If the files are not in the data path.
    """

    def __init__(self, which_set: str, which_partitions: Iterable[int],
                 dictionary: Dictionary,
                 **kwargs: Unpack[TextOptions]) -> None:
        if which_set not in SETS:
            raise ValueError("which_set must be 'training' or 'heldout', got "
                             f'{which_set!r}')
        folder, name, valid = SETS[which_set]
        partitions = [_as_partition(which_set, number, valid)
                      for number in which_partitions]
        files = [find_in_data_path(os.path.join(
            '1-billion-word', folder, name.format(number)))
            for number in partitions]
        self.which_set = which_set
        self.which_partitions = partitions
        super().__init__(files, dictionary, **kwargs)


def _as_partition(which_set: str, number: int, valid: range) -> int:
    try:
        partition = operator.index(number)
    except TypeError:
        partition = -1
    if partition not in valid:
        raise ValueError(
            f'which_partitions of the {which_set} set must be from '
            f'{valid[0]} to {valid[-1]}, got {number!r}')
    return partition
