"""Ports of test clusters, which several tests look for at the same time."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from odradek.local import ports
from odradek.local.ports import find_stable_port

if TYPE_CHECKING:
    import pytest


def test_a_port_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_stable_port()
    drawn = iter([first, first])
    draw = ports._draws.randrange
    monkeypatch.setattr(ports._draws, "randrange", lambda *bounds: next(drawn, None) or draw(*bounds))
    assert find_stable_port() != first
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first))
        listener.listen()
