"""Changes that the controller has begun when their clients disconnect run to their end, and their memory counts."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from odradek.handlers.forwarding import ABANDONED_BYTES
from odradek.protocol.messages.create_topics import CreateTopicsResponse
from tests.handlers.forwarding_cluster import TwoBrokers
from tests.handlers.test_forwarding import CONTROLLER, OTHER, creation


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers()
    yield brokers
    brokers.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_a_change_whose_client_has_disconnected_counts_until_it_is_written(
    cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch, node_id: int
) -> None:
    controller = cluster.members[CONTROLLER]
    commit, is_back = controller.controller_store.commit, asyncio.Event()

    async def commit_later(*changes: Any, **version: Any) -> Any:
        await is_back.wait()
        return await commit(*changes, **version)

    monkeypatch.setattr(controller.controller_store, "commit", commit_later)
    copies = cast("Any", cluster.members[node_id].services.forwarder)._copies
    for name in ("t", "u"):
        asked = cluster.begin(node_id, creation(100 * name), CreateTopicsResponse)
        cluster.pass_time(0.1)
        asked.cancel()
        cluster.pass_time(0.1)
        assert asked.cancelled()
    assert copies.used_bytes > 2 * (100 + ABANDONED_BYTES)
    is_back.set()
    cluster.pass_time(1)
    assert copies.used_bytes == 0
    assert controller.cache.image.topics.keys() == {100 * "t", 100 * "u"}


def test_a_change_that_is_written_does_not_count_for_as_long_as_a_log_directory_hangs(
    cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = cluster.members[CONTROLLER]
    monkeypatch.setattr(controller.cache, "wait_until_applied", lambda _: asyncio.Event().wait())
    asked = cluster.begin(CONTROLLER, creation(), CreateTopicsResponse)
    cluster.pass_time(0.1)
    asked.cancel()
    cluster.pass_time(30)
    copies = cast("Any", controller.services.forwarder)._copies
    assert copies.used_bytes > 0
    cluster.pass_time(31)
    assert copies.used_bytes == 0
    assert controller.cache.image.topics.keys() == {"t"}


def test_a_stop_ends_changes_whose_clients_have_disconnected(
    cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = cluster.members[CONTROLLER]
    monkeypatch.setattr(controller.cache, "wait_until_applied", lambda _: asyncio.Event().wait())
    asked = cluster.begin(CONTROLLER, creation(), CreateTopicsResponse)
    cluster.pass_time(0.1)
    asked.cancel()
    cluster.pass_time(0.1)
    copies = cast("Any", controller.services.forwarder)._copies
    assert copies.used_bytes > 0
    cluster.run(controller.services.audited_requests.close())
    assert copies.used_bytes == 0
