"""Runs `odradek` in forks of a process that has imported its modules, which saves the time of importing them.

`python prepared_main.py DESCRIPTOR LOAD_WHEN_IDLE MODULE…` serves on a listening socket until its standard input ends.
LOAD_WHEN_IDLE, module:function or empty, is called when the first start was served and no other waits. A client sends
a request with the descriptors of the new process, and receives its pid and then its exit status. Every command is a
process of its own with its own environment, directory and streams, and ends as an interpreter does.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
import threading
from typing import Any

LARGEST_REQUEST = 1 << 20
MOST_DESCRIPTORS = 16
QUIET_S = 0.2  # without a start, before more is imported
UNUSED_DESCRIPTOR = 100  # above those that a request names


def serve(listener: socket.socket, load_when_idle: str) -> dict[str, Any] | None:
    """Returns in a fork, with the request that this fork must run; None when the standard input has ended."""
    has_served = False
    while True:
        can_load = has_served and bool(load_when_idle)
        readable, _, _ = select.select([listener.fileno(), 0], [], [], QUIET_S if can_load else None)
        reap()
        if not readable:
            module, _, function = load_when_idle.partition(":")
            getattr(importlib.import_module(module), function)()
            load_when_idle = ""
            gc.freeze()
            continue
        has_served = True
        if listener.fileno() not in readable:
            return None
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return supervise(connection)
        connection.close()


def reap() -> None:
    """Waits for the forks that have ended: the kernel adds the processor time of those only to that of this process."""
    with contextlib.suppress(ChildProcessError):  # there is none
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def supervise(connection: socket.socket) -> dict[str, Any]:
    """Forks the command; returns in the command, and ends this process with the command.

    Nothing is printed if the client has ended.
    """
    pid: int | None = None
    received = array.array("i")
    try:
        data, ancillary, _, _ = connection.recvmsg(
            LARGEST_REQUEST, socket.CMSG_SPACE(MOST_DESCRIPTORS * received.itemsize)
        )
        for _, _, passed in ancillary:
            received.frombytes(passed)
        if data:
            pid = os.fork()
        if pid:
            with contextlib.suppress(OSError):
                connection.send(str(pid).encode())
            for each in received:
                os.close(each)
            _, status = os.waitpid(pid, 0)
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    finally:
        if pid != 0:
            os._exit(0)
    connection.close()
    request: dict[str, Any] = json.loads(data)
    take_descriptors(received, request["descriptors"])
    return request


def take_descriptors(received: array.array[int], numbers: list[int]) -> None:
    """Gives the received descriptors these numbers, of which some may be in use by others of them."""
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, max(UNUSED_DESCRIPTOR, *numbers) + 1) for each in received]
    for each in received:
        os.close(each)
    for each, number in zip(moved, numbers, strict=True):
        os.dup2(each, number)
        os.close(each)


def main() -> None:
    for name in sys.argv[3:]:
        importlib.import_module(name)
    gc.freeze()  # a collection in a fork, such as that at its end, would copy the pages of all these objects
    request = serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    if request is None:
        return
    if request["has_own_session"]:
        os.setsid()
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["odradek", *request["arguments"]]
    code: object = None
    try:
        runpy.run_module("odradek", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    if code is None or isinstance(code, int):
        end_quickly(code or 0)
    sys.exit(code)  # type: ignore[arg-type]  # a message, or a code with output that cannot be written


def end_quickly(code: int) -> None:
    """Ends this process as an interpreter does, but leaves the modules in place: to clear them would copy their pages.

    Objects of the command are deleted, those in reference cycles too. Returns if output cannot be written.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - waits for threads, as the interpreter does
    atexit._run_exitfuncs()  # noqa: SLF001 - the interpreter's next step
    gc.collect()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
