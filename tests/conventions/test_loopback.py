"""Addresses that only this machine reaches."""

from __future__ import annotations

import pytest

from odradek.conventions.addresses import is_loopback


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.3.2.1", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.7", "localhost.example", "kafka"])
def test_other_addresses(host: str) -> None:
    assert not is_loopback(host)
