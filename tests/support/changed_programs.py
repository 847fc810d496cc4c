"""Programs before and after a change to Fuel, their data, and their runs.

The folder ``changes`` has them in pairs. The manual shows the differences,
which are in docs/changes; see tests/docs/test_changes.py.
"""
import difflib
import signal
from pathlib import Path

import h5py
import numpy
from PIL import Image

from support import processes
from support.layouts.robots import robomimic

FOLDER = Path(__file__).parent / 'changes'
SHOWN = Path(__file__).parents[2] / 'docs' / 'changes'
NAMES = sorted(path.name.removesuffix('_before.py')
               for path in FOLDER.glob('*_before.py'))
MODEL = {name: 'model.npz' if name == 'flax' else 'model.pt'
         for name in NAMES}
# Runs a program, and kills it after so many lines or checkpoints.
KILLER = """
import builtins, os, runpy, signal, sys

path, count, folder = sys.argv.pop(1), int(sys.argv.pop(1)), sys.argv.pop(1)
os.chdir(folder)

def counted(function):
    def call(*args, **kwargs):
        global count
        function(*args, **kwargs)
        count -= 1
        if not count:
            os.kill(os.getpid(), signal.SIGKILL)
    return call

if 'trainer' in path:
    import transformers
    transformers.Trainer._save_checkpoint = counted(
        transformers.Trainer._save_checkpoint)
else:
    builtins.print = counted(print)
runpy.run_path(path, run_name='__main__')
"""


def difference(name):
    """Return how a program differs after the change, as a unified diff."""
    before, after = [(FOLDER / f'{name}_{which}.py').read_text().splitlines(
        keepends=True) for which in ('before', 'after')]
    return ''.join(difflib.unified_diff(
        before, after, f'before/{name}.py', f'after/{name}.py'))


def write_data(name, folder):
    """Write the files that a program reads into its folder."""
    folder.mkdir()
    rng = numpy.random.default_rng(1)
    {'mnist': write_digits, 'flax': write_digits, 'ranks': write_pictures,
     'accelerate': write_texts, 'tokens': write_tokens,
     'trainer': write_tokens, 'robomimic': robomimic,
     'the_well': write_simulations}[name](folder, rng)


def write_digits(folder, rng):
    """Write a file with images and classes in two groups."""
    with h5py.File(folder / 'digits.h5', 'w') as file:
        for split, count in (('train', 300), ('test', 100)):
            file[f'{split}/features'] = rng.integers(
                0, 256, (count, 1, 8, 8), 'uint8')
            file[f'{split}/targets'] = rng.integers(0, 10, count)


def write_pictures(folder, rng):
    """Write pictures in folders."""
    for number in range(48):
        (folder / f'pictures/{number % 5}').mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), 'uint8')).save(
            folder / f'pictures/{number % 5}/{number}.png')


def write_texts(folder, rng):
    """Write texts of several lengths, each with one of two classes."""
    texts = numpy.empty(58, dtype=object)
    for number in range(len(texts)):
        texts[number] = rng.integers(1, 60, 2 + number % 5)
    numpy.savez(folder / 'texts.npz', input_ids=texts,
                labels=numpy.arange(len(texts)) % 2)


def write_tokens(folder, rng):
    """Write tokens."""
    rng.integers(0, 257, 700).astype('uint16').tofile(folder / 'train.bin')


def write_simulations(folder, rng):
    """Write simulations of The Well, with all that its own class reads."""
    place = folder / 'fluid' / 'data' / 'train'
    place.mkdir(parents=True)
    with h5py.File(place / 'fluid.hdf5', 'w') as file:
        file.attrs.update({
            'dataset_name': 'fluid', 'grid_type': 'cartesian',
            'n_spatial_dims': 2, 'n_trajectories': 3,
            'simulation_parameters': []})
        for name, fields in (('t0_fields', ['pressure']), ('t1_fields', []),
                             ('t2_fields', []), ('scalars', [])):
            file.create_group(name).attrs['field_names'] = fields
        field = file.create_dataset('t0_fields/pressure', data=rng.normal(
            size=(3, 6, 4, 5)).astype('float32'))
        field.attrs.update({'dim_varying': [True, True], 'symmetric': False,
                            'sample_varying': True, 'time_varying': True})
        axes = file.create_group('dimensions')
        axes.attrs['spatial_dims'] = ['x', 'y']
        for name, count in (('time', 6), ('x', 4), ('y', 5)):
            axes[name] = numpy.arange(count, dtype='float32')
            axes[name].attrs.update(
                {'sample_varying': False, 'time_varying': False})
        for name, count in (('x', 4), ('y', 5)):
            border = file.create_group(f'boundary_conditions/{name}')
            border.attrs.update({
                'bc_type': 'PERIODIC', 'associated_dims': [name],
                'associated_fields': [], 'sample_varying': False,
                'time_varying': False})
            border['mask'] = numpy.isin(
                numpy.arange(count), (0, count - 1))


def run(name, which, folder, kill_after=0, ranks=1):
    """Run a program in its folder; return the lines that it prints.

    `kill_after`: number of lines (of checkpoints, for a Trainer) after which
    it kills itself.
    """
    program = str(FOLDER / f'{name}_{which}.py')
    started = processes.start_ranks(
        ranks, '-c', KILLER, program, str(kill_after or -1), str(folder),
        JAX_PLATFORMS='cpu')
    # Each imports a framework, beside other work.
    ended = processes.end_together(started, timeout=800)
    for status, _, errors in ended:
        assert status == (-signal.SIGKILL if kill_after else 0), errors
    return [line for line in ended[0][1].splitlines()
            if line.startswith(('epoch', 'step', 'accuracy'))]


def check(name, folder, kills, ranks=1):
    """Run the old program, and the new one whole and killed.

    Yields the folder of the whole run and that of each that was killed.
    """
    for which in ('before', 'after'):
        write_data(name, folder / which)
    old, whole = [run(name, which, folder / which, ranks=ranks)
                  for which in ('before', 'after')]
    assert (folder / 'before' / MODEL[name]).exists()
    assert len(old) == len(whole)
    for kill_after in kills:
        other = folder / f'killed after {kill_after}'
        write_data(name, other)
        first = run(name, 'after', other, kill_after, ranks)
        rest = run(name, 'after', other, ranks=ranks)
        if name != 'trainer':
            assert first + rest == whole
        yield folder / 'after', other


if __name__ == '__main__':
    for one in NAMES:
        (SHOWN / f'{one}.diff').write_text(difference(one))
