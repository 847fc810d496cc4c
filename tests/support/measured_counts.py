"""Random pipelines, and how many examples their stages must have counted.

The oracle is arithmetic on how the data set was divided, and NumPy's `nbytes`
of the arrays that came out.
"""
import random
from contextlib import ExitStack

import numpy
from prometheus_client.parser import text_string_to_metric_families

from fuel import profile
from fuel.datasets import IndexableDataset
from fuel.export import as_flat
from fuel.export.prometheus import samples_of, text_of
from fuel.schemes import ConstantScheme, SequentialExampleScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch, Cast, Mapping, MultiThreading, Rename, Unpack)


def as_it_is(data):
    """Return the data."""
    return data


def in_another_tuple(data):
    """Return the data as a list, which some functions return."""
    return list(data)


class CountedPipeline:
    """A pipeline drawn at random.

    `bridges`: functions of a generator of numbers and a stream; one of them
        is above the stages that need arrays of NumPy.
    `expected`: for each stage, from the outermost, its items and examples in
        an epoch.
    """

    def __init__(self, rng, stack, bridges=()):
        self.count = rng.randint(1, 40)
        self.size = rng.randint(1, 12)
        dtype = rng.choice(['float64', 'float32', 'uint8', 'int32'])
        width = rng.randint(0, 4)
        dataset = IndexableDataset({
            'x': numpy.zeros((self.count, width), dtype),
            'y': numpy.arange(self.count, dtype='int32')})
        self.expected = []
        if rng.random() < .25:
            self.size = None
            self._put(DataStream(dataset, iteration_scheme=(
                SequentialExampleScheme(self.count))))
        else:
            self._put(DataStream(dataset, batch_size=self.size))
        for _ in range(rng.randint(0, 3)):
            self._add_plain(rng)
        if bridges:
            self._put(rng.choice(bridges)(rng, self.stream))
        if rng.random() < .4:
            self._put(Mapping(self.stream, rng.choice(
                [as_it_is, in_another_tuple])))
        if rng.random() < .2:
            self._put(stack.enter_context(MultiThreading(
                self.stream, max_store=2)))

    def _put(self, stream):
        items = self.count if self.size is None else -(
            -self.count // self.size)
        self.stream = stream
        self.expected.insert(0, (items, self.count))

    def _add_plain(self, rng):
        kind = rng.choice(['cast', 'rename', 'mapping', 'batches'])
        if kind == 'cast':
            self._put(Cast(self.stream, 'float32', which_sources=('x',)))
        elif kind == 'rename':
            self._put(Rename(self.stream, {}))
        elif kind == 'mapping':
            self._put(Mapping(self.stream, as_it_is))
        elif self.size is None:
            self.size = rng.randint(1, 12)
            self._put(Batch(self.stream, ConstantScheme(self.size)))
        else:
            self.size = None
            self._put(Unpack(self.stream))


def check_counts(seed, bridges=()):
    """Read a random pipeline, and compare what was counted."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        drawn = CountedPipeline(rng, stack, bridges)
        epochs = rng.randint(1, 2)
        num_bytes = 0
        for _ in range(epochs):
            for item in drawn.stream.get_epoch_iterator(
                    as_dict=rng.random() < .3):
                parts = item.values() if isinstance(item, dict) else item
                num_bytes += sum(
                    numpy.asarray(part).nbytes for part in parts
                    if not isinstance(part, (numpy.generic, int)))
        found = drawn.stream.measurements()
        assert [(epochs * items, epochs * examples)
                for items, examples in drawn.expected] == [
            (stage.items, stage.examples) for stage in found.stages], (
                f'{seed}: {found}')
        assert epochs * drawn.count == found.examples
        assert num_bytes == found.stages[0].bytes, f'{seed}: {found}'
        assert found.stages[0].written <= num_bytes
        if rng.random() < .1:
            _check_exported(drawn, epochs)


def _check_exported(drawn, epochs):
    flat = as_flat(drawn.stream.measurements())
    assert epochs * drawn.count == flat['fuel.pipeline.examples']
    for (_, examples), (name, value) in zip(drawn.expected, [
            one for one in flat.items()
            if one[0].startswith('fuel.stage.examples/')], strict=True):
        assert epochs * examples == value, name
    page = text_of(samples_of(drawn.stream, {})).decode()
    value, = [sample.value
              for family in text_string_to_metric_families(page)
              for sample in family.samples
              if sample.name == 'fuel_pipeline_examples_total']
    assert epochs * drawn.count == value
    items, _ = drawn.expected[0]
    measured = profile(drawn.stream, batches=items, warm_up=0)
    assert drawn.count == measured.examples
    assert drawn.count == measured.stages[0].examples
