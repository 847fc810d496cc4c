"""Check by size and time of change that open files are what they were.

A system call takes as long as copying a few kilobytes. Where a batch may
touch a hundred files, the system reports (by inotify) files that are opened,
written to or cut, and only these are checked for a while. Others are checked
now and then: no event reports a program that has had a file open for long, and
writes through a map.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

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


cdef extern from *:
    """
    #if defined(__linux__)
    #include <errno.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/inotify.h>
    #include <sys/vfs.h>
    #include <time.h>
    #include <unistd.h>

    /* The events of one file. */
    typedef struct {
        int64_t num_events;
        int64_t last_event;
        int64_t num_users;
    } fuel_watched;

    /* All of this is used by who holds the GIL. */
    static int fuel_inotify = -1;
    static int64_t fuel_process = 0;
    static int fuel_at_fork = 0;
    static fuel_watched *fuel_watches = NULL;
    static int fuel_num_watches = 0;
    static int fuel_num_used = 0;

    static int64_t fuel_now(void)
    {
        struct timespec now;
        /* Read without a system call. */
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }

    static void fuel_forget_watches(void)
    {
        if (fuel_inotify >= 0) {
            close(fuel_inotify);
        }
        fuel_inotify = -1;
        fuel_num_watches = fuel_num_used = 0;
        /* Numbers of watches from before mean nothing now. */
        fuel_process++;
    }

    /* Other hosts may write to a mounted disk without an event. */
    static int fuel_is_local(int descriptor)
    {
        struct statfs status;
        if (fstatfs(descriptor, &status)) {
            return 0;
        }
        switch ((unsigned long)status.f_type & 0xffffffffUL) {
            case 0xef53:      /* ext2 to ext4 */
            case 0x58465342:  /* XFS */
            case 0x9123683e:  /* Btrfs */
            case 0x01021994:  /* tmpfs */
            case 0x858458f6:  /* ramfs */
            case 0xf2f52010:  /* F2FS */
            case 0x2fc12fc1:  /* ZFS */
                return 1;
        }
        return 0;
    }

    static int fuel_watch(int descriptor)
    {
        char path[64];
        int watch;
        if (!fuel_is_local(descriptor)) {
            return -1;
        }
        if (!fuel_at_fork) {
            /* A child would take events that are meant for its parent. */
            fuel_at_fork = !pthread_atfork(NULL, NULL, fuel_forget_watches);
            if (!fuel_at_fork) {
                return -1;
            }
        }
        if (fuel_inotify < 0) {
            fuel_inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
            if (fuel_inotify < 0) {
                return -1;
            }
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
        watch = inotify_add_watch(
            fuel_inotify, path,
            IN_MODIFY | IN_ATTRIB | IN_OPEN | IN_CLOSE_WRITE);
        if (watch < 0) {
            return -1;
        }
        if (watch >= fuel_num_watches) {
            int count = watch < 64 ? 128 : 2 * watch;
            fuel_watched *larger = (fuel_watched *)realloc(
                fuel_watches, count * sizeof(fuel_watched));
            if (larger == NULL) {
                return -1;
            }
            memset(larger + fuel_num_watches, 0,
                   (count - fuel_num_watches) * sizeof(fuel_watched));
            fuel_watches = larger;
            fuel_num_watches = count;
        }
        fuel_watches[watch].num_users++;
        fuel_num_used++;
        return watch;
    }

    static void fuel_unwatch(int watch)
    {
        fuel_num_used--;
        if (!--fuel_watches[watch].num_users) {
            inotify_rm_watch(fuel_inotify, watch);
        }
        if (!fuel_num_used) {
            /* So that numbers begin anew. */
            fuel_forget_watches();
        }
    }

    /* Read the reported events; 0 if that worked. */
    static int fuel_read_events(void)
    {
        union {
            struct inotify_event first;
            char bytes[4096];
        } events;
        ssize_t nbytes;
        int64_t now = 0;
        int place;
        while ((nbytes = read(fuel_inotify, &events, sizeof(events))) > 0) {
            char *one = events.bytes;
            now = fuel_now();
            while (one < events.bytes + nbytes) {
                struct inotify_event *event = (struct inotify_event *)one;
                for (place = 0; place < fuel_num_watches; place++) {
                    /* All, if there were more than are kept. */
                    if (event->mask & IN_Q_OVERFLOW) {
                        fuel_watches[place].num_events++;
                    }
                }
                if (event->wd >= 0 && event->wd < fuel_num_watches) {
                    fuel_watches[event->wd].num_events++;
                    fuel_watches[event->wd].last_event = now;
                }
                one += sizeof(struct inotify_event) + event->len;
            }
        }
        return nbytes < 0 && errno == EAGAIN ? 0 : -1;
    }
    #else
    typedef struct {
        int64_t num_events;
        int64_t last_event;
    } fuel_watched;
    static int64_t fuel_process = 0;
    static fuel_watched *fuel_watches = NULL;
    static int64_t fuel_now(void) { return 0; }
    static int fuel_watch(int descriptor) { return -1; }
    static void fuel_unwatch(int watch) { }
    static int fuel_read_events(void) { return -1; }
    #endif
    """
    ctypedef struct fuel_watched:
        int64_t num_events
        int64_t last_event
    int64_t fuel_process
    fuel_watched *fuel_watches
    int64_t fuel_now() noexcept nogil
    int fuel_watch(int descriptor) noexcept nogil
    void fuel_unwatch(int watch) noexcept nogil
    int fuel_read_events() noexcept nogil


cdef enum:
    # So many files are checked in the time of one call that reads the
    # system's events.
    FEW = 3
    # For so many nanoseconds after an event a file is looked at each time;
    # others are looked at once in so many nanoseconds.
    SUSPECT = 1000000000
    NOW_AND_THEN = 50000000


def file_state(int descriptor):
    """Return the size of an open file, and when it was last changed."""
    cdef int64_t size = 0, changed = 0
    if fuel_state(descriptor, &size, &changed):
        raise OSError(f'file descriptor {descriptor} is not open')
    return size, changed


cdef class FileStates:
    """The states of open files, which should not change.

    `states`: for each file its descriptor, and what `file_state` said of it;
        None for one that is not watched.
    `num_watched`: number of files that the system watches (int).
    """

    def __cinit__(self):
        self.states = NULL
        self.num_files = 0
        self.process = -1

    def __dealloc__(self):
        self.unwatch()
        free(self.states)

    def __init__(self, list states not None):
        cdef State *one
        if self.states != NULL:
            raise TypeError('the states of files stay what they are')
        self.states = <State *>malloc((len(states) + 1) * sizeof(State))
        if self.states == NULL:
            raise MemoryError
        for place, state in enumerate(states):
            one = self.states + <Py_ssize_t>place
            one.descriptor, one.size, one.changed = state or (-1, 0, 0)
            one.watch = -1
            one.num_events = one.found = 0
        self.num_files = len(states)
        if self.num_files > FEW:
            self.watch()

    @property
    def num_watched(self):
        return sum([self.states[place].watch >= 0
                    for place in range(self.num_files)])

    cdef int watch(self) noexcept:
        """Let the system report events of the files."""
        cdef Py_ssize_t place
        cdef State *one
        self.process = fuel_process
        for place in range(self.num_files):
            one = self.states + place
            # Looked at once more: it may have been changed until now.
            one.found = 0
            one.watch = -1
            if one.descriptor >= 0:
                one.watch = fuel_watch(one.descriptor)
        return 0

    cdef int unwatch(self) noexcept:
        cdef Py_ssize_t place
        for place in range(self.num_files):
            if self.states[place].watch >= 0 and self.process == fuel_process:
                fuel_unwatch(self.states[place].watch)
        return 0

    cdef bint are_current(self, const unsigned char *used) noexcept:
        """Tell whether the files that were used are what they were."""
        cdef Py_ssize_t place
        cdef int64_t size = 0, changed = 0, now = 0, num_events = 0
        cdef State *one
        cdef fuel_watched *told
        cdef bint are_told = False
        if self.num_files > FEW:
            if self.process != fuel_process:
                # A child made by a fork.
                self.watch()
            are_told = fuel_read_events() == 0
            now = fuel_now()
        for place in range(self.num_files):
            one = self.states + place
            if not used[place] or one.descriptor < 0:
                continue
            # None is as many as this.
            num_events = -1
            if are_told and one.watch >= 0:
                told = fuel_watches + one.watch
                num_events = told.num_events
                if (num_events == one.num_events
                        and now - one.found < NOW_AND_THEN
                        and (told.last_event == 0
                             or now - told.last_event > SUSPECT)):
                    continue
            if (fuel_state(one.descriptor, &size, &changed)
                    or size != one.size or changed != one.changed):
                return False
            one.num_events, one.found = num_events, now
        return True

    def __reduce__(self):
        raise TypeError('open files cannot be pickled')
