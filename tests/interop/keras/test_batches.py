"""Keras reads each batch of a stream once an epoch, whatever is asked."""
import itertools
import json
import multiprocessing
import signal
import warnings

import keras
import numpy
import pytest
from support import keras_training, processes
from support.keras_training import (
    COUNT,
    build,
    numbers_of,
    open_stream,
    train,
    weights_of,
)
from support.sparse_rows import SparseDataset, random_csr

from fuel.datasets import IndexableDataset
from fuel.exceptions import StateMismatchError
from fuel.interop.keras import Backup, BatchesDataset
from fuel.orders import leave_out
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.transformers import Filter, Merge, ToDense, Unpack

pytestmark = pytest.mark.timeout(300)

PER_EPOCH = 9


@pytest.mark.parametrize('workers, use_multiprocessing, max_queue_size', [
    (0, False, 10), (1, False, 1), (2, False, 10), (5, False, 3),
    (1, True, 10), (2, True, 1), (2, True, 10), (3, True, 4)])
@pytest.mark.parametrize('is_built', [True, False])
def test_every_epoch_is_that_of_the_stream(
        workers, use_multiprocessing, max_queue_size, is_built):
    """Epochs are equal although Keras shuffles, and may read a batch to build
    a model."""
    batches = BatchesDataset(
        open_stream(), workers, use_multiprocessing, max_queue_size)
    model = build(is_built)
    model.fit(batches, epochs=3, verbose=0)
    assert model.seen == numbers_of(open_stream(), 3)


@pytest.mark.parametrize('steps', [1, 4, 5, 8, 9])
@pytest.mark.parametrize('is_built', [True, False])
def test_steps_per_epoch_go_on_with_the_next_batch(steps, is_built):
    """Keras's epochs are shorter, then; those of the stream are whole."""
    model = build(is_built)
    with warnings.catch_warnings():
        # Of the epoch of Keras in which an epoch of the stream ends.
        warnings.filterwarnings('ignore', 'Your input ran out')
        model.fit(BatchesDataset(open_stream()), steps_per_epoch=steps,
                  epochs=12, verbose=0)
    assert len(model.seen) > 10 or steps == 1
    assert model.seen == numbers_of(open_stream(), 12)[:len(model.seen)]


def test_validation_and_prediction_read_whole_epochs():
    """They are read between and after epochs of training."""
    model, valid = build(), BatchesDataset(open_stream(20))
    batches = BatchesDataset(open_stream())
    model.fit(batches, validation_data=valid, epochs=2, verbose=0)
    training, validation = numbers_of(open_stream(), 2), numbers_of(
        open_stream(20), 4)
    assert model.seen == (training[:9] + validation[:3] + training[9:]
                          + validation[3:6])
    model.seen.clear()
    model.evaluate(valid, verbose=0)
    assert model.seen == validation[6:9]
    found = model.predict(valid, verbose=0).ravel()
    assert len(found) == 20
    assert found[:8] == pytest.approx(
        model(next(itertools.islice(open_stream(20).iterate_epochs(), 3, None))
              .__next__()[0]).detach().numpy().ravel())


def test_run_that_is_left_begins_its_epoch_again():
    """A second call of fit has whole epochs, with none left out."""
    batches, model = BatchesDataset(open_stream()), build()

    def end():
        model.stop_training = True
    model.fit(batches, epochs=5, verbose=0,
              callbacks=[keras_training.Stop(PER_EPOCH + 3, end)])
    expected = numbers_of(open_stream(), 3)
    assert model.seen == expected[:PER_EPOCH + 3]
    model.seen.clear()
    model.fit(batches, epochs=2, verbose=0)
    assert model.seen == expected[PER_EPOCH:]


def test_epochs_can_be_read_without_a_model():
    """Each iteration is an epoch; one that is left begins again."""
    batches, expected = BatchesDataset(open_stream()), numbers_of(
        open_stream(), 2)
    for place in range(2):
        for _ in zip(batches, range(4), strict=False):
            pass
        assert [targets.tolist() for _, targets in batches] == expected[
            place * PER_EPOCH:(place + 1) * PER_EPOCH]


@pytest.mark.parametrize('stop_after, save_freq, seen_twice', [
    (4, 1, 0), (4, 3, 1), (9, 2, 1), (13, 1, 0), (14, 3, 2), (18, 1, 1),
    (12, 'epoch', 3)])
def test_resumed_run_ends_with_the_same_weights(
        tmp_path, stop_after, save_freq, seen_twice):
    """The resumed run goes on with the batch after the last one saved."""
    whole = train(tmp_path / 'whole', 3, 'epoch')
    assert whole.seen == numbers_of(open_stream(), 3)
    first = train(tmp_path / 'parts', 3, save_freq, stop_after)
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        second = train(tmp_path / 'parts', 3, save_freq)
    assert first.seen == whole.seen[:stop_after]
    assert second.seen == whole.seen[stop_after - seen_twice:]
    assert weights_of(second) == weights_of(whole)


def test_state_is_plain_and_resumes_in_the_middle():
    """The data set of a new process continues, and Keras counts on."""
    batches, expected = BatchesDataset(open_stream()), numbers_of(
        open_stream(), 3)
    for _ in range(PER_EPOCH + 4):
        batches[0]
    state = json.loads(json.dumps(batches.state_dict()))
    resumed, model = BatchesDataset(open_stream(), 2, True), build(False)
    resumed.load_state_dict(state)
    model.fit(resumed, epochs=3, initial_epoch=1, verbose=0)
    assert model.seen == expected[PER_EPOCH + 4:]


def test_state_after_a_batch_is_known_while_others_are_on_their_way():
    """Keras prefetches a batch where a device is slow."""
    batches = BatchesDataset(open_stream())
    batches.keep_states()
    for _ in range(PER_EPOCH + 6):
        batches[0]
    resumed, expected = BatchesDataset(open_stream()), numbers_of(
        open_stream(), 2)
    for count in (3, 6):
        resumed.load_state_dict(batches.state_after(count))
        assert [targets.tolist() for _, targets in resumed] == expected[
            PER_EPOCH + count:]
    for count in (8, 0):
        with pytest.raises(ValueError, match=f'after {count} batches is not'):
            batches.state_after(count)


def test_ranks_share_an_epoch_and_resume_after_a_kill(tmp_path):
    """Two processes of unequal shares, each killed in its second epoch."""
    def run(stop_after):
        ended = processes.end_together(processes.start_ranks(
            2, keras_training.__file__, str(tmp_path), str(stop_after),
            KERAS_BACKEND='torch'))
        for status, _, errors in ended:
            assert status == (-signal.SIGKILL if stop_after else 0), errors
        return [json.loads(output.splitlines()[-1])['seen']
                for _, output, _ in ended]

    # Five batches are those of rank 0, and four those of rank 1.
    first, second = run(6), run(0)
    expected = numbers_of(open_stream(), 3)
    for rank in range(2):
        share = [batch for epoch in range(3) for batch in expected[
            epoch * PER_EPOCH:][rank:PER_EPOCH:2]]
        assert len(first[rank]) == 6
        # A kill after a batch comes before or after its backup.
        assert first[rank] == share[:6]
        assert second[rank] == share[6:]


def test_unshared_stream_of_several_ranks_is_refused(monkeypatch):
    """Else each rank would read all of it, which shard(0, 1) allows."""
    monkeypatch.setenv('RANK', '1')
    monkeypatch.setenv('WORLD_SIZE', '2')
    with pytest.raises(ValueError, match=r"2 processes .*shard\('auto'"):
        BatchesDataset(open_stream())[0]
    whole = BatchesDataset(open_stream().shard(0, 1))
    assert len(list(whole)) == PER_EPOCH


def test_another_number_of_ranks_is_refused_in_mid_epoch():
    """At the end of an epoch, any number of ranks continues."""
    batches = BatchesDataset(open_stream().shard(0, 2))
    batches[0]
    whole = BatchesDataset(open_stream())
    with pytest.raises(StateMismatchError, match='one of 2 ranks'):
        whole.load_state_dict(batches.state_dict())
    list(batches)
    whole.load_state_dict(batches.state_dict())
    assert [targets.tolist() for _, targets in whole] == numbers_of(
        open_stream(), 2)[PER_EPOCH:]


def test_other_data_are_accepted_on_request(tmp_path):
    """Backup loads the state itself, by the options of the batches."""
    def build(add=0, **kwargs):
        return BatchesDataset(DataStream(IndexableDataset({
            'features': numpy.ones((6 + add, 2)),
            'targets': numpy.ones((6 + add, 1))}),
            iteration_scheme=SequentialScheme(6, 2)), **kwargs)

    def fit(batches):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile('sgd', 'mse')
        return model.fit(batches, epochs=2, verbose=0, callbacks=[
            Backup(batches, tmp_path, save_freq=1)])

    batches = build()
    batches[0]
    state = batches.state_dict()
    with pytest.raises(StateMismatchError, match="load_options={'accept'"):
        build(1).load_state_dict(state)
    with pytest.raises(ValueError, match='leaves out no steps'):
        build().load_state_dict(state, leave_out=[1])
    with pytest.raises(ValueError, match='leaves out no steps'):
        BatchesDataset(leave_out(build().stream, [1]))
    with pytest.raises(TypeError, match="load_options has 'accepts'"):
        build(load_options={'accepts': 'data'})
    fit(build())
    for make, load in (
            (lambda: build(1), lambda batches: batches.load_state_dict(
                state, accept=('data',))),
            (lambda: build(1, load_options={'accept': ('data',)}), fit)):
        batches = make()
        with pytest.warns(UserWarning, match='with other data'):
            load(batches)
        assert 'data' == batches.state_dict()['stream']['accepted'][0][0]
    with pytest.raises(StateMismatchError, match="load_options={'accept'"):
        fit(build(2))


@pytest.mark.parametrize('state', [
    None, {}, {'batches': 1}, {'batches': 10, 'shards': 1, 'stream': {}},
    {'batches': True, 'shards': 1, 'stream': {}},
    {'batches': 1, 'shards': 0, 'stream': {}},
    {'batches': 1, 'shards': 1, 'stream': []}])
def test_state_of_something_else_is_refused(state):
    """It is refused before it changes anything."""
    with pytest.raises(StateMismatchError, match='of a BatchesDataset of 9'):
        BatchesDataset(open_stream()).load_state_dict(state)


def test_streams_that_keras_cannot_train_on_are_refused():
    """The error names the remedy."""
    with pytest.raises(ValueError, match='apply the stage Batch'):
        BatchesDataset(Unpack(open_stream()))
    with pytest.raises(ValueError, match='choose some with FilterSources'):
        BatchesDataset(Merge([open_stream(), open_stream()], tuple('abcd')))
    with pytest.raises(ValueError, match='not known.*train_on_batch'):
        BatchesDataset(Filter(open_stream(), bool))


def test_stream_whose_length_is_wrong_is_an_error():
    """No batch is left out, and no epoch begins in its middle."""
    class Wrong(DataStream):
        length = 4

        def __len__(self):
            return self.length

        def _length(self):
            return self.length

    stream = Wrong(open_stream().dataset,
                   iteration_scheme=open_stream().iteration_scheme)
    with pytest.raises(RuntimeError, match='more batches than the 4'):
        list(BatchesDataset(stream))
    stream.length = 12
    with pytest.raises(RuntimeError, match='fewer batches than the 12'):
        list(BatchesDataset(stream))


def test_other_process_and_index_are_refused():
    """Each process would read the whole epoch."""
    batches = BatchesDataset(open_stream())
    with pytest.raises(IndexError, match='none has number 9'):
        batches[9]
    context = multiprocessing.get_context('fork')
    errors = context.Queue()

    def read():
        try:
            batches[0]
        except RuntimeError as error:
            errors.put(str(error))
    process = context.Process(target=read)
    process.start()
    assert 'use_multiprocessing to BatchesDataset' in errors.get(timeout=60)
    process.join()


def test_backup_refuses_what_it_could_not_resume(tmp_path):
    """It refuses other steps or batches, another epoch, and damaged files."""
    with pytest.raises(TypeError, match='must be the BatchesDataset'):
        Backup(numpy.arange(3), tmp_path)
    with pytest.raises(ValueError, match="must be 'epoch' or a number"):
        Backup(BatchesDataset(open_stream()), tmp_path, 'batch')
    batches = BatchesDataset(open_stream())
    with pytest.raises(ValueError, match='3 steps.*without steps_per_epoch'):
        build().fit(batches, steps_per_epoch=3, verbose=0,
                    callbacks=[Backup(batches, tmp_path)])
    train(tmp_path, 1, 'epoch')
    assert Backup(batches, tmp_path).get_epoch() == 1
    saved = json.loads((tmp_path / 'training.json').read_text())
    (tmp_path / 'training.json').write_text(json.dumps(
        {**saved, 'weights': ''}))
    with pytest.raises(StateMismatchError, match='is not a backup'):
        Backup(batches, tmp_path).get_epoch()
    (tmp_path / 'training.json').write_text(json.dumps(saved))
    for path in tmp_path.glob('*.h5'):
        path.unlink()
    with pytest.raises(StateMismatchError, match='has no weights'):
        Backup(batches, tmp_path).get_epoch()
    (tmp_path / 'training.json').write_text('{"number"')
    with pytest.raises(StateMismatchError, match='is not a backup'):
        Backup(batches, tmp_path).get_epoch()


def test_number_of_examples_divides_nothing():
    """The tests above are of unequal batches, ranks and epochs."""
    assert COUNT % keras_training.BATCH
    assert PER_EPOCH % 2


def test_sparse_batches_are_made_dense_before():
    """Only some backends of Keras take sparse batches."""
    rows = random_csr(8, 5)
    stream = DataStream(SparseDataset(rows),
                        iteration_scheme=SequentialScheme(8, 4))
    with pytest.raises(TypeError, match=r'BatchesDataset .* ToDense\(stream'):
        BatchesDataset(stream)[0]
    x, _ = BatchesDataset(ToDense(stream))[0]
    assert numpy.array_equal(rows.toarray()[:4], x)
