"""Chainer's own updater and trainer on Fuel's iterators."""
import json

import chainer
import numpy
import pytest
from support import chainer_training as training
from support.processes import run_python

import fuel.interop.chainer

# Chainer warns of the versions of what it uses.
pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.mark.parametrize('kind', [
    name for name in training.ITERATORS if name != 'chainer'])
def test_trainer_resumes_a_snapshot_with_identical_weights(kind, tmp_path):
    """It is interrupted in mid-epoch, and resumes in a new process."""
    whole = training.make_trainer(str(tmp_path / 'whole'), kind, 19)
    whole.run()
    folder = tmp_path / 'parts'
    first = training.make_trainer(str(folder), kind, 15)
    first.run()
    assert first.updater.epoch_detail % 1 > 0
    status, output, errors = run_python(
        training.__file__, str(folder), kind, '19', 'resume')
    assert 0 == status, errors.decode()
    assert training.weights(whole) == json.loads(output)
    assert training.weights(whole) != training.weights(first)


def test_iterator_of_chainer_trains_to_the_same_weights(tmp_path):
    """The same generator gives the same order, and so the same bits."""
    trainers = [training.make_trainer(str(tmp_path / kind), kind, 15)
                for kind in ('chainer', 'serial', 'processes',
                             'data set of Fuel')]
    found = []
    for trainer in trainers:
        trainer.run()
        found.append(training.weights(trainer))
    assert [found[0]] * len(found) == found


def test_chainer_s_converter_takes_the_batches_of_a_stream(tmp_path):
    """The batches are lists of tuples; Fuel's converter needs no copy."""
    found = []
    for name in ('chainer', 'fuel'):
        converter = (chainer.dataset.concat_examples if name == 'chainer'
                     else fuel.interop.chainer.concat_examples)
        trainer = training.make_trainer(
            str(tmp_path / name), 'stream of Fuel', 9, converter)
        trainer.run()
        found.append(training.weights(trainer))
    assert found[0] == found[1]


@pytest.mark.parametrize('kind', training.ITERATORS)
@pytest.mark.parametrize('serializer', ['npz', 'hdf5'])
def test_snapshot_of_chainer_s_formats_resumes(kind, serializer, tmp_path):
    """Each of its serializers writes what the iterator needs."""
    path = str(tmp_path / 'iterator')
    iterator = training.ITERATORS[kind]()
    for _ in range(9):
        iterator.next()
    getattr(chainer.serializers, f'save_{serializer}')(path, iterator)
    resumed = training.ITERATORS[kind]()
    getattr(chainer.serializers, f'load_{serializer}')(path, resumed)
    assert iterator.epoch_detail == resumed.epoch_detail
    # Chainer's has no generator: the order of the next sweep is not known.
    for _ in range(3 if kind == 'chainer' else 10):
        expected, got = iterator.next(), resumed.next()
        assert [y for _, y in expected] == [y for _, y in got]
        assert numpy.array_equal([x for x, _ in expected],
                                 [x for x, _ in got])
    iterator.finalize()
    resumed.finalize()


def test_snapshot_of_chainer_s_iterator_is_taken_up(tmp_path):
    """Chainer resumes Fuel's too; their common part is enough."""
    path = str(tmp_path / 'iterator')
    for writer, reader in (('chainer', 'serial'), ('serial', 'chainer'),
                           ('chainer', 'processes')):
        iterator = training.ITERATORS[writer]()
        for _ in range(3):
            iterator.next()
        chainer.serializers.save_npz(path, iterator)
        resumed = training.ITERATORS[reader]()
        chainer.serializers.load_npz(path, resumed)
        for _ in range(3):
            assert [int(y) for _, y in iterator.next()] == [
                int(y) for _, y in resumed.next()]
        resumed.finalize()
