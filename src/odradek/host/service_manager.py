"""Notifications to systemd (sd_notify), which waits for them when a unit has `Type=notify`."""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"
SOCKET_VARIABLE = "NOTIFY_SOCKET"


def notify_service_manager(state: str) -> None:
    """Without a service manager, or if it does not listen, nothing happens."""
    address = os.environ.get(SOCKET_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # a socket in Linux's abstract namespace
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.connect(address)
        sender.send(state.encode())
