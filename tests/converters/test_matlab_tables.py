"""Tables of MATLAB's, read without SciPy."""
import io
import struct
import zlib
from contextlib import suppress

import numpy
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import raw_data

from fuel.converters import ilsvrc2010, ilsvrc2012
from fuel.converters.raw import matlab
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.matlab import read_table

pytest.importorskip('scipy')

META = raw_data.meta_mat('ILSVRC2010_ID', [1, 2, 3], 2010)


def saved(variables, **kwargs):
    """Return a MATLAB file with variables."""
    from scipy.io import savemat
    out = io.BytesIO()
    savemat(out, variables, **kwargs)
    return out


def unpacked(content):
    """Return a MATLAB file with its variables as they are, not packed."""
    parts, place = [content[:128]], 128
    while place < len(content):
        _, length = struct.unpack_from('<II', content, place)
        parts.append(zlib.decompress(
            content[place + 8:place + 8 + length]))
        place += 8 + length
    return b''.join(parts)


CELLS = st.one_of(
    st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=40),
    st.lists(st.integers(-2 ** 31, 2 ** 31 - 1), max_size=9).map(
        lambda numbers: numpy.array(numbers, 'int32')),
    st.floats(allow_nan=False),
    st.lists(st.integers(0, 255), max_size=5).map(
        lambda numbers: numpy.array(numbers, 'uint8')))


@settings(deadline=None)
@given(st.data(), st.booleans())
def test_tables_are_those_that_were_saved(data, compressed):
    """They have any number of rows and fields, of texts and numbers."""
    fields = data.draw(st.lists(st.sampled_from(
        ['a', 'id', 'a_longer_name', 'WNID']), min_size=1, unique=True))
    rows = data.draw(st.lists(
        st.tuples(*[CELLS] * len(fields)), max_size=5))
    table = numpy.empty((len(rows), 1), [(name, object) for name in fields])
    for place, row in enumerate(rows):
        table[place, 0] = row
    file = saved({'other': numpy.arange(5.), 'table': table},
                 do_compression=compressed)
    found = read_table(file, 'a.mat', 'table')
    assert fields == list(found)
    for field, column in found.items():
        assert len(rows) == len(column)
        for place, cell in enumerate(column):
            wanted = table[field][place, 0]
            if isinstance(wanted, str):
                assert wanted == cell or not (wanted or len(cell))
            else:
                numpy.testing.assert_array_equal(
                    numpy.ravel(wanted), cell)


@pytest.mark.parametrize('module, year', [(ilsvrc2010, 2010),
                                          (ilsvrc2012, 2012)])
@pytest.mark.parametrize('compressed', [True, False])
def test_metadata_of_ilsvrc_is_what_scipy_reads(module, year, compressed,
                                                tmp_path):
    """It is given by its path and as an open file."""
    from scipy.io import loadmat
    content = raw_data.meta_mat(f'ILSVRC{year}_ID', [1, 2, 3], year)
    if not compressed:
        content = unpacked(content)
    (tmp_path / 'meta.mat').write_bytes(content)
    expected = loadmat(io.BytesIO(content), squeeze_me=True)
    for file in (io.BytesIO(content), tmp_path / 'meta.mat',
                 str(tmp_path / 'meta.mat')):
        found = module.read_metadata_mat_file(file)
        if year == 2010:
            found, costs = found
            numpy.testing.assert_array_equal(expected['cost_matrix'], costs)
        for field in found.dtype.names:
            for cell, wanted in zip(
                    found[field], expected['synsets'][field], strict=True):
                if field == 'children':
                    assert numpy.atleast_1d(wanted).tolist() == [
                        number for number in cell.tolist() if number != -1]
                elif found.dtype[field].kind == 'S':
                    assert wanted == cell.decode()
                else:
                    assert wanted == cell


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(
    st.integers(128, len(unpacked(META)) - 1), st.integers(0, 255)),
    min_size=1, max_size=4))
@example([(128, 15)])
def test_metadata_with_other_bytes_is_refused_or_read(changes):
    """There is never another error, and the process goes on."""
    content = bytearray(unpacked(META))
    for place, byte in changes:
        content[place] = byte
    with suppress(BadInputFile):
        ilsvrc2010.read_metadata_mat_file(io.BytesIO(bytes(content)))


@settings(deadline=None)
@given(st.integers(0, len(META) - 1))
def test_metadata_that_is_cut_is_refused(length):
    """It may end anywhere."""
    with pytest.raises(BadInputFile, match='meta.mat'):
        ilsvrc2010.read_metadata_mat_file(io.BytesIO(META[:length]))


def synsets(**changes):
    """Return ``meta.mat`` of one synset."""
    row = {'ILSVRC2012_ID': 1, 'WNID': 'n1', 'words': 'w', 'gloss': 'g',
           'num_children': 0, 'children': numpy.array([], 'uint16'),
           'wordnet_height': 0, 'num_train_images': 5, **changes}
    table = numpy.empty((1, 1), [(name, object) for name in row])
    table[0, 0] = tuple(row.values())
    return saved({'synsets': table}, long_field_names=True)


@pytest.mark.parametrize('changes', [
    {'num_children': 300}, {'children': numpy.array([40000])},
    {'ILSVRC2012_ID': 1.5}, {'num_train_images': -1},
    {'num_train_images': 'many'}, {'WNID': 7}, {'words': numpy.zeros(3)},
    {'wordnet_height': numpy.array([1, 2])}, {'gloss': {'a': 1}},
    {'num_train_images': float('nan')}, {'wordnet_height': 1j}])
def test_metadata_of_other_values_is_refused(changes):
    """Numbers that do not fit would be others."""
    with pytest.raises(BadInputFile, match='meta.mat'):
        ilsvrc2012.read_metadata_mat_file(synsets(**changes))


@pytest.mark.parametrize('variables, text', [
    ({}, "no variable 'synsets'"), ({'synsets': 3}, 'expected a table'),
    ({'synsets': numpy.zeros(2)}, 'expected a table'),
    ({'synsets': {'WNID': 'a'}}, 'expected a table of synsets')])
def test_metadata_of_something_else_is_refused(variables, text):
    """It is another kind of variable, or a table without the columns."""
    with pytest.raises(BadInputFile, match=text):
        ilsvrc2012.read_metadata_mat_file(saved(variables))


def test_metadata_that_would_take_too_much_memory_is_refused(monkeypatch):
    """One long text makes each row as long."""
    from fuel.converters import ilsvrc_metadata
    file = synsets(gloss='x' * 1000)
    assert 1 == len(ilsvrc2012.read_metadata_mat_file(file))
    monkeypatch.setattr(ilsvrc_metadata, 'MAX_TABLE', 500)
    with pytest.raises(BadInputFile, match='up to 1000 characters'):
        ilsvrc2012.read_metadata_mat_file(file)
    for limit, text in (('MOST_CELLS', 'has 1 rows of 8'),
                        ('MOST_NBYTES', 'more than 0 bytes'),
                        ('MOST_IN_A_CELL', 'a cell of')):
        with monkeypatch.context() as patched:
            patched.setattr(matlab, limit, 0)
            with pytest.raises(BadInputFile, match=text):
                ilsvrc2012.read_metadata_mat_file(file)
