"""Files of the writers of each field: values are those of its loader."""
import importlib
import sys
import types
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy
import pandas
import pytest
from scipy import sparse
from support.layouts.fields import the_well as write_well
from support.layouts.robots import robomimic as write_demos

import fuel
from fuel.datasets import Windows
from fuel.storage import open_hdf5
from fuel.storage.hdf5_file import HDF5Array

TESTS = Path(__file__).resolve().parents[2]
RNG = numpy.random.default_rng(1)


def read_all(dataset):
    """Return all rows of each source."""
    return dict(zip(dataset.sources, dataset.get_data(
        None, slice(0, dataset.num_examples)), strict=True))


@pytest.fixture
def anndata(monkeypatch):
    """Return AnnData, whose package `testing` that of the tests hides."""
    monkeypatch.setattr(sys, 'path', [
        path for path in sys.path if Path(path).resolve() != TESTS])
    return importlib.import_module('anndata')


def write_cells(anndata, path, kinds, count=20):
    """Write cells by AnnData."""
    cells = anndata.AnnData(
        sparse.random(count, 12, .3, 'csr', 'f4', random_state=1),
        pandas.DataFrame({
            'type': pandas.Categorical.from_codes(
                numpy.arange(count) % 4 - 1, kinds),
            'age': pandas.array([None, *range(1, count)], 'Int64'),
            'depth': RNG.random(count)},
            index=[f'cell {number}' for number in range(count)]),
        layers={'dense': RNG.random((count, 12))})
    cells.write_h5ad(path)
    return anndata.read_h5ad(path)


def test_cells_of_anndata(tmp_path, anndata):
    """Sparse rows, and columns of `obs`, are read from one file and from
    two."""
    paths = [str(tmp_path / name) for name in ('a.h5ad', 'b.h5ad')]
    cells = [write_cells(anndata, paths[0], ['b', 'a', 'c']),
             write_cells(anndata, paths[1], ['d', 'c', 'b'])]
    found = read_all(fuel.load(paths[0]))
    assert (found['X'] != cells[0].X).nnz == 0
    assert found['X'].dtype == cells[0].X.dtype
    numpy.testing.assert_array_equal(
        cells[0].obs['type'].cat.codes, found['obs/type'])
    numpy.testing.assert_array_equal(cells[0].obs['depth'],
                                     found['obs/depth'])
    numpy.testing.assert_array_equal(cells[0].obs['age'].isna(),
                                     found['obs/age/mask'])
    real = ~found['obs/age/mask']
    numpy.testing.assert_array_equal(
        cells[0].obs['age'][real].astype('i8'), found['obs/age/values'][real])
    both = fuel.load(paths)
    names = (*both.categories['obs/type'], None)
    expected = [None if name != name else name for one in cells
                for name in one.obs['type'].tolist()]
    assert expected == [names[code] for code in read_all(both)['obs/type']]
    dense = fuel.load(paths[0], sources=['layers/dense'])
    numpy.testing.assert_array_equal(
        cells[0].layers['dense'], read_all(dense)['layers/dense'])


def test_cells_stored_by_genes_are_refused(tmp_path, anndata):
    """The error has the line that writes them by cells."""
    path = tmp_path / 'a.h5ad'
    anndata.AnnData(sparse.random(9, 5, .5, 'csc')).write_h5ad(path)
    with pytest.raises(ValueError, match=r'adata\.X = adata\.X\.tocsr'):
        fuel.load(path)


def test_fields_of_netcdf4(tmp_path):
    """Packed numbers, some of them missing, lie along an unlimited time."""
    netcdf = importlib.import_module('netCDF4')
    path = tmp_path / 'a.nc'
    with netcdf.Dataset(path, 'w') as file:
        for name, count in (('time', None), ('lat', 3), ('lon', 4)):
            file.createDimension(name, count)
        file.createVariable('time', 'f8', ('time',))[:] = numpy.arange(8.)
        for name, kind in (('packed', 'i2'), ('plain', 'f4')):
            variable = file.createVariable(
                name, kind, ('time', 'lat', 'lon'), fill_value=-99,
                zlib=True)
            if name == 'packed':
                variable.scale_factor, variable.add_offset = .5, 20.
            values = RNG.integers(0, 50, (8, 3, 4)) / 2.
            variable[:] = numpy.ma.masked_less(values, 4)
    found = read_all(fuel.load(path))
    with netcdf.Dataset(path) as file:
        for name in ('packed', 'plain'):
            numpy.testing.assert_array_equal(
                file[name][:].filled(numpy.nan), found[name])
        numpy.testing.assert_array_equal(file['time'][:], found['time'])


def test_fields_of_xarray(tmp_path):
    """h5netcdf has written them, and xarray reads them."""
    xarray = importlib.import_module('xarray')
    path = tmp_path / 'a.nc'
    xarray.Dataset({'t2m': (('time', 'x'), RNG.random((6, 3)))}, {
        'time': numpy.arange(6.)}).to_netcdf(
            path, engine='h5netcdf', unlimited_dims=['time'], encoding={
                't2m': {'dtype': 'int16', 'scale_factor': .01,
                        '_FillValue': -9}})
    with xarray.open_dataset(path, engine='h5netcdf') as file:
        found = read_all(fuel.load(path))
        for name in ('t2m', 'time'):
            numpy.testing.assert_array_equal(file[name].values, found[name])
            assert file[name].dtype == found[name].dtype


def test_episodes_of_minari(tmp_path):
    """An episode has one observation more than steps."""
    storages = importlib.import_module('minari.dataset.minari_storage')
    gymnasium = importlib.import_module('gymnasium')
    buffers = importlib.import_module('minari.data_collector')
    spaces = gymnasium.spaces
    storage = storages.MinariStorage.new(
        tmp_path / 'data', spaces.Dict({
            'x': spaces.Box(-9, 9, (3,)), 'n': spaces.Discrete(5)}),
        spaces.Box(-9, 9, (2,)))
    storage.update_episodes([buffers.EpisodeBuffer(
        id=None, observations={'x': list(RNG.random((count + 1, 3))),
                               'n': list(RNG.integers(0, 5, count + 1))},
        actions=list(RNG.random((count, 2))), rewards=list(RNG.random(count)),
        terminations=[False] * count, truncations=[False] * count)
        for count in range(2, 14)])
    episodes = list(storage.get_episodes(range(12)))
    dataset = fuel.load(tmp_path / 'data' / 'main_data.hdf5')
    found = read_all(dataset)
    for name in ('actions', 'rewards', 'terminations', 'truncations'):
        numpy.testing.assert_array_equal(
            numpy.concatenate([one[name] for one in episodes]), found[name])
    for leaf in 'xn':
        for source, rows in (('observations', slice(None, -1)),
                             ('next_observations', slice(1, None))):
            numpy.testing.assert_array_equal(numpy.concatenate([
                one['observations'][leaf][rows] for one in episodes]),
                found[f'{source}/{leaf}'])
    assert [*range(2, 14)] == numpy.diff(dataset.runs).tolist()


@pytest.fixture
def world_models():
    """Return the module of stable-worldmodel that reads and writes HDF5.

    The package itself imports simulators, which are not installed.
    """
    name = 'stable_worldmodel'
    package = types.ModuleType(name)
    found = importlib.util.find_spec(name)
    package.__path__ = list(found.submodule_search_locations)
    sys.modules[name] = package
    yield importlib.import_module(f'{name}.data.formats.hdf5')
    for module in [module for module in sys.modules
                   if module.split('.')[0] == name]:
        del sys.modules[module]


def write_episodes(module, path):
    """Write episodes by stable-worldmodel."""
    with module.HDF5Writer(path) as writer:
        writer.write_episodes([{
            'pixels': RNG.integers(0, 256, (count, 4, 4, 3), 'u1'),
            'action': RNG.random((count, 2), 'f4'),
            'state': RNG.random((count, 5))} for count in (7, 3, 12, 9)])


def assert_windows_of(module, path):
    """Compare windows with those of stable-worldmodel."""
    loader = module.HDF5Dataset(path=path, num_steps=2, frameskip=3)
    examples = [loader[number] for number in range(len(loader))]
    # HDF5 opens no file that a writer may add to beside others.
    loader.h5_file.close()
    windows = Windows(fuel.load(path), 2, step=3, dense=('action',))
    assert len(examples) == len(windows)
    for number, expected in enumerate(examples):
        found = dict(zip(windows.sources, windows[number], strict=True))
        numpy.testing.assert_array_equal(
            expected['action'], found['action'].reshape(2, -1))
        numpy.testing.assert_array_equal(
            expected['pixels'], found['pixels'].transpose(0, 3, 1, 2))
        numpy.testing.assert_array_equal(expected['state'], found['state'])
    windows.close(None)


def test_windows_of_stable_worldmodel(tmp_path, world_models, monkeypatch):
    """The loader may also read through `open_hdf5`."""
    path = tmp_path / 'a.h5'
    write_episodes(world_models, path)
    assert_windows_of(world_models, path)
    monkeypatch.setattr(world_models, 'h5py', types.SimpleNamespace(
        File=open_hdf5))
    assert_windows_of(world_models, path)


def sequences(module, path, **kwargs):
    """Return the examples of robomimic's loader."""
    loader = module.SequenceDataset(
        path, ('agentview_image', 'robot0_eef_pos'), ('actions', 'rewards'),
        hdf5_cache_mode=None, load_next_obs=False, get_pad_mask=True,
        **kwargs)
    examples = [loader[number] for number in range(len(loader))]
    # HDF5 opens no file that a writer may add to beside others.
    loader.close_and_delete_hdf5_handle()
    return examples


def test_sequences_of_robomimic(tmp_path, monkeypatch):
    """They are padded at both sides and have a mask; `open_hdf5` reads them
    too."""
    module = importlib.import_module('robomimic.utils.dataset')
    path = write_demos(tmp_path, RNG).files
    given = {'frame_stack': 3, 'seq_length': 4,
             'filter_by_attribute': 'train'}
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(module, 'h5py', types.SimpleNamespace(
                File=open_hdf5))
        expected = sequences(module, path, **given)
        windows = Windows(fuel.load(path, 'train'), 6, pad='edge',
                          pad_before=2, pad_after=3)
        assert len(windows) == len(expected)
        for number, one in enumerate(expected):
            found = dict(zip(windows.sources, windows[number], strict=True))
            for source, key in (('obs/agentview_image', 'agentview_image'),
                                ('obs/robot0_eef_pos', 'robot0_eef_pos')):
                numpy.testing.assert_array_equal(one['obs'][key],
                                                 found[source])
            numpy.testing.assert_array_equal(one['actions'],
                                             found['actions'])
            numpy.testing.assert_array_equal(
                one['obs']['pad_mask'][:, 0], found['mask'])
        windows.close(None)


def test_jets_of_salt_in_a_virtual_file(tmp_path):
    """The function of salt joins the files."""
    tools = importlib.import_module('ftag.vds')
    jets = []
    for number in range(3):
        jet = numpy.zeros(9, [('pt', 'f4'), ('eta', 'f4')])
        jet['pt'], jet['eta'] = RNG.random((2, 9))
        tracks = numpy.zeros((9, 5), [('d0', 'f4'), ('valid', '?')])
        tracks['d0'] = RNG.random((9, 5))
        with h5py.File(tmp_path / f'part_{number}.h5', 'w') as file:
            file.create_dataset('jets', data=jet, compression='lzf')
            file.create_dataset('tracks', data=tracks, compression='gzip')
        jets.append(jet)
    path = tools.create_virtual_file(
        tmp_path / 'part_*.h5', tmp_path / 'vds.h5')
    found = read_all(fuel.load(path))
    with h5py.File(path) as file:
        for name in ('jets', 'tracks'):
            numpy.testing.assert_array_equal(file[name][()], found[name])
    numpy.testing.assert_array_equal(numpy.concatenate(jets), found['jets'])


def test_batches_of_salt(tmp_path, monkeypatch):
    """They are inputs, masks of valid entries and labels; `open_hdf5` reads
    them too."""
    module = importlib.import_module('salt.data.datasets')
    jets = numpy.zeros(40, [('pt', 'f4'), ('eta', 'f4'), ('label', 'i4')])
    tracks = numpy.zeros((40, 5), [
        ('d0', 'f4'), ('z0', 'f4'), ('other', 'f4'), ('valid', '?')])
    for table in jets, tracks:
        for name in table.dtype.names:
            table[name] = 9 * RNG.random(table.shape)
    tracks['valid'] = RNG.random((40, 5)) < .6
    path = tmp_path / 'a.h5'
    with h5py.File(path, 'w') as file:
        file.create_dataset('jets', data=jets, compression='lzf')
        file.create_dataset('tracks', data=tracks, compression='gzip')
    rows = fuel.load(path).get_data(None, slice(7, 23))
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(module, 'h5py', types.SimpleNamespace(
                File=open_hdf5, Dataset=HDF5Array))
        inputs, masks, labels = module.SaltDataset(
            path, None, {'jets': ['pt', 'eta'], 'tracks': ['z0', 'd0']},
            'fit', labels={'jets': ['label']})[7:23]
        numpy.testing.assert_array_equal(labels['jets']['label'],
                                         rows[0]['label'])
        numpy.testing.assert_array_equal(masks['tracks'], ~rows[1]['valid'])
        for place, name in enumerate(('pt', 'eta')):
            numpy.testing.assert_array_equal(
                inputs['jets'][:, place], rows[0][name])
        for place, name in enumerate(('z0', 'd0')):
            numpy.testing.assert_array_equal(
                inputs['tracks'][..., place],
                numpy.where(rows[1]['valid'], rows[1][name], 0))


def test_windows_of_the_well(tmp_path):
    """Windows are read over trajectories of the training set."""
    module = importlib.import_module('the_well.data.datasets')
    write_well(tmp_path, RNG)
    windows = Windows(fuel.load(tmp_path, 'train'), 3)
    with h5py.File(tmp_path / 'data' / 'train' / 'fluid.hdf5') as file:
        pressure = file['t0_fields/pressure'][()]
    assert module.maximum_stride_for_initial_index(0, 5, 1, 2) == 2
    starts = [(sample, start) for sample in range(2) for start in range(
        module.raw_steps_to_possible_sample_t0s(5, 1, 2, 1))]
    assert len(starts) == len(windows)
    place = windows.sources.index('t0_fields/pressure')
    for number, (sample, start) in enumerate(starts):
        numpy.testing.assert_array_equal(
            pressure[sample, start:start + 3], windows[number][place])


def test_series_of_nwb(tmp_path):
    """A series with time stamps."""
    nwb = importlib.import_module('pynwb')
    path = str(tmp_path / 'a.nwb')
    session = nwb.NWBFile(
        session_description='a test', identifier='x',
        session_start_time=datetime(2026, 1, 1, tzinfo=UTC))
    session.add_acquisition(nwb.TimeSeries(
        name='lfp', data=RNG.random((20, 3)), unit='V',
        timestamps=numpy.arange(20.) / 30))
    with nwb.NWBHDF5IO(path, 'w') as file:
        file.write(session)
    found = read_all(fuel.load(path))
    with nwb.NWBHDF5IO(path, 'r') as file:
        series = file.read().acquisition['lfp']
        for name in ('data', 'timestamps'):
            numpy.testing.assert_array_equal(
                getattr(series, name)[()], found[f'acquisition/lfp/{name}'])


def test_series_of_temporaldata(tmp_path):
    """An irregular series."""
    temporal = importlib.import_module('temporaldata')
    path = tmp_path / 'a.h5'
    data = temporal.Data(
        cursor=temporal.IrregularTimeSeries(
            numpy.arange(20.), position=RNG.random((20, 2)), domain='auto'),
        domain='auto')
    with h5py.File(path, 'w') as file:
        data.to_hdf5(file)
    found = read_all(fuel.load(path))
    for name in ('position', 'timestamps'):
        numpy.testing.assert_array_equal(
            getattr(data.cursor, name), found[f'cursor/{name}'])
