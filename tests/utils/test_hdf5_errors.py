"""Errors of h5py become ones that name the file."""
import errno

import pytest

from fuel.exceptions import DamagedFileError
from fuel.storage.filters import raise_unless_damage
from fuel.utils.hdf5_errors import naming_file


@pytest.mark.parametrize('number', [errno.EMFILE, errno.ENFILE])
def test_lack_of_descriptors_is_not_called_damage(number):
    """The lack may be met by a module that is imported late."""
    lack = OSError(number, 'Too many open files', '/lib/encodings/ascii.py')
    with (pytest.raises(OSError, match=r'Too many.*raise the limit.*a\.hdf5'
                        ) as caught, naming_file('a.hdf5')):
        raise lack
    assert not isinstance(caught.value, DamagedFileError)
    assert (number, lack) == (caught.value.errno, caught.value.__cause__)
    with pytest.raises(OSError, match=r'Too many.*raise the limit.*a\.hdf5'):
        raise_unless_damage(lack, 'a.hdf5', 'x', ())


def test_other_errors_are_damage():
    """The error has the source, if one is read."""
    with (pytest.raises(DamagedFileError, match="'a.hdf5', source 'x'.*EIO"),
          naming_file('a.hdf5', 'x')):
        raise OSError(errno.EIO, 'EIO')
    raise_unless_damage(OSError(errno.EIO, 'EIO'), 'a.hdf5', 'x', ())
