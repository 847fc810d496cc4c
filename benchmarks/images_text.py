"""Images, sequences and text, beside what one would otherwise write.

Each reference is the fastest plain way of doing the same, and stands in full
beside the candidate. The rows that name PyTorch are printed where it is
installed.
"""
import concurrent.futures
import importlib.util
import io
import os
import tempfile
from pathlib import Path

import measure
import numpy
from foundation import compare_epochs
from PIL import Image

from fuel import config
from fuel.datasets import IndexableDataset
from fuel.datasets.text import TextFile
from fuel.datasets.vocabulary import build_vocabulary
from fuel.kernels import pad_sequences
from fuel.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Padding
from fuel.transformers.image import (
    ImagesFromBytes,
    Normalize,
    RandomFixedSizeCrop,
)

THREADS = 2
HAS_TORCH = importlib.util.find_spec('torch') is not None


def order_of(count, size):
    """Return the shuffled batches of an epoch, drawn beforehand."""
    return [numpy.array(request) for request in
            ShuffledScheme(count, size).get_request_iterator()]


def crops(count, how):
    """Random crops of images in memory."""
    images = numpy.random.RandomState(0).randint(
        0, 256, (count, 3, 32, 32)).astype('uint8')
    requests = order_of(count, 128)

    def reference():
        for indices in requests:
            batch = images.take(indices, axis=0)[:, :, 2:30, 2:30].copy()
        return batch

    stream = RandomFixedSizeCrop(DataStream(
        IndexableDataset({'images': images}, axis_labels={
            'images': ('batch', 'channel', 'height', 'width')}),
        iteration_scheme=ShuffledScheme(count, 128)), (28, 28))
    name = (f'crop 28x28 of {count} x 3x32x32, batches of 128 / one take '
            'and one strided copy')
    return [(name, compare_epochs(reference, stream, how), '0.8')]


def photographs(count):
    """Return JPEG files of 320x240 pixels, as noisy as photographs are."""
    rng = numpy.random.RandomState(0)
    files = []
    for _ in range(count):
        rough = Image.fromarray(rng.randint(0, 256, (15, 20, 3)).astype('u1'))
        smooth = numpy.asarray(rough.resize((320, 240), 3), 'i2')
        noisy = smooth + rng.randint(-12, 13, smooth.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype('u1')).save(
            file, 'JPEG', quality=90)
        files.append(file.getvalue())
    return files


def decode_and_crop(file, top, left):
    """Decode a JPEG and cut a window out of it, as one would by hand."""
    pixels = numpy.asarray(Image.open(io.BytesIO(file)).convert('RGB'))
    return pixels[top:top + 224, left:left + 224].transpose(2, 0, 1)


def decode_share(files, out):
    """Decode a share of a batch into its place."""
    for place, file in enumerate(files):
        out[place] = decode_and_crop(file, 5, 9)


def jpegs(count, how):
    """Decode JPEGs and crop them."""
    files = photographs(count)
    pool = concurrent.futures.ThreadPoolExecutor(THREADS)

    def reference():
        for start in range(0, count, 32):
            batch = files[start:start + 32]
            out = numpy.empty((len(batch), 3, 224, 224), 'u1')
            share = -(-len(batch) // THREADS)
            for future in [
                    pool.submit(decode_share, batch[i:i + share],
                                out[i:i + share])
                    for i in range(0, len(batch), share)]:
                future.result()

    stream = DataStream(IndexableDataset({'images': files}),
                        iteration_scheme=SequentialScheme(count, 32))
    stream = RandomFixedSizeCrop(
        ImagesFromBytes(stream), (224, 224), stack=True)
    name = ('320x240 JPEG, crop 224, batches of 32 / a thread pool with '
            'equal shares')
    rows = [(name, compare_epochs(reference, stream, how), '0.9')]
    if HAS_TORCH:
        loader = torch_loader(TorchJpegs(files), 32)
        rows.append(('the same / PyTorch DataLoader, two workers',
                     compare_epochs(lambda: run(loader), stream, how), '1'))
    pool.shutdown()
    return rows


def normalize(count, how):
    """Make float32 of uint8, with a mean and a deviation per channel."""
    batch = numpy.random.RandomState(0).randint(
        0, 256, (count, 3, 224, 224)).astype('uint8')
    factors = numpy.array([.1, .2, .3], 'float32').reshape(3, 1, 1)
    stage = Normalize(
        DataStream(IndexableDataset({'images': batch}, axis_labels={
            'images': ('batch', 'channel', 'height', 'width')}),
            iteration_scheme=SequentialScheme(count, count)),
        [.5, .4, .3], [.2, .3, .2], 1 / 255, dtype='float32')
    name = (f'uint8 to float32, {count} x 3x224x224 / numpy.multiply, one '
            'pass')
    return [(name, measure.compare(
        lambda: numpy.multiply(batch, factors),
        lambda: stage.transform_batch((batch,)), **how), '0.8')]


def write_text(path, sentences):
    """Write sentences of 5 to 40 words, as frequent as words are."""
    rng = numpy.random.RandomState(0)
    words = [f'w{rank}' for rank in range(20000)]
    weights = 1 / numpy.arange(1, 20001)
    lengths = rng.randint(5, 41, sentences)
    drawn = rng.choice(20000, lengths.sum(), p=weights / weights.sum())
    with open(path, 'w', encoding='utf-8') as file:
        start = 0
        for length in lengths:
            line = ' '.join([words[i] for i in drawn[start:start + length]])
            file.write(line + '\n')
            start += length


def text(sentences, how):
    """Numberize text, make batches, pad them."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'text.txt')
        write_text(path, sentences)
        vocabulary = build_vocabulary([path], size=10000).dictionary
        unknown = vocabulary['<UNK>']

        def reference():
            with open(path, encoding='utf-8') as file:
                for line in file:
                    [vocabulary.get(word, unknown) for word in line.split()]

        stream = Padding(Batch(
            DataStream(TextFile([path], vocabulary)),
            iteration_scheme=ConstantScheme(80)))
        name = (f'numberize, Batch(80), Padding, {sentences} sentences / '
                'splitting and looking up alone')
        rows = [(name, compare_epochs(reference, stream, how), '0.5')]
        if HAS_TORCH:
            loader = torch_loader(
                TorchText(path, vocabulary), 80, collate_padded)
            rows.append(('the same / PyTorch DataLoader and pad_sequence',
                         compare_epochs(lambda: run(loader), stream, how),
                         '2'))
        stream.close()
    return rows


def pad_by_loop(sequences):
    """Pad as one would by hand."""
    longest = max(map(len, sequences))
    out = numpy.zeros((len(sequences), longest), 'int64')
    mask = numpy.zeros((len(sequences), longest), 'float32')
    for i, sequence in enumerate(sequences):
        out[i, :len(sequence)] = sequence
        mask[i, :len(sequence)] = 1
    return out, mask


def padding(how):
    """Pad a batch."""
    rng = numpy.random.RandomState(0)
    arrays = [rng.randint(0, 10000, length)
              for length in rng.randint(5, 41, 80)]
    lists = [array.tolist() for array in arrays]
    return [(f'pad 80 {name} of 5-40 integers, with mask / a loop',
             measure.compare(lambda s=sequences: pad_by_loop(s),
                             lambda s=sequences: pad_sequences(s, 'float32'),
                             **how), target)
            for name, sequences, target in (
                ('lists', lists, '6'), ('arrays', arrays, '2.5'))]


def run(loader):
    """Run through an epoch."""
    for _ in loader:
        pass


def torch_loader(dataset, size, collate=None):
    """Return a DataLoader with two workers that stay alive."""
    import torch
    return torch.utils.data.DataLoader(
        dataset, batch_size=size, num_workers=2, persistent_workers=True,
        collate_fn=collate)


class TorchJpegs:
    """JPEGs as PyTorch wants them: one after the other."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return numpy.ascontiguousarray(
            decode_and_crop(self.files[index], 5, 9))


class TorchText:
    """Sentences as PyTorch wants them."""

    def __init__(self, path, vocabulary):
        self.lines = Path(path).read_text(encoding='utf-8').splitlines()
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        unknown = self.vocabulary['<UNK>']
        return [self.vocabulary.get(word, unknown)
                for word in self.lines[index].split()]


def collate_padded(sentences):
    """Return a padded batch."""
    import torch
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(sentence) for sentence in sentences], batch_first=True)


def main():
    """Print the table."""
    arguments = measure.options(__doc__)
    tiny, how = arguments.tiny, arguments.how
    config.num_threads = THREADS
    rows = [
        *crops(512 if tiny else 50000, how),
        *jpegs(40 if tiny else 320, how),
        *normalize(2 if tiny else 32, how),
        *text(300 if tiny else 100000, how),
        *padding(how)]
    print(f'{os.cpu_count()} cores, {THREADS} threads')
    measure.print_table(
        [(name, str(ratio), 'at least ' + target)
         for name, ratio, target in rows])


if __name__ == '__main__':
    main()
