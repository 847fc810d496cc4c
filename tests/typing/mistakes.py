"""Mistakes that users make: each is reported, with the text that follows."""
from __future__ import annotations

from fuel.datasets import MNIST, H5PYDataset, IndexableDataset, TextFile
from fuel.schemes import SequentialScheme, ShuffledScheme
from fuel.streams import DataStream, ServerDataStream
from fuel.testing import check_stage, check_stream
from fuel.transformers import Batch, Cast, Flatten, Mapping, MultiProcessing
from fuel.transformers.image import RandomFixedSizeCrop, RandomHorizontalFlip

dataset = IndexableDataset([1, 2, 3])
scheme = SequentialScheme(3, 2)
stream = DataStream(dataset, iteration_scheme=scheme)

# A data set where a stream is expected.
Flatten(dataset)  # E: expected "StreamLike"
Cast(dataset, 'float32')  # E: expected "StreamLike"
Mapping(dataset, tuple)  # E: expected "StreamLike"
MultiProcessing(dataset)  # E: expected "StreamLike"
RandomFixedSizeCrop(dataset, (2, 2))  # E: expected "StreamLike"

# Data sets that are imported when they are asked for.
MNIST()  # E: Missing positional argument "which_sets"
TextFile()  # E: Missing positional argument "files"

# Something else where a data set is expected.
DataStream(scheme, iteration_scheme=scheme)  # E: expected "DatasetLike"
DataStream([1, 2, 3])  # E: expected "DatasetLike"
DataStream(stream)  # E: expected "DatasetLike"

# A scheme passed by position, or swapped with a stream.
DataStream(dataset, scheme)  # E: expected "Never"
Batch(scheme, stream)  # E: expected "StreamLike"
Batch(stream, 20)  # E: expected "SchemeLike | None"

# A batch used as an array, a batch of names as a tuple, and the reverse.
for batch in stream.get_epoch_iterator():
    batch.mean()  # E: "tuple[Any, ...]" has no attribute "mean"
    batch['data']  # E: No overload variant of "__getitem__"
for named in stream.get_epoch_iterator(as_dict=True):
    named[0]  # E: Invalid index type "int"
stream.get_epoch_iterator(as_dict='yes')  # E: No overload variant
next(Flatten(stream).get_epoch_iterator()).shape  # E: has no attribute "shape"

# An epoch iterator taken for a stream, a stream for an iterator.
Flatten(stream.get_epoch_iterator())  # E: expected "StreamLike"
next(stream)  # E: No overload variant of "next"

# An object is passed where a function that builds one is expected.
check_stream(stream)  # E: expected "Callable[[], StreamLike]"
check_stage(Flatten(stream))  # E: expected "Callable[[Any], StreamLike]"

# Arguments of the wrong type.
ShuffledScheme(10, '2')  # E: expected "int"
ShuffledScheme(10, 2, rng=3)  # E: expected "RandomGenerator
ServerDataStream(('x',), port='5557')  # E: expected "int"
H5PYDataset('data.hdf5', 'train', load_in_memory='yes')  # E: expected "bool"
Cast(stream, 'float32', which_sources=3)  # E: expected "Sequence[str] | str
RandomHorizontalFlip(stream, seed='3')  # E: expected "int | None"
MultiProcessing(stream, iteration_scheme=3)  # E: expected "SchemeLike | None"
IndexableDataset([1, 2], sources=3)  # E: expected "Sequence[str] | None"
MNIST(('train',), cache_bytes='1')  # E: expected "int | None"

# A keyword misspelt, or one that the stage does not take.
Cast(stream, 'float32', which_source='x')  # E: Unexpected keyword argument
Flatten(stream, seed=3)  # E: Unexpected keyword argument "seed"
DataStream(dataset, batchsize=2)  # E: Unexpected keyword argument "batchsize"
H5PYDataset('data.hdf5', source='x')  # E: Unexpected keyword argument "source"
stream.load_state_dict('saved.json')  # E: expected "dict[str, Any]"
