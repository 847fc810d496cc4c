"""A relay of bytes between the network and a socket of this process.

What a library reads ahead of Python takes memory as long as some stage holds
the interpreter, and what it does when a connection is cut while it reads no
further may end the process: libzmq 4.3.5 aborts.  The relay runs without the
interpreter.  It reads no more from a client than the other side takes, and
cuts the inner connection of a client that is gone only after the other side
has read everything and closed its end.
"""
from libc.stddef cimport size_t

cdef extern from *:
    """
    #ifdef _WIN32
    typedef struct { int unused; } fuel_relay;
    static fuel_relay *fuel_relay_open(int listening, const char *target,
            size_t length, int most, size_t budget) { return NULL; }
    static void fuel_relay_run(fuel_relay *relay) {}
    static void fuel_relay_credit(fuel_relay *relay, long long count) {}
    static int fuel_relay_ask(fuel_relay *relay, int what) { return 0; }
    static void fuel_relay_free(fuel_relay *relay) {}
    #else
    #include <errno.h>
    #include <fcntl.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <poll.h>
    #include <stddef.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/un.h>
    #include <time.h>
    #include <unistd.h>

    #ifdef MSG_NOSIGNAL
    #define FUEL_SEND MSG_NOSIGNAL
    #else
    #define FUEL_SEND 0
    #endif
    /* Bytes that are read at once. */
    #define FUEL_CHUNK 262144
    /* Bytes that each client may have unread, whatever others have. */
    #define FUEL_SHARE 65536
    /* A client is sent a batch for each message or two of its own. */
    #define FUEL_RATIO 4
    /* Milliseconds that the other side has to close its end. */
    #define FUEL_PATIENCE 10000
    /* Milliseconds without a connection after one could not be taken. */
    #define FUEL_PAUSE 50

    #define FUEL_LOAD(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
    #define FUEL_STORE(place, value) \
        __atomic_store_n(&(place), (value), __ATOMIC_SEQ_CST)

    enum { FUEL_IN, FUEL_OUT };

    /* One client: what it sends goes in, what it is sent goes out.
       `ends`: its socket, and the one of this process.
       `rest`: what the receiving end did not take yet, in each direction.
       `is_ended`: whether the sending end has ended, in each direction.
       `is_deaf`: whether the receiving end takes nothing any more. */
    typedef struct {
        int ends[2];
        char *rest[2];
        size_t start[2], stop[2];
        int is_ended[2], is_deaf[2];
        int is_shut;
        long long serial, received, sent, unread, deadline;
        unsigned long epoch;
    } fuel_pair;

    typedef struct {
        int listening, wake[2];
        struct sockaddr_un target;
        socklen_t length;
        int most, count, first;
        fuel_pair *pairs;
        struct pollfd *polled;
        long long budget, spent, resumed, serial;
        unsigned long seen;
        /* Changed by other threads. */
        unsigned long epoch;
        long long credit;
        int is_throttled, is_unbound, is_stopped;
        char chunk[FUEL_CHUNK];
    } fuel_relay;

    static long long fuel_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    }

    static int fuel_prepare(int descriptor) {
        int on = 1;
    #ifdef SO_NOSIGPIPE
        setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    #endif
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
            && fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0;
    }

    static void fuel_wake(fuel_relay *relay) {
        /* A full pipe wakes up as well. */
        if (write(relay->wake[1], "x", 1) < 0) {}
    }

    static fuel_relay *fuel_relay_open(int listening, const char *target,
            size_t length, int most, size_t budget) {
        fuel_relay *relay;
        if (length >= sizeof relay->target.sun_path)
            return NULL;
        relay = (fuel_relay *) calloc(1, sizeof *relay);
        if (relay == NULL)
            return NULL;
        relay->pairs = (fuel_pair *) calloc(most, sizeof *relay->pairs);
        relay->polled = (struct pollfd *) calloc(
            2 * most + 2, sizeof *relay->polled);
        if (relay->pairs == NULL || relay->polled == NULL
                || pipe(relay->wake) != 0) {
            free(relay->pairs);
            free(relay->polled);
            free(relay);
            return NULL;
        }
        fuel_prepare(relay->wake[0]);
        fuel_prepare(relay->wake[1]);
        fuel_prepare(listening);
        relay->listening = listening;
        relay->target.sun_family = AF_UNIX;
        memcpy(relay->target.sun_path, target, length);
        /* A name that begins with a zero has no other at its end. */
        relay->length = offsetof(struct sockaddr_un, sun_path) + length
            + (target[0] != 0);
        relay->most = most;
        relay->budget = budget;
        return relay;
    }

    static void fuel_relay_free(fuel_relay *relay) {
        if (relay->listening >= 0)
            close(relay->listening);
        close(relay->wake[0]);
        close(relay->wake[1]);
        free(relay->pairs);
        free(relay->polled);
        free(relay);
    }

    /* Close both ends. Forked processes may have them too. */
    static void fuel_drop(fuel_relay *relay, fuel_pair *pair) {
        int end;
        for (end = 0; end < 2; end++) {
            shutdown(pair->ends[end], SHUT_RDWR);
            close(pair->ends[end]);
            free(pair->rest[end]);
        }
        *pair = relay->pairs[--relay->count];
    }

    /* Cut a client off, with what it sent and nobody took. */
    static void fuel_cut(fuel_pair *pair) {
        shutdown(pair->ends[0], SHUT_RDWR);
        pair->is_ended[FUEL_IN] = 1;
        free(pair->rest[FUEL_IN]);
        pair->rest[FUEL_IN] = NULL;
    }

    /* Return how much a client sent beyond what it got for it.  The other
       side may have to keep that, as a message that does not end. */
    static long long fuel_excess(const fuel_pair *pair) {
        long long excess = pair->received - FUEL_SHARE
            - FUEL_RATIO * pair->sent;
        return excess < 0 || pair->is_ended[FUEL_IN] ? 0 : excess;
    }

    /* Cut off the client that sent most for nothing, if all together sent too
       much. */
    static void fuel_limit(fuel_relay *relay) {
        long long total = 0;
        int place, most = 0;
        for (place = 0; place < relay->count; place++) {
            total += fuel_excess(&relay->pairs[place]);
            if (fuel_excess(&relay->pairs[place])
                    > fuel_excess(&relay->pairs[most]))
                most = place;
        }
        if (total > FUEL_RATIO * relay->budget)
            fuel_cut(&relay->pairs[most]);
    }

    /* End a connection in whose place another one comes: of those that were
       sent the least, the oldest.  Clients were sent more than strangers. */
    static void fuel_evict(fuel_relay *relay) {
        int place;
        fuel_pair *chosen = NULL;
        for (place = 0; place < relay->count; place++) {
            fuel_pair *pair = &relay->pairs[place];
            if (!pair->is_ended[FUEL_IN] && (chosen == NULL
                    || pair->sent < chosen->sent
                    || (pair->sent == chosen->sent
                        && pair->serial < chosen->serial)))
                chosen = pair;
        }
        if (chosen != NULL)
            fuel_cut(chosen);
    }

    /* Take a connection; return whether there may be more. */
    static int fuel_accept(fuel_relay *relay) {
        int client, inner;
        fuel_pair *pair;
        client = accept(relay->listening, NULL, NULL);
        if (client < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM
                    || errno == ENOBUFS) {
                fuel_evict(relay);
                relay->resumed = fuel_now() + FUEL_PAUSE;
            }
            return 0;
        }
        inner = socket(AF_UNIX, SOCK_STREAM, 0);
        if (inner < 0 || !fuel_prepare(client) || !fuel_prepare(inner)
                || connect(inner, (struct sockaddr *) &relay->target,
                           relay->length) != 0) {
            /* Not many can wait there; the client tries again. */
            close(client);
            if (inner >= 0)
                close(inner);
            relay->resumed = fuel_now() + FUEL_PAUSE;
            return 0;
        }
        pair = &relay->pairs[relay->count++];
        memset(pair, 0, sizeof *pair);
        pair->ends[0] = client;
        pair->ends[1] = inner;
        pair->serial = relay->serial++;
        return relay->count < relay->most;
    }

    /* Return whether more may be read of a client. */
    static int fuel_may_read(fuel_relay *relay, fuel_pair *pair) {
        unsigned long epoch = FUEL_LOAD(relay->epoch);
        if (pair->epoch != epoch) {
            pair->epoch = epoch;
            pair->unread = 0;
        }
        return pair->unread < FUEL_SHARE || relay->spent < relay->budget;
    }

    /* Pass on what can be passed on, in one direction. */
    static void fuel_pump(fuel_relay *relay, fuel_pair *pair, int way) {
        int source = pair->ends[way], target = pair->ends[1 - way];
        ssize_t got, sent;
        if (pair->rest[way] != NULL) {
            got = pair->stop[way] - pair->start[way];
            sent = pair->is_deaf[way] ? got : send(
                target, pair->rest[way] + pair->start[way], got, FUEL_SEND);
            if (sent < 0) {
                if (errno == EAGAIN || errno == EINTR)
                    return;
                pair->is_deaf[way] = 1;
                sent = got;
            }
            pair->start[way] += sent;
            if (sent < got)
                return;
            free(pair->rest[way]);
            pair->rest[way] = NULL;
        }
        if (pair->is_ended[way]
                || (way == FUEL_IN && !fuel_may_read(relay, pair)))
            return;
        got = recv(source, relay->chunk, FUEL_CHUNK, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            pair->is_ended[way] = 1;
            return;
        }
        if (way == FUEL_OUT)
            pair->sent += got;
        else {
            pair->received += got;
            pair->unread += got;
            if (pair->unread > FUEL_SHARE)
                relay->spent += got;
        }
        if (pair->is_deaf[way])
            return;
        sent = send(target, relay->chunk, got, FUEL_SEND);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                pair->is_deaf[way] = 1;
                return;
            }
            sent = 0;
        }
        if (sent == got)
            return;
        pair->rest[way] = (char *) malloc(got - sent);
        if (pair->rest[way] == NULL) {
            /* Nobody gets a stream with a gap. */
            pair->is_ended[FUEL_IN] = pair->is_ended[FUEL_OUT] = 1;
            return;
        }
        memcpy(pair->rest[way], relay->chunk + sent, got - sent);
        pair->start[way] = 0;
        pair->stop[way] = got - sent;
    }

    /* Return whether a connection is over, with all that was under way. */
    static int fuel_is_over(fuel_pair *pair, long long now) {
        if (pair->is_ended[FUEL_OUT] && pair->rest[FUEL_OUT] == NULL)
            return 1;
        if (pair->is_ended[FUEL_IN] && pair->rest[FUEL_IN] == NULL
                && !pair->is_shut) {
            /* The other side reads the end when it has read all before.  Were
               it closed, libzmq would hear of it at once. */
            pair->is_shut = 1;
            shutdown(pair->ends[1], SHUT_WR);
            pair->deadline = now + FUEL_PATIENCE;
        }
        return pair->deadline && now > pair->deadline;
    }

    /* Say what is waited for at the ends of a connection. */
    static void fuel_want(fuel_relay *relay, fuel_pair *pair,
                          struct pollfd *polled) {
        int way, end;
        polled[0].events = polled[1].events = 0;
        for (way = 0; way < 2; way++) {
            if (pair->rest[way] != NULL)
                polled[1 - way].events |= POLLOUT;
            else if (pair->is_ended[way])
                ;
            else if (way == FUEL_OUT || fuel_may_read(relay, pair))
                polled[way].events |= POLLIN;
            else
                FUEL_STORE(relay->is_throttled, 1);
        }
        for (end = 0; end < 2; end++)
            /* Else poll() would always report the end of an unread one. */
            polled[end].fd = polled[end].events ? pair->ends[end] : -1;
        if (!polled[1].events && !pair->deadline)
            polled[1].fd = pair->ends[1];
        polled[0].revents = polled[1].revents = 0;
    }

    static void fuel_attend(fuel_relay *relay, int place,
                            struct pollfd *polled) {
        fuel_pair *pair = &relay->pairs[place];
        if (polled[0].revents || (polled[1].revents & POLLOUT))
            fuel_pump(relay, pair, FUEL_IN);
        if (polled[1].revents || (polled[0].revents & POLLOUT))
            fuel_pump(relay, pair, FUEL_OUT);
        if ((polled[1].revents & POLLHUP) && !polled[1].events)
            pair->deadline = fuel_now() + FUEL_PATIENCE;
    }

    static void fuel_relay_run(fuel_relay *relay) {
        struct pollfd *polled = relay->polled;
        long long now = fuel_now(), stopped = 0;
        char some[256];
        int place, count, is_accepting;
        while (1) {
            FUEL_STORE(relay->is_throttled, 0);
            relay->spent -= __atomic_exchange_n(
                &relay->credit, 0, __ATOMIC_SEQ_CST);
            if (relay->spent < 0 || relay->seen != FUEL_LOAD(relay->epoch))
                relay->spent = 0;
            relay->seen = FUEL_LOAD(relay->epoch);
            if (FUEL_LOAD(relay->is_unbound) && relay->listening >= 0) {
                /* Forked processes may have it too, and accept nobody. */
                shutdown(relay->listening, SHUT_RDWR);
                close(relay->listening);
                FUEL_STORE(relay->listening, -1);
            }
            if (FUEL_LOAD(relay->is_stopped)) {
                stopped = stopped ? stopped : now + 1000;
                if (!relay->count || now > stopped)
                    break;
            }
            is_accepting = relay->listening >= 0 && now >= relay->resumed;
            polled[0].fd = relay->wake[0];
            polled[1].fd = is_accepting ? relay->listening : -1;
            polled[0].events = polled[1].events = POLLIN;
            polled[0].revents = polled[1].revents = 0;
            count = relay->count;
            for (place = 0; place < count; place++)
                fuel_want(relay, &relay->pairs[place],
                          polled + 2 + 2 * place);
            if (poll(polled, 2 + 2 * count,
                     is_accepting && !stopped ? 500 : FUEL_PAUSE) < 0) {
                /* No memory, or a lower limit of descriptors: wait for the
                   loss of a peer. */
                if (errno != EINTR)
                    poll(NULL, 0, FUEL_PAUSE);
                continue;
            }
            if (polled[0].revents)
                if (read(relay->wake[0], some, sizeof some) < 0) {}
            now = fuel_now();
            /* Each is the first in its turn: there may be room for one. */
            for (place = 0; place < count; place++) {
                int turn = (relay->first + place) % count;
                fuel_attend(relay, turn, polled + 2 + 2 * turn);
            }
            fuel_limit(relay);
            relay->first = count ? (relay->first + 1) % count : 0;
            for (place = count - 1; place >= 0; place--)
                if (fuel_is_over(&relay->pairs[place], now))
                    fuel_drop(relay, &relay->pairs[place]);
            if (polled[1].revents) {
                if (relay->count < relay->most)
                    while (fuel_accept(relay)) {}
                else {
                    fuel_evict(relay);
                    relay->resumed = now + 1;
                }
            }
        }
        while (relay->count)
            fuel_drop(relay, relay->pairs);
    }

    static void fuel_relay_credit(fuel_relay *relay, long long count) {
        if (count < 0)
            __atomic_add_fetch(&relay->epoch, 1, __ATOMIC_SEQ_CST);
        else
            __atomic_add_fetch(&relay->credit, count, __ATOMIC_SEQ_CST);
        if (FUEL_LOAD(relay->is_throttled))
            fuel_wake(relay);
    }

    static int fuel_relay_ask(fuel_relay *relay, int what) {
        if (what)
            FUEL_STORE(relay->is_stopped, 1);
        FUEL_STORE(relay->is_unbound, 1);
        fuel_wake(relay);
        return FUEL_LOAD(relay->listening) < 0;
    }
    #endif
    """
    ctypedef struct fuel_relay:
        pass
    fuel_relay *fuel_relay_open(int, const char *, size_t, int, size_t)
    void fuel_relay_run(fuel_relay *) nogil
    void fuel_relay_credit(fuel_relay *, long long)
    int fuel_relay_ask(fuel_relay *, int)
    void fuel_relay_free(fuel_relay *)


cdef class Relay:
    """Passes bytes between clients and a local socket, in a thread.

    Parameters
    ----------
    listening : int
        The descriptor of a socket that listens, which the relay closes.
    target : bytes
        The address of a Unix socket, where each client gets a connection.
    most : int
        How many connections there are at a time.  When there is one more,
        it takes the place of one that was sent little or nothing.
    budget : int
        How many bytes of clients may be unread, besides a small share that
        each of them has.  Four times as many may be sent by clients that
        are sent nothing; then the one that sent most is cut off.
    """

    cdef fuel_relay *relay

    def __cinit__(self, int listening, bytes target, int most,
                  size_t budget):
        self.relay = fuel_relay_open(
            listening, target, len(target), most, budget)
        if self.relay is NULL:
            raise MemoryError('no memory or descriptors for a relay')

    def __dealloc__(self):
        if self.relay is not NULL:
            fuel_relay_free(self.relay)

    def run(self):
        """Pass on what comes, until :meth:`stop`."""
        with nogil:
            fuel_relay_run(self.relay)

    def credit(self, long long count):
        """Record that so many bytes of clients were read."""
        fuel_relay_credit(self.relay, count)

    def reset(self):
        """Record that all that came was read."""
        fuel_relay_credit(self.relay, -1)

    def unbind(self):
        """Have the listening socket closed; return whether it is."""
        return bool(fuel_relay_ask(self.relay, 0))

    def stop(self):
        """Have :meth:`run` end when all connections have, or soon."""
        fuel_relay_ask(self.relay, 1)
