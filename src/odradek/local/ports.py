"""Ports of 127.0.0.1: whether one can be listened on, and ports that stay free while a broker is down."""

from __future__ import annotations

import collections
import os
import random
import socket

_LOWEST_PORT = 10_000
_PORT_RANGE_FILE = "/proc/sys/net/ipv4/ip_local_port_range"
_MOST_RESERVED = 100  # a broker listens on its port long before this many others are found
_reserved: collections.deque[int] = collections.deque()  # descriptors of UDP sockets, oldest first
_draws = random.Random()  # tests may seed the shared generator, or expect its numbers


def listening_error(port: int) -> OSError | None:
    """Why a process cannot listen on the port; None if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error
    return None


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
        port = _draws.randrange(_LOWEST_PORT, highest)
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
