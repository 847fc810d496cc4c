"""What is handed out is the user's own."""
import numpy
import pytest
from support import pipelines


def overwrite(data):
    """Write into everything that can be written to."""
    if isinstance(data, numpy.ndarray):
        if data.dtype.hasobject:
            for part in data.flat:
                overwrite(part)
            data[...] = None
        else:
            data.view('u1' if data.flags.c_contiguous and data.ndim
                      and data.shape[-1] else data.dtype)[...] = 99
    elif isinstance(data, numpy.void):
        data['a'] = 99
    elif isinstance(data, list):
        for part in data:
            overwrite(part)
        data[:] = [None] * len(data)
    elif isinstance(data, tuple):
        for part in data:
            overwrite(part)


def arrays_in(data):
    """Yield all arrays that data are made of."""
    if isinstance(data, numpy.ndarray):
        yield data
        if data.dtype.hasobject:
            for part in data.flat:
                yield from arrays_in(part)
    elif isinstance(data, (list, tuple)):
        for part in data:
            yield from arrays_in(part)


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_data_handed_out_can_be_overwritten(name, files):
    """Writing into a batch changes no other batch and no later epoch.
    """
    with pipelines.build(name, files) as stream:
        expected = [[pipelines.digest(data)
                     for data in stream.get_epoch_iterator()]
                    for _ in range(2)]
    with pipelines.build(name, files) as stream:
        for epoch in expected:
            seen = []
            for data in stream.get_epoch_iterator():
                seen.append(pipelines.digest(data))
                overwrite(data)
            assert epoch == seen


@pytest.mark.parametrize('name', pipelines.PIPELINES)
def test_arrays_handed_out_are_writable_aligned_and_native(name, files):
    """Each array can be worked on as it is, and shares no memory."""
    with pipelines.build(name, files) as stream:
        kept = []
        for data in stream.get_epoch_iterator():
            for array in arrays_in(data):
                assert array.flags.writeable
                assert array.flags.aligned
                assert array.dtype.isnative
                assert not any(numpy.shares_memory(array, other)
                               for other in kept
                               if not array.dtype.hasobject)
                kept.append(array)
