"""The list of data sets that two commands print."""
import pytest
from support import raw_data

from fuel.bin import fuel_convert, fuel_download


@pytest.mark.parametrize('main', [fuel_convert.main, fuel_download.main])
def test_list_names_every_set(main, tmp_path, monkeypatch, capsys):
    """It shows size, terms, and whether raw and converted files exist."""
    raw_data.mnist(tmp_path)
    raw_data.iris(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert 0 == fuel_convert.main(['iris'])
    with pytest.raises(SystemExit, match='0'):
        main(['--list'])
    lines = {line.split()[0]: line.split(None, 1)[-1]
             for line in capsys.readouterr().out.splitlines()}
    assert 'KMNIST'.lower() in lines
    assert 'CC BY-SA 4.0' in lines['kmnist']
    assert '4 of 4' in lines['mnist']
    assert '1 of 1' in lines['iris']
    assert 'iris.hdf5' in lines['iris']
    assert lines['adult'].startswith('6.0 MB')
    assert lines['dogs_vs_cats'].startswith('unknown')
    assert lines['adult'].endswith('unknown')
    if main is fuel_convert.main:
        assert ['-'] * 4 == lines['csv'].split()
