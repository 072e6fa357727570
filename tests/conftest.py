"""What every test run needs, however it was begun."""

import signal

# A run that a script puts into the background ignores Ctrl+C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
