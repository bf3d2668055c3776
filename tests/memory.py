"""How much memory Python takes for a call."""

from __future__ import annotations

import gc
import os
import pickle
import tracemalloc
import warnings
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class TakenMemory(NamedTuple):
    kept_bytes: int
    peak_bytes: int


def memory_of(call: Callable[[], object]) -> TakenMemory:
    """Measured in a forked process, which has one thread: Python 3.11 may abort if tracemalloc is stopped while another
    thread allocates, and test workers have threads. An exception of the call, such as a failed assertion, is raised."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child uses none of the other threads
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as answer:
            answer.write(pickle.dumps(_measure(call)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    _, status = os.waitpid(pid, 0)
    assert data, f"the measuring process ended with {os.waitstatus_to_exitcode(status)} and without an answer"
    taken = pickle.loads(data)
    if isinstance(taken, BaseException):
        raise taken
    assert isinstance(taken, TakenMemory)
    return taken


def _measure(call: Callable[[], object]) -> TakenMemory | BaseException:
    gc.freeze()  # garbage of the parent stays: a client of librdkafka would wait for its threads, which the child lacks
    tracemalloc.start()
    try:
        call()
    except BaseException as problem:
        try:
            pickle.dumps(problem)
        except Exception:
            return AssertionError(repr(problem))
        return problem
    return TakenMemory(*tracemalloc.get_traced_memory())
