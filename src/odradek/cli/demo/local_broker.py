"""The broker that `odradek demo` and `odradek up` start on this machine."""

from __future__ import annotations

import errno
import socket

from odradek.cli.framework.executable import command_name
from odradek.cli.framework.failure import Failure, without_prefix
from odradek.testing import BrokerError, RunningBroker


def check_port(port: int, command: str) -> None:
    """Raise a Failure that names another port if something listens on this one. 0 stands for any free port."""
    if not port:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Failure(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
            other = port + 100 if port + 100 < 65536 else 0
            with_make = f' (with make: make up ARGS="--port {other}")' if command == "up" else ""
            advice = f"choose another port: {command_name()} {command} --port {other}{with_make}"
            raise Failure(f"127.0.0.1:{port} is in use; {advice}") from None


def start_broker(port: int, data_dir: str | None) -> RunningBroker:
    running = RunningBroker(port=port, data_directory=data_dir)
    try:
        return running.start()
    except BrokerError as error:
        running.close()
        last_line = without_prefix(running.output.rpartition("\n")[2])
        raise Failure(f"the broker did not start: {last_line}" if last_line else str(error)) from None
    except BaseException:
        running.close()
        raise
