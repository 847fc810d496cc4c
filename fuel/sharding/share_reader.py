"""Reader of a rank's share of data that can only be read in order."""
from __future__ import annotations

from fuel.schemes.shard import Shard, place_of_rank
from fuel.typing import Batch, EpochReader


class ShareReader:
    """Reads every n-th of the items that another reader gives.

    Each rank reads them all. To know whether the last round is complete, the
    items behind the rank's own are read before that is returned.
    """

    def __init__(self, reader: EpochReader, shard: Shard) -> None:
        self.reader = reader
        self.shard = shard
        # How many items of the present round were read.
        self.found = 0
        self.own: list[Batch] = []

    def read(self) -> Batch:
        """Return the rank's next item."""
        shard = self.shard
        while self.found < shard.num_shards:
            try:
                item = self.reader.read()
            except StopIteration:
                break
            if self.found == shard.rank:
                self.own.append(item)
            self.found += 1
        own, place = self.own, place_of_rank(0, self.found, shard)
        self.own, self.found = [], 0
        if place is None:
            raise StopIteration
        return own[0]

    def skip(self, count: int) -> None:
        """Read items of the rank and drop them."""
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Release what the other reader holds."""
        self.reader.close()
