"""Make the pictures of this manual: what stages and schemes do.

``python docs/make_pictures.py`` writes docs/pictures/*.png, describe.svg,
loss.svg and watch.svg. It needs scikit-learn, for its photographs and digits.
"""
import io
import itertools
import threading
import time
from html import escape
from pathlib import Path

import numpy
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images

from fuel.bin.watch import TimedStatus, page
from fuel.client.measures import take_status
from fuel.datasets import IndexableDataset, IterableDataset
from fuel.orders import leave_out as leave_out_steps
from fuel.schemes import (
    BlockShuffledScheme,
    ConstantScheme,
    SequentialScheme,
)
from fuel.server import Server
from fuel.streams import DataStream, ServerDataStream
from fuel.transformers import (
    Batch,
    Mapping,
    Mix,
    MultiProcessing,
    Padding,
    ScaleAndShift,
)
from fuel.transformers.image import (
    CenterCrop,
    CutMix,
    ImagesFromBytes,
    MinimumImageDimensions,
    MixUp,
    Normalize,
    Random2DRotation,
    RandomFixedSizeCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from fuel.transformers.noise import (
    Dropout,
    GaussianNoise,
    SaltAndPepper,
    UniformNoise,
)
from fuel.transformers.sequences import BucketBatch, Pack
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.transformers.whitening import Whitening, fit_whitening
from fuel.wire.messages import ask_status

FOLDER = Path(__file__).parent / 'pictures'
LABELS = {'image': ('batch', 'channel', 'height', 'width')}
GAP = 6
INK = (.18, .5, .8)


def photographs():
    """Return two photographs, (3, 120, 180)."""
    return [numpy.asarray(Image.fromarray(image).resize((180, 120), 3))
            .transpose(2, 0, 1) for image in load_sample_images().images]


def stream_of(images):
    """Return a stream of one batch."""
    return DataStream(
        IndexableDataset({'image': images}, axis_labels=LABELS),
        iteration_scheme=SequentialScheme(len(images), len(images)))


def first(stream):
    """Return the first batch."""
    return next(stream.get_epoch_iterator())[0]


def to_pixels(image):
    """Return an image as uint8, (height, width, 3), or 4 with its alpha."""
    image = numpy.asarray(image)
    if image.dtype != numpy.uint8:
        image = (image * 255).clip(0, 255).astype('uint8')
    return numpy.broadcast_to(
        image.transpose(1, 2, 0), (*image.shape[1:], max(3, len(image))))


def cut_out(drawing):
    """Return a drawing that has the ground of the page where it is white."""
    pixels = to_pixels(drawing).transpose(2, 0, 1)
    alpha = (pixels < 255).any(0, keepdims=True) * 255
    return numpy.concatenate([pixels, alpha.astype('uint8')])


def ink(shares):
    """Return a drawing in one colour that is seen on white and on black."""
    return numpy.stack([*(numpy.full(shares.shape, part) for part in INK),
                        shares])


def write(name, *columns):
    """Write columns of images beside each other, on the ground of the page."""
    widths = [max(image.shape[-1] for image in column) for column in columns]
    heights = [max(column[row].shape[-2] for column in columns)
               for row in range(len(columns[0]))]
    page = numpy.full((sum(heights) + GAP * (len(heights) - 1),
                       sum(widths) + GAP * (len(widths) - 1), 4), 0, 'u1')
    left = 0
    for column, width in zip(columns, widths, strict=True):
        top = 0
        for image, height in zip(column, heights, strict=True):
            pixels = to_pixels(image)
            place = page[top:top + pixels.shape[0],
                         left:left + pixels.shape[1]]
            place[..., 3] = 255
            place[..., :pixels.shape[2]] = pixels
            top += height + GAP
        left += width + GAP
    Image.fromarray(page).save(FOLDER / f'{name}.png', optimize=True)


def write_old(images):
    """Decode, enlarge, crop, rotate."""
    files = []
    for image in images:
        file = io.BytesIO()
        Image.fromarray(to_pixels(image)).save(file, 'JPEG', quality=90)
        files.append(file.getvalue())
    decoded = DataStream(IndexableDataset({'image': files}),
                         iteration_scheme=SequentialScheme(2, 2))
    write('decoded', images,
          first(ImagesFromBytes(decoded, color_mode='L')),
          first(ImagesFromBytes(decoded, shrink_to=(40, 40))))
    small = [image[:, ::5, ::5] for image in images]
    write('minimum', small, *[
        first(MinimumImageDimensions(stream_of(small), (96, 96), resample))
        for resample in ('nearest', 'bicubic')])
    write('crop', images, *[
        first(RandomFixedSizeCrop(stream_of(images), (80, 80),
                                  rng=numpy.random.RandomState(seed)))
        for seed in (1, 2, 3)])
    write('rotation', images, *[
        first(Random2DRotation(stream_of(images), .6, resample='bilinear',
                               rng=numpy.random.RandomState(seed)))
        for seed in (1, 2)])


def write_new(images):
    """Write what has a fixed size, is flipped, or became numbers."""
    write('resize', images, first(Resize(stream_of(images), (90, 90))),
          first(CenterCrop(stream_of(images), (90, 90))))
    write('resized_crop', images, *[
        first(RandomResizedCrop(stream_of(images), (90, 90), seed=seed))
        for seed in (1, 2, 3)])
    write('flip', images,
          first(RandomHorizontalFlip(stream_of(images), seed=4)))
    normal = first(Normalize(
        stream_of(images), (.485, .456, .406), (.229, .224, .225), 1 / 255))
    write('normalize', images, [image / 5 + .5 for image in normal])


def write_by_example(images):
    """Crop and flip in batches of one, two and three, by item and example."""
    pixels = numpy.stack([*images, images[1][:, :, ::-1]])[:, :, ::2, ::2]

    def crops(size, draws):
        stream = DataStream(
            IndexableDataset({'image': pixels}, axis_labels=LABELS),
            batch_size=size)
        stream = RandomResizedCrop(
            stream, (60, 60), (.1, .4), seed=5, draws=draws)
        return [image for batch, in RandomHorizontalFlip(
            stream, seed=4, draws=draws) for image in batch]

    columns = [crops(size, draws) for draws in ('item', 'example')
               for size in (1, 2, 3)]
    write('by_example', list(pixels), *columns[:3],
          [numpy.zeros((4, 60, 20), 'u1')] * 3, *columns[3:])


def write_pairs(images):
    """Move a photograph and its mask alike."""
    flower = images[1]
    mask = (flower[:1] > 130).astype('uint8')
    filters = {'image': 'bilinear', 'mask': 'nearest'}

    def part(seed):
        stream = DataStream(IndexableDataset(
            {'image': flower[None], 'mask': mask[None]},
            axis_labels=dict.fromkeys(filters, LABELS['image'])),
            batch_size=1)
        stream = RandomResizedCrop(stream, (100, 100), (.2, .5),
                                   resample=filters, seed=seed)
        image, mask_of_part = next(iter(Random2DRotation(
            stream, .5, filters, seed=seed)))
        return [image[0], mask_of_part[0] * 255]

    write('pairs', [flower, mask * 255], part(1), part(2))


def write_mixed(images):
    """Blend two photographs, and paste parts of each into the other."""
    def mixed(stage, seed, **how):
        return first(stage(stream_of(numpy.stack(images) / 255.),
                           target_source=None, seed=seed, **how))

    # Seeds by which the two are not mixed with themselves.
    write('mixed', images, mixed(MixUp, 19, alpha=2.),
          mixed(MixUp, 11, alpha=2.), mixed(CutMix, 3), mixed(CutMix, 12))


def write_noise(images):
    """Noise of each kind."""
    stream = ScaleAndShift(
        stream_of(numpy.stack(images)), 1 / 255., 0)
    write('noise', images, first(GaussianNoise(stream, .15)),
          first(UniformNoise(stream, -.3, .3)),
          first(Dropout(stream, .4, rescale=False)),
          first(SaltAndPepper(stream, .2)))


def write_whitening(images):
    """Patches, and what whitening makes of them."""
    rng = numpy.random.RandomState(0)
    patches = []
    for _ in range(4000):
        image = images[rng.randint(2)]
        top, left = rng.randint(0, 120 - 16), rng.randint(0, 180 - 16)
        patches.append(image[:, top:top + 16, left:left + 16])
    stream = DataStream(
        IndexableDataset({'image': numpy.stack(patches) / 255.}),
        iteration_scheme=SequentialScheme(4000, 500))
    white = first(Whitening(stream, fit_whitening(stream, epsilon=.01)))

    def enlarge(batch):
        rows = [numpy.concatenate(list(batch[i:i + 5]), axis=2)
                for i in range(0, 20, 5)]
        return numpy.concatenate(rows, axis=1).repeat(2, 1).repeat(2, 2)

    write('whitening', [enlarge(first(stream))],
          [enlarge(white) / 6 + .5])


def write_sequences():
    """Draw the places of examples in a shuffle buffer, and padding."""
    moved = numpy.zeros((200, 200))
    order = [number for number, in ShuffleBuffer(DataStream(IterableDataset(
        range(400))), 80, seed=1).get_epoch_iterator()]
    for place, number in enumerate(order):
        moved[199 - number // 2, place // 2] = 1
    write('shuffle', [ink(moved)])
    lengths = numpy.random.RandomState(0).randint(1, 60, 240)
    sentences = DataStream(IterableDataset(
        {'words': [[1] * length for length in lengths]}))
    pictures = []
    for batches in (Batch(sentences, iteration_scheme=ConstantScheme(16)),
                    BucketBatch(sentences, 16 * 60)):
        masks = [mask for _, mask in
                 Padding(batches).get_epoch_iterator()]
        picture = numpy.full((3, sum(map(len, masks)) + 2 * len(masks), 60),
                             1.)
        top = 0
        for mask in masks:
            rows = slice(top, top + len(mask))
            picture[:, rows, :mask.shape[1]] = .8
            picture[0, rows, :mask.shape[1]] -= mask * .6
            top += len(mask) + 2
        pictures.append(cut_out(picture.repeat(2, 2)))
    write('buckets', *[[picture] for picture in pictures])


def write_blocks():
    """Draw the batches of a file's examples, for each window."""
    pictures = []
    for window in (1, 4, 16, 100):
        scheme = BlockShuffledScheme(10000, 50, block_size=100,
                                     window=window)
        counts = numpy.array([
            numpy.bincount(numpy.asarray(batch) // 50, minlength=200)
            for batch in scheme.get_request_iterator()])
        shares = (counts.T[::-1] / 6).clip(0, 1) ** .5
        pictures.append(ink(numpy.pad(shares, 1, constant_values=.5)))
    write('blocks', *[[picture] for picture in pictures])


# One for each rank.
COLORS = ((.12, .47, .71), (1., .5, .05), (.17, .63, .17), (.84, .15, .16))


def dealt(order, shares, steps=None):
    """Return for each example of an epoch the color of its rank.

    Parameters
    ----------
    order : list of list of int
        The batches of the epoch.
    shares : list of iterable of list of int
        The batches that each rank got.
    steps : int, optional
        How many batches of each rank count.  Defaults to all.

    Returns
    -------
    dict of int to tuple

    """
    return {example: COLORS[rank] for rank, share in enumerate(shares)
            for batch in list(share)[:steps] for example in batch}


def cells(order, colors):
    """Return a picture: a row for each batch, a cell for each example."""
    picture = numpy.ones((3, 16 * len(order), 16 * len(order[0])))
    for row, batch in enumerate(order):
        for column, example in enumerate(batch):
            picture[:, 16 * row + 2:16 * row + 15,
                    16 * column + 2:16 * column + 15] = numpy.reshape(
                        colors[example], (3, 1, 1))
    return cut_out(picture)


def write_ranks():
    """Draw the rank of each example: by batch, by example, resumed."""
    def build():
        return DataStream(IndexableDataset(list(range(96))), batch_size=8,
                          shuffle=True)

    def shares(count, by='batch', state=None):
        for rank in range(count):
            stream = build().shard(rank, count, by)
            if state is not None:
                stream.load_state_dict(state)
            yield [batch for batch, in stream]

    order = [batch for batch, in build()]
    stream = build().shard(0, 4)
    epoch = stream.get_epoch_iterator()
    next(epoch)
    state = stream.state_dict()
    before = dealt(order, shares(4), 1)
    resumed = cells(order, {
        **before, **dealt(order, shares(3, state=state))})
    # A line where the run was stopped.
    grey = numpy.reshape([127, 127, 127, 255], (4, 1, 1))
    resumed = numpy.insert(resumed, [16 * 4] * 4, grey, axis=1)
    write('ranks', [cells(order, dealt(order, shares(4)))],
          [cells(order, dealt(order, shares(4, 'example')))], [resumed])


# Of classes, streams and sequences: told apart also without colours.
PALETTE = numpy.array([
    (31, 78, 121), (242, 142, 43), (118, 183, 178), (225, 87, 89),
    (89, 161, 79), (237, 201, 72), (176, 122, 161), (255, 157, 167),
    (122, 92, 70), (186, 176, 172)], 'uint8')


def write_strips(name, strips, height=22):
    """Write sequences of numbers as strips of colours, one below another."""
    rows = []
    for strip in strips:
        row = PALETTE[numpy.asarray(strip) % len(PALETTE)].T[:, None]
        rows.append(row.repeat(height, 1))
    write(name, rows)


def write_windows():
    """Draw the classes of the examples of an epoch, by the window."""
    labels = numpy.repeat(numpy.arange(10), 1000)
    strips = []
    for window in (1, 4, 16, 100):
        order = numpy.concatenate(list(BlockShuffledScheme(
            10000, 50, block_size=100, window=window
            ).get_request_iterator()))
        strips.append(labels[order][:600])
    write_strips('windows', strips)


def write_mixtures():
    """Draw from which stream each item comes."""
    def stream(count):
        return DataStream(IterableDataset(range(count)))

    def origins(**kwargs):
        streams = [stream(count) for count in (80, 120, 60)]
        mixed = Mix(streams, origin_source='from', seed=1, **kwargs)
        found = [origin for _, origin in itertools.islice(
            mixed.get_epoch_iterator(), 300)]
        return [*numpy.array(found).repeat(2), *[-1] * (600 - 2 * len(found))]

    strips = [origins(weights=[4, 2, 1], stop=stop)
              for stop in ('first', 'last', 'forever')]
    pictures = []
    for strip in strips:
        row = numpy.vstack([PALETTE, [(255, 255, 255)]])[
            numpy.where(numpy.array(strip) < 0, 10, strip)]
        pictures.append(cut_out(
            row.astype('uint8').T[:, None].repeat(22, 1)))
    write('mix', pictures)


def write_packing():
    """Draw rows of 2,048 items, the sequences in them, and padding."""
    lengths = numpy.random.RandomState(0).randint(10, 501, 330)
    sentences = DataStream(IterableDataset(
        {'words': [[1] * length for length in lengths]}))
    pictures = []
    padded = [mask for _, mask in Padding(Batch(
        sentences, iteration_scheme=ConstantScheme(8))).get_epoch_iterator()]
    rows = numpy.vstack([numpy.pad(mask, ((0, 0), (
        0, 512 - mask.shape[1]))) for mask in padded])[:40]
    pictures.append(_segments(rows.astype(int)))
    for window in (1, 16):
        segments = numpy.stack([segments for _, segments, _ in Pack(
            sentences, 2048, window=window).get_epoch_iterator()])
        pictures.append(_segments(segments[:40, ::4]))
    write('packing', *[[picture[:, :, ::2]] for picture in pictures])


def _segments(segments):
    """Return rows of numbers of sequences as colours, padding in grey."""
    colours = PALETTE[(segments - 1) % 4 * 2]
    colours[segments == 0] = 225
    return colours.transpose(2, 0, 1).repeat(5, 1)


def write_descriptions():
    """Write what a data set and a pipeline show of themselves."""
    digits = load_digits()
    dataset = IndexableDataset({
        'image': (digits.images * (255 / 16)).astype('uint8')[:, None],
        'targets': digits.target.astype('uint8')}, axis_labels={
            **LABELS, 'targets': ('batch',)})
    dataset.preview().save(FOLDER / 'preview.png')
    stream = MultiProcessing(ScaleAndShift(
        DataStream(dataset, batch_size=32, shuffle=True), 1 / 255, 0,
        dtype='float32', which_sources='image'), num_workers=2)
    stream.describe().save(FOLDER / 'describe.svg')


def augment(batch):
    """Take a while."""
    time.sleep(.004)
    return batch


def write_watch():
    """Write a page of ``fuel-server --watch`` as a terminal shows it."""
    images = numpy.zeros((20000, 28, 28), 'uint8')
    stream = MultiProcessing(ScaleAndShift(Mapping(DataStream(
        IndexableDataset({'image': images, 'targets': numpy.arange(20000)}),
        batch_size=64, shuffle=True), augment), 1 / 255, 0,
        dtype='float32', which_sources='image'), num_workers=2)
    stop = threading.Event()

    def train(step):
        with ServerDataStream(('image', 'targets'),
                              port=server.port) as client:
            while not stop.is_set():
                for _ in client.get_epoch_iterator():
                    time.sleep(step)
                    if stop.is_set():
                        break

    with Server(stream, port=0) as server:
        threads = [threading.Thread(target=train, args=(step,))
                   for step in (.001, .02, .1)]
        for thread in threads:
            thread.start()
        shots = []
        for _ in range(3):
            time.sleep(1.5)
            shots.append(TimedStatus(
                take_status(ask_status(server.address)), time.time()))
        stop.set()
        for thread in threads:
            thread.join()
    stream.close()
    (FOLDER / 'watch.svg').write_text(terminal(page(*shots[:0:-1])))


def terminal(lines):
    """Return lines of a page as an SVG."""
    height = 20 * len(lines) + 24
    parts = [
        (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {height}" '
         f'width="700" height="{height}" font-family="monospace" '
         'font-size="14">'),
        ('<style>.line{fill:#dddddd} .head{fill:#ffffff;font-weight:bold} '
         '.slow{fill:#f2c14e} .pale{fill:#aaaaaa}</style>'),
        f'<rect width="700" height="{height}" rx="8" fill="#1c2128"/>']
    parts += [
        (f'<text class="{line.look or "line"}" x="14" y="{20 * number + 27}" '
         f'xml:space="preserve" textLength="{8.4 * len(line.text):.1f}">'
         f'{escape(line.text)}</text>')
        for number, line in enumerate(lines) if line.text]
    return '\n'.join([*parts, '</svg>', ''])


def train_on_a_broken_row(leave_out=()):
    """Return the losses of the training on the page about orders, and the
    examples of the step at which the loss jumps."""
    rng = numpy.random.default_rng(1)
    x = rng.normal(size=(500, 4))
    y = x @ [1., 2., 3., 4.]
    y[123] = 1e4
    stream = DataStream(IndexableDataset({'x': x, 'y': y}), batch_size=10,
                        shuffle=True, seed=5)
    stream = leave_out_steps(stream, steps=leave_out) if leave_out else stream
    steps = [step for step in range(150) if step not in leave_out]
    weights, losses = numpy.zeros(4), []
    for _ in range(3):
        for inputs, targets in stream:
            error = inputs @ weights - targets
            weights -= .05 * inputs.T @ error.clip(-5, 5) / len(inputs)
            losses.append((error ** 2).mean())
    return list(zip(steps, losses, strict=True)), stream.order


def write_loss():
    """Write the losses with and without the steps at which they jump, and the
    examples of one of these steps."""
    losses, order = train_on_a_broken_row()
    steps = [step for step, loss in losses if loss > 1e6]
    left_out, _ = train_on_a_broken_row(steps)

    def place(step, loss):
        return 40 + 310 * step / 149, 130 - 14 * numpy.log10(loss)

    def curve(losses, look):
        points = ' '.join([
            '{:.1f},{:.1f}'.format(*place(*one)) for one in losses])
        return f'<polyline class="{look}" points="{points}"/>'

    parts = [
        ('<svg xmlns="http://www.w3.org/2000/svg" width="360" height="290" '
         'viewBox="0 0 360 290" role="img" font-family="sans-serif" '
         'font-size="13">'),
        ('<title>The loss jumps at three steps; one of the ten examples of '
         'the second of them is broken</title>'),
        ('<style>text{fill:#555}.bad{fill:#c2571a}.wire{stroke:#999;fill:none}'
         '.with{stroke:#d9712b;stroke-width:1.5;fill:none}'
         '.without{stroke:#4263b5;stroke-width:2;fill:none}'
         '.cell{fill:none;stroke:#888}.broken{fill:#d9712b}'
         '.left-out{fill:#4263b5}.on{fill:#fff;font-weight:bold}'
         '.middle{text-anchor:middle}'
         '@media (prefers-color-scheme: dark){text{fill:#bbb}'
         '.bad{fill:#f0945a}.without{stroke:#7f9cf0}.left-out{fill:#9db4ff}'
         '.on{fill:#fff}}</style>'),
        '<text x="4" y="16">loss</text>',
        f'<text x="16" y="220">examples of step {steps[1]}</text>',
        '<text class="left-out" x="196" y="112">steps left out</text>',
        curve(losses, 'with'), curve(left_out, 'without')]
    for step, loss in losses:
        if step in steps:
            x, y = place(step, loss)
            parts.append(f'<circle class="broken" cx="{x:.1f}" cy="{y:.1f}" '
                         'r="4"/>')
            parts.append(f'<text class="bad middle" x="{max(x, 62):.1f}" '
                         f'y="{y - 8:.1f}">step {step}</text>')
    shown = steps[1]
    x, _ = place(shown, 1)
    for power in (-4, 0, 4):
        _, y = place(0, 10. ** power)
        parts.append(f'<text x="4" y="{y + 4:.1f}">{10. ** power:g}</text>')
    parts.append(
        f'<path class="wire" d="M{x:.1f} 152V202M10 230V202H350V230"/>')
    for number, row in enumerate(order.epoch(0).step(shown).row.tolist()):
        x, y = 10 + 68 * (number % 5), 230 + 28 * (number // 5)
        is_broken = row == 123
        parts.append(f'<rect class="cell{" broken" * is_broken}" x="{x}" '
                     f'y="{y}" width="68" height="28"/>')
        parts.append(f'<text class="middle{" on" * is_broken}" x="{x + 34}" '
                     f'y="{y + 19}">{row}</text>')
    (FOLDER / 'loss.svg').write_text('\n'.join([*parts, '</svg>', '']))


def main():
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    images = photographs()
    write_old(images)
    write_new(images)
    write_by_example(images)
    write_pairs(images)
    write_mixed(images)
    write_noise(images[:1])
    write_whitening(images)
    write_sequences()
    write_blocks()
    write_ranks()
    write_windows()
    write_mixtures()
    write_packing()
    write_descriptions()
    write_loss()
    write_watch()


if __name__ == '__main__':
    main()
