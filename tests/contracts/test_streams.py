"""Every data set, scheme and stage keeps the promises of every stream."""
import importlib
import re
from functools import partial
from pathlib import Path

import pytest
from support import pipelines

from fuel.datasets import Dataset, OneBillionWord
from fuel.datasets.built_in import BuiltInDataset
from fuel.schemes import IterationScheme
from fuel.streams import AbstractDataStream
from fuel.testing import check_stream
from fuel.transformers import Chain, Merge, Mix

API = Path(__file__).parents[2] / 'docs' / 'api'
# Built-in data sets are not in pipelines either: they are H5PYDatasets whose
# file is found in the data path, and tests/converters/test_builtin.py reads
# each of them.
WITHOUT_PIPELINE = {
    Dataset,  # is abstract
    OneBillionWord,  # is a TextFile whose files are found in the data path
}
# They read several streams.
OF_STREAMS = {Chain, Merge, Mix}


@pytest.mark.pipelines
def test_pipeline_keeps_promises(pipeline, files, another_process):
    """Fuel's own pipelines keep the promises of users' objects.

    All promises in one test: they compare with the same two epochs, and an
    error names the broken one.
    """
    check_stream(partial(pipelines.build, pipeline, files),
                 draws=pipeline in pipelines.DRAWING,
                 another_process=another_process)


def test_each_public_stage_can_be_applied(files):
    """To the stream that it was built with, with its other arguments."""
    applied = set()
    for name in pipelines.PIPELINES:
        _, calls = pipelines.built_with(name, files)
        for stage, args, kwargs in calls:
            streams = [argument for argument in args
                       if isinstance(argument, AbstractDataStream)]
            if streams and issubclass(stage, AbstractDataStream):
                stream, = streams
                built = stream.apply(stage, *(
                    argument for argument in args if argument is not stream),
                    **kwargs)
                assert type(built) is stage
                assert built.data_stream is stream
                assert repr(stage(*args, **kwargs)) == repr(built)
                applied.add(stage)
    assert public_stages() - OF_STREAMS == applied & public_stages()


def test_each_public_scheme_and_data_set_is_in_a_pipeline(files):
    """The only public classes without a pipeline are the known exceptions."""
    made = {cls for name in pipelines.PIPELINES
            for cls, *_ in pipelines.built_with(name, files)[1]}
    public = public_classes('schemes', IterationScheme) | public_classes(
        'datasets', Dataset)
    assert public - made == {cls for cls in public
                             if issubclass(cls, BuiltInDataset)
                             or cls in WITHOUT_PIPELINE}


def public_stages():
    """Return the stages of the API reference, without base classes."""
    return public_classes('transformers', AbstractDataStream)


def public_classes(page, base):
    """Return the classes of a page of the API reference that derive from
    one, without those for classes of one's own."""
    text = (API / f'{page}.rst').read_text('utf-8')
    found = set()
    for module, name in re.findall(
            rf'^   ({page}(?:\.\w+)*)\.(\w+)$',
            text.partition('Base classes')[0], re.MULTILINE):
        thing = getattr(importlib.import_module(f'fuel.{module}'), name)
        if isinstance(thing, type) and issubclass(thing, base):
            found.add(thing)
    return found
