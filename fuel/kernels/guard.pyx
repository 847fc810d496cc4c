"""Reading a mapped file although somebody may cut it.

A page of the map that is behind the end of the file, or cannot be read from
the disk, would end the process with SIGBUS; a copy that is guarded fails
instead. Whether the file is still what it was, its size and its time tell.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    typedef void (*fuel_work)(void *);
    /* Of a map: from `low` to before `high`. */
    typedef struct {
        const char *low;
        const char *high;
    } fuel_span;

    #ifdef _WIN32
    /* Windows refuses to cut a file that is mapped. */
    static int fuel_guarded(fuel_work work, void *job,
                            const fuel_span *spans, ptrdiff_t count)
    {
        work(job);
        return 0;
    }
    #else
    #include <setjmp.h>
    #include <signal.h>
    #include <string.h>

    /* A page of a map whose file was cut, or cannot be read, raises SIGBUS
       in the thread that touches it.  While a copy is guarded, the handler
       jumps back to it; any other SIGBUS goes where it went before. */
    static __thread sigjmp_buf fuel_jump;
    static __thread const fuel_span *volatile fuel_spans = NULL;
    static __thread volatile ptrdiff_t fuel_num_spans = 0;
    static struct sigaction fuel_previous;
    static volatile sig_atomic_t fuel_passed_on = 0;

    static void fuel_on_bus_error(int number, siginfo_t *info, void *context)
    {
        const char *address = (const char *)info->si_addr;
        ptrdiff_t place;
        for (place = 0; fuel_spans != NULL && place < fuel_num_spans;
                place++) {
            if (address >= fuel_spans[place].low
                    && address < fuel_spans[place].high) {
                siglongjmp(fuel_jump, 1);
            }
        }
        /* Once more means that the previous handler handed it back. */
        if (fuel_passed_on) {
            signal(number, SIG_DFL);
        } else {
            fuel_passed_on = 1;
            sigaction(number, &fuel_previous, NULL);
        }
        if (info->si_code <= 0) {
            raise(number);  /* Sent by a process: nothing will repeat it. */
        }
    }

    static int fuel_guarded(fuel_work work, void *job,
                            const fuel_span *spans, ptrdiff_t count)
    {
        struct sigaction action;
        if (!count) {
            work(job);
            return 0;
        }
        /* Others, such as faulthandler, may have put theirs in between. */
        sigaction(SIGBUS, NULL, &action);
        if (action.sa_sigaction != fuel_on_bus_error) {
            fuel_previous = action;
            fuel_passed_on = 0;
            memset(&action, 0, sizeof(action));
            sigemptyset(&action.sa_mask);
            action.sa_sigaction = fuel_on_bus_error;
            /* Not deferred: the jump leaves the handler for good. */
            action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
            sigaction(SIGBUS, &action, NULL);
        }
        fuel_num_spans = count;
        fuel_spans = spans;
        if (sigsetjmp(fuel_jump, 0)) {
            fuel_spans = NULL;
            return -1;
        }
        work(job);
        fuel_spans = NULL;
        return 0;
    }
    #endif
    """
    ctypedef struct fuel_span:
        pass
    int fuel_guarded(void (*work)(void *) noexcept nogil, void *job,
                     const fuel_span *spans, Py_ssize_t count) noexcept nogil


cdef bint guarded(void (*work)(void *) noexcept nogil, void *job,
                  const Span *spans, Py_ssize_t count) noexcept nogil:
    """Do a piece of work that reads some maps.

    Returns: False if a map could not be read, and the work is half done.
    """
    return fuel_guarded(work, job, <const fuel_span *>spans, count) == 0


cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/stat.h>
    #if defined(__APPLE__)
    #define fuel_nanoseconds(status) ((status).st_mtimespec.tv_nsec)
    #elif defined(_WIN32)
    #define fuel_nanoseconds(status) 0
    #else
    #define fuel_nanoseconds(status) ((status).st_mtim.tv_nsec)
    #endif
    #ifdef _WIN32
    /* Its plain fstat fails for a file of more than 2 GiB. */
    typedef struct __stat64 fuel_status;
    #define fuel_fstat _fstat64
    #else
    typedef struct stat fuel_status;
    #define fuel_fstat fstat
    #endif

    /* Size, and time of the last change in nanoseconds; 0 if it worked. */
    static int fuel_state(int descriptor, int64_t *size, int64_t *changed)
    {
        fuel_status status;
        if (fuel_fstat(descriptor, &status)) {
            return -1;
        }
        *size = status.st_size;
        *changed = (int64_t)status.st_mtime * 1000000000
            + fuel_nanoseconds(status);
        return 0;
    }
    """
    int fuel_state(int descriptor, int64_t *size,
                   int64_t *changed) noexcept nogil


def file_state(int descriptor):
    """Return the size of an open file, and when it was last changed."""
    cdef int64_t size = 0, changed = 0
    if fuel_state(descriptor, &size, &changed):
        raise OSError(f'file descriptor {descriptor} is not open')
    return size, changed


cdef class FileStates:
    """The states of open files, which should not change.

    `states`: for each file its descriptor, and what `file_state` said of it;
        None for one that nobody watches.
    """

    def __cinit__(self):
        self.states = NULL

    def __dealloc__(self):
        free(self.states)

    def __init__(self, list states not None):
        cdef State *one
        free(self.states)
        self.num_files = len(states)
        self.states = <State *>malloc((len(states) + 1) * sizeof(State))
        if self.states == NULL:
            raise MemoryError
        for place, state in enumerate(states):
            one = self.states + <Py_ssize_t>place
            one.descriptor, one.size, one.changed = state or (-1, 0, 0)

    cdef bint are_current(self, const unsigned char *used) noexcept nogil:
        """Tell whether the files that were used are what they were."""
        cdef Py_ssize_t place
        cdef int64_t size = 0, changed = 0
        cdef const State *one
        for place in range(self.num_files):
            one = self.states + place
            if used[place] and one.descriptor >= 0 and (
                    fuel_state(one.descriptor, &size, &changed)
                    or size != one.size or changed != one.changed):
                return False
        return True

    def __reduce__(self):
        raise TypeError('open files cannot be pickled')
