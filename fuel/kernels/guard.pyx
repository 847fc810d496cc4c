"""Reading mapped files although somebody may cut them.

A page of the map that is behind the end of the file, or cannot be read from
the disk, would end the process with SIGBUS; a copy that is guarded fails
instead.
"""
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
