"""Meters of stages: what their items took, and which stage was waited for.

Each stage gives its items in ``EpochIterator.__next__``, whose calls are
nested like the stages. A call is a *frame* here: what passed in it, without
the frames within and without waiting, is the stage's own work. The outermost
frame of a thread is a wait of the consumer: of the trainer, or of what sends
batches on. It is a stall by the stage that took most of it. So is the frame of
a stream that is none of the inputs of the stage which reads it, as the function
of a mapping may do: that stage is the consumer then, and the wait is its work.

To read a clock twice takes as long as some items. So where the items of a stage
take less than `SHORT`, those that a compiled reader has at once are timed one
in `PERIOD`, which then stands for all of them. A frame has a *weight*: 0 if
it is not timed, the number of items that it stands for if it is one of many,
and 1 if it stands for itself: so does each that takes longer, or in which
Python reads. Frames in one of many, or of 0, are like it, but for those of 1,
whose time is therefore taken out of what is multiplied.
"""
cdef extern from *:
    """
    #include <pythread.h>
    #include <time.h>
    static long long fuel_clock(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    }

    /* Without a call for each access, which a loaded library makes else. Other
       C libraries of Linux load none that is made like this. */
    #ifdef __GLIBC__
    #define FUEL_THREAD_LOCAL _Thread_local \
        __attribute__((tls_model("initial-exec")))
    #else
    #define FUEL_THREAD_LOCAL _Thread_local
    #endif
    /* The innermost frame of a thread. */
    static FUEL_THREAD_LOCAL fuel_frame *fuel_top = NULL;
    /* The wait that is under way, or was the last: the stage that took most
       of it so far, which it owns, and how much of it; its number; how long
       it took. */
    static FUEL_THREAD_LOCAL fuel_wait_state fuel_wait = {NULL, 0, 0, 0};
    /* Whether the end of the thread lets go of that stage. */
    static FUEL_THREAD_LOCAL int fuel_is_released = 0;
    /* Guarded by the GIL. */
    static unsigned long long fuel_num_waits = 0;
    static unsigned int fuel_draws = 1;
    /* Of all meters. */
    static long long fuel_num_spans = 0;

    /* One of 64 on average, and at no period that the items may have. */
    static int fuel_period(void)
    {
        fuel_draws = fuel_draws * 1664525u + 1013904223u;
        return 33 + (int)(fuel_draws >> 26);
    }
    """
    long long fuel_clock() noexcept
    Frame *fuel_top
    Wait fuel_wait
    bint fuel_is_released
    unsigned long long fuel_num_waits
    long long fuel_num_spans
    unsigned long PyThread_get_thread_native_id()
    PyObject *PyThreadState_GetDict()
    int fuel_period() noexcept

# Nanoseconds: items that take less are not all timed.
cdef long long _SHORT = 20_000
SHORT = _SHORT / 1e9
PERIOD = 64
# Spans that a process keeps: later ones are left out.
MOST_SPANS = 200_000
cdef long long _MOST_SPANS = MOST_SPANS
# Nanoseconds in which an item is received that is there.
cdef long long _RECEIVING = 100_000
# The first items are all timed, since one of 64 would be few of them.
cdef Py_ssize_t _FIRST = 256


cdef class StageMeter:
    """Time, items and bytes of one stage, in all its epochs in this process.

    `items`, `examples`, `bytes`: numbers that the stage returned.
    `written`: bytes of the arrays that are not in items of the stages below.
    `timed`: number of items that were timed one by one.
    `restarts`: number of restarts of its workers or its connection.
    `counts_rows`: whether an item is a batch, whose rows are examples.
    `is_placed`: whether :meth:`place` was called.
    `spans`: (thread, number, begin, end) of each item while all are timed,
        in nanoseconds of CLOCK_MONOTONIC; the number counts from there on,
        and is -1 for an error or the end of the epoch.
    `spans_below`: spans that stages in other processes have reported.
    `num_left_out`: number of spans that were dropped, beyond the limit.
    `reports`: of a stage whose items come from other processes: the last
        report of each process.
    `cause`: path to the stage in another process that took most of the time
        of the present item, if the consumer waited for it.
    `owner`: the meter that the time is added to, if this is the meter of a
        copy of the stage whose items are not part of the pipeline.
    """

    def __cinit__(self):
        self._inputs = ()
        self.clear()

    def __dealloc__(self):
        global fuel_num_spans
        fuel_num_spans -= self._num_kept

    def clear(self):
        """Begin anew."""
        self.spans = [] if self._is_exact else None
        self.spans_below = []
        self.num_left_out = self._num_before = self._num_kept = 0
        self.items = self.examples = self.timed = 0
        self.bytes = self.written = 0
        self.restarts = 0
        self.reports, self._stalls = {}, {}
        self.cause = None
        self._work = self._input = self._room = self._stall = 0
        self._most_work = self._most_input = self._most_spent = 0
        self._waited_for = self._passed = 0
        self._wait = 0
        self._last = 0
        self._mean = _SHORT
        self._is_long = True
        self._countdown = 0

    @property
    def is_exact(self):
        """Whether every item is timed (bool)."""
        return self._is_exact

    @is_exact.setter
    def is_exact(self, bint is_exact):
        if is_exact != self._is_exact:
            self._is_exact = is_exact
            self.take_spans()
            self._num_before = self.items
        # Otherwise the next item that is timed decides.
        self._is_long = self._is_long or is_exact

    def place(self, bint counts_rows, tuple inputs):
        """Learn once of what the stage is part of.

        `inputs`: the meters of the streams that the stage reads.
        """
        self.counts_rows = counts_rows
        self._inputs = inputs
        self.is_placed = True

    def begin_epoch(self):
        """Count no time between two epochs as the consumer's."""
        self._last = 0

    @property
    def work_seconds(self):
        """Seconds of work, without those of the stages below and waits."""
        self._most_work = max(self._most_work, self._work)
        return self._most_work / 1e9

    @property
    def input_seconds(self):
        """Seconds of waiting for other threads or processes."""
        self._most_input = max(self._most_input, self._input)
        return self._most_input / 1e9

    @property
    def room_seconds(self):
        """Seconds in which it had no room for its next item."""
        return self._room / 1e9

    def stalls_by(self, StageMeter stage not None):
        """Return how long its consumer waited while a stage took longest.

        Returns: Seconds; and of stages elsewhere that this one waited for,
        by their paths.
        """
        cdef long long here = self._stall if stage is self else 0
        below = {}
        for (one, path), took in list(self._stalls.items()):
            if one is stage and path is None:
                here += took
            elif one is stage:
                below[path] = took / 1e9
        return here / 1e9, below

    @property
    def awaited_seconds(self):
        """Seconds in which its own consumer waited for its items."""
        return self._waited_for / 1e9

    @property
    def consumer_seconds(self):
        """Seconds in which its own consumer did something else."""
        self._most_spent = max(
            self._most_spent, self._passed - self._waited_for)
        return self._most_spent / 1e9

    def count_room(self, double seconds):
        """Count time for which there was no room for its items."""
        self._room += <long long>(seconds * 1e9)

    def credit(self, unsigned long thread, long long begin, long long end):
        """Count work on the present item that another thread has done."""
        self._work += end - begin
        _compete(self, end - begin)
        if self.spans is not None:
            _note_span(
                self, thread, self.items - self._num_before, begin, end)

    def take_spans(self):
        """Hand out the spans that are kept, and keep them no more.

        Returns: Its own, those of stages elsewhere, and how many were left
        out.
        """
        global fuel_num_spans
        found = self.spans or [], self.spans_below, self.num_left_out
        fuel_num_spans -= self._num_kept
        self.spans = [] if self._is_exact else None
        self.spans_below = []
        self.num_left_out = self._num_kept = 0
        return found

    cdef _add_below(self, list noted):
        global fuel_num_spans
        cdef Py_ssize_t count
        for one in noted:
            count = len(one.spans)
            if fuel_num_spans + count > _MOST_SPANS:
                self.num_left_out += count
            else:
                self._num_kept += count
                fuel_num_spans += count
                self.spans_below.append(one)


cdef void _compete(StageMeter meter, long long took) noexcept:
    """Add to the part that a stage has of the wait that is under way."""
    if meter._wait != fuel_wait.number:
        meter._wait = fuel_wait.number
        meter._in_wait = 0
    meter._in_wait += took
    if meter._in_wait > fuel_wait.most or fuel_wait.slowest == NULL:
        fuel_wait.most = meter._in_wait
        _blame(meter)


cdef void _blame(StageMeter meter) noexcept:
    """Let a stage be the one that took most of the wait."""
    cdef PyObject *before = fuel_wait.slowest
    # A stage may be gone before the wait is over: a copy of a pipeline that
    # makes an item again.
    Py_XINCREF(<PyObject *>meter)
    fuel_wait.slowest = <PyObject *>meter
    Py_XDECREF(before)


@cython.auto_pickle(False)
cdef class _ThreadEnd:
    """Lets go of the last wait of a thread, whose state holds it."""

    def __dealloc__(self):
        global fuel_is_released
        cdef PyObject *before = fuel_wait.slowest
        fuel_wait.slowest = NULL
        fuel_is_released = False
        Py_XDECREF(before)


cdef void _release_at_end() noexcept:
    global fuel_is_released
    cdef PyObject *state = PyThreadState_GetDict()
    if state != NULL:
        (<dict>state)['fuel.wait'] = _ThreadEnd()
        fuel_is_released = True


cdef bint _reads(StageMeter reader, StageMeter meter) noexcept:
    """Return whether a stream is an input of a stage, or copied from one."""
    cdef Py_ssize_t place
    if meter.owner is not None:
        return True
    for place in range(PyTuple_GET_SIZE(reader._inputs)):
        if PyTuple_GET_ITEM(reader._inputs, place) == <PyObject *>meter:
            return True
    return False


cdef inline void enter(Frame *frame, StageMeter meter,
                       bint is_quick) noexcept:
    """Begin to take an item of a stage, perhaps from a compiled reader."""
    global fuel_top
    cdef Frame *outer = fuel_top
    frame.enclosing = outer
    if outer != NULL and not _reads(<StageMeter>outer.meter, meter):
        # Its wait is put back when the frame is left.
        frame.wait, fuel_wait.slowest = fuel_wait, NULL
        outer = NULL
    frame.outer = outer
    frame.meter = <void *>meter
    frame.slow = frame.quick = frame.waited = 0
    frame.num_extents = 0
    frame.is_told = False
    frame.item = -1
    if is_quick and not meter._is_long:
        if outer != NULL and outer.weight != 1:
            frame.weight = outer.weight
        else:
            meter._countdown -= 1
            frame.weight = 0 if meter._countdown > 0 else meter._period
        if frame.weight == 0:
            fuel_top = frame
            return
    else:
        frame.weight = 1
    _begin(frame, meter)
    fuel_top = frame


cdef void slow_down(Frame *frame, StageMeter meter) noexcept:
    """Let a frame stand for itself, since no compiled reader has the item."""
    cdef int weight = frame.weight
    frame.weight = 1
    if weight == 0:
        _begin(frame, meter)


cdef void _begin(Frame *frame, StageMeter meter) noexcept:
    global fuel_num_waits
    cdef PyObject *before
    frame.begin = fuel_clock()
    meter.cause = None
    if frame.outer == NULL:
        fuel_num_waits += 1
        fuel_wait.number = fuel_num_waits
        fuel_wait.most = 0
        if fuel_wait.slowest != NULL:
            before, fuel_wait.slowest = fuel_wait.slowest, NULL
            Py_XDECREF(before)
        if not fuel_is_released:
            _release_at_end()
        if meter._last:
            meter._passed += frame.begin - meter._last
        meter._last = frame.begin


cdef inline void leave(Frame *frame, StageMeter meter) noexcept:
    """Count what an item took, or an error or the end in its place."""
    global fuel_top, fuel_wait
    fuel_top = frame.enclosing
    if frame.weight or frame.slow:
        _count(frame, meter)
    if frame.outer != frame.enclosing:
        Py_XDECREF(fuel_wait.slowest)
        fuel_wait = frame.wait


cdef void _count(Frame *frame, StageMeter meter) noexcept:
    cdef Frame *outer = frame.outer
    cdef StageMeter owner
    cdef long long end, took = 0, work, slow = frame.slow, quick = 0
    if frame.weight:
        end = fuel_clock()
        took = end - frame.begin
        work = took - slow - frame.quick - frame.waited
        if frame.weight == 1:
            slow = took
        else:
            quick = took - slow
            work *= frame.weight
        owner = meter if meter.owner is None else meter.owner
        owner._work += work
        owner._input += frame.waited
        _compete(owner, work if frame.is_told else work + frame.waited)
        _time(meter, took)
        if owner.spans is not None and not frame.is_told:
            _note_span(owner, PyThread_get_thread_native_id(),
                       frame.item if owner is meter else -1, frame.begin, end)
    if outer != NULL:
        outer.slow += slow
        outer.quick += (
            quick * frame.weight if outer.weight == 1 else quick)
        return
    if frame.weight:
        # Another epoch of the stream may have begun meanwhile.
        meter._passed += end - (meter._last or frame.begin)
        meter._last = end
    took = slow + quick * frame.weight
    meter._waited_for += took
    fuel_wait.took = took
    if fuel_wait.slowest == NULL:
        # The frames in it have competed, or none was timed.
        _blame(meter)
    cdef StageMeter slowest = <StageMeter>fuel_wait.slowest
    if slowest is meter and meter.cause is None:
        meter._stall += took
    else:
        key = slowest, slowest.cause
        meter._stalls[key] = meter._stalls.get(key, 0) + took


cdef void _time(StageMeter meter, long long took) noexcept:
    """Choose from the items that were timed whether to time the next."""
    meter.timed += 1
    meter._mean += (took - meter._mean) // 8
    meter._is_long = (meter._is_exact or meter.items < _FIRST
                      or meter._mean >= _SHORT)
    if meter._countdown <= 0:
        meter._period = 1 if meter._is_long else fuel_period()
        meter._countdown = meter._period


cdef void _note_span(StageMeter meter, unsigned long thread, long long item,
                     long long begin, long long end) noexcept:
    global fuel_num_spans
    if fuel_num_spans >= _MOST_SPANS:
        meter.num_left_out += 1
        return
    fuel_num_spans += 1
    meter._num_kept += 1
    meter.spans.append((thread, item, begin, end))


@cython.wraparound(False)
cdef int measure(Frame *frame, StageMeter meter, object item) except -1:
    """Count an item, its examples, and the bytes of its arrays."""
    cdef Py_ssize_t place, examples = -1
    frame.item = meter.items - meter._num_before
    meter.items += 1
    if not PyTuple_CheckExact(item):
        if isinstance(item, MeasuredItem):
            _take_counts(frame, meter, item)
            return 0
        if PyDict_CheckExact(item):
            item = tuple((<dict>item).values())
        elif PyList_CheckExact(item):
            item = tuple(item)
        elif not PyTuple_Check(item):
            meter.examples += 1
            return 0
    cdef int num_known = frame.num_extents
    frame.num_extents = 0
    cdef Frame *outer = frame.outer
    cdef Frame made
    made.num_extents = 0
    for place in range(PyTuple_GET_SIZE(item)):
        examples = _measure_part(
            frame, num_known, &made, meter,
            <object>PyTuple_GET_ITEM(item, place), examples)
    meter.examples += examples if meter.counts_rows and examples >= 0 else 1
    if outer != NULL:
        for place in range(made.num_extents):
            _note_extent(outer, made.low[place], made.high[place])
    return 0


@cython.auto_pickle(False)
cdef class MeasuredItem:
    """Stands for an item that several stages have made elsewhere.

    `place`: of the stage that hands it on, counted from the innermost.
    """

    cdef public Py_ssize_t place
    # Of each stage: examples, bytes, bytes written, and where they lie.
    cdef list _counts
    cdef list _extents

    def begin(self, item):
        """Learn which item the innermost stage is given."""
        self._counts, self._extents = [], []
        self.count(item)
        self._counts = []

    def count(self, item):
        """Count what the next stage has made of it."""
        cdef StageMeter meter = StageMeter()
        cdef Frame frame, above
        cdef int place
        meter.counts_rows = True
        above.num_extents, frame.num_extents = 0, len(self._extents)
        frame.outer = &above
        for place in range(frame.num_extents):
            frame.low[place], frame.high[place] = self._extents[place]
        measure(&frame, meter, item)
        self._extents = [(above.low[place], above.high[place])
                         for place in range(above.num_extents)]
        self._counts.append((
            meter.examples, meter.bytes, meter.written, self._extents))


cdef int _take_counts(Frame *frame, StageMeter meter,
                      MeasuredItem item) except -1:
    """Count an item as the stage that hands it on has made it."""
    examples, size, written, extents = item._counts[item.place]
    meter.examples += examples if meter.counts_rows else 1
    meter.bytes += size
    meter.written += written
    if frame.outer != NULL:
        for low, high in extents:
            _note_extent(frame.outer, low, high)
    return 0


cdef Py_ssize_t _measure_part(
        Frame *known, int num_known, Frame *made, StageMeter meter,
        object part, Py_ssize_t examples) except -2:
    """Count the bytes of a part of an item.

    Returns: How many examples it has, -1 if that is not known.
    """
    cdef Py_ssize_t count = -1
    cdef object element = part
    cdef long long size = 0
    if cnp.PyArray_Check(part):
        if cnp.PyArray_NDIM(part):
            count = cnp.PyArray_DIM(part, 0)
        size = cnp.PyArray_NBYTES(part)
        if cnp.PyArray_TYPE(part) == cnp.NPY_OBJECT:
            part = cnp.PyArray_ToList(part) if cnp.PyArray_NDIM(
                part) == 1 else []
    if PyList_CheckExact(part):
        if count < 0:
            count = PyList_GET_SIZE(part)
        size, element = 0, None
        for one in <list>part:
            if cnp.PyArray_Check(one):
                size += cnp.PyArray_NBYTES(one)
                if element is None:
                    element = one
        if element is None and PyList_GET_SIZE(part) and (
                _shape_of(part[0]) is not None):
            for one in <list>part:
                _measure_foreign(known, num_known, made, meter, one)
    elif not cnp.PyArray_Check(part):
        element = None
        if type(part).__name__ == 'csr_array':
            count = _measure_sparse(known, num_known, made, meter, part)
        else:
            count = _measure_foreign(known, num_known, made, meter, part)
    if element is not None:
        _measure_array(known, num_known, made, meter, element, size)
    return count if examples < 0 else examples


cdef Py_ssize_t _measure_sparse(
        Frame *known, int num_known, Frame *made, StageMeter meter,
        object part) except -2:
    """Count the bytes of a sparse batch; return its rows."""
    try:
        arrays = part.data, part.indices, part.indptr
    except Exception:
        # Not SciPy's, though it has its name.
        return -1
    for one in arrays:
        if not cnp.PyArray_Check(one):
            return -1
    for one in arrays:
        _measure_array(
            known, num_known, made, meter, one, cnp.PyArray_NBYTES(one))
    return cnp.PyArray_SIZE(arrays[2]) - 1


cdef object _shape_of(object part):
    """Return the shape of an array of another library, None for another
    object."""
    # The usual ones first: a name that is looked for takes longer.
    if PyUnicode_CheckExact(part) or PyBytes_CheckExact(part) or (
            PyLong_CheckExact(part) or PyFloat_CheckExact(part)
            or cnp.PyArray_CheckScalar(part)):
        return None
    try:
        shape = getattr(part, 'shape', None)
    except Exception:
        return None
    return shape if isinstance(shape, tuple) else None


cdef Py_ssize_t _measure_foreign(
        Frame *known, int num_known, Frame *made, StageMeter meter,
        object part) except -2:
    """Count the bytes of an array of another library, such as a tensor.

    Returns: How many rows it has, -1 if that is not known.
    """
    cdef Py_ssize_t count = -1
    cdef long long size = 0
    cdef size_t low = 0
    cdef object shape = _shape_of(part)
    if shape is None:
        return -1
    try:
        if shape:
            count = max(-1, shape[0])
        size = max(0, part.nbytes)
        # That of an array of JAX is not asked for: it would be waited for.
        address = getattr(part, 'data_ptr', None)
        if address is not None:
            low = address()
    except Exception:
        # Without memory of its own: a sparse tensor, say.
        low = 0
    meter.bytes += size
    if low == 0 or not _is_within(
            known, num_known, made, low, low + max(size, 1)):
        meter.written += size
    return count


cdef void _measure_array(
        Frame *known, int num_known, Frame *made, StageMeter meter,
        cnp.ndarray array, long long size) noexcept:
    """Count the bytes of an array, or of a list that begins with it."""
    meter.bytes += size
    if (not num_known and known.outer == NULL) or not _is_known(
            known, num_known, made, array):
        meter.written += size


cdef bint _is_known(Frame *known, int num_known, Frame *made,
                    cnp.ndarray array) noexcept:
    """Return whether an array lies in an item of the stages below."""
    cdef size_t low = <size_t>cnp.PyArray_DATA(array), high = low
    cdef Py_ssize_t axis, step
    for axis in range(cnp.PyArray_NDIM(array)):
        if not cnp.PyArray_DIM(array, axis):
            break
        step = (cnp.PyArray_DIM(array, axis) - 1) * cnp.PyArray_STRIDE(
            array, axis)
        if step < 0:
            low += step
        else:
            high += step
    high += cnp.PyArray_ITEMSIZE(array)
    return _is_within(known, num_known, made, low, high)


cdef bint _is_within(Frame *known, int num_known, Frame *made, size_t low,
                     size_t high) noexcept:
    """Return whether memory that an item has is that of one below."""
    cdef int place
    _note_extent(made, low, high)
    for place in range(num_known):
        if known.low[place] <= low < known.high[place]:
            return True
    return False


cdef void _note_extent(Frame *frame, size_t low, size_t high) noexcept:
    # Of the last ones, if there are many.
    cdef int place = frame.num_extents
    if place == 16:
        place = 15
    else:
        frame.num_extents += 1
    frame.low[place], frame.high[place] = low, high


cdef class Waiting:
    """Counts the time of its block as a wait of the present stage.

    `is_told`: whether the awaited thread reports its time by
        `StageMeter.credit`; then no stage is blamed for the wait itself.
    """

    cdef bint is_told
    cdef long long begin, below

    def __init__(self, *, bint is_told=False):
        self.is_told = is_told

    def __enter__(self):
        self.begin = fuel_clock()
        if fuel_top != NULL:
            self.below = fuel_top.slow + fuel_top.quick

    def __exit__(self, *_):
        cdef Frame *top = fuel_top
        if top != NULL:
            top.waited += (fuel_clock() - self.begin
                           - (top.slow + top.quick - self.below))
            top.is_told = self.is_told


def now():
    """Return the time by the clock of all meters, in nanoseconds."""
    return fuel_clock()


def last_wait():
    """Return the last wait of this thread for an item.

    Returns: The stage that took most of it, and how many seconds it took.
    """
    if fuel_wait.slowest == NULL:
        return None, 0.
    return <StageMeter>fuel_wait.slowest, fuel_wait.took / 1e9


def meters_in_use():
    """Return the meters of the stages that make an item in this thread now,
    the innermost first."""
    cdef Frame *frame = fuel_top
    found = []
    while frame != NULL:
        found.append(<StageMeter>frame.meter)
        frame = frame.enclosing
    return found


def take_note(key, tuple path, double seconds, list report,
              list spans=None):
    """Take what came with the item that another process has made.

    `key`: of the process, or thread.
    `path`: to the stage there that took most of the time, if one did.
    `seconds`: what the item took there. If it was waited for much longer here,
        something else was waited for.
    `report`: what the stages there took so far; None for no news.
    `spans`: of the items that were made there since, as
        :class:`fuel.profiling.measurements.StageSpans`.
    Returns: Whether it was waited for, longer than it takes to receive it.
    """
    if fuel_top == NULL:
        return False
    cdef StageMeter meter = <StageMeter>fuel_top.meter
    if report is not None:
        meter.reports[key] = report
    if spans and meter.spans is not None:
        meter._add_below(spans)
    meter.cause = path if path and 2e9 * seconds >= fuel_top.waited else None
    return fuel_top.waited > _RECEIVING


def measuring_seconds(StageMeter meter not None, item, Py_ssize_t count):
    """Return how long it takes to measure an item `count` times."""
    cdef Frame frame
    cdef long long begin = fuel_clock()
    for _ in range(count):
        enter(&frame, meter, True)
        try:
            measure(&frame, meter, item)
        finally:
            leave(&frame, meter)
    return (fuel_clock() - begin) / 1e9


def leave_frames():
    """Forget the frames and spans of the parent, after a fork."""
    global fuel_top, fuel_num_spans
    fuel_top = NULL
    fuel_num_spans = 0
