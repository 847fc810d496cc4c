"""Read a stream of Fuel as an iterable-style data set of PyTorch."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.checks import refuse_dataset
from fuel.interop.torch.integers import INT64
from fuel.interop.torch.ranks import RankShare, ShardLike
from fuel.interop.torch.stream_iterable import StreamIterable
from fuel.streams.arguments import LoadOptions
from fuel.typing import Naming, StreamLike


def as_iterable(stream: StreamLike, as_dict: Naming = False,
                which_sources: Sequence[str] | None = None,
                shard: ShardLike = 'auto', by: str = 'batch',
                uneven: str | None = None,
                joins_batches: bool = False, targets: str = INT64,
                load_options: LoadOptions | None = None) -> StreamIterable:
    """Return a stream of Fuel as an iterable-style data set of PyTorch.

    Pass it to a `DataLoader` with ``batch_size=None``, since the stream makes
    the batches.  For any `num_workers`, the batches and their order are those
    of the stream, in every epoch.  Use this function if the program makes
    the loader itself.  Otherwise use :class:`~fuel.interop.torch.Loader`,
    which also knows its position and the number of examples.

    Parameters
    ----------
    stream : AbstractDataStream
        The stream to read.  For several workers, each batch must be made
        independently of the others: workers cannot share a stage that keeps
        data from one batch to the next.
    as_dict : bool or 'nested', optional
        Whether to return a dict from source names to data instead of a
        tuple; ``'nested'``: a dict of dicts, whose keys are the parts of the
        names between slashes.  Defaults to False.
    which_sources : tuple of str, optional
        The sources that become tensors; other sources, such as names of
        files, stay as they are.  Defaults to all.
    shard : tuple of int or 'auto', optional
        Rank and number of ranks that share the stream.  Defaults to
        ``'auto'``: the rank in `torch.distributed` if it is initialised,
        otherwise the rank that torchrun or another launcher has set.  If the
        rank is not known yet, it is found when an iteration begins.  None:
        every process reads the whole stream.  A stream that is sharded
        already stays as it is.
    by : {'batch', 'example'}, optional
        ``'batch'``, the default: a rank reads every n-th batch.
        ``'example'``: a rank reads its part of each batch.
    uneven : {'uneven', 'drop', 'pad'}, optional
        What happens to batches that cannot be shared evenly; see
        :meth:`~fuel.streams.AbstractDataStream.shard`.  Defaults to None:
        such batches are an error, since a rank with more batches than the
        others would wait for them.
    joins_batches : bool, optional
        Whether a `DataLoader` may join the batches of the stream into larger
        batches, by its `collate_fn`.  Defaults to False: a `DataLoader` that
        collates is an error, since most collate functions make batches of
        batches.
    targets : {'int64', 'as stored'}, optional
        The type of sources with one integer per example; see
        :func:`~fuel.interop.torch.to_torch`.  Defaults to ``'int64'``.
    load_options : dict, optional
        Further arguments of
        :meth:`~fuel.streams.AbstractDataStream.load_state_dict` whenever a
        state is loaded, such as ``{'accept': ('data',)}``, since frameworks
        load the state themselves.

    Returns
    -------
    StreamIterable
        A data set whose length is the number of items in an epoch: the number
        of batches if the stream makes batches, not the number of examples.  A
        warning is given if a program may take this length for the number of
        examples.

    Raises
    ------
    ValueError
        If `which_sources` names sources that the stream does not have, or
        the stream cannot be shared by the ranks; at the first batch, if a
        `DataLoader` without ``batch_size=None`` would make batches of
        batches.
    fuel.exceptions.NotAStreamError
        If `stream` is a data set.

    Examples
    --------
    This needs the extra ``torch``.

    >>> import numpy
    >>> from torch.utils.data import DataLoader
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> from fuel.streams import DataStream
    >>> dataset = IndexableDataset(numpy.arange(10))
    >>> stream = DataStream(dataset, iteration_scheme=ShuffledScheme(10, 4))
    >>> batches = as_iterable(stream)
    >>> for data, in DataLoader(batches, batch_size=None, num_workers=2):
    ...     print(data)
    tensor([2, 9, 6, 4])
    tensor([0, 3, 1, 7])
    tensor([8, 5])
    """
    refuse_dataset(stream, 'as_iterable')
    return StreamIterable(RankShare(stream, shard, by, uneven), as_dict,
                          which_sources, joins_batches, targets, load_options)
