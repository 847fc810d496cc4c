"""PyTorch computes in workers that are forked after it has computed here."""
import sys
import types

import numpy
import pytest
import torch

from fuel.datasets import IndexableDataset
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Mapping, MultiProcessing
from fuel.utils.parallel import producer_consumer
from fuel.utils.forks import use_no_threads_of_torch

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _threads():
    """Use threads of PyTorch's here, which a forked worker does not have."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    compute()
    yield
    torch.set_num_threads(before)


def compute(batch=(0,)):
    """Add what takes several threads, where PyTorch may use them."""
    ones = torch.ones(2000, 2000)
    return (batch[0] + float((ones + ones).sum()),)


def test_stage_of_a_forked_worker_may_use_pytorch():
    """Such a stage once waited without end for threads of the parent."""
    stream = DataStream(
        IndexableDataset(numpy.arange(4.)),
        iteration_scheme=SequentialScheme(4, 2)).apply(Mapping, compute)
    with MultiProcessing(stream, num_workers=2, start_method='fork',
                         timeout=20) as ahead:
        batches = [batch.tolist() for batch, in ahead.get_epoch_iterator()]
    assert batches == [[8e6, 8e6 + 1], [8e6 + 2, 8e6 + 3]]
    assert torch.get_num_threads() == 2


def test_forked_producer_may_use_pytorch():
    """A stage in a worker may use it."""
    def produce(socket):
        socket.send_pyobj((*compute(), torch.get_num_threads()))

    found = producer_consumer(produce, lambda socket: (
        socket.recv_pyobj() if socket.poll(20000) else None))
    assert found == (8e6, 1)


def test_worker_may_be_forked_while_pytorch_is_imported(monkeypatch):
    """Another thread's import does not go on in the worker."""
    monkeypatch.setitem(sys.modules, 'torch', types.ModuleType('torch'))
    use_no_threads_of_torch()
