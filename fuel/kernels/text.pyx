"""Lines of text made into lists of numbers."""
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, \
    PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cdef extern from 'Python.h':
    PyObject *PyDict_GetItemWithError(dict mapping, object key) except? NULL


cdef class MissingTokenError(Exception):
    """A token that is not in the vocabulary.

    `place`: the number of the line that it is in.
    """

    cdef readonly Py_ssize_t place
    cdef readonly object token

    def __init__(self, place, token):
        super().__init__(place, token)
        self.place = place
        self.token = token


def numberize(list lines not None, dict vocabulary not None, bint by_word,
              list before not None, list after not None, unknown):
    """Return for each line the numbers of its tokens.

    `by_word`: whether tokens are what stands between white space, as opposed
        to the characters between the first and the last that are not white.
    `unknown`: the number of tokens that are not in the vocabulary.

    Examples
    --------
    >>> numberize(['a b', ' b'], {'a': 0, 'b': 1}, True, [7], [8, 9], None)
    [[7, 0, 1, 8, 9], [7, 1, 8, 9]]
    """
    cdef list tokens, out
    cdef list result = []
    cdef Py_ssize_t n_before = len(before), n_after = len(after)
    cdef Py_ssize_t place, i, count
    cdef PyObject *number
    for place in range(len(lines)):
        line = lines[place]
        if not isinstance(line, str):
            raise TypeError('preprocess must return a string, but returned '
                            f'{line!r:.60} ({type(line).__name__})')
        tokens = (<str>line).split() if by_word else list((<str>line).strip())
        count = PyList_GET_SIZE(tokens)
        out = PyList_New(n_before + count + n_after)
        # Every place is filled before anything else can see the list.
        for i in range(n_before):
            put(out, i, before[i])
        for i in range(n_after):
            put(out, n_before + count + i, after[i])
        for i in range(count):
            token = <object>PyList_GET_ITEM(tokens, i)
            number = PyDict_GetItemWithError(vocabulary, token)
            if number is not NULL:
                put(out, n_before + i, <object>number)
            elif unknown is not None:
                put(out, n_before + i, unknown)
            else:
                for i in range(i, count):
                    put(out, n_before + i, None)
                raise MissingTokenError(place, token)
        result.append(out)
    return result


cdef inline void put(list out, Py_ssize_t place, object value):
    Py_INCREF(value)
    PyList_SET_ITEM(out, place, value)
