"""Files are recognised with care: they may be hostile or very large."""
import os

import h5py
import numpy
import pytest
from support.layouts import miniature_named

import fuel
from fuel import config
from fuel.datasets import HDF5Dataset, Rows
from fuel.exceptions import AmbiguousLayoutError, DamagedFileError
from fuel.layouts import recognition
from fuel.layouts.recognition import seen_files
from fuel.layouts.seen import MOST_NAMES
from fuel.storage import linked_files, nodes

# All attributes that a recogniser asks for, of the root or of what is in it.
ASKED = (
    'CLASS', 'DIMENSION_LIST', 'MATLAB_class', 'MATLAB_sparse', 'NAME',
    '_NCProperties', '_Netcdf4Dimid', '_index', 'categories', 'column-order',
    'dataset_name', 'encoding-type', 'grid_type', 'missing_value',
    'n_spatial_dims', 'n_trajectories', 'num_samples', 'object', 'sim',
    'time_varying', 'total_steps')
# Of these, any value is the sign of a layout.
SIGNS = {'MATLAB_class', '_NCProperties', '_Netcdf4Dimid', 'nwb_version'}
ODD = {
    'integers': numpy.arange(3), 'float': numpy.float32(1.5),
    'no number': numpy.zeros((0, 2)), 'empty': h5py.Empty('f8'),
    'text': 'surprise', 'bytes': numpy.bytes_(b'\xff\xfe'),
    'texts': numpy.array([['a', 'b']], h5py.string_dtype()),
    'table': numpy.zeros(2, [('a', 'i4'), ('b', 'S3')]),
    'opaque': numpy.void(b'\0\1\2'), 'true': numpy.bool_(True),
    'complex': numpy.complex64(1j), 'reference': h5py.Reference(),
    'region': h5py.RegionReference()}


def write_plain(path):
    """Write two arrays of one length, of any layout."""
    with h5py.File(path, 'w') as file:
        file['images'] = numpy.arange(40.).reshape(10, 4)
        file['labels/kind'] = numpy.arange(10)


@pytest.mark.parametrize('odd', ODD)
def test_attributes_of_odd_types_are_not_signs(odd, tmp_path):
    """Such attributes raise no error either."""
    path = str(tmp_path / 'plain.h5')
    write_plain(path)
    with h5py.File(path, 'r+') as file:
        for place in ('/', 'images', 'labels'):
            for name in {*ASKED} - SIGNS:
                file[place].attrs[name] = ODD[odd]
    dataset = fuel.load(path)
    assert ('images', 'labels/kind') == dataset.sources
    assert 10 == dataset.num_examples


@pytest.mark.parametrize('lengths', [(8, 4), (6, 6)])
def test_groups_that_are_called_as_splits_are_splits(lengths, tmp_path):
    """The groups may have any lengths, beside groups without arrays. The
    ``repr`` opens the same."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        for name, count in zip(('train', 'test'), lengths, strict=True):
            file[f'{name}/images'] = numpy.full((count, 2), count)
            file[f'{name}/labels/kind'] = numpy.arange(count)
        file['about/version'] = 3
    dataset = fuel.load(path, 'train')
    assert ('images', 'labels/kind') == dataset.sources
    assert ('test', 'train') == tuple(sorted(dataset.split_names))
    assert numpy.array_equal(
        numpy.arange(lengths[0]), dataset[:][1])
    assert numpy.array_equal(dataset[:][1], eval(
        repr(dataset), {'HDF5Dataset': HDF5Dataset})[:][1])
    assert sum(lengths) == len(fuel.load(path))


@pytest.mark.parametrize('spoil', [
    lambda file: file.move('test', 'weights'),
    lambda file: file.move('test/y', 'test/z'),
    lambda file: file.create_dataset('top', data=range(3))])
def test_groups_of_other_names_or_arrays_are_not_splits(spoil, tmp_path):
    """Such groups have arrays as others do."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        for name in ('train', 'test'):
            file[f'{name}/x'], file[f'{name}/y'] = range(3), range(3)
        spoil(file)
    assert {'train/x', 'train/y'} < {*fuel.load(path).sources}


@pytest.mark.parametrize('name', [
    'values', 'valence', 'devices', 'trainer', 'evaluator', 'testimony'])
def test_words_that_begin_as_names_of_splits_are_not_splits(name, tmp_path):
    """Neither groups nor lists of such names are splits."""
    path = str(tmp_path / 'words.h5')
    with h5py.File(path, 'w') as file:
        file[f'{name}/x'] = range(3)
    assert (f'{name}/x',) == fuel.load(path).sources
    with h5py.File(path, 'w') as file:
        file['x'] = file[f'masks/{name}'] = range(3)
    assert (f'masks/{name}', 'x') == fuel.load(path).sources


@pytest.mark.parametrize('lists', [
    {'train': [0, 2, 3], 'test': [1]}, {'train': [True, False, True, True]}])
def test_lists_of_rows_for_each_split_are_splits(lists, tmp_path):
    """The lists are not sources."""
    path = str(tmp_path / 'listed.h5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(4)
        for name, rows in lists.items():
            file[f'splits/{name}'] = rows
    dataset = fuel.load(path, 'train')
    assert ('x',) == dataset.sources
    assert [0, 2, 3] == dataset[:][0].tolist()
    assert "splits='splits'" in repr(dataset)


def test_ways_to_open_a_file_say_how_many_rows_they_have(tmp_path):
    """The numbers of rows are why there are several ways."""
    path = str(tmp_path / 'uneven.h5')
    with h5py.File(path, 'w') as file:
        file['x'], file['y'] = numpy.zeros((200, 3)), numpy.zeros(199)
    with pytest.raises(AmbiguousLayoutError, match=(
            r"\['x'\]\)  # 200 rows\n.*\['y'\]\)  # 199 rows")):
        fuel.load(path)


@pytest.mark.parametrize('odd', ODD)
@pytest.mark.parametrize('name', [
    'h5ad', 'robomimic', 'LIBERO', 'ALOHA', 'Minari', 'D4RL', 'NWB',
    'RETURNN', 'torch_brain', 'MATLAB', 'netCDF'])
def test_signs_of_odd_types_are_told_from_sure_ones(name, odd, tmp_path):
    """Each attribute is replaced: the result is rows, or an error that names
    the file."""
    miniature = miniature_named(name)
    files = miniature.write(tmp_path, numpy.random.default_rng(1)).files
    paths = [str(path) for path in tmp_path.rglob('*') if path.is_file()]

    def replace(_, node):
        for attribute in {*node.attrs} & {*ASKED}:
            if not isinstance(node.attrs[attribute], h5py.Reference):
                node.attrs[attribute] = ODD[odd]

    for path in paths:
        if h5py.is_hdf5(path):
            with h5py.File(path, 'r+') as file:
                replace('/', file)
                file.visititems(replace)
    try:
        dataset = fuel.load(files)
    except (ValueError, OSError) as error:
        text = str(error)
        assert any(path in text for path in paths)
        for words in ('truth value', 'invalid literal', 'not subscriptable',
                      'has no attribute', 'unsupported operand', 'unhash',
                      'not iterable'):
            assert words not in text
    else:
        dataset.get_data(None, slice(0, dataset.num_examples))


def test_what_has_no_rows_is_passed_over(tmp_path):
    """Empty, scalar and reference arrays, broken links and named types are
    ignored."""
    path = str(tmp_path / 'plain.h5')
    write_plain(path)
    with h5py.File(path, 'r+') as file:
        file['scalar'], file['none'] = 3, numpy.zeros((0, 3))
        file['nothing'] = h5py.Empty('f4')
        file['type'] = numpy.dtype('f4')
        file.create_dataset('references', (4,), h5py.ref_dtype)
        file['broken'] = h5py.SoftLink('/nowhere')
        file['gone'] = h5py.ExternalLink('gone.h5', '/')
        file['again'] = h5py.SoftLink('/images')
    dataset = fuel.load(path)
    assert ('again', 'images', 'labels/kind') == dataset.sources


def test_groups_that_lead_to_each_other_are_seen_once(tmp_path):
    """Hard and soft links may lead from group to group."""
    path = str(tmp_path / 'circle.h5')
    write_plain(path)
    with h5py.File(path, 'r+') as file:
        file['labels/up'] = file['/']
        file['labels/again'] = file['labels']
        file['labels/soft'] = h5py.SoftLink('/')
        file['labels/outside'] = h5py.ExternalLink('circle.h5', '/')
    assert ('images', 'labels/kind') == fuel.load(path).sources


def test_links_to_files_elsewhere_are_refused_but_where_they_are_meant(
        tmp_path):
    """A file must not make another one be read."""
    (tmp_path / 'inside').mkdir()
    write_plain(tmp_path / 'outside.h5')
    path = str(tmp_path / 'inside' / 'links.h5')
    with h5py.File(path, 'w') as file:
        file['x'] = h5py.ExternalLink('../outside.h5', '/images')
    with pytest.raises(ValueError, match='lies outside of the folder'):
        fuel.load(path)
    assert 10 == fuel.load(path, follow='anywhere').num_examples


def test_groups_may_be_nested_deeper_than_pythons_stack(tmp_path):
    """The walk of a file does not recurse."""
    path = str(tmp_path / 'deep.h5')
    with h5py.File(path, 'w') as file:
        file['x'] = numpy.arange(3)
        group = file
        for _ in range(3000):
            group = group.create_group('a')
        group['y'] = numpy.arange(3)
        assert 2 == len([*nodes.find_arrays(file, None)])
    with pytest.raises(ValueError, match='no known layout') as caught:
        fuel.load(path)
    assert 2000 > len(str(caught.value))


@pytest.fixture(scope='module')
def many_groups(tmp_path_factory):
    """Return the path of a file with a list of very many groups."""
    path = str(tmp_path_factory.mktemp('many') / 'many.h5')
    with h5py.File(path, 'w', libver='latest') as file:
        for number in range(20 * MOST_NAMES):
            file.create_group(f'group {number}')
    return path


def test_files_of_many_groups_are_not_walked(many_groups, monkeypatch):
    """Recognisers look at the first names only."""
    found = []
    find_node = nodes.find_node

    def count(root, path, open_linked):
        found.append(path)
        return find_node(root, path, open_linked)

    monkeypatch.setattr(nodes, 'find_node', count)
    with seen_files(many_groups) as seen:
        assert MOST_NAMES == len(seen.files[0].names())
        assert seen.files[0].has_more()
    with pytest.raises(ValueError, match='no known layout') as caught:
        fuel.load(many_groups)
    assert len(found) < 3 * MOST_NAMES
    assert 2000 > len(str(caught.value))


def write_demos(path, count=MOST_NAMES + 1):
    """Write many demonstrations."""
    with h5py.File(path, 'w', libver='latest') as file:
        for number in range(count):
            demo = file.create_group(f'data/demo_{number}')
            demo.attrs['num_samples'] = 2
            demo['actions'] = numpy.full(2, number)


def test_layout_of_many_groups_is_kept(tmp_path, monkeypatch):
    """The next time its recogniser alone is asked, and the same data set
    comes out; of a file in another state all are."""
    config.remote_cache_path = str(tmp_path / 'cache')
    path = tmp_path / 'demos.h5'
    write_demos(path)
    asked = []
    own = recognition._own

    def note(name):
        asked.append(name)
        return own(name)

    monkeypatch.setattr(recognition, '_own', note)
    first = fuel.load(path)
    assert {*recognition.SURE} <= {*asked}
    asked.clear()
    second = fuel.load(path)
    assert ['robomimic'] == asked
    assert repr(first) == repr(second)
    asked.clear()
    os.utime(path, ns=(0, 0))
    assert repr(first) == repr(fuel.load(path))
    assert {*recognition.SURE} <= {*asked}


@pytest.mark.parametrize('names', [
    [b'aloha'], [b'plain'], [b'no layout'], [b'robomimic', b'aloha'], [b''],
    numpy.zeros((1, 1), 'S9'), numpy.zeros(1, 'i4'), numpy.zeros((), 'S9')])
def test_kept_layout_that_is_none_is_found_anew(names, tmp_path, monkeypatch):
    """Any program may have made a kept layout, so its recogniser is asked."""
    config.remote_cache_path = str(tmp_path / 'cache')
    path = tmp_path / 'demos.h5'
    write_demos(path)
    with monkeypatch.context() as patches:
        patches.setattr(linked_files, 'kept_arrays', lambda files, key: {
            'layout': numpy.array(names)} if key.startswith('layout')
            else None)
        assert 'demo_*' in repr(fuel.load(path))


def test_broken_links_are_not_groups(tmp_path):
    """The search for groups passes over broken links."""
    path = str(tmp_path / 'demos.h5')
    write_demos(path, 3)
    with h5py.File(path, 'r+') as file:
        file['data/demo_3'] = h5py.ExternalLink('absent.h5', '/')
    with seen_files(path) as seen:
        assert [f'data/demo_{number}' for number in range(3)] == (
            seen.files[0].groups('data', 'demo_[0-9]+'))


def test_arrays_of_a_group_of_many_are_none_by_chance(tmp_path):
    """Some arrays were not seen, so nothing says that all have one length."""
    path = str(tmp_path / 'many.h5')
    with h5py.File(path, 'w') as file:
        for number in range(MOST_NAMES + 1):
            file[f'x{number}'] = numpy.arange(2)
    with pytest.raises(ValueError, match='no known layout'):
        fuel.load(path)
    with h5py.File(path, 'r+') as file:
        del file['x0']
    assert MOST_NAMES == len(fuel.load(path).sources)


def test_calls_of_an_error_open_the_file(tmp_path):
    """Each call opens it as printed."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        file['train_x'], file['train_y'] = numpy.zeros((6, 2)), numpy.arange(6)
        file['test_x'] = numpy.zeros((3, 2))
    with pytest.raises(AmbiguousLayoutError) as caught:
        fuel.load(path)
    calls = [line.strip() for line in str(caught.value).splitlines()
             if line.startswith('    ')]
    counts = [eval(call, {'HDF5Dataset': HDF5Dataset}).num_examples
              for call in calls]
    assert [6, 3] == counts


@pytest.mark.parametrize('names', [
    ['x_train', 'y_train', 'x_test', 'y_test'],
    ['train-x', 'train-y', 'val-x', 'val-y'],
    ['in/Test.x', 'in/Test.y', 'in/dev.x', 'in/dev.y']])
@pytest.mark.parametrize('length', [6, 9])
def test_arrays_called_by_splits_are_not_columns_of_the_same_rows(
        tmp_path, names, length):
    """If all have one length, the file may also be read as it is."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        for place, name in enumerate(names):
            file[name] = numpy.arange(6 if place < 2 else length)
    with pytest.raises(AmbiguousLayoutError) as caught:
        fuel.load(path)
    found = [eval(line, {'HDF5Dataset': HDF5Dataset, 'Rows': Rows})
             for line in str(caught.value).splitlines()
             if line.startswith('    ')]
    assert [2, 2, 4][:2 + (length == 6)] == [
        len(dataset.sources) for dataset in found]
    assert {6, length} == {len(dataset) for dataset in found}
    assert {*found[0].sources} == {*found[1].sources}


@pytest.mark.parametrize('names', ['{}_x', 'x-{}', 'in/{}.x'])
@pytest.mark.parametrize('length', [6, 9])
def test_arrays_called_by_splits_are_opened_by_split(tmp_path, names, length):
    """The error without one names them."""
    path = str(tmp_path / 'two.h5')
    with h5py.File(path, 'w') as file:
        file[names.format('Train')] = numpy.zeros(6)
        file[names.format('val')] = numpy.ones(length)
    with pytest.raises(AmbiguousLayoutError, match=(
            "choose the split '(train' or 'val|val' or 'train)', or one of")):
        fuel.load(path)
    for split, value, count in ('train', 0, 6), ('val', 1, length):
        for asked in split, (split,):
            x, = fuel.load(path, asked)[:]
            assert [value] * count == x.tolist()
    for other in 'test', ('train', 'val'):
        with pytest.raises(AmbiguousLayoutError):
            fuel.load(path, other)


@pytest.mark.parametrize('write', [
    lambda file: file.attrs.update(keras_version='2.1'),
    lambda file: file.create_group('model_weights'),
    lambda file: [file.move(name, f'layers/dense/vars/{number}')
                  for number, name in enumerate(['images', 'labels/kind'])]])
def test_weights_of_models_are_not_data(write, tmp_path):
    """Weights that all have one length are refused too."""
    path = str(tmp_path / 'weights.h5')
    write_plain(path)
    with h5py.File(path, 'r+') as file:
        write(file)
    with pytest.raises(ValueError, match='Keras') as caught:
        fuel.load(path)
    assert path in str(caught.value)


def _robomimic(path, name='num_samples', group='data/demo_{}',
               arrays=('actions', 'obs/x'), count=3, wrong=None):
    """Write groups that state their number of rows, one a wrong one."""
    with h5py.File(path, 'w') as file:
        for number in range(count):
            part = file.create_group(group.format(number))
            part.attrs[name] = 2 + (number == wrong)
            for array in arrays:
                part[array] = numpy.full(2, number)


def _minari(path, **kwargs):
    _robomimic(path, 'total_steps', 'episode_{}', (
        'actions', 'rewards', 'terminations', 'truncations'), **kwargs)


STATED = pytest.mark.parametrize('write, part, array', [
    (_robomimic, 'data/demo_1', 'actions'),
    (_minari, 'episode_1', 'terminations')])


@STATED
def test_length_stated_wrongly_in_another_file_is_refused(
        tmp_path, write, part, array):
    """All files are compared, and not only the first."""
    paths = [str(tmp_path / f'{name}.h5') for name in ('good', 'bad')]
    write(paths[0])
    write(paths[1], wrong=1)
    text = (f"{paths[1]!r}: '.*' of {part!r} states 3 rows, and "
            f"'{part}/{array}' has 2")
    for given in paths, paths[1], str(tmp_path / '*.h5'):
        with pytest.raises(DamagedFileError, match=text):
            fuel.load(given)
    write(paths[1])
    assert 12 == fuel.load(paths).num_examples


@STATED
def test_length_stated_wrongly_in_any_of_many_groups_is_refused(
        tmp_path, write, part, array):
    """Recognisers look at the first names only, in the order of text."""
    wrong = MOST_NAMES - 1
    path = str(tmp_path / 'many.h5')
    config.remote_cache_path = str(tmp_path / 'cache')
    write(path, count=MOST_NAMES + 10, wrong=wrong)
    part = part.replace('1', str(wrong))
    # The second time, the parts' metadata come from the cache.
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=f'{part!r} states 3 rows'):
            fuel.load(path)


def test_length_stated_wrongly_in_a_linked_part_is_refused(tmp_path):
    """Links are followed as they are for arrays."""
    _robomimic(tmp_path / 'there.h5', wrong=1)
    with h5py.File(tmp_path / 'here.h5', 'w') as file:
        for number in range(2):
            file[f'data/demo_{number}'] = h5py.ExternalLink(
                'there.h5', f'data/demo_{number}')
    with pytest.raises(DamagedFileError, match="'data/demo_1' states 3"):
        fuel.load(tmp_path / 'here.h5')


def test_stated_length_is_compared_with_the_sources_that_are_read(tmp_path):
    """Columns that leave out rows, and attributes that are not integers, are
    not compared."""
    path = str(tmp_path / 'a.h5')
    _robomimic(path)
    assert 3 == fuel.load(
        path, columns={'x': Rows('obs/x', start=1)}).num_examples
    with h5py.File(path, 'r+') as file:
        file['data/demo_1'].attrs['num_samples'] = 3
    for kwargs in ({'sources': ('obs/x',)}, {'columns': {'y': 'obs/x'}}):
        with pytest.raises(DamagedFileError, match=(
                "'num_samples' of 'data/demo_1' states 3 rows, and "
                "'data/demo_1/obs/x' has 2")):
            fuel.load(path, **kwargs)
    with pytest.raises(DamagedFileError, match='states 3 rows'):
        fuel.load(path, parts='data/demo_1')
    assert 2 == fuel.load(path, parts='data/demo_2').num_examples
    for stated in 'many', numpy.array([3, 3]), 3.:
        with h5py.File(path, 'r+') as file:
            file['data/demo_1'].attrs['num_samples'] = stated
        assert 6 == fuel.load(path).num_examples
