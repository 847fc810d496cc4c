"""Termination by a signal although a thread holds the interpreter.

Python runs the handler of a signal between two steps of the main thread, so
not while some function in C holds the interpreter's lock.  A handler in C
runs at once: it sets an alarm, which ends the process unless Python cancels it when it
has ended what it had to.
"""
cdef extern from *:
    """
    #ifdef _WIN32
    static int fuel_arm(int number, unsigned int seconds) { return 0; }
    static void fuel_disarm(void) {}
    #else
    #include <signal.h>
    #include <string.h>
    #include <unistd.h>

    static void (*fuel_python_handler)(int) = 0;
    static volatile unsigned int fuel_grace = 0;
    static volatile int fuel_number = 0;

    static void fuel_on_alarm(int number) {
        signal(fuel_number, SIG_DFL);
        raise(fuel_number);
    }

    static void fuel_on_signal(int number) {
        alarm(fuel_grace);
        fuel_python_handler(number);
    }

    static int fuel_arm(int number, unsigned int seconds) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0
                || action.sa_handler == SIG_DFL
                || action.sa_handler == SIG_IGN
                || action.sa_handler == fuel_on_signal)
            return -1;
        fuel_python_handler = action.sa_handler;
        fuel_grace = seconds;
        fuel_number = number;
        signal(SIGALRM, fuel_on_alarm);
        action.sa_handler = fuel_on_signal;
        return sigaction(number, &action, NULL);
    }

    static void fuel_disarm(void) {
        alarm(0);
    }
    #endif
    """
    int fuel_arm(int number, unsigned int seconds)
    void fuel_disarm()


def arm(int number, unsigned int seconds):
    """End the process when Python does not handle a signal in time.

    `seconds`: how long Python has after the signal to call :func:`disarm`.
    """
    if fuel_arm(number, seconds) != 0:
        raise ValueError(f'signal {number} has no handler in Python')


def disarm():
    """Cancel the alarm: the process ends by itself."""
    fuel_disarm()
