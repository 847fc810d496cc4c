"""Hugging Face's package has the name of a folder of these tests."""
import importlib
import io
import sys
from pathlib import Path

import numpy
import pyarrow
import pytest
from PIL import Image


def import_hugging_face():
    """Import the package `datasets` that is installed, for examples too."""
    tests = Path(__file__).parents[2]
    path = list(sys.path)
    sys.path[:] = [each for each in path if Path(each) != tests]
    try:
        importlib.import_module('datasets.distributed')
        return sys.modules['datasets']
    finally:
        sys.path[:] = path


HUGGING_FACE = import_hugging_face()


@pytest.fixture
def hugging_face():
    """Return Hugging Face's package."""
    return HUGGING_FACE


def png(value):
    """Return a small picture of one grey, as a file."""
    file = io.BytesIO()
    Image.fromarray(numpy.full((4, 5, 3), value, 'uint8')).save(file, 'PNG')
    return file.getvalue()


@pytest.fixture
def pictures(hugging_face, tmp_path):
    """Return pictures and classes; one picture is in a file."""
    (tmp_path / 'three.png').write_bytes(png(3))
    features = hugging_face.Features({
        'image': hugging_face.Image(),
        'label': hugging_face.ClassLabel(names=['cat', 'dog'])})
    table = pyarrow.table({
        'image': pyarrow.array(
            [*({'bytes': png(number), 'path': None} for number in range(3)),
             {'bytes': None, 'path': str(tmp_path / 'three.png')}],
            features.arrow_schema.field('image').type),
        'label': [0, 1, 1, 0]}).replace_schema_metadata(
            features.arrow_schema.metadata)
    return hugging_face.Dataset(hugging_face.table.InMemoryTable(table),
                                fingerprint='a')
