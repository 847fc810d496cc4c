cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__GNUC__) || defined(__clang__)
    #define fuel_prefetch(address) __builtin_prefetch((address), 0, 0)
    #else
    #define fuel_prefetch(address) ((void)0)
    #endif

    /* Ask for the beginning of a row in each page that it touches.  Within a
       page the processor then reads on by itself; where the next row is, it
       cannot guess. */
    static void fuel_ask_for(const char *row, ptrdiff_t nbytes)
    {
        const char *end = row + (nbytes < 16384 ? nbytes : 16384);
        while (row < end) {
            fuel_prefetch(row);
            fuel_prefetch(row + 64);
            row = (const char *)(((uintptr_t)row | 4095) + 1);
        }
    }
    """
    void fuel_ask_for(const char *row, Py_ssize_t nbytes) nogil
