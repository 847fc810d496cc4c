cdef class PendingItem:
    cdef public bint is_asked
    cdef public bint is_over
    cdef public object held
    cdef public object receipt


cdef class EpochPosition:
    cdef public Py_ssize_t position, step
    cdef public object reader
    cdef public PendingItem pending_item
    cdef public dict attributes
    cdef public set skipped


cdef class EpochIterator:
    cdef public EpochPosition epoch
    cdef public bint as_dict
    cdef object _claim_next(self, PendingItem pending_item)
