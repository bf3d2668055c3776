"""Requests while the metadata cannot be written: clients get errors that they retry, and what they ask besides."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek.controller.metadata_writer import ChangeNotMade, ControllerFenced
from odradek.controller.requests import AllocateProducerIds
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.forwarding_cluster import TwoBrokers
from tests.handlers.requests import create_topic
from tests.handlers.test_forwarded_quotas import limit
from tests.handlers.test_forwarding import CONTROLLER, OTHER, RecordingAudit, creation


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    yield broker
    broker.close()


async def fail(*_: object, **__: object) -> Any:
    raise StoreError("ZooKeeper is away")


async def hang(*_: object, **__: object) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize("create", [fail, hang])
def test_topics_that_exist_are_described_while_others_cannot_be_created(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, create: Callable[..., Any]
) -> None:
    create_topic(broker, "orders")
    monkeypatch.setattr(broker.services.controller, "ask", create)
    began_ms = broker.elapsed_ms()
    wanted = [MetadataRequestTopic(name=name) for name in ("orders", "later", "__consumer_offsets")]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
    topics = broker.call(request, MetadataResponse).topics
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.error_code for topic in topics] == [ErrorCode.NONE, missing, missing]
    assert broker.elapsed_ms() - began_ms <= 2000


@pytest.mark.parametrize("create", [fail, hang])
@pytest.mark.parametrize("key_type", [0, 1])
def test_a_coordinator_whose_topic_cannot_be_created_is_not_available(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, create: Callable[..., Any], key_type: int
) -> None:
    monkeypatch.setattr(broker.services.controller, "ask", create)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["readers"])
    (found,) = broker.call(request, FindCoordinatorResponse).coordinators
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_change_that_a_single_broker_cannot_write_times_out(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker.node._coordination.store, "commit", fail)
    (topic,) = broker.call(creation(factor=1), CreateTopicsResponse).topics
    assert topic.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert topic.error_message == "The metadata could not be written: ZooKeeper is away"
    caplog.clear()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_a_cluster_tries_again_until_its_store_is_back(monkeypatch: pytest.MonkeyPatch, node_id: int) -> None:
    cluster = TwoBrokers()
    store = cluster.members[CONTROLLER].controller_store
    with monkeypatch.context() as away:
        away.setattr(store, "commit", fail)
        asked = cluster.begin(node_id, creation(), CreateTopicsResponse)
        cluster.pass_time(5)
        assert not asked.done()
    cluster.pass_time(1)
    assert asked.result().topics[0].error_code == ErrorCode.NONE
    cluster.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_attempts_that_are_not_written_do_not_count_for_the_quota(
    monkeypatch: pytest.MonkeyPatch, node_id: int
) -> None:
    cluster = TwoBrokers()
    for member in cluster.members:
        member.cache.subscribe(member.services.quotas.follow)
    limit(cluster, "controller_mutation_rate", 0.2)  # a bucket of 2.2 partitions, and a topic has 3
    with monkeypatch.context() as away:
        away.setattr(cluster.members[CONTROLLER].controller_store, "commit", fail)
        asked = cluster.begin(node_id, creation(), CreateTopicsResponse)
        cluster.pass_time(5)
        assert not asked.done()
    cluster.pass_time(1)
    created = asked.result()
    assert (created.topics[0].error_code, created.throttle_time_ms) == (ErrorCode.NONE, 0)
    cluster.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_the_audit_log_has_a_line_for_each_attempt_that_may_have_made_the_change(
    monkeypatch: pytest.MonkeyPatch, node_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The first attempt sends a commit; the others cannot read the metadata that they would decide on."""
    cluster = TwoBrokers()
    audit = RecordingAudit()
    store = cluster.members[CONTROLLER].controller_store
    for member in cluster.members:
        member.services.audit = audit
    with monkeypatch.context() as away:
        for method in ("commit", "changes_since", "load"):
            away.setattr(store, method, fail)
        asked = cluster.begin(node_id, creation(), CreateTopicsResponse)
        cluster.pass_time(5)
        assert not asked.done()
    cluster.pass_time(1)
    assert asked.result().topics[0].error_code == ErrorCode.NONE
    assert [(action.outcome, action.resource_name) for action in audit.actions] == [("unknown", "t"), ("done", "t")]
    caplog.clear()
    cluster.close()


@pytest.mark.parametrize("problem", [ChangeNotMade, ControllerFenced, StoreError])
def test_a_broker_that_is_unregistered_before_the_store_fails_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, problem: type[StoreError]
) -> None:
    """The repair of its partitions is a second write, which is not made. Another attempt would not find the broker."""
    cluster = TwoBrokers()
    audit = cluster.members[CONTROLLER].services.audit = RecordingAudit()
    controller = cluster.members[CONTROLLER].controller
    assert controller is not None
    cluster.run(controller.cluster.follow_live_brokers({CONTROLLER: cluster.live[CONTROLLER]}))

    async def fail_to_repair() -> int:
        raise problem("the metadata could not be written")

    monkeypatch.setattr(controller.cluster, "repair", fail_to_repair)
    answer = cluster.call(CONTROLLER, UnregisterBrokerRequest(broker_id=OTHER), UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.NONE
    assert OTHER not in controller.image.brokers
    assert [(action.outcome, action.details) for action in audit.actions] == [("done", {"broker": OTHER})]
    cluster.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_a_deletion_that_timed_out_is_not_carried_out_later(monkeypatch: pytest.MonkeyPatch, node_id: int) -> None:
    cluster = TwoBrokers()
    cluster.call(CONTROLLER, creation("orders"), CreateTopicsResponse)
    store = cluster.members[CONTROLLER].controller_store
    commit, is_back = store.commit, asyncio.Event()

    async def commit_later(*changes: Any, **version: Any) -> Any:
        await is_back.wait()
        return await commit(*changes, **version)

    monkeypatch.setattr(store, "commit", commit_later)
    earlier = cluster.begin(CONTROLLER, creation("payments", timeout_ms=60_000), CreateTopicsResponse)
    cluster.pass_time(0.1)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=2000)
    deletion = cluster.begin(node_id, request, DeleteTopicsResponse)
    cluster.pass_time(4)
    assert deletion.result().responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    is_back.set()
    cluster.pass_time(4)
    assert earlier.result().topics[0].error_code == ErrorCode.NONE
    assert cluster.members[CONTROLLER].cache.image.topics.keys() == {"orders", "payments"}
    cluster.close()


def test_a_broker_gets_producer_ids_when_the_store_of_the_controller_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = TwoBrokers()
    with monkeypatch.context() as away:
        away.setattr(cluster.members[CONTROLLER].controller_store, "commit", fail)
        asked = cluster.simulation.loop.create_task(cluster.members[OTHER].channel.ask(AllocateProducerIds(1000)))
        cluster.pass_time(5)
        assert not asked.done()
    cluster.pass_time(1)
    assert asked.result() == 0
    cluster.close()


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_a_cluster_answers_in_time_without_its_store(monkeypatch: pytest.MonkeyPatch, node_id: int) -> None:
    cluster = TwoBrokers()
    monkeypatch.setattr(cluster.members[CONTROLLER].controller_store, "commit", fail)
    asked = cluster.begin(node_id, creation(timeout_ms=3000), CreateTopicsResponse)
    cluster.pass_time(3.1)
    assert asked.result().topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster.close()
