"""The scheduling of a thread whose work must not delay the event loop."""

import contextlib
import os
import sys
import threading


def become_batch_thread() -> None:
    """When the calling thread wakes up, it does not preempt a thread that runs: it waits for an idle processor, or for
    its share. On Linux only.

    Its share is not reduced, as that of a higher nice value would be: the thread holds the interpreter lock at times,
    and the event loop would wait for a thread that gets no processor on a busy machine."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # then it is scheduled as the others are
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_BATCH, os.sched_param(0))
