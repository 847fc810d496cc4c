"""What the epochs of a remote file cost, for the command ``fuel-info``."""
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
    BlockShuffledScheme, SequentialScheme, ShuffledScheme)


def options_argument(text: str) -> StorageOptions:
    """Return options that were given as JSON."""
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
    """Compute the cost of an epoch of each split, for each scheme, where
    everything stays in the cache and where only the memory's budget does."""
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
    """Return the lines of a table of costs."""
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
