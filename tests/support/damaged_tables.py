"""A process that reads damaged copies of tables, which may end it."""
import json
import random
import sys
from pathlib import Path

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from fuel.exceptions import DamagedFileError
from fuel.interop.arrow import ArrowDataset

N = 40
LISTS = [None if n % 7 == 3 else list(range(n % 4)) for n in range(N)]
WORDS = [None if n % 5 == 3 else 'é' * (n % 4) + str(n) for n in range(N)]


def table():
    """Return a table of all kinds of columns that have offsets or sizes."""
    numbers = numpy.arange(6 * N, dtype='int32')
    inner = pyarrow.struct([('a', pyarrow.list_(pyarrow.large_string())),
                            ('b', pyarrow.int8())])
    return pyarrow.table({
        'int': numbers[:N],
        'flag': pyarrow.array([n % 3 == 0 for n in range(N)]),
        'float': pyarrow.array([None if n % 9 == 4 else n / 2
                                for n in range(N)]),
        'text': pyarrow.array(WORDS),
        'large text': pyarrow.array(WORDS, pyarrow.large_string()),
        'view': pyarrow.array(WORDS, pyarrow.string_view()),
        'bytes': pyarrow.array([b'x' * (n % 3) for n in range(N)]),
        'list': pyarrow.array(LISTS, pyarrow.list_(pyarrow.int16())),
        'large list': pyarrow.array(
            LISTS, pyarrow.large_list(pyarrow.float32())),
        'words': pyarrow.array([[f'{n}'] * (n % 3) for n in range(N)]),
        'pair': pyarrow.FixedSizeListArray.from_arrays(numbers[:2 * N], 2),
        'image': pyarrow.FixedShapeTensorArray.from_numpy_ndarray(
            numbers.reshape(N, 2, 3)),
        'kind': pyarrow.array(WORDS).dictionary_encode(),
        'nested': pyarrow.array([
            {'a': WORDS[n:n + n % 3], 'b': n} for n in range(N)], inner),
        'map': pyarrow.array([[(f'{n}', n)] for n in range(N)],
                             pyarrow.map_(pyarrow.string(), pyarrow.int8())),
    })


def write(path, kind):
    """Write the table in a format, such as 'file zstd'."""
    kind, _, codec = kind.partition(' ')
    if kind == 'parquet':
        # Its format has no views.
        pyarrow.parquet.write_table(
            table().drop_columns(['view']), path, row_group_size=15,
            compression=codec or 'none', write_page_checksum=True)
        return
    make = pyarrow.ipc.new_file if kind == 'file' else pyarrow.ipc.new_stream
    with make(str(path), table().schema, options=pyarrow.ipc.IpcWriteOptions(
            compression=codec or None)) as writer:
        for batch in table().to_batches(max_chunksize=15):
            writer.write_batch(batch)


def structure(path):
    """Read all columns; return what damage of a value does not change: the
    names and types that the schema tells, and the kinds of the rows."""
    dataset = ArrowDataset(path)
    schema, kinds = [dataset.num_examples], []
    for name, reader in sorted(dataset.readers.items()):
        rows = reader.read(slice(0, dataset.num_examples))
        schema.append([name, rows.dtype.str, rows.shape])
        kinds.append([type(each).__name__ + (
            each.dtype.str if isinstance(each, numpy.ndarray) else '')
            for each in rows] if rows.dtype.hasobject else None)
    return schema, kinds


def damage(content, draw):
    """Return bytes with a damage, and what it was."""
    kind = draw.choice(['bit', 'bit', 'bytes', 'zeros', 'cut'])
    place = draw.randrange(len(content))
    damaged = bytearray(content)
    if kind == 'bit':
        damaged[place] ^= 1 << draw.randrange(8)
    elif kind == 'cut':
        del damaged[place:]
    else:
        stop = min(len(content), place + draw.choice([1, 4, 8, 30]))
        damaged[place:stop] = (
            bytes(stop - place) if kind == 'zeros'
            else draw.randbytes(stop - place))
    return bytes(damaged), kind


def main(folder, kind, seed, count):
    """Read so many damaged copies of the table in a format."""
    whole, path = Path(folder, 'whole'), Path(folder, 'damaged')
    write(whole, kind)
    content, expected = whole.read_bytes(), structure(whole)
    draw = random.Random(f'{kind} {seed}')
    found = {'refused': 0, 'read': 0}
    for number in range(count):
        damaged, what = damage(content, draw)
        path.unlink(missing_ok=True)
        path.write_bytes(damaged)
        # For whoever has to look for the damage that ended this process.
        sys.stderr.write(f'{number}: {what}\n')
        sys.stderr.flush()
        try:
            read = structure(path)
        except (DamagedFileError, ValueError) as error:
            if str(path) not in str(error):
                raise
            found['refused'] += 1
            continue
        assert damaged == content or what != 'cut', number
        assert read[0][0] == N, number
        # Nothing tells that a letter of a name, or a type, is another.
        is_other = read[0] != expected[0]
        if what == 'bit' and not is_other and read != expected:
            found.setdefault('silent', []).append(number)
        found['read'] += 1
    sys.stdout.write(json.dumps(found))


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
