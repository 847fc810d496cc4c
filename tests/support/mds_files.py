"""MDS shards for tests, written by the format's description."""
import bz2
import gzip
import hashlib
import json
import struct
import sys

PACK = {'bz2': bz2.compress, 'gz': gzip.compress}
if sys.version_info >= (3, 14):
    from compression import zstd
    PACK['zstd'] = zstd.compress


def shard_of(samples, sizes):
    """Return the bytes of a shard.

    `samples`: for each sample, the bytes of its columns.
    `sizes`: the size of each column; None if it varies.
    """
    bodies = []
    for sample in samples:
        heads = [struct.pack('<I', len(value)) for value, size in zip(
            sample, sizes, strict=True) if size is None]
        bodies.append(b''.join([*heads, *sample]))
    about = json.dumps({'column_sizes': sizes}).encode()
    ends = [4 + 4 * (len(bodies) + 1) + len(about)]
    for body in bodies:
        ends.append(ends[-1] + len(body))
    return struct.pack(f'<{len(ends) + 1}I', len(bodies), *ends) + (
        about + b''.join(bodies))


def facts_of(name, content, count, columns, compression=None, hashes=()):
    """Return the bytes of the file of a shard, and its facts in the index.

    `columns`: a dict from names to pairs of encoding and size.
    """
    def data(name, content):
        return {'basename': name, 'bytes': len(content), 'hashes': {
            one: hashlib.new(one, content).hexdigest() for one in hashes}}

    kind = (compression or '').partition(':')[0]
    packed = PACK[kind](content) if kind else content
    return packed, {
        'format': 'mds', 'version': 2, 'samples': count,
        'column_names': list(columns),
        'column_encodings': [encoding for encoding, _ in columns.values()],
        'column_sizes': [size for _, size in columns.values()],
        'compression': compression, 'hashes': list(hashes),
        'size_limit': 1 << 26, 'raw_data': data(name, content),
        'zip_data': data(f'{name}.{kind}', packed) if kind else None}


def write_mds(folder, columns, shards, change=None, **options):
    """Write a folder of shards; return its path.

    `shards`: lists of samples, each the bytes of its columns.
    `change`: changes the index before it is written.
    """
    folder.mkdir(exist_ok=True)
    listed = []
    for number, samples in enumerate(shards):
        name = f'shard.{number:05}.mds'
        content = shard_of(samples, [size for _, size in columns.values()])
        packed, facts = facts_of(
            name, content, len(samples), columns, **options)
        place = (facts['zip_data'] or facts['raw_data'])['basename']
        (folder / place).write_bytes(packed)
        listed.append(facts)
    index = {'version': 2, 'shards': listed}
    if change is not None:
        change(index)
    (folder / 'index.json').write_text(json.dumps(index))
    return folder
