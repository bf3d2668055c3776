"""Notifications reach the socket that the service manager has named, and nothing else."""

import socket
import sys
from pathlib import Path

import pytest

from odradek.host.service_manager import READY, SOCKET_VARIABLE, notify_service_manager


def test_a_notification_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(10)
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "notify"))
        notify_service_manager(READY)
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has abstract sockets")
def test_an_abstract_socket_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{tmp_path}")
        receiver.settimeout(10)
        monkeypatch.setenv(SOCKET_VARIABLE, f"@{tmp_path}")
        notify_service_manager(READY)
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "relative", "/no/such/socket"])
def test_without_a_service_manager_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, address)
    notify_service_manager(READY)
