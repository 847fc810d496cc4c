"""Memory for batches, used again once a batch is gone.

A training loop makes arrays of the same few sizes again and again.  The C
library hands such memory back to the system when it is freed, and the system
clears each page before it hands it out anew: for a batch that is only copied
this takes longer than the copy.  So blocks that were freed are kept, up to
`MOST_BYTES` in all, for the next array of about their size.

The arrays are ordinary ones that own their data: NumPy asks its memory
handler (NEP 49) for it, and ours is in force while `empty` makes an array.
NumPy holds the GIL whenever it calls a handler, which is the only lock here.
"""
cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_REFCNT, PyObject, PyTypeObject
from libc.string cimport memcmp

import threading

import numpy

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #ifdef __linux__
    #include <sys/mman.h>
    #endif

    enum {
        FUEL_LINE = 64,          /* alignment of the data, and its header */
        FUEL_MOST_BLOCKS = 64,
        FUEL_HUGE_FROM = 4 << 20 /* NumPy's own size for huge pages */
    };
    #define FUEL_MOST_BYTES ((size_t)128 << 20)

    /* Lies in the line before the data. */
    typedef struct {
        void *raw;
        size_t capacity;
    } fuel_header;

    /* Freed blocks, the longest unused one first. */
    static void *fuel_kept[FUEL_MOST_BLOCKS];
    static int fuel_kept_count = 0;
    static size_t fuel_kept_bytes = 0;

    static fuel_header *fuel_header_of(void *data)
    {
        return (fuel_header *)((char *)data - FUEL_LINE);
    }

    static void *fuel_new_block(size_t size)
    {
        char *raw, *data;
        if (size > SIZE_MAX - 2 * FUEL_LINE) {
            return NULL;
        }
        raw = (char *)malloc(size + 2 * FUEL_LINE);
        if (raw == NULL) {
            return NULL;
        }
        data = (char *)(((uintptr_t)raw + 2 * FUEL_LINE - 1)
                        & ~(uintptr_t)(FUEL_LINE - 1));
        fuel_header_of(data)->raw = raw;
        fuel_header_of(data)->capacity = size;
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (size >= FUEL_HUGE_FROM) {
            /* Advice: where it is refused, small pages do. */
            uintptr_t page = ((uintptr_t)data + 4095) & ~(uintptr_t)4095;
            (void)madvise((void *)page, size - (page - (uintptr_t)data),
                          MADV_HUGEPAGE);
        }
    #endif
        return data;
    }

    /* Take a block out of those that are kept. */
    static void *fuel_take_out(int place)
    {
        void *data = fuel_kept[place];
        fuel_kept_count -= 1;
        fuel_kept_bytes -= fuel_header_of(data)->capacity;
        memmove(fuel_kept + place, fuel_kept + place + 1,
                (fuel_kept_count - place) * sizeof(void *));
        return data;
    }

    static void fuel_drop_oldest(void)
    {
        free(fuel_header_of(fuel_take_out(0))->raw);
    }

    static void *fuel_malloc(void *context, size_t size)
    {
        int place;
        (void)context;
        /* The one that was used last is the likeliest to be in the cache. */
        for (place = fuel_kept_count - 1; place >= 0; place--) {
            size_t capacity = fuel_header_of(fuel_kept[place])->capacity;
            if (capacity >= size && capacity - size <= size / 8) {
                return fuel_take_out(place);
            }
        }
        return fuel_new_block(size);
    }

    static void fuel_free(void *context, void *data, size_t size)
    {
        size_t capacity;
        (void)context;
        (void)size;
        if (data == NULL) {
            return;
        }
        capacity = fuel_header_of(data)->capacity;
        if (capacity > FUEL_MOST_BYTES) {
            free(fuel_header_of(data)->raw);
            return;
        }
        while (fuel_kept_count == FUEL_MOST_BLOCKS
               || fuel_kept_bytes > FUEL_MOST_BYTES - capacity) {
            fuel_drop_oldest();
        }
        fuel_kept[fuel_kept_count++] = data;
        fuel_kept_bytes += capacity;
    }

    static void *fuel_calloc(void *context, size_t count, size_t size)
    {
        void *data;
        if (size && count > SIZE_MAX / size) {
            return NULL;
        }
        data = fuel_malloc(context, count * size);
        if (data != NULL) {
            memset(data, 0, count * size);
        }
        return data;
    }

    static void *fuel_realloc(void *context, void *data, size_t size)
    {
        size_t capacity;
        void *moved;
        if (data == NULL) {
            return fuel_malloc(context, size);
        }
        capacity = fuel_header_of(data)->capacity;
        moved = fuel_malloc(context, size);
        if (moved != NULL) {
            memcpy(moved, data, capacity < size ? capacity : size);
            fuel_free(context, data, capacity);
        }
        return moved;
    }

    static PyDataMem_Handler fuel_handler = {
        "fuel", 1,
        {NULL, fuel_malloc, fuel_calloc, fuel_realloc, fuel_free}};
    """
    ctypedef struct PyDataMem_Handler:
        pass
    PyDataMem_Handler fuel_handler
    int fuel_kept_count
    size_t fuel_kept_bytes
    size_t FUEL_MOST_BYTES
    void fuel_drop_oldest()

cdef extern from 'numpy/arrayobject.h':
    object PyDataMem_SetHandler(object handler)
    object PyArray_NewFromDescr(PyTypeObject *subtype, cnp.dtype descr, int ndim,
                                cnp.npy_intp *shape, cnp.npy_intp *strides,
                                void *data, int flags, PyObject *owner)

# Below this size the C library keeps memory itself.
cdef enum:
    SMALLEST = 64 << 10

MOST_BYTES = FUEL_MOST_BYTES

cdef object handler = PyCapsule_New(&fuel_handler, 'mem_handler', NULL)


cdef cnp.ndarray plain_array(int ndim, cnp.npy_intp *shape, cnp.dtype dtype):
    Py_INCREF(dtype)  # NumPy takes this reference.
    return PyArray_NewFromDescr(
        <PyTypeObject *>cnp.ndarray, dtype, ndim, shape, NULL, NULL, 0, NULL)


# By thread: takes a shape and a type, and returns an array in memory that
# another process reads, or None.
cdef dict places = {}


def place_rows(give):
    """Let rows that this thread reads lie where a function says.

    `give`: takes a shape and a dtype; returns an array, or None. None ends it.
    """
    if give is None:
        places.pop(threading.get_ident(), None)
    else:
        places[threading.get_ident()] = give


cdef object placed_array(int ndim, cnp.npy_intp *shape, cnp.dtype dtype):
    give = places.get(threading.get_ident())
    return None if give is None else give(
        tuple([shape[axis] for axis in range(ndim)]), dtype)


cdef cnp.ndarray new_array(int ndim, cnp.npy_intp *shape, cnp.dtype dtype):
    """Return a new array in C order, whose content is arbitrary.

    It lies where the rows of this thread are placed, if they are.
    """
    cdef double nbytes = dtype.itemsize
    cdef int axis
    if places:
        array = placed_array(ndim, shape, dtype)
        if array is not None:
            return array
    for axis in range(ndim):
        nbytes *= shape[axis]
    if nbytes < SMALLEST or dtype.hasobject:
        return plain_array(ndim, shape, dtype)
    previous = PyDataMem_SetHandler(handler)
    try:
        return plain_array(ndim, shape, dtype)
    finally:
        PyDataMem_SetHandler(previous)


cdef extern from 'Python.h':
    ctypedef struct Type "PyTypeObject":
        Py_ssize_t tp_weaklistoffset


cdef bint is_as_new(cnp.ndarray array, int ndim, cnp.npy_intp *shape,
                    cnp.dtype dtype):
    """Return whether an array, which nobody else holds, is as it was made."""
    cdef Py_ssize_t weak = (<Type *>cnp.ndarray).tp_weaklistoffset
    return (cnp.PyArray_NDIM(array) == ndim
            and <cnp.dtype>cnp.PyArray_DESCR(array) is dtype
            and not memcmp(cnp.PyArray_DIMS(array), shape,
                           ndim * sizeof(cnp.npy_intp))
            and cnp.PyArray_CHKFLAGS(
                array, cnp.NPY_ARRAY_CARRAY | cnp.NPY_ARRAY_OWNDATA)
            and (<PyObject **>(<char *><PyObject *>array + weak))[0] == NULL)


@cython.final
@cython.no_gc
cdef class RecentArrays:
    """The last two arrays that were made, for use once nobody holds them.

    A loop over single examples drops each when the next one has come.  To
    make an array takes longer than to copy a small example into it.
    """

    cdef cnp.ndarray new_array(self, int ndim, cnp.npy_intp *shape,
                               cnp.dtype dtype):
        """Return an array as :func:`new_array` does, perhaps an old one."""
        cdef cnp.ndarray array
        if places:
            # Memory of another process is in use while an array is held.
            self.older = self.newer = None
            return new_array(ndim, shape, dtype)
        array = self.older
        self.older = self.newer
        # The variable is a reference, too.
        if array is None or Py_REFCNT(array) > 1 or not is_as_new(
                array, ndim, shape, dtype):
            array = new_array(ndim, shape, dtype)
        self.newer = array
        return array


def empty(shape, dtype):
    """Return a new array whose content is arbitrary.

    Examples
    --------
    >>> empty((2, 3), 'uint8').shape
    (2, 3)
    """
    cdef cnp.npy_intp dimensions[64]
    cdef int ndim = 0
    if not isinstance(shape, tuple):
        shape = (shape,)
    if len(shape) > 32:
        raise ValueError(f'an array has at most 32 dimensions, got {shape}')
    for length in shape:
        dimensions[ndim] = length
        ndim += 1
    return new_array(ndim, dimensions, numpy.dtype(dtype))


def address_of(cnp.ndarray array not None):
    """Return where the data of an array begin."""
    return <size_t>cnp.PyArray_DATA(array)


def kept_bytes():
    """Return how many bytes are kept for arrays to come."""
    return fuel_kept_bytes


def release():
    """Hand all the memory that is kept back to the C library."""
    while fuel_kept_count:
        fuel_drop_oldest()
