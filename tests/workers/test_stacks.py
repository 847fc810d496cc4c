"""Stacks of what hangs begin with the lines of the user."""
import ctypes
import re
import time

import numpy
import pytest

from fuel.datasets import IndexableDataset
from fuel.exceptions import WorkerError
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing


def deeper():
    """Hang."""
    time.sleep(60)


def hanging(data):
    """Hang in another function."""
    deeper()


def holding(data):
    """Hang with the interpreter, so that no other thread answers."""
    ctypes.PyDLL(None).sleep(60)


def stack_of_hung(kind, function, **options):
    """Return the text behind the error of a worker that hangs."""
    stream = Mapping(DataStream(
        IndexableDataset(numpy.arange(8)), batch_size=4), function)
    with kind(stream, timeout=.5, **options) as workers:
        with pytest.raises(WorkerError) as caught:
            next(iter(workers))
    return str(caught.value)


def first_functions(text):
    """Return the functions of the lines behind the first heading."""
    behind = text.partition('Your code, the last call first:\n')[2]
    own, heading, everything = behind.partition('All of it:\n')
    assert heading
    assert 'run_worker' in everything or '_make' in everything
    return re.findall(r', line \d+,? in (\w+)', own)


def test_stack_of_a_hung_worker_begins_with_the_users_lines():
    """The innermost line is first; lines of the parent are left out."""
    text = stack_of_hung(MultiProcessing, hanging, start_method='fork')
    assert ['deeper', 'hanging'] == first_functions(text)


def test_stack_of_a_worker_that_does_not_answer_begins_with_users_lines():
    """The system writes such a stack."""
    text = stack_of_hung(MultiProcessing, holding, start_method='fork')
    assert ['holding'] == first_functions(text)
