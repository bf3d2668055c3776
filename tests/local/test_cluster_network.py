"""The proxy between the brokers of a test cluster: what a broker sees of another one that does not listen."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from tests.waiting import eventually


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_port_refuses_connections_while_its_broker_does() -> None:
    """From the beginning: a broker that has accepted a connection and then refuses one counts as ended."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        broker_port = found.getsockname()[1]
    command = {"do": "open", "name": "broker-2", "source": "broker-1", "port": 0, "target_port": broker_port}
    with subprocess.Popen(
        [sys.executable, "-m", "odradek.local.cluster_network"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(json.dumps(command) + "\n")
        proxy.stdin.flush()
        port = json.loads(proxy.stdout.readline())["port"]
        assert is_refused(port)
        for _ in range(2):  # the port stays the same when the broker returns
            with socket.create_server(("127.0.0.1", broker_port)):
                eventually(lambda: not is_refused(port), "connections are accepted")
            eventually(lambda: is_refused(port), "connections are refused")
        proxy.stdin.close()
