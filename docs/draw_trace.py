"""Draw ``pictures/trace.svg``: a part of a trace as Perfetto shows it.

``python docs/draw_trace.py`` profiles a pipeline and draws its trace;
``python docs/draw_trace.py run.json picture.svg`` draws another.
"""
import json
import sys
import tempfile
import time
from collections import defaultdict
from html import escape
from pathlib import Path

import numpy

import fuel
from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping, MultiProcessing

PICTURE = Path(__file__).parent / 'pictures' / 'trace.svg'
WIDTH, MARGIN, LANE, LETTER = 860, 10, 20, 6.1
# Milliseconds that are shown, from the middle of the run on.
SHOWN = 32.
COLOURS = {'wait': '#f3d9a4', 'step': '#bfe3c0'}
STAGES = '#bcd3ea', '#dccdee', '#f4cccc', '#cfe8e6'


def augment(batch):
    """Take some time, and a different one for each batch."""
    time.sleep(.014 + .004 * (batch[1][0] // 32 % 3))
    return batch


def run(path):
    """Write the trace of a training that waits for two workers."""
    dataset = IndexableDataset({'image': numpy.zeros((1600, 64, 64), 'u1'),
                                'label': numpy.arange(1600)})
    stream = DataStream(dataset, batch_size=32)
    with MultiProcessing(Mapping(stream, augment), num_workers=2) as workers:
        stream = Cast(workers, 'float32', which_sources='image')
        fuel.profile(stream, batches=20, step=lambda batch: time.sleep(.004)
                     ).trace(path)


def drawn(trace):
    """Return the picture of a trace, in SVG."""
    names, spans = {}, defaultdict(list)
    for event in trace['traceEvents']:
        row = event['pid'], event['tid']
        if event['ph'] == 'X':
            spans[row].append(event)
        elif 'name' in event['args']:
            names[event['name'], row] = event['args']['name']
    begin = max(event['ts'] for row in spans.values() for event in row
                ) / 2e3
    parts, top, shades = [], MARGIN, {}
    for row, events in spans.items():
        title = (f'{names["process_name", (row[0], 0)]}, '
                 f'{names["thread_name", row]}')
        parts.append(f'<text x="{MARGIN}" y="{top + 13}" '
                     f'font-weight="bold">{escape(title)}</text>')
        boxes, lanes = boxes_of(events, begin, shades)
        for lane, box in boxes:
            parts += box_drawn(top + LANE * (lane + 1), *box)
        top += LANE * (lanes + 1) + MARGIN
    for number in range(0, int(SHOWN), 10):
        x = MARGIN + number / SHOWN * (WIDTH - 2 * MARGIN)
        parts.append(f'<rect x="{x:.1f}" y="{top - 4}" width="1" height="6" '
                     'fill="#888"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + 16}">{number} ms</text>')
    height = top + 24
    return '\n'.join([
        (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
         f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
         'font-family="sans-serif" font-size="12" fill="currentColor">'),
        '<title>Spans of the training and of two workers</title>',
        ('<style>svg:root{color-scheme:light dark;color:CanvasText}\n'
         '.span{fill:#000}</style>'),
        *parts, '</svg>\n'])


def boxes_of(events, begin, shades):
    """Return the spans of a row that are shown, and how many lanes.

    Returns: Pairs of the lane and of (text, colour, left and right in ms).
    """
    boxes, ends = [], []
    deepest = 0
    for event in events:
        # Whole nanoseconds, which have no errors of rounding.
        start = round(event['ts'] * 1e3)
        end = start + round(event['dur'] * 1e3)
        while ends and ends[-1] <= start:
            ends.pop()
        lane = len(ends)
        ends.append(end)
        start, end = start / 1e6 - begin, end / 1e6 - begin
        if end <= 0 or start >= SHOWN:
            continue
        deepest = max(deepest, lane + 1)
        kind = event['cat']
        if kind == 'stage':
            colour = shades.setdefault(
                event['name'], STAGES[len(shades) % len(STAGES)])
        else:
            colour = COLOURS[kind]
        text = f'{event["name"]} {event["args"].get("item", "")}'.strip()
        boxes.append((lane, (text, colour, max(0., start), min(SHOWN, end))))
    return boxes, deepest


def box_drawn(top, text, colour, left, right):
    """Return the elements of a span, with its text if there is room."""
    scale = (WIDTH - 2 * MARGIN) / SHOWN
    x, width = MARGIN + left * scale, max(1., (right - left) * scale - 1)
    parts = [(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" '
              f'height="{LANE - 3}" fill="{colour}"><title>{escape(text)}'
              '</title></rect>')]
    if LETTER * len(text) + 6 < width:
        parts.append(f'<text class="span" x="{x + 4:.1f}" y="{top + 13}">'
                     f'{escape(text)}</text>')
    return parts


def main():
    """Profile and draw, or draw what is given."""
    if len(sys.argv) == 3:
        path, picture = map(Path, sys.argv[1:])
        picture.write_text(drawn(json.loads(path.read_text())))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'run.json'
        run(path)
        PICTURE.write_text(drawn(json.loads(path.read_text())))


if __name__ == '__main__':
    main()
