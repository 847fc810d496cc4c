"""Files of a known layout that differ from the usual one in what versions,
options and devices differ in."""
import h5py
import numpy
import pytest
from scipy import sparse
from support.layouts import miniature_named
from support.layouts.cells import put_csr, put_text
from support.layouts.comparing import as_lists

import fuel
from fuel.datasets import CSR, Constant, Ragged, Rows
from fuel.layouts.recognition import find_call, seen_files

# Changed files, by name: the miniature, the change of its file, columns that
# must come out (None: must not), and words of the notes.
VARIANTS = {}


def varies(name, columns, *words):
    """Add a variant: a function that changes the file of a miniature."""
    def add(function):
        VARIANTS[f'{name}: {function.__name__.lstrip("_")}'] = (
            name, function, columns, words)
        return function
    return add


def put(file, path, array, **attributes):
    """Write an array, in the place of another if one is there."""
    if path in file:
        del file[path]
    file[path] = array
    file[path].attrs.update(attributes)


@varies('h5ad', {'X': CSR('X'), 'raw/X': CSR('raw/X'),
                 'obs/_index': Rows('obs/_index'), 'var/_index': None})
def _has_raw_counts(file):
    put_csr(file.create_group('raw'), 'X', sparse.csr_array((40, 50)))


@varies('h5ad', {'X': None, 'obs/depth': Rows('obs/depth')})
def _has_no_matrix(file):
    del file['X']


@varies('h5ad', {'X': None, 'obs/depth': Rows('obs/depth')})
def _has_none_as_matrix(file):
    del file['X']
    file['X'] = h5py.Empty('f4')
    file['X'].attrs['encoding-type'] = 'null'


@varies('h5ad', {'obs/_index/values': Rows('obs/_index/values'),
                 'obs/_index': None})
def _names_of_cells_may_be_missing(file):
    del file['obs/_index']
    index = file.create_group('obs/_index')
    put_text(index, 'values', ['cell'] * 40)
    index['mask'] = numpy.zeros(40, bool)


@varies('h5ad', {'obs/a/b': Rows('obs/a/b'), 'obs/odd': None}, "'odd'",
        'left out of')
def _has_a_slash_in_a_name_and_an_odd_column(file):
    file['obs/a/b'] = numpy.arange(40)
    file['obs/odd/inner'] = numpy.arange(3)
    file['obs'].attrs['column-order'] = ['a/b', 'odd']


@varies('h5ad', {'obsm/table/x': Rows('obsm/table/x'),
                 'obsm/counts': CSR('obsm/counts'), 'obsp/near': None})
def _has_tables_and_sparse_embeddings(file):
    put_csr(file['obsm'], 'counts', sparse.csr_array((40, 5)))
    put(file, 'obsm/table/x', numpy.arange(40))
    file['obsm/table'].attrs['column-order'] = ['x']
    put_csr(file.create_group('obsp'), 'near', sparse.csr_array((40, 40)))


@varies('h5ad before 0.7', {
    'raw.X': CSR('raw.X'), 'obs/index': Rows('obs', field='index'),
    'obsm/X_pca': Rows('obsm', field='X_pca')})
def _is_as_it_was(_):
    pass


@varies('ALOHA', {
    'observations/images/top': Rows('observations/images/top', ragged=True),
    'action': Rows('action')})
def _images_are_padded_bytes(file):
    put(file, 'observations/images/top', numpy.zeros(
        (len(file['action']), 99), 'u1'))
    file.attrs['compress'] = True


@varies('Minari', {'observations': Rows('observations', stop=-1),
                   'next_observations': Rows('observations', start=1),
                   'options/goal': None})
def _observes_one_array_and_has_options(file):
    for episode in file.values():
        observed = episode['observations/position'][()]
        put(episode, 'observations', observed)
        episode['options/goal'] = numpy.zeros(len(observed) - 1)


@varies('D4RL', {'timeouts': None, 'rewards': Rows('rewards')},
        "no array 'timeouts'")
def _was_made_before_there_were_timeouts(file):
    del file['timeouts']
    put(file, 'rewards', file['rewards'][()].reshape(-1, 1))


@varies('stable-worldmodel', {'ep_len': None, 'ep_offset': None,
                              'note': Rows('note')}, "'goals'")
def _has_text_and_what_is_of_no_step(file):
    file['note'] = numpy.array(['go'] * len(file['action']), object)
    file['goals'] = numpy.zeros((2, 3))


@varies('MACE', {'pbc': Constant('pbc'), 'cell': Constant('cell'),
                 'properties/dipole': Constant('properties/dipole'),
                 'properties/virials': Constant('properties/virials'),
                 'properties/forces': Rows('properties/forces')})
def _is_of_three_atoms_each(file):
    for batch in file.values():
        for one in batch.values():
            put(one, 'atomic_numbers', [8, 1, 1])
            for name in ('positions', 'properties/forces',
                         'properties/virials'):
                put(one, name, numpy.zeros((3, 3)))
            put(one, 'properties/dipole', numpy.zeros(3))


@varies('SPICE', {
    'scf_dipole': Rows('scf_dipole'), 'subset': Constant('subset'),
    'mbis_charges': Rows('mbis_charges', ragged=True),
    'conformations': Rows('conformations', ragged=True)})
def _has_vectors_as_long_as_a_molecule(file):
    for molecule in file.values():
        count, atoms, _ = molecule['conformations'].shape
        molecule['scf_dipole'] = numpy.zeros((count, 3))
        molecule['mbis_charges'] = numpy.zeros((count, atoms, 1))
        molecule['subset'] = numpy.array(['a'], object)


@varies('ANI', {'energiesHE': None, 'coordinatesHE': None,
                'smiles': Constant('smiles')}, "'energiesHE'",
        "'coordinatesHE'")
def _has_conformations_of_high_energy(file):
    for molecule in file['gdb11_s01'].values():
        atoms = len(molecule['species'])
        molecule['coordinatesHE'] = numpy.zeros((7, atoms, 3))
        molecule['energiesHE'] = numpy.zeros(7)
        molecule['smiles'] = numpy.array([b'C', b'O'])


@varies('ANI', {'atomic_numbers': Constant('atomic_numbers'),
                'coordinates': Rows('coordinates', ragged=True)})
def _has_numbers_of_elements(file):
    for molecule in file['gdb11_s01'].values():
        molecule['atomic_numbers'] = numpy.ones(len(molecule['species']))
        del molecule['species']


@varies('RETURNN', {'inputs': None, 'targets/data/phones': Ragged(
    'targets/data/phones', lengths=('seqLengths', 0))})
def _has_no_inputs(file):
    del file['inputs']
    put(file, 'seqLengths', file['seqLengths'][:, 1:])


@varies('RETURNN', {'inputs': Ragged('inputs', lengths='seqLengths')})
def _has_lengths_of_one_axis(file):
    del file['targets']
    put(file, 'seqLengths', file['seqLengths'][:, 0])


@varies('NWB', {'units/spike_times': Ragged(
    'units/spike_times', ends='units/spike_times_index')})
def _has_spikes_alone(file):
    del file['acquisition']
    file['units/spike_times'] = numpy.arange(9.)
    file['units/spike_times_index'] = [2, 2, 9]


@varies('PDEBench', {'nu': Rows('nu'), 'x-coordinate': None})
def _has_parameters_of_each_sample(file):
    file['nu'] = numpy.zeros((6, 5))


@varies('MATLAB', {'x': Rows('x', axis=-1), 'rate': None, 'none': None,
                   'name': None, 'title': None}, "'rate'", "'title'")
def _has_single_values_sparse_and_empty_arrays(file):
    put(file, 'rate', numpy.array([[30.]]), MATLAB_class=b'double')
    put(file, 'none', numpy.zeros(2, 'u8'), MATLAB_class=b'double',
        MATLAB_empty=1)
    put(file, 'name', numpy.zeros((1, 6), 'u4'), MATLAB_class=b'string',
        MATLAB_object_decode=3)
    for name in ('data', 'ir', 'jc'):
        file[f'matrix/{name}'] = numpy.arange(4)
    file['matrix'].attrs.update({'MATLAB_class': b'double',
                                 'MATLAB_sparse': 4})


@varies('The Well', {'t2_fields/none': None, 'dimensions/x': None},
        'boundary conditions')
def _has_no_parameters_and_an_empty_group(file):
    file.attrs['simulation_parameters'] = h5py.Empty('S1')
    file.create_group('t2_fields/none')


@pytest.mark.parametrize('name', VARIANTS)
def test_variants_are_recognised(name, tmp_path):
    """They have their columns, and notes on what is left out; every source can
    be read, also those that are not chosen."""
    which, change, columns, words = VARIANTS[name]
    miniature = miniature_named(which)
    written = miniature.write(tmp_path, numpy.random.default_rng(5))
    paths = sorted(path for path in tmp_path.rglob('*.*')
                   if h5py.is_hdf5(path))
    with h5py.File(paths[0], 'r+') as file:
        change(file)
    files = written.files
    if files == str(tmp_path):
        files = list(map(str, paths))
    with seen_files(files) as seen:
        layout, call = find_call(seen)
    assert miniature.layout == layout
    for source, column in columns.items():
        assert column == call.columns.get(source)
    notes = ' '.join(call.notes)
    assert all(word in notes for word in words), notes
    dataset = fuel.load(files, sources=tuple(call.columns))
    batch = dataset.get_data(None, slice(0, dataset.num_examples))
    for source, found in zip(dataset.sources, batch, strict=True):
        assert found.shape[0] == dataset.num_examples
        if source in written.values and source not in columns and (
                which != 'MACE'):
            assert as_lists(written.values[source]) == as_lists(found)
    dataset.close(None)


def test_layer_by_columns_is_refused_where_it_is_chosen(tmp_path):
    """The rest of the file is loaded."""
    miniature = miniature_named('h5ad')
    path = miniature.write(tmp_path, numpy.random.default_rng(5)).files
    with h5py.File(path, 'r+') as file:
        put_csr(file['layers'], 'by column', sparse.csr_array((40, 30)))
        file['layers/by column'].attrs['encoding-type'] = 'csc_matrix'
    assert 'X' in fuel.load(path).sources
    with pytest.raises(ValueError, match=r"layers\['by column'\].tocsr\(\)"):
        fuel.load(path, sources=['layers/by column'])


def test_matlab_text_alone_is_not_a_data_set(tmp_path):
    """A MATLAB file of text has no layout."""
    path = tmp_path / 'text.mat'
    with h5py.File(path, 'w') as file:
        put(file, 'title', numpy.array([[72], [105]], 'u2'),
            MATLAB_class=b'char')
    with pytest.raises(ValueError, match='no layout'):
        fuel.load(path, layout='matlab')


def test_source_that_is_left_out_says_why(tmp_path, monkeypatch):
    """The error has the call to change, or says what to do."""
    path = miniature_named('MACE').write(
        tmp_path, numpy.random.default_rng(5)).files
    with pytest.raises(ValueError, match=(
            "no source 'properties/stress': it is left out, since some "
            r"configurations .* name its column in the call Runs\(HDF5D")):
        fuel.load(path, sources=['properties/stress'])
    monkeypatch.setattr('fuel.layouts.molecules.MOST_CONFIGURATIONS', 2)
    with pytest.raises(ValueError, match=(
            "'properties/stress' must have .*config_batch_0/config_2' has "
            'object; choose other sources')):
        fuel.load(path)
    assert 7 == fuel.load(path, sources=['positions']).num_examples


def test_source_that_a_long_note_does_not_list_is_known(tmp_path):
    """A note shows the first arrays that are left out, and knows all."""
    path = miniature_named('D4RL').write(
        tmp_path, numpy.random.default_rng(5)).files
    with h5py.File(path, 'r+') as file:
        for number in range(12):
            file[f'extra_{number}'] = numpy.zeros(3)
    for number in (0, 11):
        with pytest.raises(ValueError, match=(
                f"there is no source 'extra_{number}': it is left out, since "
                'they do not have 60 rows: .* name its column')):
            fuel.load(path, sources=[f'extra_{number}'])


def test_note_that_names_an_array_does_not_say_that_it_is_left_out(tmp_path):
    """D4RL's note of files without time limits speaks of 'timeouts'."""
    path = miniature_named('D4RL').write(
        tmp_path, numpy.random.default_rng(5)).files
    with h5py.File(path, 'r+') as file:
        del file['timeouts']
    with seen_files(path) as seen:
        assert "'timeouts'" in find_call(seen)[1].notes[-1]
    with pytest.raises(ValueError, match="'timeouts'") as caught:
        fuel.load(path, sources=['timeouts'])
    assert 'it is there' not in str(caught.value)
