"""Runs commands in forks of a process that has imported the command line, which saves their imports.

`python -m tests.cli.command_server DESCRIPTOR` serves on a listening socket until its standard input ends. A client
sends a request with its standard streams, and receives the pid of the command and then its exit status. Every command
is a process of its own with its own environment, directory and streams, and ends as an interpreter does.
"""

from __future__ import annotations

import array
import json
import os
import runpy
import select
import signal
import socket
import sys
from typing import Any

# Imported before the forks. None of them starts a thread or reads the environment when it is imported.
PRELOADED = ("click", "confluent_kafka", "confluent_kafka.admin", "odradek.cli.main", "odradek.cli.client.cluster")
LARGEST_REQUEST = 1 << 20


def serve(listener: socket.socket) -> dict[str, Any] | None:
    """Returns in a fork, with the request that this fork must run; None when the standard input has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the forks
    while True:
        readable, _, _ = select.select([listener.fileno(), 0], [], [])
        if listener.fileno() not in readable:
            return None
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return supervise(connection)
        connection.close()


def supervise(connection: socket.socket) -> dict[str, Any]:
    """Forks the command; returns in the command, and ends this process with the command."""
    data, ancillary, _, _ = connection.recvmsg(LARGEST_REQUEST, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    for _, _, passed in ancillary:
        streams.frombytes(passed)
    pid = os.fork()
    if pid == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        request: dict[str, Any] = json.loads(data)
        return request
    connection.send(str(pid).encode())
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(pid, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def main() -> None:
    for name in PRELOADED:
        __import__(name)
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        return
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["odradek", *request["arguments"]]
    runpy.run_module("odradek", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
