"""Draw the numbers that ``RandomState`` draws, in less time, and numbers that
depend only on a key and an example.

NumPy promises that ``RandomState`` never changes what it draws.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint32_t, uint64_t

cimport numpy as cnp
from fuel.kernels.copy_row cimport fuel_prefetch

import numpy

cnp.import_array()

# Declared here, since numpy.random cannot be cimported without an import.
cdef extern from 'numpy/random/bitgen.h':
    ctypedef struct bitgen_t:
        void *state
        uint32_t (*next_uint32)(void *state) noexcept nogil

cdef enum:
    # So many places are drawn before their elements are swapped.
    DRAWN = 64
    # Words of a Mersenne Twister, and how far apart those are that it mixes.
    KEY_LENGTH = 624
    SHIFT = 397
    # From so many on it pays to take its state out of NumPy's object.
    TWISTED = 2000
    # Words that an SFC64 generator of NumPy drops at first.
    DROPPED = 12


cdef inline uint32_t mask_of(uint32_t most) noexcept nogil:
    """Return the smallest number of ones that covers a number."""
    most |= most >> 1
    most |= most >> 2
    most |= most >> 4
    most |= most >> 8
    return most | most >> 16


cdef inline uint32_t draw(bitgen_t *bits, uint32_t mask,
                          uint32_t most) noexcept nogil:
    """Draw from 0 to `most`; what lies above it is drawn again."""
    cdef uint32_t value = bits.next_uint32(bits.state) & mask
    while value > most:
        value = bits.next_uint32(bits.state) & mask
    return value


cdef bitgen_t *bits_of(bit_generator) except NULL:
    return <bitgen_t *>PyCapsule_GetPointer(
        bit_generator.capsule, 'BitGenerator')


def draw_integers(bit_generator, uint32_t most, Py_ssize_t count):
    """Draw integers from 0 to `most`, both included.

    Returns: what ``RandomState.randint(0, most + 1, count)`` returns; the
        generator is afterwards where it would be then.

    Examples
    --------
    >>> import numpy
    >>> rng = numpy.random.RandomState(1)
    >>> draw_integers(rng._bit_generator, 4, 3)
    array([3, 4, 0])
    """
    # For small counts, ``randint`` mostly looks at its arguments.
    cdef bitgen_t *bits = bits_of(bit_generator)
    cdef cnp.npy_intp shape = count
    cdef cnp.ndarray out = cnp.PyArray_ZEROS(1, &shape, cnp.NPY_INTP, 0)
    cdef cnp.npy_intp *target = <cnp.npy_intp *>cnp.PyArray_DATA(out)
    cdef uint32_t mask = mask_of(most)
    cdef Py_ssize_t place
    if not most:
        return out
    with bit_generator.lock:
        for place in range(count):
            target[place] = draw(bits, mask, most)
    return out


def draw_order(bit_generator, uint32_t size):
    """Draw an order of the numbers below `size`.

    Returns: what ``RandomState.shuffle`` makes of ``range(size)``; the
        generator is afterwards where it would be then.

    Examples
    --------
    >>> import numpy
    >>> rng = numpy.random.RandomState(1)
    >>> draw_order(rng._bit_generator, 5)
    array([2, 1, 4, 0, 3], dtype=uint32)
    """
    cdef Words words
    cdef cnp.npy_intp shape = size
    cdef cnp.ndarray key
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &shape, cnp.NPY_UINT32, 0)
    cdef uint32_t *order = <uint32_t *>cnp.PyArray_DATA(out)
    words.bits = bits_of(bit_generator)
    words.key = NULL
    with bit_generator.lock:
        if size < TWISTED or type(bit_generator) is not (
                numpy.random.MT19937):
            with nogil:
                shuffle(&words, order, size)
            return out
        state = bit_generator.state
        key = numpy.array(state['state']['key'], numpy.uint32)
        words.key = <uint32_t *>cnp.PyArray_DATA(key)
        words.place = state['state']['pos']
        with nogil:
            shuffle(&words, order, size)
        state['state'] = {'key': key, 'pos': words.place}
        bit_generator.state = state
    return out


cdef struct Words:
    # Source of random words: NumPy's function, or, where there is a key, the
    # generator of that key and of a place in it.
    bitgen_t *bits
    uint32_t *key
    int place


cdef inline uint32_t next_word(Words *words) noexcept nogil:
    cdef uint32_t word
    if words.key == NULL:
        return words.bits.next_uint32(words.bits.state)
    if words.place == KEY_LENGTH:
        twist(words.key)
        words.place = 0
    word = words.key[words.place]
    words.place += 1
    word ^= word >> 11
    word ^= (word << 7) & <uint32_t>0x9d2c5680
    word ^= (word << 15) & <uint32_t>0xefc60000
    return word ^ (word >> 18)


cdef inline uint32_t twisted(uint32_t high, uint32_t low,
                             uint32_t far) noexcept nogil:
    cdef uint32_t mixed = (high & <uint32_t>0x80000000) | (
        low & <uint32_t>0x7fffffff)
    return far ^ (mixed >> 1) ^ (
        (0 - (mixed & 1)) & <uint32_t>0x9908b0df)


cdef void twist(uint32_t *key) noexcept nogil:
    """Make the next words of a Mersenne Twister of its last ones."""
    cdef int place
    for place in range(KEY_LENGTH - SHIFT):
        key[place] = twisted(key[place], key[place + 1], key[place + SHIFT])
    for place in range(KEY_LENGTH - SHIFT, KEY_LENGTH - 1):
        key[place] = twisted(
            key[place], key[place + 1], key[place + SHIFT - KEY_LENGTH])
    key[KEY_LENGTH - 1] = twisted(
        key[KEY_LENGTH - 1], key[0], key[SHIFT - 1])


cdef void shuffle(Words *words, uint32_t *order,
                  uint32_t size) noexcept nogil:
    # One more, for a word that is drawn again at the end.
    cdef uint32_t places[DRAWN + 1]
    cdef uint32_t last, place, element, most, mask
    cdef int count, number, is_drawn
    for place in range(size):
        order[place] = place
    last = size
    while last > 1:
        # Places do not depend on what is there: with many of them known,
        # their elements come from memory at the same time.
        count = min(<uint32_t>DRAWN, last - 1)
        most, number = last - 1, 0
        mask = mask_of(most)
        while number < count:
            # A place above `most` is drawn again; without a branch, which
            # the processor could not foresee.
            place = next_word(words) & mask
            places[number] = place
            fuel_prefetch(order + place)
            is_drawn = place <= most
            number += is_drawn
            most -= is_drawn
            mask >>= (most <= mask >> 1)
        for number in range(count):
            last -= 1
            element = order[places[number]]
            order[places[number]] = order[last]
            order[last] = element


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    """Return a word in which each bit depends on all bits of another, as in
    SplitMix64; different words stay different."""
    word += <uint64_t>0x9e3779b97f4a7c15
    word = (word ^ (word >> 30)) * <uint64_t>0xbf58476d1ce4e5b9
    word = (word ^ (word >> 27)) * <uint64_t>0x94d049bb133111eb
    return word ^ (word >> 31)


cdef inline uint64_t next_of(uint64_t *state) noexcept nogil:
    """Return the next word of an SFC64 generator."""
    cdef uint64_t word = state[0] + state[1] + state[3]
    state[3] += 1
    state[0] = state[1] ^ (state[1] >> 11)
    state[1] = state[2] + (state[2] << 3)
    state[2] = ((state[2] << 24) | (state[2] >> 40)) + word
    return word


cdef uint64_t folded(more) except? 0:
    """Return one word for several numbers."""
    cdef uint64_t word = 0
    for number in more:
        word = mixed(word ^ mixed(number))
    return word


def example_words(uint64_t key, const int64_t[:, ::1] ids, more=()):
    """Return the words that seed an SFC64 generator for each of some examples.

    `ids`: for each example, the number of its data set and its row.
    `more`: numbers that select another generator of the same examples.
    Returns: an array of three words for each example.
    """
    cdef Py_ssize_t count = ids.shape[0], place
    cdef uint64_t other = folded(more)
    cdef cnp.npy_intp[2] shape
    shape[0], shape[1] = count, 3
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(2, shape, cnp.NPY_UINT64, 0)
    cdef uint64_t *words = <uint64_t *>cnp.PyArray_DATA(out)
    for place in range(count):
        seed_words(words + 3 * place, key, ids[place, 0], ids[place, 1],
                   other)
    return out


cdef inline void seed_words(uint64_t *words, uint64_t key, uint64_t dataset,
                            uint64_t row, uint64_t other) noexcept nogil:
    words[0] = mixed(row)
    words[1] = mixed(key)
    words[2] = mixed(other ^ mixed(dataset))


def example_shares(uint64_t key, const int64_t[:, ::1] ids,
                   Py_ssize_t count):
    """Draw numbers from 0 to below 1 for each of some examples.

    Returns: an array of `count` numbers for each example, what the method
        ``random`` of an SFC64 generator gives that :func:`example_words`
        seed.

    Examples
    --------
    >>> import numpy
    >>> example_shares(1, numpy.array([[0, 7], [0, 2], [1, 7]]), 2).round(3)
    array([[0.634, 0.395],
           [0.832, 0.488],
           [0.022, 0.246]])
    """
    cdef Py_ssize_t place, number, num_dropped
    cdef uint64_t state[4]
    cdef cnp.npy_intp[2] shape
    shape[0], shape[1] = ids.shape[0], count
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(2, shape, cnp.NPY_DOUBLE, 0)
    cdef double *target = <double *>cnp.PyArray_DATA(out)
    for place in range(ids.shape[0]):
        seed_words(state, key, ids[place, 0], ids[place, 1], 0)
        state[3] = 1
        for num_dropped in range(DROPPED):
            next_of(state)
        for number in range(count):
            # 53 bits, as many as a double has.
            target[0] = (next_of(state) >> 11) * (1. / 9007199254740992.)
            target += 1
    return out
