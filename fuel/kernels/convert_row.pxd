cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>

    /* Pixels to floats are what conversions are used for most. With the
       widest registers they take half the time, so there the compiler makes
       a version for each processor, and one is chosen when this is
       loaded. All of them round in the same way. */
    #if defined(__x86_64__) && defined(__GLIBC__) \\
        && __GNUC__ >= 12 && !defined(__clang__)
    #define FUEL_FOR_EACH_PROCESSOR \\
        __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), \\
                       unused))
    #elif defined(__GNUC__) || defined(__clang__)
    #define FUEL_FOR_EACH_PROCESSOR __attribute__((unused))
    #else
    #define FUEL_FOR_EACH_PROCESSOR
    #endif
    #if defined(__GNUC__) || defined(__clang__)
    #define fuel_ask_for(address) __builtin_prefetch((address), 0, 3)
    #else
    #define fuel_ask_for(address) ((void)0)
    #endif

    /* Convert elements, and meanwhile ask for those that come later. */
    #define FUEL_CONVERT(name, from, to, expression) \\
        FUEL_FOR_EACH_PROCESSOR \\
        static void name(const char *source, char *target, ptrdiff_t size, \\
                         double scale, double shift, const char *coming) \\
        { \\
            const from *in = (const from *)source; \\
            to *out = (to *)target; \\
            ptrdiff_t start = 0; \\
            (void)scale; (void)shift; \\
            for (; start + 64 <= size; start += 64) { \\
                fuel_ask_for(coming + start * sizeof(from)); \\
                for (ptrdiff_t place = start; place < start + 64; place++) \\
                    out[place] = (to)(expression); \\
            } \\
            for (ptrdiff_t place = start; place < size; place++) \\
                out[place] = (to)(expression); \\
        }
    #define FUEL_SCALED ((double)in[place] * scale + shift)

    FUEL_CONVERT(fuel_cast_uint8_float, uint8_t, float, in[place])
    FUEL_CONVERT(fuel_scale_uint8_float, uint8_t, float, FUEL_SCALED)
    FUEL_CONVERT(fuel_cast_uint8_double, uint8_t, double, in[place])
    FUEL_CONVERT(fuel_scale_uint8_double, uint8_t, double, FUEL_SCALED)
    """
    void fuel_cast_uint8_float(
        const char *source, char *target, Py_ssize_t size, double scale,
        double shift, const char *coming) noexcept nogil
    void fuel_scale_uint8_float(
        const char *source, char *target, Py_ssize_t size, double scale,
        double shift, const char *coming) noexcept nogil
    void fuel_cast_uint8_double(
        const char *source, char *target, Py_ssize_t size, double scale,
        double shift, const char *coming) noexcept nogil
    void fuel_scale_uint8_double(
        const char *source, char *target, Py_ssize_t size, double scale,
        double shift, const char *coming) noexcept nogil
