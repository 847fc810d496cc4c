"""The command ``fuel-info``."""
import h5py
import pytest
import raw_data

from fuel.bin import fuel_convert, fuel_info

BLOCK = """
Metadata for iris.hdf5
======================

The command used to generate this file is

    fuel-convert iris

Relevant versions are

    H5PYDataset      0.3
    fuel.converters  0.2
"""


def test_info_prints_the_old_block_first(tmp_path, monkeypatch, capsys):
    """Text, never b'...'."""
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert 0 == fuel_convert.main(['iris'])
    assert 0 == fuel_info.main(['iris.hdf5'])
    out = capsys.readouterr().out
    assert out.startswith(BLOCK)
    assert "b'" not in out


def test_info_of_an_untagged_file_says_unknown(tmp_path, capsys):
    """A file of one's own need not have been made by fuel-convert."""
    with h5py.File(tmp_path / 'a.hdf5', 'w') as h5file:
        h5file['x'] = [1]
    assert 0 == fuel_info.main([str(tmp_path / 'a.hdf5')])
    assert 'unknown' in capsys.readouterr().out


@pytest.mark.parametrize('content', [None, b'', raw_data.PAGE])
def test_info_of_no_hdf5_file_is_an_error(tmp_path, capsys, content):
    """R59: `args` count; the file is named."""
    path = tmp_path / 'a.hdf5'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit, match='2'):
        fuel_info.main([str(path)])
    assert 'a.hdf5' in capsys.readouterr().err
