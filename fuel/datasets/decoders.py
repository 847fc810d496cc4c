"""The stages that decode pictures and sounds, and the calls of the stages."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fuel.storage import Reader

IMAGES, AUDIO = 'ImagesFromBytes', 'AudioFromBytes'
# The module of each stage.
MODULES = {IMAGES: 'fuel.transformers.image', AUDIO: 'fuel.interop.audio'}
# First bytes of the files that each stage decodes.
BEGINNINGS = {
    IMAGES: re.compile(
        rb'\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF....WEBP|II\*\0|'
        rb'MM\0\*|BM....\0\0\0\0', re.DOTALL),
    AUDIO: re.compile(
        rb'RIFF....WAVE|fLaC|OggS|ID3[\2-\4]|FORM....AIF[FC]', re.DOTALL)}


def stage_for(content: bytes) -> str:
    """Return the name of the stage that decodes a file, by its first bytes; ''
    if it is not a picture or a sound of a known format."""
    return next((stage for stage, beginning in BEGINNINGS.items()
                 if beginning.match(content)), '')


def decoding_texts(readers: Mapping[str, Reader],
                   sources: Iterable[str]) -> list[str]:
    """Return texts with the call, and the import, of each stage that decodes
    one of the sources in use.

    `readers`: the reader of each source.
    """
    stages: dict[str, list[str]] = {}
    for source in sources:
        if source in readers and readers[source].stage:
            stages.setdefault(readers[source].stage, []).append(source)
    return [text for stage, names in stages.items() for text in (
        f'decode with {stage}(stream, which_sources={(*names,)})',
        f'from {MODULES[stage]} import {stage}')]
