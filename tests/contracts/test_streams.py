"""Every data set, scheme and stage keeps the promises of every stream."""
import importlib
import re
from functools import partial
from pathlib import Path

import pytest
from support import pipelines

from fuel.streams import AbstractDataStream
from fuel.testing import check_stream
from fuel.transformers import Chain, Merge, Mix
from fuel.utils.arguments import NamedArguments

STAGES = Path(__file__).parents[2] / 'docs' / 'api' / 'transformers.rst'
# They read several streams.
OF_STREAMS = {Chain, Merge, Mix}


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_pipeline_keeps_promises(name, files, another_process):
    """What is promised to users' objects holds for Fuel's own.

    All promises in one test: they compare with the same two epochs, and an
    error names the broken one.
    """
    check_stream(partial(pipelines.build, name, files),
                 draws=name in pipelines.DRAWING,
                 another_process=another_process)


def built_with(build, monkeypatch):
    """Return what `build` returns, and how each stream was constructed."""
    original, calls = NamedArguments.__new__, []

    def record(cls, *args, **kwargs):
        calls.append((cls, args, kwargs))
        return original(cls, *args, **kwargs)
    with monkeypatch.context() as patch:
        patch.setattr(NamedArguments, '__new__', staticmethod(record))
        return build(), calls


def test_each_public_stage_can_be_applied(files, monkeypatch):
    """To the stream that it was built with, with its other arguments."""
    applied = set()
    for name in pipelines.PIPELINES:
        _, calls = built_with(partial(pipelines.build, name, files),
                              monkeypatch)
        for stage, args, kwargs in calls:
            streams = [argument for argument in args
                       if isinstance(argument, AbstractDataStream)]
            if streams:
                stream, = streams
                built = stream.apply(stage, *(
                    argument for argument in args if argument is not stream),
                    **kwargs)
                assert type(built) is stage
                assert built.data_stream is stream
                assert repr(stage(*args, **kwargs)) == repr(built)
                applied.add(stage)
    assert public_stages() - OF_STREAMS == applied & public_stages()


def public_stages():
    """Return the stages of the API reference, without base classes."""
    pages = STAGES.read_text('utf-8').partition('Base classes')[0]
    found = set()
    for module, name in re.findall(
            r'^   (transformers(?:\.\w+)*)\.(\w+)$', pages, re.MULTILINE):
        thing = getattr(importlib.import_module(f'fuel.{module}'), name)
        if isinstance(thing, type) and issubclass(thing, AbstractDataStream):
            found.add(thing)
    return found
