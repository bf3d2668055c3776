"""Requests to the controller through the local channel: decided, committed, and visible once answered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.controller.channel import LocalControllerChannel
from odradek.controller.decisions.brokers import LiveBroker
from odradek.controller.decisions.configs import AlterOperation, ConfigAlteration, ConfigOperation, ConfigReplacement
from odradek.controller.decisions.topics import NewPartitions, NewTopic
from odradek.controller.requests import (
    AllocateProducerIds,
    AlterClientQuotas,
    AlterConfigs,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
)
from odradek.metadata import commit_parts
from odradek.metadata.client_quotas import QuotaAlteration, QuotaOperation
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from tests.controller.clusters import broker
from tests.controller.local_controller import running
from tests.metadata.inline_host import inline_host

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def set_config(kind: int, name: str, key: str, value: str) -> list[ConfigAlteration]:
    return [ConfigAlteration(kind, name, [ConfigOperation(key, AlterOperation.SET, value)])]


async def test_topics_survive_a_restart_with_new_epochs(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, cache):
        (result,) = await controller.ask(
            CreateTopics([NewTopic(name="t", partition_count=2, configs={"flush.ms": "9"})])
        )
        assert result.error is ErrorCode.NONE
        assert result.topic == cache.image.topics["t"]
        assert {entry.name: entry.value for entry in result.configs}["flush.ms"] == "9"
    async with running(tmp_path) as (controller, cache):
        topic = cache.image.topics["t"]
        assert topic.topic_id == result.topic_id
        assert [partition.leader_epoch for partition in topic.partitions] == [1, 1]
        assert cache.image.configs_of(TOPIC, "t") == {"flush.ms": "9"}


async def test_settings_are_altered_and_replaced(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, cache):
        await controller.ask(CreateTopics([NewTopic(name="t")]))
        (result,) = await controller.ask(AlterConfigs(set_config(TOPIC, "t", "flush.ms", "1")))
        assert result.error is ErrorCode.NONE
        results = await controller.ask(
            AlterConfigs(
                [
                    ConfigReplacement(TOPIC, "t", [("segment.ms", "2")]),
                    ConfigReplacement(TOPIC, "x", [("segment.ms", "2")]),
                    ConfigReplacement(ConfigResourceType.GROUP, "g", []),
                    ConfigReplacement(ConfigResourceType.GROUP, "g", []),
                ]
            )
        )
        assert [result.error for result in results] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
        ]
        assert results[2].message == "Each resource must appear at most once."
        assert cache.image.configs_of(TOPIC, "t") == {"segment.ms": "2"}


async def test_broker_settings_change_the_configuration_and_survive(tmp_path: Path) -> None:
    async with running(tmp_path, message_max_bytes="100") as (controller, cache):
        await controller.ask(AlterConfigs(set_config(BROKER, "", "message.max.bytes", "200")))
        assert cache.broker_config.values["message.max.bytes"] == 200
        await controller.ask(AlterConfigs(set_config(BROKER, "0", "message.max.bytes", "300")))
        assert cache.broker_config.values["message.max.bytes"] == 300
    async with running(tmp_path) as (controller, cache):
        assert cache.broker_config.values["message.max.bytes"] == 300
        kept = [("min.insync.replicas", "1")]
        await controller.ask(AlterConfigs([ConfigReplacement(BROKER, "0", []), ConfigReplacement(BROKER, "", kept)]))
        assert cache.broker_config.values["message.max.bytes"] == 1048588


async def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    firsts = []
    for _ in range(3):
        async with running(tmp_path) as (controller, _):
            firsts += await asyncio.gather(*(controller.ask(AllocateProducerIds(10)) for _ in range(3)))
    assert sorted(firsts) == list(range(0, 90, 10))


async def test_one_of_many_that_make_the_same_topic_wins(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, _):
        results = await asyncio.gather(*(controller.ask(CreateTopics([NewTopic(name="t")])) for _ in range(5)))
        errors = sorted(result.error for (result,) in results)
        assert errors == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 4


async def test_subscribers_follow_every_commit_in_order(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, cache):
        seen: list[tuple[int, int]] = []

        async def slow_subscriber(before: MetadataImage, after: MetadataImage) -> None:
            await asyncio.sleep(0)
            seen.append((before.version, after.version))

        cache.subscribe(slow_subscriber)
        start = cache.image.version
        await asyncio.gather(*(controller.ask(CreateTopics([NewTopic(name=f"t{n}")])) for n in range(4)))
        assert seen == [(start + n, start + n + 1) for n in range(4)]


async def test_a_subscriber_that_fails_does_not_affect_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, cache):
        seen: list[int] = []

        def failing(before: MetadataImage, after: MetadataImage) -> None:
            raise OSError("disk full")

        cache.subscribe(failing)
        cache.subscribe(lambda before, after: seen.append(after.version))
        await controller.ask(CreateTopics([NewTopic(name="t")]))
        assert seen == [cache.image.version]
        assert "t" in cache.image.topics


async def test_a_cancelled_request_does_not_stop_its_commit(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, cache):
        entered, leave = asyncio.Event(), asyncio.Event()

        async def waiting(before: MetadataImage, after: MetadataImage) -> None:
            entered.set()
            await leave.wait()

        cache.subscribe(waiting)
        request = asyncio.ensure_future(controller.ask(CreateTopics([NewTopic(name="t")])))
        await entered.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        leave.set()
        (result,) = await controller.ask(CreateTopics([NewTopic(name="t")]))
        assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_thousands_of_topics_are_made_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, _):
        results = await controller.ask(CreateTopics([NewTopic(name=f"topic.{n}") for n in range(2000)]))
        assert {result.error for result in results} == {ErrorCode.NONE}
        results = await controller.ask(CreateTopics([NewTopic(name="big", partition_count=10_001)]))
        assert results[0].error is ErrorCode.POLICY_VIOLATION


async def all_requests(controller: LocalControllerChannel) -> list[tuple[ErrorCode, str | None]]:
    quota = QuotaAlteration([("user", "a")], [QuotaOperation("consumer_byte_rate", 1.0, remove=False)])
    results: list[Any] = [
        *await controller.ask(CreateTopics([NewTopic(name="new"), NewTopic(name="new")])),
        *await controller.ask(DeleteTopics(["t"])),
        *await controller.ask(CreatePartitions([NewPartitions(name="t", count=5)])),
        *await controller.ask(AlterConfigs([ConfigReplacement(TOPIC, "t", [("flush.ms", "1")])])),
        *await controller.ask(AlterConfigs(set_config(TOPIC, "t", "flush.ms", "1"))),
        *await controller.ask(AlterClientQuotas([quota])),
    ]
    return [(result.error, result.message) for result in results]


async def test_commit_that_is_too_large_is_a_policy_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as (controller, cache):
        await controller.ask(CreateTopics([NewTopic(name="t")]))
        topic_id = cache.image.topics["t"].topic_id
        monkeypatch.setattr(commit_parts, "MAX_COMMIT_BYTES", 1)
        answers = await all_requests(controller)
        (by_id,) = await controller.ask(DeleteTopics([], [topic_id]))
        assert (by_id.topic_id, by_id.error) == (topic_id, ErrorCode.POLICY_VIOLATION)
        monkeypatch.undo()
    refused = [error for error, _ in answers]
    assert refused == [ErrorCode.INVALID_REQUEST] + [ErrorCode.POLICY_VIOLATION] * 5, "the first changes nothing"
    assert all("split the request" in (message or "") for _, message in answers[1:])


async def test_requests_to_a_fenced_controller_get_not_controller(tmp_path: Path) -> None:
    async with running(tmp_path) as (controller, _):
        await controller.ask(CreateTopics([NewTopic(name="t")]))
        other = EmbeddedStore(inline_host(), str(tmp_path / "metadata"))
        await other.claim_controller(7)
        await other.close()
        answers = await all_requests(controller)
        (named,) = await controller.ask(CreateTopics([NewTopic(name="new")]))
        assert (named.name, named.error) == ("new", ErrorCode.NOT_CONTROLLER)
    assert [error for error, _ in answers] == [ErrorCode.INVALID_REQUEST] + [ErrorCode.NOT_CONTROLLER] * 5


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "")])
async def test_a_lower_minimum_of_in_sync_replicas_clears_eligible_leaders(
    tmp_path: Path, resource: tuple[int, str]
) -> None:
    """The leader commits alone from then on, so that no replica that left before may be elected (KIP-966)."""
    async with running(tmp_path, node_id="1") as (channel, cache):
        live = {each: LiveBroker(broker(each, epoch=1000), []) for each in (1, 2)}
        cluster = channel._controller.cluster
        await cluster.follow_live_brokers(live)
        await channel.ask(AlterConfigs(set_config(BROKER, "", "min.insync.replicas", "2")))
        await channel.ask(CreateTopics([NewTopic(name="t", replication_factor=2)]))
        await cluster.fence_brokers({2: 1000})
        (fenced,) = channel._controller.image.topics["t"].partitions
        assert (fenced.in_sync_replicas, fenced.eligible_leader_replicas) == ((1,), (2,))
        await channel.ask(AlterConfigs(set_config(*resource, "min.insync.replicas", "1")))
        (partition,) = cache.image.topics["t"].partitions
        assert (partition.in_sync_replicas, partition.eligible_leader_replicas) == ((1,), ())
