"""Read JPEG files from shards beside the libraries that wrote them.

    python benchmarks/record_peers.py [--tiny]

Writes the same photographs with webdataset and with Mosaic's Streaming.
Prints the rate of shuffled batches of crops of 224 pixels, decoded by Pillow
in two workers, beside the faster of the two libraries; and the rate of
shuffled members of tar archives on a web server with 20 ms of latency that
sends 50 MB/s, beside that at which webdataset reads them in order. Needs

    pip install ".[torch]" torchvision webdataset streaming-community
"""
import contextlib
import cProfile
import importlib
import io
import itertools
import os
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import measure
import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader

# At the end: its folders have names of other packages.
sys.path.append(str(Path(__file__).resolve().parents[1] / 'tests'))

from support.range_server import server_process

from fuel import config
from fuel.datasets import MDSDataset, TarDataset
from fuel.streams import DataStream
from fuel.transformers import MultiProcessing, SourcewiseTransformer
from fuel.transformers.image import ImagesFromBytes

BATCH, SIDE, WORKERS, SHARDS = 64, 224, 2, 4
LATENCY, RATE = .02, 50e6
# Finds the members of archives in another process.
INDEX = """
import sys
from fuel import config
from fuel.datasets import TarDataset

config.remote_cache_path = sys.argv[1]
TarDataset(sys.argv[2:], ['jpg'])
"""


def photograph(rng):
    """Return a JPEG file that compresses like a photograph."""
    height, width = rng.integers(300, 500, 2)
    coarse = rng.integers(0, 256, (height // 8, width // 8, 3), 'uint8')
    smooth = Image.fromarray(coarse).resize((int(width), int(height)), 2)
    noise = rng.normal(0, 6, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(numpy.clip(numpy.asarray(smooth) + noise, 0, 255).astype(
        'uint8')).save(file, 'JPEG', quality=85)
    return file.getvalue()


def write(folder, files, streaming):
    """Write files as archives and as shards; return the archives."""
    import webdataset
    os.mkdir(folder / 'tar')
    with webdataset.ShardWriter(
            str(folder / 'tar' / '%03d.tar'), verbose=0,
            maxcount=-(-len(files) // SHARDS)) as tars:
        for number, content in enumerate(files):
            tars.write({'__key__': f'{number:06}', 'jpg': content})
    with streaming.MDSWriter(
            out=str(folder / 'mds'), columns={'jpg': 'bytes'},
            size_limit=sum(map(len, files)) // SHARDS) as shards:
        for content in files:
            shards.write({'jpg': content})
    return sorted(map(str, (folder / 'tar').iterdir()))


def decode(content):
    """Return the crop in the middle of an image."""
    image = Image.open(io.BytesIO(content)).convert('RGB')
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return numpy.asarray(image.crop(
        (left, top, left + SIDE, top + SIDE))).transpose(2, 0, 1)


def stack(images):
    """Return a batch as a tensor, which workers send in shared memory."""
    return torch.from_numpy(numpy.stack(images))


def of_webdataset(paths):
    """Return a loader of webdataset."""
    import webdataset
    dataset = webdataset.WebDataset(
        paths, shardshuffle=len(paths)).shuffle(1000).to_tuple('jpg').map(
            lambda sample: decode(sample[0])).batched(
                BATCH, collation_fn=stack)
    return webdataset.WebLoader(
        dataset, batch_size=None, num_workers=WORKERS,
        persistent_workers=True)


def of_streaming(folder, streaming):
    """Return a loader of Streaming."""
    class Crops(streaming.StreamingDataset):
        """The crops of images."""

        def __getitem__(self, number):
            return decode(super().__getitem__(number)['jpg'])

    return DataLoader(
        Crops(local=str(folder), batch_size=BATCH, shuffle=True),
        batch_size=BATCH, num_workers=WORKERS, collate_fn=stack,
        persistent_workers=True)


class Middle(SourcewiseTransformer):
    """Crops images in their middle."""

    def __init__(self, stream):
        super().__init__(stream, produces_examples=stream.produces_examples)

    def transform_source_batch(self, images, source):
        """Return a stack of crops."""
        crops = numpy.empty((len(images), 3, SIDE, SIDE), 'uint8')
        for crop, image in zip(crops, images, strict=True):
            top = (image.shape[1] - SIDE) // 2
            left = (image.shape[2] - SIDE) // 2
            crop[:] = image[:, top:top + SIDE, left:left + SIDE]
        return crops


def decoding(dataset):
    """Return a stream that decodes in this process."""
    return Middle(ImagesFromBytes(DataStream(
        dataset, batch_size=BATCH, shuffle=True)))


def reading(batches):
    """Return a function that reads an epoch."""
    def read():
        for _ in batches:
            pass

    return read


def checksums(batches):
    """Return the checksums of the pixels of images, sorted."""
    return sorted(zlib.crc32(numpy.asarray(image).tobytes())
                  for batch in batches for image in batch)


def share_of_decoding(dataset):
    """Return the share of the time of an epoch, in one process, that the
    stage that decodes takes."""
    profile = cProfile.Profile()
    profile.runcall(reading(batch for batch, in decoding(dataset)))
    stats = pstats.Stats(profile)
    ours = [value[3] for (_, _, name), value in stats.stats.items()
            if name == 'transform_source_batch']
    return max(ours) / stats.total_tt


def crops(folder, paths, streaming, how):
    """Return the rows of the table about crops."""
    peers = {'webdataset': of_webdataset(paths),
             'Streaming': of_streaming(folder / 'mds', streaming)}
    fuels = {'tar': TarDataset(paths, ['jpg']),
             'MDS': MDSDataset(folder / 'mds')}
    wanted = checksums(batch for batch, in decoding(fuels['tar']))
    for name, batches in peers.items():
        if checksums(batches) != wanted:
            raise ValueError(f'{name} has other pixels')
    rows = []
    for kind, dataset in fuels.items():
        with MultiProcessing(decoding(dataset),
                             num_workers=WORKERS) as workers:
            if checksums(batch for batch, in workers) != wanted:
                raise ValueError(f'{kind}: other pixels')
            ratios = {name: measure.compare(
                reading(batches), reading(workers), **how)
                for name, batches in peers.items()}
        worst = min(ratios, key=lambda name: ratios[name].median)
        rows += [(f'crops from {kind}, of {name}', str(ratio),
                  'at least 1.0' * (name == worst))
                 for name, ratio in ratios.items()]
    share = share_of_decoding(fuels['tar'])
    return [*rows, ('share of decoding, in one process',
                    f'{share:.0%}', '')]


def remote(folder, paths, how):
    """Return the rows of the table about a web server."""
    import webdataset
    names = [os.path.basename(path) for path in paths]
    numbers = itertools.count()
    with contextlib.ExitStack() as stack_:
        root = stack_.enter_context(server_process(
            folder / 'tar', '--latency', str(LATENCY), '--rate', str(RATE)))

        def fuel(has_index):
            # Nothing that an earlier epoch has fetched is used again.
            urls = [f'{root}{name}?{next(numbers)}' for name in names]
            if has_index:
                subprocess.run([sys.executable, '-c', INDEX, str(
                    folder / 'cache'), *urls], check=True)
                for path in (folder / 'cache').iterdir():
                    if path.name != 'indexes':
                        shutil.rmtree(path)
            began = time.perf_counter()
            stream = DataStream(TarDataset(urls, ['jpg']),
                                batch_size=BATCH, shuffle=True)
            count = sum(len(batch) for batch, in stream.get_epoch_iterator())
            return count / (time.perf_counter() - began)

        def peer(workers):
            urls = [f'{root}{name}' for name in names]
            began = time.perf_counter()
            loader = webdataset.WebLoader(webdataset.WebDataset(
                urls, shardshuffle=False, empty_check=False).to_tuple(
                    'jpg').batched(BATCH, collation_fn=list),
                batch_size=None, num_workers=workers)
            count = sum(map(len, loader))
            return count / (time.perf_counter() - began)

        rates = {'first': [], 'later': [], 'peer': []}
        for _ in range(how['rounds']):
            rates['peer'].append(max(peer(workers) for workers in (0, 1, 2)))
            rates['first'].append(fuel(has_index=False))
            rates['later'].append(fuel(has_index=True))
    best = numpy.median(rates['peer'])
    rows = [('webdataset in order, files/s', f'{best:.0f}', '')]
    for name, text in (('later', 'with the index'),
                       ('first', 'with no index yet')):
        ratios = sorted(numpy.divide(rates[name], rates['peer']).tolist())
        rows.append((f'shuffled members {text}, of it', str(measure.Ratio(
            float(numpy.median(ratios)), ratios[0], ratios[-1])),
            'at least 0.8'))
    return rows


def main():
    """Print the table."""
    options = measure.parser(__doc__).parse_args()
    how = measure.TINY if options.tiny else measure.FULL
    importlib.import_module('support.torchvision_operators')
    streaming = importlib.import_module('streaming')
    rng = numpy.random.default_rng(0)
    files = [photograph(rng) for _ in range(20 if options.tiny else 800)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config.remote_cache_path = str(folder / 'cache')
        paths = write(folder, files, streaming)
        rows = [*remote(folder, paths, how),
                *crops(folder, paths, streaming, how)]
        measure.print_table(rows)
    print(f'{len(files)} files of {sum(map(len, files)) // len(files)} bytes, '
          f'load {os.getloadavg()[0]:.1f}')
    measure.print_versions('webdataset', 'streaming-community', 'pillow')


if __name__ == '__main__':
    main()
