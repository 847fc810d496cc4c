"""Serializers that behave as Chainer's do, for tests without Chainer."""
import numpy


class Writing:
    """Writes values into a dict of arrays."""

    def __init__(self, target=None):
        self.target = {} if target is None else target

    def __call__(self, key, value):
        self.target[key] = numpy.array(value)
        return value


class Reading:
    """Reads values: arrays in place, others as the type of what is passed."""

    def __init__(self, source):
        self.source = source

    def __call__(self, key, value):
        saved = self.source[key]
        if isinstance(value, numpy.ndarray):
            numpy.copyto(value, saved)
            return value
        return saved if value is None else type(value)(saved)


def snapshot(iterator):
    """Return what an iterator writes into a snapshot."""
    writing = Writing()
    iterator.serialize(writing)
    return writing.target


def restore(iterator, saved):
    """Let an iterator take up a snapshot, and return it."""
    iterator.serialize(Reading(saved))
    return iterator
