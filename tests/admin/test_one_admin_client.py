"""Threads share the admin client of a cluster."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from odradek.admin import cluster as module
from odradek.admin.cluster import Cluster

if TYPE_CHECKING:
    import pytest

THREADS = 8


def test_threads_that_begin_together_use_one_admin_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one would replace the first, which is destroyed with its requests: their futures would never end."""
    created: list[object] = []

    def create_slowly(_kind: Any, _settings: dict[str, Any]) -> object:
        time.sleep(0.05)  # a measured time: that of a client's creation
        created.append(object())
        return created[-1]

    monkeypatch.setattr(module, "_create", create_slowly)
    monkeypatch.setattr(Cluster, "check_reachable", lambda _: None)
    cluster = Cluster("127.0.0.1:1", {})
    with ThreadPoolExecutor(THREADS) as threads:
        used = list(threads.map(lambda _: cluster.admin(), range(THREADS)))
    assert used == created * THREADS
