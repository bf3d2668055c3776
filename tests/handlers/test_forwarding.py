"""Requests that the controller decides, sent to a broker that is not the controller."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.controller.channel import RefusingChannel
from odradek.controller.controller import Controller
from odradek.controller.decisions.topics import NewTopic
from odradek.controller.requests import AllocateProducerIds, CreateTopics
from odradek.handlers import waiting_copies
from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.handlers.forwarding import LONGEST_TIMEOUT_MS, decide_locally
from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from odradek.protocol.refusal import Refusal
from odradek.security.acls.authorizer import AclAuthorizer
from odradek.security.acls.decisions import AccessRules
from odradek.security.audit.events import Action, Actor, NoAudit
from odradek.security.authorizer import Client, Operation, Resource, ResourceType
from odradek.security.principal_codec import encode_principal
from odradek.security.principals import Principal
from tests.handlers.forwarding_cluster import BROKER_LISTENER, CLIENT_LISTENER, TwoBrokers
from tests.wire import encode_request

CONTROLLER, OTHER = 0, 1


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers()
    yield brokers
    brokers.close()


def creation(name: str = "t", factor: int = 2, timeout_ms: int = 10_000) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=3, replication_factor=factor, assignments=[], configs=[])
    return CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)


def create(cluster: TwoBrokers, node_id: int, name: str = "t") -> Any:
    (result,) = cluster.call(node_id, creation(name), CreateTopicsResponse).topics
    return result


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_any_broker_creates_topics_and_knows_them_when_it_answers(cluster: TwoBrokers, node_id: int) -> None:
    result = create(cluster, node_id)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 3, 2)
    assert cluster.members[node_id].cache.image.topics["t"].topic_id == result.topic_id
    assert create(cluster, node_id).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_other_requests_to_the_controller_do_not_wait_for_logs_that_it_opens(cluster: TwoBrokers) -> None:
    opened = asyncio.Event()

    async def open_logs(_before: object, _after: object) -> None:
        await opened.wait()

    cluster.members[CONTROLLER].cache.subscribe(open_logs)
    channel = cluster.members[OTHER].channel
    on_demand = cluster.simulation.loop.create_task(channel.ask(CreateTopics([NewTopic(name="on-demand")])))
    created = cluster.begin(OTHER, creation(), CreateTopicsResponse)
    cluster.pass_time(0.1)
    producer_ids = cluster.simulation.loop.create_task(channel.ask(AllocateProducerIds(1000)))
    listed = cluster.begin(OTHER, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    cluster.pass_time(0.1)
    assert (producer_ids.result(), listed.result().error_code) == (0, ErrorCode.NONE)
    assert not on_demand.done()
    assert not created.done()
    opened.set()
    cluster.pass_time(1)
    assert on_demand.result()[0].error is ErrorCode.NONE
    assert created.result().topics[0].error_code == ErrorCode.NONE


def test_settings_of_a_response_are_not_searched_for_errors() -> None:
    """10,000 created topics have 330,000 settings."""

    class Unread(CreatableTopicConfigs):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was read")

    async def handle(request: object, context: object) -> CreateTopicsResponse:
        return response

    response = CreateTopicsResponse(topics=[CreatableTopicResult(configs=[object.__new__(Unread)])])
    api: Any = SimpleNamespace(handle=handle, name="CreateTopics")
    assert asyncio.run(decide_locally(api, creation(), cast("Any", None))) is response
    response.topics.append(CreatableTopicResult(error_code=ErrorCode.NOT_CONTROLLER))
    assert asyncio.run(decide_locally(api, creation(), cast("Any", None))) is None


def test_every_api_that_the_controller_decides_is_forwarded(cluster: TwoBrokers) -> None:
    create(cluster, OTHER)
    resource = AlterConfigsResource(
        resource_type=2, resource_name="t", configs=[AlterableConfig(name="retention.ms", value="5")]
    )
    (configured,) = cluster.call(
        OTHER, IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse
    ).responses
    assert configured.error_code == ErrorCode.NONE
    moved = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[1])])
    assignments = cluster.call(
        OTHER, AlterPartitionReassignmentsRequest(topics=[moved]), AlterPartitionReassignmentsResponse
    )
    assert assignments.responses[0].partitions[0].error_code == ErrorCode.NONE
    assert cluster.members[OTHER].cache.image.topics["t"].partitions[0].replicas == (1,)
    listed = cluster.call(OTHER, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)
    assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])
    elected = cluster.call(OTHER, ElectLeadersRequest(topic_partitions=None), ElectLeadersResponse)
    assert elected.error_code == ErrorCode.NONE
    unregistered = cluster.call(OTHER, UnregisterBrokerRequest(broker_id=7), UnregisterBrokerResponse)
    assert unregistered.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    disabled = FeatureUpdateKey(feature=ELIGIBLE_LEADER_REPLICAS, max_version_level=0, upgrade_type=2)
    updated = cluster.call(OTHER, UpdateFeaturesRequest(feature_updates=[disabled]), UpdateFeaturesResponse)
    assert updated.error_code == ErrorCode.NONE
    assert cluster.members[OTHER].cache.image.feature_level(ELIGIBLE_LEADER_REPLICAS) == 0
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert cluster.call(OTHER, deletion, DeleteTopicsResponse).responses[0].error_code == ErrorCode.NONE
    assert "t" not in cluster.members[OTHER].cache.image.topics
    assert len(cluster.members[CONTROLLER].received) == 8
    assert all(isinstance(each, EnvelopeRequest) for each in cluster.members[CONTROLLER].received)


class OnlyAlice:
    """Brokers may do everything on their listener, Alice may create topics from her address, no one else anything."""

    uses_acls = False

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        return False

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        if operation is Operation.CLUSTER_ACTION:
            return client.host.startswith("10.0.0.")
        return (client.principal.name, client.host) == ("alice", "192.0.2.7")


def test_the_controller_authorizes_the_client_and_not_the_broker() -> None:
    cluster = TwoBrokers(authorizer=OnlyAlice())
    cluster.client.principal = Principal("User", "alice")
    assert create(cluster, OTHER).error_code == ErrorCode.NONE
    cluster.client.principal = Principal("User", "bob")
    assert create(cluster, OTHER, "u").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.close()


def test_the_controller_knows_the_address_and_the_listener_of_the_client() -> None:
    """They are in its audit log; the connection of the broker is not."""
    cluster = TwoBrokers()
    audit = RecordingAudit()
    cluster.members[CONTROLLER].services.audit = audit
    cluster.client.principal = Principal("User", "alice")
    create(cluster, OTHER)
    (actor,) = audit.actors
    assert (actor.principal, actor.host, actor.listener) == ("User:alice", "192.0.2.7", CLIENT_LISTENER)
    cluster.close()


class RecordingAudit(NoAudit):
    is_on = True

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        self.actions: list[Action] = []

    def performed(self, actor: Actor, action: Action) -> None:
        self.actors.append(actor)
        self.actions.append(action)


def test_a_controller_that_was_replaced_forwards_what_it_was_asked(cluster: TwoBrokers) -> None:
    """The old controller learns of its end by its commit, which is fenced."""
    cluster.run(cluster.members[OTHER].lead(cluster.live))
    assert create(cluster, CONTROLLER).error_code == ErrorCode.NONE
    old = cluster.members[CONTROLLER].controller
    assert old is not None
    assert not old.is_active
    assert len(cluster.members[OTHER].received) == 1


def errors_of(cluster: TwoBrokers, node_id: int, api: str = "CreateTopics") -> dict[str, int]:
    return cluster.members[node_id].services.metrics.requests.of(api).errors


def test_an_error_is_counted_once_by_the_broker_that_decides(cluster: TwoBrokers) -> None:
    for node_id in (OTHER, OTHER, CONTROLLER):
        create(cluster, node_id)
    assert errors_of(cluster, CONTROLLER) == {"TOPIC_ALREADY_EXISTS": 2}
    assert errors_of(cluster, OTHER) == {}
    cluster.members[CONTROLLER].controller = None
    cluster.call(OTHER, creation(timeout_ms=0), CreateTopicsResponse)
    assert errors_of(cluster, OTHER) == {"REQUEST_TIMED_OUT": 1}
    assert errors_of(cluster, CONTROLLER) == {"TOPIC_ALREADY_EXISTS": 2}


def test_a_retry_of_the_broker_is_not_counted_as_an_error(cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on the controller itself nor on the broker that forwards to it: no client gets NOT_CONTROLLER."""
    controller = cluster.members[CONTROLLER].controller
    assert controller is not None
    with monkeypatch.context() as patched:
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, "the controller has not read the registrations of brokers")
        patched.setattr(cluster.members[CONTROLLER].services, "controller", RefusingLocally(refusal, controller))
        requests = [
            cluster.begin(node_id, creation(f"t{node_id}", timeout_ms=30_000), CreateTopicsResponse)
            for node_id in (CONTROLLER, OTHER)
        ]
        cluster.pass_time(1)
        assert not any(request.done() for request in requests)
    for request in requests:
        assert cluster.run(asyncio.wait_for(request, 10)).topics[0].error_code == ErrorCode.NONE
    assert [errors_of(cluster, node_id) for node_id in (CONTROLLER, OTHER)] == [{}, {}]


class RefusingLocally(RefusingChannel):
    def __init__(self, refusal: Refusal, controller: Controller) -> None:
        super().__init__(refusal)
        self._controller = controller

    def local(self) -> Controller:  # type: ignore[override]  # never None here
        return self._controller


def test_not_controller_is_retried_by_the_broker_until_a_controller_is_elected(cluster: TwoBrokers) -> None:
    controller = cluster.members[CONTROLLER]
    controller.controller = None  # it has resigned, and the metadata still names it
    request = cluster.begin(OTHER, creation(timeout_ms=30_000), CreateTopicsResponse)
    cluster.pass_time(2)
    assert not request.done()
    assert 2 < len(controller.received) < 20, "attempts have pauses"
    cluster.run(controller.lead(cluster.live))
    response = cluster.run(asyncio.wait_for(request, 10))
    assert response.topics[0].error_code == ErrorCode.NONE


def test_a_broken_connection_is_retried(cluster: TwoBrokers) -> None:
    cluster.members[CONTROLLER].is_reachable = False
    request = cluster.begin(OTHER, creation(timeout_ms=30_000), CreateTopicsResponse)
    cluster.pass_time(1)
    assert not request.done()
    cluster.members[CONTROLLER].is_reachable = True
    assert cluster.run(asyncio.wait_for(request, 10)).topics[0].error_code == ErrorCode.NONE


def test_requests_that_wait_for_the_controller_have_a_limit(
    cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.members[CONTROLLER].is_reachable = False
    monkeypatch.setattr(waiting_copies, "MOST_WAITING_BYTES", 100)
    asking = cluster.members[OTHER]

    async def scenario() -> None:
        first = asyncio.ensure_future(asking.ask(creation(80 * "t"), CreateTopicsResponse, cluster.client, 7))
        await asyncio.sleep(0)
        with pytest.raises(CloseConnection, match="wait for the controller"):
            await asking.ask(creation(80 * "u"), CreateTopicsResponse, cluster.client, 7)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        cluster.members[CONTROLLER].is_reachable = True
        created = await asking.ask(creation(80 * "u"), CreateTopicsResponse, cluster.client, 7)
        assert created.topics[0].error_code == ErrorCode.NONE

    cluster.run(scenario())


@pytest.mark.parametrize(("timeout_ms", "expected_s"), [(0, 0), (3_000, 3), (10**9, LONGEST_TIMEOUT_MS / 1000)])
def test_without_a_controller_each_topic_times_out(cluster: TwoBrokers, timeout_ms: int, expected_s: float) -> None:
    cluster.members[CONTROLLER].controller = None
    before = cluster.simulation.loop.time()
    (result,) = cluster.call(OTHER, creation(timeout_ms=timeout_ms), CreateTopicsResponse).topics
    assert (result.name, result.error_code) == ("t", ErrorCode.REQUEST_TIMED_OUT)
    assert cluster.simulation.loop.time() - before == pytest.approx(expected_s, abs=0.1)


def test_coordinators_create_topics_and_get_producer_ids_on_any_broker(cluster: TwoBrokers) -> None:
    from odradek.controller.decisions.topics import NewTopic

    channel = cluster.members[OTHER].channel
    topic = NewTopic(name="__consumer_offsets", partition_count=2, replication_factor=2)
    (result,) = cluster.run(channel.ask(CreateTopics([topic])))
    assert result.error is ErrorCode.NONE
    assert "__consumer_offsets" in cluster.members[OTHER].cache.image.topics
    first = cluster.run(channel.ask(AllocateProducerIds(1000)))
    assert cluster.run(channel.ask(AllocateProducerIds(1000))) == first + 1000
    assert cluster.run(cluster.members[CONTROLLER].channel.ask(AllocateProducerIds(1000))) == first + 2000


def envelope(request: Any = None, principal: bytes | None = None) -> EnvelopeRequest:
    embedded = creation() if request is None else request
    data = bytes(encode_request(embedded, type(embedded).versions[1])[4:])
    return EnvelopeRequest(
        request_data=data,
        request_principal=encode_principal(Principal()) if principal is None else principal,
        client_host_address=bytes((192, 0, 2, 7)),
    )


def send(cluster: TwoBrokers, request: EnvelopeRequest, listener: str = BROKER_LISTENER, node_id: int = 0) -> int:
    connection = ClientConnection(listener, "10.0.0.1")
    error: int = cluster.run(cluster.members[node_id].ask(request, EnvelopeResponse, connection, 0)).error_code
    return error


def test_envelopes_are_accepted_from_brokers_only(cluster: TwoBrokers) -> None:
    assert send(cluster, envelope(), CLIENT_LISTENER) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert send(cluster, envelope()) == ErrorCode.NONE


def test_envelopes_with_anything_else_are_refused(cluster: TwoBrokers) -> None:
    assert send(cluster, envelope(), node_id=OTHER) == ErrorCode.NOT_CONTROLLER
    assert send(cluster, envelope(MetadataRequest())) == ErrorCode.INVALID_REQUEST
    assert send(cluster, envelope(envelope())) == ErrorCode.INVALID_REQUEST
    assert send(cluster, envelope(principal=b"\x00\x07")) == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    assert send(cluster, EnvelopeRequest(request_data=b"\x00", request_principal=None)) == ErrorCode.INVALID_REQUEST


def test_rules_are_forwarded_and_hold_on_the_broker_that_was_asked(cluster: TwoBrokers) -> None:
    brokers_and_admin = AccessRules(frozenset({"User:ANONYMOUS", "User:admin"}))
    for member in cluster.members:
        cache = member.cache
        member.services.authorizer = AclAuthorizer(lambda cache=cache: cache.image, brokers_and_admin)  # type: ignore[misc]  # a default
    cluster.client.principal = Principal("User", "alice")
    assert create(cluster, OTHER).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rule = AclCreation(
        resource_type=2, resource_name="t", principal="User:alice", host="192.0.2.7", operation=5, permission_type=3
    )
    refused = cluster.call(OTHER, CreateAclsRequest(creations=[rule]), CreateAclsResponse)
    assert refused.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    cluster.client.principal = Principal("User", "admin")
    added = cluster.call(OTHER, CreateAclsRequest(creations=[rule]), CreateAclsResponse)
    assert added.results[0].error_code == ErrorCode.NONE
    assert len(cluster.members[OTHER].cache.image.acls) == 1
    cluster.client.principal = Principal("User", "alice")
    assert create(cluster, OTHER).error_code == ErrorCode.NONE
    assert create(cluster, OTHER, "other").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
