"""The tables of ``fuel-info`` about epochs: their cost for a remote file, and
the randomness of the order for each window of blocks."""
from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from fuel.bin.listing import human_size
from fuel.config_parser import config
from fuel.datasets.hdf5 import H5PYDataset, epoch_cost
from fuel.remote.urls import StorageOptions, is_url
from fuel.schemes import (
    BlockShuffledScheme, SequentialScheme, ShuffledScheme, measure_order)

# Each window that is tried has so many times the blocks of the window before.
FACTOR = 4
BATCH = 1024


def options_argument(text: str) -> StorageOptions:
    """Return options from the text of an argument in JSON."""
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise argparse.ArgumentTypeError(
            'expected a JSON object, such as {"anon": true}')
    return options


def epoch_costs(path: str, storage_options: StorageOptions | None,
                facts: Mapping[str, Any], batch_size: int, window: int,
                ) -> dict[str, dict[str, Any]]:
    """Return the cost of an epoch of each split and scheme, with a cache of
    unlimited size and with one of `remote_memory_bytes`."""
    if not is_url(path):
        raise ValueError(
            f'{path!r} is a local file, whose epochs cost no requests: '
            f'leave out --batch-size')
    costs: dict[str, dict[str, Any]] = {}
    for split in facts['splits']:
        dataset = H5PYDataset(path, (split,),
                              storage_options=storage_options)
        size = dataset.num_examples
        schemes = {
            'sequential': SequentialScheme(size, batch_size),
            'hierarchical': BlockShuffledScheme.aligned(
                dataset, batch_size, window=window),
            'full shuffle': ShuffledScheme(size, batch_size)}
        costs[split] = {}
        for name, scheme in schemes.items():
            cached = epoch_cost(dataset, scheme)
            bounded = epoch_cost(
                dataset, scheme, config.remote_memory_bytes)
            costs[split][name] = {
                'requests': cached.requests, 'bytes': cached.nbytes,
                'requests without cache': bounded.requests,
                'bytes without cache': bounded.nbytes,
                'unknown': list(cached.unknown)}
    return costs


def cost_rows(costs: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a table of costs."""
    rows: list[tuple[str, ...]] = []
    for split, schemes in costs.items():
        for name, cost in schemes.items():
            rows.append((
                split, name, f'{cost["requests"]} requests',
                human_size(cost['bytes']), 'where the cache has room; else',
                f'{cost["requests without cache"]} requests',
                human_size(cost['bytes without cache']),
                'and more for ' + ', '.join(cost['unknown'])
                if cost['unknown'] else ''))
    return rows


def measure_shuffles(path: str, split: str, labels_source: str,
                     block_size: int | None,
                     storage_options: dict[str, Any] | None = None,
                     ) -> list[dict[str, Any]]:
    """Measure how random the order of a split's labels is when it is shuffled
    by blocks.

    `block_size`: number of examples in a block; None for the chunks of the
        file.
    Returns: for each window, a dict ready for JSON of 'window' and 'examples'
        (numbers of its blocks and of its examples), 'distance' and
        'autocorrelation'. The last window has all blocks: a full shuffle.
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
            return BlockShuffledScheme.aligned(dataset, BATCH, window=window)

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
    """Return the measurements of shuffles as the rows of a table, with a
    header."""
    lags = list(measured[0]['autocorrelation'])
    return [
        ('window', 'examples', 'distance',
         *[f'lag {lag}' for lag in lags]),
        *[(str(row['window']), f'{row["examples"]:,}',
           f'{row["distance"]:.2f}',
           *[f'{row["autocorrelation"][lag]:.2f}' for lag in lags])
          for row in measured]]
