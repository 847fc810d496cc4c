"""Files that almost have a layout: an error that says why, never a wrong
row, never a guess."""
import os
from pathlib import Path

import h5py
import numpy
import pytest
from support.layouts import MINIATURES, miniature_named

import fuel
from fuel.datasets import CSR, Flat, HDF5Dataset, Ragged, Rows, Runs, Windows
from fuel.exceptions import AmbiguousLayoutError, DamagedFileError

# Spoiled files, by name: the miniature, the change of its file, the error and
# words of its text.
SPOILED = {}


def spoils(name, error, *words, load=fuel.load):
    """Add a near miss: a function that changes the file of a miniature."""
    def add(function):
        SPOILED[f'{name}: {function.__name__.lstrip("_")}'] = (
            name, function, error, words, load)
        return function
    return add


def replaced(file, path, array, **attributes):
    """Write an array in the place of another."""
    kept = dict(file[path].attrs)
    del file[path]
    file[path] = array
    file[path].attrs.update({**kept, **attributes})


def read_all(files):
    """Load files, and read every row of every source."""
    dataset = fuel.load(files)
    return dataset.get_data(None, slice(0, dataset.num_examples))


# Single cells.

@spoils('h5ad', ValueError, 'CSC', 'adata.X = adata.X.tocsr()')
def _stored_by_columns(file):
    file['X'].attrs['encoding-type'] = 'csc_matrix'


@spoils('h5ad', DamagedFileError, 'X', 'ends at')
def _indptr_decreases(file):
    file['X/indptr'][3] = file['X/indptr'][4] + 1


@spoils('h5ad', DamagedFileError, 'indptr should go from 0')
def _indptr_ends_beyond(file):
    file['X/indptr'][-1] += 5


@spoils('h5ad', DamagedFileError, 'should have 40 rows, and indptr has 0')
def _indptr_is_one_number(file):
    replaced(file, 'X/indptr', 5)


@spoils('h5ad', DamagedFileError, 'obs/cell_type', 'the code 1844674',
        load=read_all)
def _code_without_a_sign_is_none(file):
    codes = numpy.zeros(40, 'u8')
    codes[3] = 2 ** 64 - 1
    replaced(file, 'obs/cell_type/codes', codes)


@spoils('h5ad', DamagedFileError, 'indptr should go from 0')
def _indptr_begins_late(file):
    file['X/indptr'][0] = 1


@spoils('h5ad', DamagedFileError, 'should have 40 rows')
def _indptr_is_short(file):
    replaced(file, 'X/indptr', file['X/indptr'][:-1])


@spoils('h5ad', DamagedFileError, 'column 30', 'there are 30 columns',
        load=read_all)
def _column_beyond_shape(file):
    file['X/indices'][0] = 30


@spoils('h5ad', DamagedFileError, 'column -1', 'there are 30 columns',
        load=read_all)
def _column_is_negative(file):
    file['X/indices'][0] = -1


@spoils('h5ad', DamagedFileError, 'values and')
def _more_indices_than_values(file):
    file['X/indices'].resize((len(file['X/indices']) + 3,))


@spoils('h5ad', ValueError, "attribute 'shape'")
def _no_shape(file):
    del file['X'].attrs['shape']


@spoils('h5ad', DamagedFileError, 'it has the code 3', 'there are 3 categ',
        load=read_all)
def _code_beyond_names(file):
    file['obs/cell_type/codes'][5] = 3


@spoils('h5ad', DamagedFileError, 'it has the code -2', load=read_all)
def _code_below_missing(file):
    file['obs/cell_type/codes'][5] = -2


@spoils('h5ad', DamagedFileError, 'a category is there twice')
def _category_is_there_twice(file):
    file['obs/cell_type/categories'][1] = 'B cell'


@spoils('h5ad', ValueError, "'obs/depth' has 39")
def _column_of_obs_is_short(file):
    replaced(file, 'obs/depth', file['obs/depth'][:-1])


@spoils('h5ad', DamagedFileError, "'obs' should have the column 'depth'")
def _column_of_obs_is_gone(file):
    del file['obs/depth']


@spoils('h5ad', ValueError, "'obs/cell_type' must be integers")
def _codes_are_floating(file):
    replaced(file, 'obs/cell_type/codes', numpy.zeros(40))


# Robots.

@spoils('robomimic', ValueError, "'rewards' has 2")
def _demo_is_uneven(file):
    replaced(file, 'data/demo_0/rewards', numpy.zeros(2))


@spoils('robomimic', DamagedFileError, "'num_samples' of 'data/demo_3'",
        "'data/demo_3/actions' has")
def _demo_states_another_length(file):
    file['data/demo_3'].attrs['num_samples'] += 1


@spoils('Minari', DamagedFileError, "'total_steps' of 'episode_2'",
        "'episode_2/terminations' has")
def _episode_states_another_length(file):
    file['episode_2'].attrs['total_steps'] -= 1


@spoils('RETURNN', DamagedFileError, "'numSeqs' of '/'", "'seqLengths' has 9")
def _sequences_are_counted_otherwise(file):
    file.attrs['numSeqs'] = 8


@spoils('The Well', DamagedFileError, "'n_trajectories' of '/'")
def _trajectories_are_counted_otherwise(file):
    file.attrs['n_trajectories'] += 1


@spoils('robomimic', ValueError, 'demo_3', 'obs/agentview_image')
def _demo_lacks_an_array(file):
    del file['data/demo_3/obs/agentview_image']


@spoils('robomimic', ValueError, 'demo_10', 'float64', 'float32')
def _demo_has_another_type(file):
    replaced(file, 'data/demo_10/actions',
             file['data/demo_10/actions'][()].astype('f4'))


@spoils('robomimic', ValueError, 'demo_7', '(6,)')
def _demo_has_another_shape(file):
    count = len(file['data/demo_7/actions'])
    replaced(file, 'data/demo_7/actions', numpy.zeros((count, 6)))


@spoils('robomimic', ValueError, "there is no part 'demo_12'",
        load=lambda files: fuel.load(files, 'train'))
def _mask_names_no_demo(file):
    replaced(file, 'mask/train', numpy.array([b'demo_12']))


@spoils('robomimic', ValueError, "there is no split 'tain'", 'train',
        load=lambda files: fuel.load(files, 'tain'))
def _mask_of_another_name(file):
    pass


@spoils('robomimic', ValueError, 'lies outside of the folder')
def _demo_is_a_link_outside(file):
    del file['data/demo_2']
    file['data/demo_2'] = h5py.ExternalLink('/etc/passwd', '/')


@spoils('robomimic', ValueError, 'circle')
def _demo_is_a_link_to_itself(file):
    del file['data/demo_2/actions']
    file['data/demo_2/actions'] = h5py.SoftLink('/data/demo_2/actions')


@spoils('robomimic', FileNotFoundError, 'gone.h5')
def _demo_is_a_broken_external_link(file):
    del file['data/demo_2/actions']
    file['data/demo_2/actions'] = h5py.ExternalLink('gone.h5', '/')


@spoils('robomimic', ValueError, 'demo_2', 'is a group')
def _array_is_a_group(file):
    del file['data/demo_2/actions']
    file.create_group('data/demo_2/actions')


@spoils('robomimic', ValueError, 'demo_2', 'single value')
def _array_is_a_scalar(file):
    replaced(file, 'data/demo_2/actions', 3.)


@spoils('ALOHA', ValueError, 'episode_10.hdf5', 'observations/qvel')
def _episode_lacks_an_array(file):
    del file['observations/qvel']


@spoils('ALOHA', ValueError, 'episode_10.hdf5', 'has the attribute')
def _episode_is_one_of_fuels_own(file):
    file.attrs['split'] = 1


@spoils('ALOHA', ValueError, 'episode_10.hdf5', 'number of rows')
def _episode_is_cut(file):
    replaced(file, 'action', file['action'][:-1])


@spoils('Minari', ValueError, 'episode_1', 'number of rows')
def _episode_has_no_last_observation(file):
    replaced(file, 'episode_1/observations/position',
             file['episode_1/observations/position'][:-1])


@spoils('Minari', ValueError, 'episode_4', 'infos/x')
def _episode_lacks_infos(file):
    del file['episode_4/infos/x']


@spoils('D4RL', ValueError, "'rewards' has 59", 'has 60')
def _rewards_are_short(file):
    replaced(file, 'rewards', file['rewards'][:-1])
    del file['metadata']


@spoils('Minari', ValueError, "'rewards' has 2", "'actions' has 3")
def _only_episode_is_uneven(file):
    for number in range(1, 12):
        del file[f'episode_{number}']
    replaced(file, 'episode_0/rewards', numpy.zeros(2))


@spoils('robomimic', ValueError, "'obs/robot0_eef_pos' has 2",
        "'actions' has 3")
def _only_demo_is_uneven(file):
    for number in range(1, 12):
        del file[f'data/demo_{number}']
    replaced(file, 'data/demo_0/obs/robot0_eef_pos', numpy.zeros((2, 3)))


@spoils('D4RL', ValueError, 'terminals', load=lambda files: fuel.load(
    files).runs)
def _ends_are_numbers(file):
    replaced(file, 'terminals', numpy.linspace(0, 1, 60))


# Two layouts at once.

@spoils('D4RL', AmbiguousLayoutError, "'d4rl' and 'stable_worldmodel'",
        "{'ends': ('terminals', 'timeouts')}", "{'lengths': 'ep_len'}")
def _has_lengths_of_episodes_too(file):
    file['ep_len'], file['ep_offset'] = [25, 35], [0, 25]


@spoils('nested', AmbiguousLayoutError, "['test']", "['images', ")
def _has_arrays_of_two_lengths(file):
    file['test'] = numpy.zeros(20)


@spoils('makani', AmbiguousLayoutError, "'makani' and 'netcdf'",
        load=lambda files: fuel.load(files[1]))
def _says_that_it_is_netcdf_too(file):
    file.attrs['_NCProperties'] = 'version=2'


@spoils('NWB', AmbiguousLayoutError, 'acquisition/eye/data',
        'acquisition/lfp/data')
def _has_two_clocks(file):
    file['acquisition/eye/data'] = numpy.zeros((7, 2))
    file['acquisition/eye/timestamps'] = numpy.arange(7.)


@spoils('MATLAB', AmbiguousLayoutError, 'axis=-1')
def _is_square(file):
    for name in ('x', 'y'):
        replaced(file, name, numpy.zeros((12, 12)))


@spoils('MATLAB', AmbiguousLayoutError, "Rows('x', axis=-1)])  # 12 rows",
        "Rows('y', axis=-1)])  # 9 rows")
def _has_examples_of_two_lengths(file):
    replaced(file, 'y', numpy.zeros((1, 9)))


@spoils('netCDF', AmbiguousLayoutError, "'lat'", 'land')
def _has_no_time(file):
    for name in ('t2m', 'rain', 'time'):
        del file[name]


@spoils('PDEBench', AmbiguousLayoutError, "['extra']",
        load=lambda files: fuel.load(files, layout='plain'))
def _asked_for_as_plain_arrays(file):
    file['extra'] = numpy.zeros(3)


# None that fits.

@spoils('nested', ValueError, 'Keras')
def _holds_weights(file):
    file.attrs['keras_version'] = '3.0'


@spoils('nested', ValueError, 'no known layout', 'It has nothing')
def _is_empty(file):
    for name in list(file):
        del file[name]


@spoils('nested', ValueError, 'no known layout', "'of 3' float64 (3,)",
        'path/of/an/array')
def _has_many_lengths(file):
    for count in range(1, 8):
        file[f'of {count}'] = numpy.zeros(count)


@spoils('nested', ValueError, "no layout 'anndata'",
        load=lambda files: fuel.load(files, layout='anndata'))
def _asked_for_as_cells(file):
    pass


@spoils('nested', ValueError, "there is no layout 'andata'", "'anndata'",
        load=lambda files: fuel.load(files, layout='andata'))
def _asked_for_as_what_is_not_known(file):
    pass


# Worlds, fields, and the rest.

@spoils('stable-worldmodel', DamagedFileError, "'ep_offset' should be")
def _offsets_are_not_the_sum(file):
    file['ep_offset'][3] += 1


@spoils('stable-worldmodel', ValueError, 'ep_len', load=lambda files:
        HDF5Dataset(files, ['action'], runs={'lengths': 'ep_len'}).runs)
def _lengths_are_negative(file):
    file['ep_len'][0] = -1


@spoils('stable-worldmodel', ValueError, 'ep_len', load=lambda files:
        HDF5Dataset(files, ['action'], runs={'lengths': 'ep_len'}).runs)
def _lengths_do_not_cover(file):
    file['ep_len'][0] += 1


@spoils('stable-worldmodel', ValueError, 'step_idx', load=lambda files:
        HDF5Dataset(files, ['action'], runs={'numbers': 'step_idx'}).runs)
def _number_comes_back(file):
    file['step_idx'][:] = numpy.arange(len(file['step_idx'])) % 5


@spoils('The Well', ValueError, "'t0_fields/mask'", 'a row for each of')
def _mask_has_another_number(file):
    replaced(file, 't0_fields/mask', numpy.zeros((9, 4, 3), 'f4'))


@spoils('The Well', ValueError, 'rows')
def _field_has_another_time(file):
    replaced(file, 't1_fields/velocity', numpy.zeros((1, 3, 4, 3, 2), 'f4'))


@spoils('netCDF', ValueError, 'scale_factor')
def _scale_is_text(file):
    file['t2m'].attrs['scale_factor'] = 'a half'


@spoils('salt', (ValueError, OSError), 'vds.h5', load=read_all)
def _virtual_file_leads_outside(file):
    layout = h5py.VirtualLayout((30,), 'f4')
    layout[:] = h5py.VirtualSource('/etc/hostname', 'jets', (30,))
    del file['jets']
    file.create_virtual_dataset('jets', layout)


@spoils('salt', ValueError, "no field 'energy'", load=lambda files:
        HDF5Dataset(files, [Rows('jets', field='energy')]))
def _field_is_missing(file):
    pass


@spoils('MACE', ValueError, 'config_1', 'positions')
def _configuration_lacks_positions(file):
    del file['config_batch_1/config_1/positions']


@spoils('SPICE', ValueError, 'molecule 3', 'number of rows')
def _molecule_is_cut(file):
    replaced(file, 'molecule 3/formation_energy', numpy.zeros(9))


@spoils('RETURNN', DamagedFileError, 'inputs', 'lengths', load=read_all)
def _lengths_lead_beyond(file):
    file['seqLengths'][4, 0] += 100


@spoils('RETURNN', DamagedFileError, 'lengths', load=read_all)
def _length_is_negative(file):
    file['seqLengths'][4, 0] = -2


@spoils('PDEBench', ValueError, "'Vx' has 4", "'Vy' has 5")
def _velocity_is_short(file):
    del file['tensor']
    file['Vx'] = numpy.zeros((4, 5, 6))
    file['Vy'] = file['pressure'] = numpy.zeros((5, 5, 6))


@spoils('PDEBench groups', ValueError, '0005', 'data')
def _solution_is_missing(file):
    del file['0005/data']


@spoils('MultimodalUniverse', ValueError, '001.hdf5', 'z')
def _survey_lacks_a_column(file):
    del file['z']


@spoils('nested', ValueError, 'must be', load=lambda files: HDF5Dataset(
    files, ['images'], splits={'a': (0, 31)}, which_sets=('a',)))
def _split_leads_beyond(file):
    pass


@spoils('nested', ValueError, 'counted by 2 axes',
        load=lambda files: HDF5Dataset(files, [Flat('labels/kind')]))
def _flat_of_one_axis(file):
    pass


def file_to_spoil(written, name):
    """Return the path of the last file, which is changed."""
    files = written.files
    if isinstance(files, list):
        return files[-1]
    if os.path.isdir(files):
        return max((os.path.join(folder, one)
                    for folder, _, names in os.walk(files)
                    for one in names if one.endswith(('.h5', '.hdf5'))),
                   key=lambda path: 'train' in path)
    return files.replace('*', '10')


@pytest.mark.parametrize('name', SPOILED)
def test_near_misses_are_errors(name, tmp_path):
    """The error has the right class, and the words that help."""
    which, change, error, words, load = SPOILED[name]
    miniature = miniature_named(which)
    written = miniature.write(tmp_path, numpy.random.default_rng(5))
    with h5py.File(file_to_spoil(written, which), 'r+') as file:
        change(file)
    with pytest.raises(error) as caught:
        load(written.files)
    text = str(caught.value)
    assert all(word in text for word in words), text


def cut(file, path, axis):
    """Leave out the last row of an array; return how many are left."""
    array = file[path]
    count = array.shape[axis] - 1
    if array.maxshape[axis] is None:
        array.resize(count, axis)
    else:
        replaced(file, path, array[()].take(range(count), axis))
    return count


def array_of(file, path):
    """Return the path of the array that has a row for each of a source."""
    path = path.lstrip('/')
    return next(one for one in (
        path, f'{path}/codes', f'{path}/indptr', path.rpartition('/')[0])
        if isinstance(file.get(one), h5py.Dataset))


@pytest.mark.parametrize('miniature', [
    one for one in MINIATURES if one.layout != 'plain'], ids=str)
def test_array_of_another_length_is_an_error(miniature, tmp_path):
    """The error names the array of any source, and its length."""
    numbers = iter(range(100))

    def write():
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        files = miniature.write(folder, numpy.random.default_rng(5)).files
        return folder, files

    folder, files = write()
    dataset = fuel.load(files)
    rows = dataset.dataset if isinstance(dataset, Runs) else dataset
    # Of trajectories and times the latter.
    paths = {column.paths()[0]: 1 if isinstance(column, Flat) else getattr(
        column, 'axis', 0)
             for source, column in rows.columns.items()
             if column.counts_rows and source in rows.sources}
    # The first run whose arrays have rows left.
    row = int(rows.runs[numpy.flatnonzero(numpy.diff(rows.runs) > 1)[0]])
    place = rows.place_of_row(row)
    for path in paths if len(paths) > 1 else []:
        other, files = write()
        with h5py.File(other / Path(place.file).relative_to(folder),
                       'r+') as file:
            array = array_of(file, f'{place.part}/{path}')
            # Of offsets there is one more.
            count = cut(file, array, paths[path]) - array.endswith('indptr')
        with pytest.raises((ValueError, DamagedFileError),
                           match=rf'\b{count}\b') as caught:
            read_all(files)
        text = str(caught.value)
        # The error of a table may name its array.
        assert path in text or array in text


def test_there_are_enough_near_misses():
    """The table has at least fifty cases."""
    assert len(SPOILED) >= 50


def test_missing_part_of_a_virtual_data_set_is_an_error(tmp_path):
    """HDF5 gives fill values."""
    miniature = miniature_named('salt')
    written = miniature.write(tmp_path, numpy.random.default_rng(5))
    (tmp_path / 'part_1.h5').unlink()
    with pytest.raises(FileNotFoundError, match=r'part_1\.h5'):
        read_all(written.files)


def test_genes_must_be_equal(tmp_path):
    """A column of X would mean two genes."""
    miniature = miniature_named('h5ad')
    files = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        files.append(miniature.write(
            tmp_path / str(number), numpy.random.default_rng(5)).files)
    assert 80 == fuel.load(files).num_examples
    with h5py.File(files[1], 'r+') as file:
        file['var/_index'][3] = 'another'
    with pytest.raises(ValueError, match='other genes'):
        fuel.load(files)


def test_empty_runs_are_not_examples_of_windows(tmp_path):
    """The class Runs has them as examples."""
    path = str(tmp_path / 'runs.h5')
    with h5py.File(path, 'w') as file:
        file['x'], file['ep_len'] = numpy.arange(5), [0, 3, 0, 2, 0]
        file['ep_offset'] = [0, 0, 3, 3, 5]
    dataset = fuel.load(path)
    assert [0, 0, 3, 3, 5, 5] == dataset.runs.tolist()
    assert 5 == len(Runs(dataset))
    assert [0, 1, 3] == [int(row[0]) for row in Windows(
        dataset, 2).get_data(None, slice(0, 3))[0]]


@pytest.mark.parametrize('column', [CSR('x'), Ragged('x', lengths='x')])
def test_columns_of_the_wrong_kind_say_so(column, tmp_path):
    """The error names the column that fits, if it is known."""
    path = str(tmp_path / 'x.h5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(5.)
    with pytest.raises(ValueError, match='x'):
        HDF5Dataset(path, [column])
