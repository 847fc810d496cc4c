"""The table of ``fuel-info --shuffle``: how random each window is."""
from __future__ import annotations

from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.schemes import BlockShuffledScheme, measure_order

# The windows that are tried: a few blocks, then more and more.
FACTOR = 4
BATCH = 1024


def measure_shuffles(path: str, split: str, labels_source: str,
                     block_size: int | None,
                     storage_options: dict[str, Any] | None = None,
                     ) -> list[dict[str, Any]]:
    """Measure the shuffles by blocks of a split, by the labels in a source.

    `block_size`: examples in a block; None for the chunks of the file.
    Returns: for each window, ready for JSON, 'window' and 'examples' (how many
        blocks and examples it has), 'distance' and 'autocorrelation'. The
        last is of all blocks: a full shuffle.
    """
    labels, = H5PYDataset(path, (split,), sources=(labels_source,),
                          load_in_memory=True,
                          storage_options=storage_options).data_sources
    with H5PYDataset(path, (split,),
                     storage_options=storage_options) as dataset:
        def build(window: int) -> BlockShuffledScheme:
            if block_size is not None:
                return BlockShuffledScheme(
                    dataset.num_examples, BATCH, block_size=block_size,
                    window=window)
            scheme: BlockShuffledScheme = BlockShuffledScheme.aligned(
                dataset, BATCH, window=window)
            return scheme

        count = build(1).num_blocks
        windows = [1]
        while windows[-1] < count:
            windows.append(min(count, windows[-1] * FACTOR))
        return [_measure(build(window), labels) for window in windows]


def _measure(scheme: BlockShuffledScheme, labels: Any) -> dict[str, Any]:
    measure = measure_order(scheme, labels)
    return {
        'window': scheme.window,
        'examples': scheme.window * (scheme.num_examples or 0)
        // scheme.num_blocks,
        'distance': measure.distance,
        'autocorrelation': {str(lag): value for lag, value
                            in measure.autocorrelation.items()}}


def shuffle_rows(measured: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return what was measured as the rows of a table, a header first."""
    lags = list(measured[0]['autocorrelation'])
    return [
        ('window', 'examples', 'distance',
         *[f'lag {lag}' for lag in lags]),
        *[(str(row['window']), f'{row["examples"]:,}',
           f'{row["distance"]:.2f}',
           *[f'{row["autocorrelation"][lag]:.2f}' for lag in lags])
          for row in measured]]
