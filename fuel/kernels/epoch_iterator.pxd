from cpython.object cimport PyObject

cdef extern from *:
    """
    #ifndef FUEL_FRAME
    #define FUEL_FRAME
    #include <stddef.h>
    enum { FUEL_EXTENTS = 16 };
    typedef struct {
        PyObject *slowest;
        long long most, took;
        unsigned long long number;
    } fuel_wait_state;
    typedef struct fuel_frame {
        struct fuel_frame *outer, *enclosing;
        void *meter;
        fuel_wait_state wait;
        long long begin, slow, quick, waited, item;
        int weight, is_told, num_extents;
        size_t low[FUEL_EXTENTS], high[FUEL_EXTENTS];
    } fuel_frame;
    #endif
    """
    ctypedef struct Wait "fuel_wait_state":
        PyObject *slowest
        long long most, took
        unsigned long long number

    ctypedef struct Frame "fuel_frame":
        Frame *outer
        Frame *enclosing
        void *meter
        Wait wait
        long long begin, slow, quick, waited, item
        int weight, num_extents
        bint is_told
        size_t low[16]
        size_t high[16]


cdef class StageMeter:
    cdef readonly Py_ssize_t items, examples, timed
    cdef readonly long long bytes, written
    cdef public Py_ssize_t restarts
    cdef public bint counts_rows
    cdef readonly bint is_placed
    cdef readonly list spans, spans_below
    cdef readonly Py_ssize_t num_left_out
    cdef public dict reports
    cdef dict _stalls
    cdef tuple _inputs
    cdef public tuple cause
    cdef public StageMeter owner
    # Nanoseconds; `_passed` and `_waited_for` of waits of its consumer.
    cdef long long _work, _input, _room, _stall, _waited_for, _passed
    # Largest sums that were reported. Reported sums never fall, since that
    # would look like a new count: a sum that was too large stays as it is,
    # until later items make up for it.
    cdef long long _most_work, _most_input, _most_spent
    # Of the wait that is under way: its number, and this stage's part of it.
    cdef unsigned long long _wait
    cdef long long _in_wait
    # Until when time was counted; 0 before the first wait of an epoch.
    cdef long long _last
    # Number of items before the first whose span is noted; number of spans
    # that are kept.
    cdef Py_ssize_t _num_before, _num_kept
    # Mean of the items that were timed; whether to time all; for how many
    # items the next stands that is timed, and how many come before it.
    cdef long long _mean
    cdef bint _is_long, _is_exact
    cdef int _period, _countdown
    cdef _add_below(self, list noted)


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
    cdef public StageMeter meter


cdef class EpochIterator:
    cdef public EpochPosition epoch
    cdef public object as_dict
    cdef object _claim_next(self, EpochPosition epoch, Frame *frame)
