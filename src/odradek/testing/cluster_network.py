"""The network of a test cluster as its test uses it: a process of `network_proxy`, and the commands to it."""

from __future__ import annotations

import collections
import json
import os
import random
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

ZOOKEEPER = "zookeeper"
STOP_TIMEOUT_S = 60.0
_LOWEST_PORT = 10_000
_PORT_RANGE_FILE = "/proc/sys/net/ipv4/ip_local_port_range"
_MOST_RESERVED = 100  # a broker listens on its port long before this many others are found
_reserved: collections.deque[int] = collections.deque()  # descriptors of UDP sockets, oldest first


class ClusterNetwork:
    """Nodes are named by broker ids and `ZOOKEEPER`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "odradek.testing.network_proxy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def open(self, name: str, target_port: int, *, source: str | None = None) -> int:
        """The port through which others reach the node. `source` is the one node that uses it, if there is only one."""
        port = find_stable_port()
        answer = self._execute(do="open", name=name, source=source, port=port, target_port=target_port)
        return int(answer["port"])

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        self._execute(do="cut", links=list(links))

    def heal(self) -> None:
        self._execute(do="heal")

    def shape(self, *, delay_ms: float, megabits_per_s: float, loss: float) -> None:
        self._execute(do="shape", delay_ms=delay_ms, megabits_per_s=megabits_per_s, loss=loss)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(STOP_TIMEOUT_S)
        self._process.stdout.close()

    def _execute(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        if "error" in answer:
            raise RuntimeError(f"the network of the cluster failed: {answer['error']}")
        return answer


def find_stable_port() -> int:
    """A free port outside the range that the kernel gives to clients: it stays free while a broker is down, and a
    client that connects to it then is not connected to itself.

    No other call finds the same port, in any process: this process holds the UDP port of the same number."""
    try:
        with open(_PORT_RANGE_FILE) as file:
            highest = int(file.read().split()[0])
    except OSError:
        highest = 49_152  # of macOS, and of IANA
    while True:
        port = random.randrange(_LOWEST_PORT, highest)
        with socket.socket() as attempt, socket.socket(type=socket.SOCK_DGRAM) as reservation:
            try:
                attempt.bind(("127.0.0.1", port))
                reservation.bind(("127.0.0.1", port))
            except OSError:
                continue
            _reserved.append(reservation.detach())
        if len(_reserved) > _MOST_RESERVED:
            os.close(_reserved.popleft())
        return port
