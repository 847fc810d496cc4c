"""Programs in files of their own: packages with downloaders and converters,
a server and its training script."""
import os
import socket
import subprocess
import sys
import textwrap

import pytest
from support.processes import environment, run_python, start_python

PACKAGE = {
    'my_fuel/__init__.py': '',
    'my_fuel/downloaders/__init__.py': """
        from my_fuel.downloaders import numbers
        all_downloaders = (('numbers', numbers.fill_subparser),)
        """,
    'my_fuel/downloaders/numbers.py': """
        from fuel.downloaders.base import default_downloader

        def fill_subparser(subparser):
            subparser.set_defaults(
                urls=['{url}/numbers.csv'], filenames=['numbers.csv'])
            return default_downloader
        """,
    'my_fuel/converters/__init__.py': """
        from my_fuel.converters import numbers
        all_converters = (('numbers', numbers.fill_subparser),)
        """,
    'my_fuel/converters/numbers.py': """
        import os

        import h5py
        import numpy

        from fuel.converters.base import (
            check_exists, fill_hdf5_file, progress_bar)


        @check_exists(required_files=['numbers.csv'])
        def convert_numbers(directory, output_directory, scale=1,
                            output_filename='numbers.hdf5'):
            output_path = os.path.join(output_directory, output_filename)
            h5file = h5py.File(output_path, mode='w')
            data = numpy.loadtxt(
                os.path.join(directory, 'numbers.csv'), delimiter=',')
            with progress_bar('numbers.csv', len(data)) as bar:
                for i, row in enumerate(data):
                    bar.update(i + 1)
            features = (data[:, :-1] * scale).astype('float32')
            targets = data[:, -1:].astype('uint8')
            fill_hdf5_file(h5file, (
                ('train', 'features', features[:6]),
                ('train', 'targets', targets[:6]),
                ('test', 'features', features[6:]),
                ('test', 'targets', targets[6:])))
            h5file['features'].dims[0].label = 'batch'
            h5file['features'].dims[1].label = 'feature'
            h5file['targets'].dims[0].label = 'batch'
            h5file['targets'].dims[1].label = 'index'
            h5file.flush()
            h5file.close()
            return (output_path,)


        def fill_subparser(subparser):
            subparser.add_argument('--scale', type=float, default=1)
            return convert_numbers
        """,
    'train.py': """
        from __future__ import print_function
        from fuel.datasets import H5PYDataset
        from fuel.schemes import ShuffledScheme
        from fuel.streams import DataStream
        from fuel.utils import find_in_data_path


        class Numbers(H5PYDataset):
            filename = 'numbers.hdf5'

            def __init__(self, which_sets, **kwargs):
                kwargs.setdefault('load_in_memory', True)
                super(Numbers, self).__init__(
                    file_or_path=find_in_data_path(self.filename),
                    which_sets=which_sets, **kwargs)


        if __name__ == '__main__':
            train_set = Numbers(('train',))
            stream = DataStream.default_stream(
                train_set, iteration_scheme=ShuffledScheme(
                    train_set.num_examples, 4))
            for batch in stream.get_epoch_iterator(as_dict=True):
                print(batch['targets'][:, 0].tolist(),
                      batch['features'].sum(axis=1).tolist())
        """,
}


@pytest.fixture
def project(tmp_path):
    """Write a user's project, and raw data in a folder beside it."""
    raw = tmp_path / 'raw'
    raw.mkdir()
    (raw / 'numbers.csv').write_text('\n'.join(
        f'{row},{row + 1},{row % 3}' for row in range(9)) + '\n')
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).replace(
            '{url}', raw.as_uri()))
    return tmp_path


def run(project, *command, **variables):
    """Run a program in a folder of its own within the project."""
    data = project / 'data'
    data.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *command], cwd=data, capture_output=True,
        timeout=100, check=False, text=True, env=environment(
            **variables, FUEL_DATA_PATH=str(data),
            FUEL_EXTRA_DOWNLOADERS='my_fuel.downloaders',
            FUEL_EXTRA_CONVERTERS='my_fuel.converters',
            PYTHONSTARTUP='') | {'PYTHONPATH': os.pathsep.join(
                [str(project), environment()['PYTHONPATH']])})


def command(name, *arguments):
    """Return the command line of one of Fuel's programs."""
    code = f'import sys; from fuel.bin.{name} import main; sys.exit(main())'
    return ['-c', code, *arguments]


def test_package_downloads_converts_and_trains(project):
    """From raw data to batches, with the commands of a shell script."""
    done = run(project, *command('fuel_download', 'numbers'))
    assert done.returncode == 0, done.stderr
    done = run(project, *command('fuel_convert', 'numbers', '--scale', '2'))
    assert done.returncode == 0, done.stderr
    done = run(project, *command('fuel_download', 'numbers', '--clear'))
    assert done.returncode == 0, done.stderr
    assert ['numbers.hdf5'] == os.listdir(project / 'data')
    done = run(project, *command('fuel_info', 'numbers.hdf5'))
    assert 'fuel-convert numbers --scale 2' in done.stdout
    done = run(project, str(project / 'train.py'))
    assert done.returncode == 0, done.stderr
    # The order of six examples under the default seed.
    assert ('[2, 1, 1, 0] [10.0, 6.0, 18.0, 2.0]\n'
            '[0, 2] [14.0, 22.0]\n') == done.stdout


def test_package_without_its_raw_file_says_which(project):
    """MissingInputFiles ends the command with a status that is not 0."""
    done = run(project, *command('fuel_convert', 'numbers'))
    assert done.returncode != 0
    assert 'numbers.csv' in done.stderr


SERVER = '''
    import sys
    import time

    from fuel.datasets import IndexableDataset
    from fuel.schemes import ShuffledScheme
    from fuel.server import start_server
    from fuel.streams import DataStream
    from fuel.transformers import Transformer


    class Bottleneck(Transformer):
        """Waits, as reading from a disk would."""

        def __init__(self, *args, **kwargs):
            self.slowdown = kwargs.pop('slowdown', 0)
            super(Bottleneck, self).__init__(*args, **kwargs)

        def get_data(self, request=None):
            if request is not None:
                raise ValueError
            time.sleep(self.slowdown)
            return next(self.child_epoch_iterator)


    def create_data_stream(slowdown=0):
        dataset = IndexableDataset({
            'features': [[i] * 8 for i in range(40)]})
        return Bottleneck(
            data_stream=DataStream.default_stream(
                dataset=dataset, iteration_scheme=ShuffledScheme(
                    examples=40, batch_size=15)),
            slowdown=slowdown)


    if __name__ == '__main__':
        start_server(create_data_stream(.001), port=int(sys.argv[1]))
    '''

TRAIN = """
    import argparse

    import numpy
    from fuel.streams import ServerDataStream

    from server import create_data_stream

    if __name__ == '__main__':
        parser = argparse.ArgumentParser()
        parser.add_argument('-p', '--parallel', type=int)
        args = parser.parse_args()
        if args.parallel:
            data_stream = ServerDataStream(('features',), False,
                                           port=args.parallel, hwm=5)
        else:
            data_stream = create_data_stream()
        for epoch in range(3):
            for data in data_stream.get_epoch_iterator():
                print(numpy.asarray(data[0])[:, 0].tolist())
    """


def test_server_and_training_script_give_what_one_process_gives(tmp_path):
    """The same batches, epoch after epoch."""
    for name, text in (('server.py', SERVER), ('train.py', TRAIN)):
        (tmp_path / name).write_text(textwrap.dedent(text))
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    server = start_python(str(tmp_path / 'server.py'), str(port))
    try:
        status, alone, errors = run_python(str(tmp_path / 'train.py'))
        assert status == 0, errors
        status, served, errors = run_python(
            str(tmp_path / 'train.py'), '-p', str(port))
        assert status == 0, errors
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert alone == served
    assert 9 == alone.count(b'\n')
