"""A call in a process of its own, for what is measured of a whole process: memory, descriptors."""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def call_alone(call: Callable[[], Result]) -> Result:
    """Call it in a forked process, which has one thread: test workers have threads of clients, which allocate and open
    files at any time. An exception of the call, such as a failed assertion, is raised here."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child uses none of the other threads
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as answer:
            answer.write(_answer(call))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    _, status = os.waitpid(pid, 0)
    assert data, f"the forked process ended with {os.waitstatus_to_exitcode(status)} and without an answer"
    result, problem = pickle.loads(data)
    if problem is not None:
        raise problem
    return result  # type: ignore[no-any-return]  # pickled by the child


def open_descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


def _answer(call: Callable[[], object]) -> bytes:
    gc.freeze()  # garbage of the parent stays: a client of librdkafka would wait for its threads, which the child lacks
    try:
        return pickle.dumps((call(), None))
    except BaseException as problem:
        try:
            return pickle.dumps((None, problem))
        except Exception:
            return pickle.dumps((None, AssertionError(repr(problem))))
