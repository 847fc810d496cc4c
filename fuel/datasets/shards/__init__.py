"""Data sets in shards of records: tar archives, MDS, TFRecord."""
