"""A user's function is named, and hides no names of classes."""
import functools

import numpy

from fuel.datasets import IndexableDataset
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping, MultiThreading, Rename
from fuel.transformers.label_encoding import (
    LabelEncoding, fit_label_encoding)


class Pets(IndexableDataset):
    """Numbers of classes that have names."""

    class_names = ('cat', 'dog', 'owl')


def pets(sources=('x', 'targets')):
    """Return batches of examples with classes."""
    x, targets = sources
    return DataStream(Pets({
        x: numpy.zeros((12, 2)), targets: numpy.arange(12) % 3}),
        batch_size=6)


def augment(data, strength=1):
    """Return the data."""
    return data


def test_print_and_drawing_name_the_function_of_a_mapping():
    """As the profile does, also where some of its arguments are given."""
    for function in augment, functools.partial(augment, strength=2):
        stream = Cast(Mapping(pets(), function), 'float32',
                      which_sources=('x',))
        assert 'Mapping(augment): x, targets' in str(stream).splitlines()[1]
        assert 'Mapping(augment)' in str(stream.describe())
        assert 'Mapping(augment)' in stream._repr_html_()
        assert 'Mapping(augment)' == stream.measurements().stages[1].name


def test_preview_behind_a_function_names_the_classes():
    """The names are those of the data set's own preview."""
    assert 'cat (4), dog (4), owl (4)' in str(pets().dataset.preview(12))
    for stream in (pets(), Mapping(pets(), augment),
                   Cast(Mapping(pets(), augment), 'float32',
                        which_sources=('x',)),
                   MultiThreading(Mapping(pets(), augment))):
        assert 'targets: cat (2), dog (2), owl (2)' in str(stream.preview())


def test_preview_of_another_source_names_no_classes():
    """The names are of the numbers in one source alone."""
    renamed = Rename(pets(('x', 'y')), {'y': 'targets'})
    assert 'cat' not in str(renamed.preview())


def test_preview_of_encoded_labels_has_the_names_of_their_codes():
    """Not those that the numbers had in the data set."""
    stream = DataStream(Pets({'targets': ['b', 'a', 'a', 'b']}), batch_size=4)
    encoded = LabelEncoding(stream, fit_label_encoding(stream))
    for one in encoded, Mapping(encoded, augment):
        assert 'a (2), b (2)' in str(one.preview())
        assert 'cat' not in str(one.preview())
