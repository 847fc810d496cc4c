cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #if defined(__GNUC__) || defined(__clang__)
    #define fuel_prefetch(address) __builtin_prefetch((address), 0, 3)
    #else
    #define fuel_prefetch(address) ((void)0)
    #endif

    /* So much of a row is asked for ahead, and copied line by line. Where
       row and copy lie differently in their lines, the C library's copy takes
       up to twice as long. */
    #define FUEL_ASKED 65536
    #define FUEL_LINE 64
    /* While a row is copied, the row so many after it is asked for. */
    #define FUEL_AHEAD 2
    /* Only the ends of the row so many after it are asked for: in pages that
       the processor has not translated, this takes longer than the copies
       until then. */
    #define FUEL_FAR_AHEAD 8

    /* Copy a row and meanwhile ask, line by line, for the one that comes
       soon: random rows are not where the processor would look for them. */
    static void fuel_copy_row(char *out, const char *row, ptrdiff_t nbytes,
                              const char *coming)
    {
        ptrdiff_t asked = nbytes < FUEL_ASKED ? nbytes : FUEL_ASKED;
        ptrdiff_t place = 0;
        /* A row that does not begin with a line ends in one more. */
        fuel_prefetch(coming + asked - 1);
        for (; place + FUEL_LINE <= asked; place += FUEL_LINE) {
            fuel_prefetch(coming + place);
            memcpy(out + place, row + place, FUEL_LINE);
        }
        if (place < nbytes) {
            memcpy(out + place, row + place, nbytes - place);
        }
    }

    /* Copy part of a row, often a number: to call memcpy takes longer. */
    static void fuel_copy_segment(char *out, const char *source,
                                  ptrdiff_t nbytes)
    {
        switch (nbytes) {
            case 1: *out = *source; break;
            case 2: memcpy(out, source, 2); break;
            case 4: memcpy(out, source, 4); break;
            case 8: memcpy(out, source, 8); break;
            default: memcpy(out, source, nbytes);
        }
    }
    """
    const int AHEAD "FUEL_AHEAD"
    const int FAR_AHEAD "FUEL_FAR_AHEAD"
    void fuel_prefetch(const void *address) noexcept nogil
    void fuel_copy_row(char *out, const char *row, Py_ssize_t nbytes,
                       const char *coming) noexcept nogil
    void fuel_copy_segment(char *out, const char *source,
                           Py_ssize_t nbytes) noexcept nogil
