"""Checkpoints of a model together with the position in its data."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import keras

from fuel.exceptions import StateMismatchError
from fuel.interop.keras.batches import BatchesDataset
from fuel.utils.atomic_files import atomic_path
from fuel.utils.checks import positive

_FILE = 'training.json'
_WEIGHTS = '*.weights.h5'


class Backup(keras.callbacks.Callback):
    """Saves a model and the position in its data, and resumes from there.

    Keras's `BackupAndRestore` repeats the epoch in which a run ended, with
    weights that were trained on a part of the epoch.  With this callback a
    run resumes with the batch after the last saved batch.

    Parameters
    ----------
    batches : BatchesDataset
        The batches that `fit` trains on.
    folder : path-like
        The folder of the backup.  If it does not exist, it is made.
    save_freq : int or str, optional
        Number of batches between backups.  Defaults to ``'epoch'``: a backup
        after each epoch.

    Attributes
    ----------
    folder : pathlib.Path

    Notes
    -----
    The file ``training.json`` names the file of weights that belongs to it,
    and is replaced by one rename.  So a run that is killed leaves the last
    complete backup.  The file of weights also holds the weights of the
    optimizer.

    If several processes train, give each a folder of its own.

    Examples
    --------
    This needs the extra ``keras``.

    >>> import tempfile
    >>> import keras, numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.interop.keras import BatchesDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> from fuel.streams import DataStream
    >>> batches = BatchesDataset(DataStream(IndexableDataset({
    ...     'features': numpy.ones((6, 2)), 'targets': numpy.ones((6, 1))}),
    ...     iteration_scheme=ShuffledScheme(6, 4)))
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile('sgd', 'mse')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     backup = Backup(batches, folder, save_freq=1)
    ...     history = model.fit(
    ...         batches, epochs=2, callbacks=[backup], verbose=0)
    ...     backup.get_epoch()
    2
    """

    def __init__(self, batches: BatchesDataset, folder: str | os.PathLike[str],
                 save_freq: int | str = 'epoch') -> None:
        super().__init__()
        if not isinstance(batches, BatchesDataset):
            raise TypeError(
                'batches must be the BatchesDataset that fit trains on, got '
                f'{type(batches).__name__}')
        if isinstance(save_freq, str):
            if save_freq != 'epoch':
                raise ValueError(
                    "save_freq must be 'epoch' or a number of batches, got "
                    f'{save_freq!r}')
        else:
            positive('save_freq', save_freq)
        self.batches = batches
        self.folder = Path(folder)
        self.save_freq = save_freq
        self._saved = 0
        self._epoch: int | None = None
        # Three numbers of batches of this epoch: read by earlier runs, trained
        # on, and trained on at the last backup.
        self._offset = self._trained = self._saved_at = 0

    def get_epoch(self) -> int:
        """Return the number of the epoch in which a run resumes."""
        saved = self._find()
        return 0 if saved is None else int(saved['epoch'])

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Load the backup, if there is one."""
        if self.params.get('steps') != len(self.batches):
            raise ValueError(
                f'fit makes {self.params.get("steps")} steps in an epoch, but '
                f'the batches of Backup are {len(self.batches)}: train on '
                'these, without steps_per_epoch')
        saved = self._find()
        if saved is not None:
            self._load(saved)
        if self.save_freq != 'epoch':
            self.batches.keep_states()

    def _find(self) -> dict[str, Any] | None:
        """Return the content of the last backup; None if there is none."""
        path = self.folder / _FILE
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        try:
            saved: dict[str, Any] = json.loads(text)
            weights, epoch = saved['weights'], saved['epoch']
            if (type(epoch) is int and type(saved['number']) is int
                    and (self.folder / Path(weights).name).is_file()
                    and Path(weights).name == weights
                    and isinstance(saved['batches'], dict)):
                return saved
        except (ValueError, TypeError, KeyError):
            pass
        raise StateMismatchError(
            f'{path} is not a backup, or has no weights: delete the '
            'folder to begin anew')

    def _load(self, saved: dict[str, Any]) -> None:
        optimizer = self.model.optimizer
        if optimizer is not None and not optimizer.built:
            # Weights can be loaded only into an optimizer that is built.
            optimizer.build(self.model.trainable_variables)
        self.model.load_weights(self.folder / saved['weights'])
        self.batches.load_state_dict(saved['batches'])
        self._saved = saved['number']
        self._epoch = saved['epoch']
        self._offset = self._saved_at = saved['batches']['batches']
        # Keras's own callback sets the first epoch in the same way.
        self.model._initial_epoch = saved['epoch']

    def on_epoch_begin(self, epoch: int,
                       logs: dict[str, Any] | None = None) -> None:
        """Check that the run resumes in the epoch that was saved."""
        if self._epoch is not None and epoch != self._epoch:
            raise ValueError(
                f'the backup in {self.folder} goes on with epoch '
                f'{self._epoch}, but fit with {epoch}: pass '
                'initial_epoch=backup.get_epoch()')
        self._epoch = epoch

    def on_train_batch_end(self, batch: int,
                           logs: dict[str, Any] | None = None) -> None:
        """Save a backup after every `save_freq` batches."""
        self._trained = self._offset + batch + 1
        # After the last batch Keras calls on_epoch_end(), which saves.
        if (self.save_freq != 'epoch' and self._trained < len(self.batches)
                and self._trained - self._saved_at >= int(self.save_freq)):
            self._save(self._epoch, self._trained)

    def on_epoch_end(self, epoch: int,
                     logs: dict[str, Any] | None = None) -> None:
        """Save a backup after an epoch, or after a callback has ended it."""
        is_whole = self._trained == len(self.batches)
        self._save(epoch + is_whole, self._trained)
        self._epoch = None
        self._offset = self._saved_at = 0

    def _save(self, epoch: int | None, taken: int) -> None:
        """Save the model, and the state of the batches for resuming.

        `epoch`: number of the epoch in which a run resumes.
        `taken`: number of batches that were trained on in this epoch.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._saved += 1
        self._saved_at = taken
        weights = f'{self._saved}.weights.h5'
        self.model.save_weights(self.folder / weights, overwrite=True)
        with atomic_path(self.folder / _FILE) as path:
            Path(path).write_text(json.dumps({
                'number': self._saved, 'weights': weights, 'epoch': epoch,
                'batches': self.batches.state_after(taken)}))
        for other in self.folder.glob(_WEIGHTS):
            if other.name != weights:
                other.unlink()
