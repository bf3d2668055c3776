"""Denied requests and changes of the cluster are in the audit log, with the client that sent them."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from odradek.protocol.schema import Request
from odradek.security.principals import Principal
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_topic, fetch, produce

PATH = "/data/audit.log"


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    settings: dict[str, Any] = {
        "audit_log_path": PATH,
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:admin",
    }
    broker = SimulatedBroker(**settings)
    broker.client = ClientConnection("CLIENTS", "10.0.0.1")
    broker.client.principal = Principal("User", "admin")
    yield broker
    broker.close()


def entries(broker: SimulatedBroker) -> list[dict[str, Any]]:
    broker.step()
    return [json.loads(line) for line in broker.host.disk.read_file(PATH).splitlines()]


def summary(entry: dict[str, Any]) -> tuple[str, ...]:
    fields = ("outcome", "principal", "host", "api", "operation", "resource_type", "resource")
    return tuple(entry[name] for name in fields)


def test_changes_are_logged_and_reads_and_writes_that_are_allowed_are_not(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    produce(broker, "orders", batch())
    fetch(broker, "orders")
    delete_topic(broker, "orders")
    admin = ("User:admin", "10.0.0.1")
    assert [summary(entry) for entry in entries(broker)] == [
        ("done", *admin, "CreateTopics", "Create", "Topic", "orders"),
        ("done", *admin, "DeleteTopics", "Delete", "Topic", "orders"),
    ]


def test_denials_are_logged_once_and_lists_log_none(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    broker.client.principal = Principal("User", "mallory")
    assert produce(broker, "orders", batch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert broker.call(MetadataRequest(topics=None), MetadataResponse).topics == []
    (denial,) = entries(broker)[1:]
    assert summary(denial) == ("denied", "User:mallory", "10.0.0.1", "Produce", "Write", "Topic", "orders")
    assert denial["listener"] == "CLIENTS"
    assert denial["client_id"] == "wire"


def test_values_of_settings_are_not_logged(broker: SimulatedBroker) -> None:
    create_topic(broker, "orders")
    change = AlterableConfig(name="retention.ms", config_operation=0, value="123456")
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[change])
    broker.call(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
    entry = entries(broker)[-1]
    assert (entry["operation"], entry["settings"]) == ("AlterConfigs", "retention.ms")
    assert "123456" not in str(entry)


def test_a_new_rule_is_logged_with_all_its_parts(broker: SimulatedBroker) -> None:
    creation = AclCreation(
        resource_type=2, resource_name="orders", principal="User:alice", host="*", operation=3, permission_type=3
    )
    broker.call(CreateAclsRequest(creations=[creation]), CreateAclsResponse)
    entry = entries(broker)[-1]
    assert summary(entry) == ("done", "User:admin", "10.0.0.1", "CreateAcls", "CreateAcl", "Topic", "orders")
    rule = [entry[name] for name in ("pattern", "acl_principal", "acl_host", "acl_operation", "permission")]
    assert rule == ["Literal", "User:alice", "*", "Read", "Allow"]


def test_a_change_of_a_level_is_logged_and_its_validation_is_not(broker: SimulatedBroker) -> None:
    update = FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=0, upgrade_type=2)
    for validate_only in (True, False):
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
        broker.call(request, UpdateFeaturesResponse)
    (entry,) = entries(broker)
    assert summary(entry)[3:] == ("UpdateFeatures", "Alter", "Feature", "eligible.leader.replicas.version")
    assert entry["level"] == 0


def test_a_change_of_users_is_logged_without_secrets(broker: SimulatedBroker) -> None:
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt of sixteen.", salted_password=b"x" * 32
    )
    few = ScramCredentialUpsertion(name="bob", mechanism=2, iterations=1, salt=b"s", salted_password=b"x" * 32)
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion, few])
    broker.call(request, AlterUserScramCredentialsResponse)
    done, failed = entries(broker)[-2:]
    api = "AlterUserScramCredentials"
    assert summary(done) == ("done", "User:admin", "10.0.0.1", api, "Alter", "User", "alice")
    assert done["credentials"] == "set SCRAM-SHA-256"
    assert (failed["outcome"], failed["resource"], failed["error"]) == ("failed", "bob", "UNACCEPTABLE_CREDENTIAL")


def test_delegation_tokens_are_logged_by_their_ids() -> None:
    broker = SimulatedBroker(audit_log_path=PATH, delegation_token_secret_key="key")
    broker.client = ClientConnection("CLIENTS", "10.0.0.1")
    broker.client.principal = Principal("User", "alice")
    created = broker.call(CreateDelegationTokenRequest(max_lifetime_ms=-1), CreateDelegationTokenResponse)
    hmac = bytes(created.hmac)
    broker.call(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1), RenewDelegationTokenResponse)
    broker.call(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), ExpireDelegationTokenResponse)
    broker.call(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), ExpireDelegationTokenResponse)
    logged = entries(broker)
    shown = [(each["outcome"], each["operation"], each["resource"]) for each in logged]
    assert shown == [
        ("done", "Create", created.token_id),
        ("done", "Renew", created.token_id),
        ("done", "Expire", created.token_id),
        ("failed", "Expire", "(unknown)"),
    ]
    assert {each.get("owner") for each in logged} == {"User:alice", None}
    broker.close()


def test_quotas_are_logged_by_their_entities_also_if_one_is_named_twice(broker: SimulatedBroker) -> None:
    entries_ = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=rate)],
        )
        for user, rate in (("a", 1.0), ("a", 2.0), ("b", 3.0))
    ]
    broker.call(AlterClientQuotasRequest(entries=entries_), AlterClientQuotasResponse)
    lines = [(each["outcome"], each["resource"], each["quotas"]) for each in entries(broker)]
    assert lines == [
        ("failed", "user=a", "producer_byte_rate=1.0,producer_byte_rate=2.0"),
        ("done", "user=b", "producer_byte_rate=3.0"),
    ]
    assert [*broker.services.image.client_quotas.values()] == [{"producer_byte_rate": 3.0}]


def test_a_change_is_logged_although_its_client_disconnects(broker: SimulatedBroker) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)])
    disconnect_after_a_step(broker, request)
    assert "orders" in broker.services.image.topics
    assert [(each["outcome"], each["resource"]) for each in entries(broker)] == [("done", "orders")]


def test_a_token_is_logged_although_its_client_disconnects() -> None:
    broker = SimulatedBroker(audit_log_path=PATH, delegation_token_secret_key="key")
    broker.client.principal = Principal("User", "alice")
    disconnect_after_a_step(broker, CreateDelegationTokenRequest(max_lifetime_ms=-1))
    (entry,) = entries(broker)
    assert (entry["outcome"], entry["operation"], entry["owner"]) == ("done", "Create", "User:alice")
    broker.close()


async def fail(*_: object, **__: object) -> None:
    raise RuntimeError("a bug")


def test_a_request_that_ends_without_a_response_has_an_unknown_outcome(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker.services.controller, "ask", fail)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)])
    with pytest.raises(CloseConnection):
        broker.call(request, CreateTopicsResponse)
    (entry,) = entries(broker)
    assert (entry["outcome"], entry["resource"], entry["error"]) == ("unknown", "orders", "RuntimeError")
    caplog.clear()


def test_a_feature_whose_update_has_an_unknown_outcome_is_named(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker.services.controller, "ask", fail)
    update = FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=0, upgrade_type=2)
    with pytest.raises(CloseConnection):
        broker.call(UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse)
    (entry,) = entries(broker)
    assert (entry["outcome"], entry["resource"]) == ("unknown", "eligible.leader.replicas.version")
    caplog.clear()


def test_every_resource_of_a_request_with_an_unknown_outcome_is_logged(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker.services.controller, "ask", fail)
    names = [f"{index:02}{'x' * 200}" for index in range(20)] + [f"{index:02}short" for index in range(60)]
    config = CreatableTopicConfig(name="retention.ms", value="5")
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[config]) for name in names]
    with pytest.raises(CloseConnection):
        broker.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    resources = [entry["resource"] for entry in entries(broker)]
    assert ",".join(resources).split(",") == names
    assert len(resources) < 25
    caplog.clear()


def test_a_stop_ends_a_deletion_whose_client_has_disconnected_before_it_closes_the_logs(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(broker, "orders")
    produce(broker, "orders", batch())
    table = broker.services.partitions
    events, close, are_closed = [], table.close, asyncio.Event()

    async def close_logs() -> None:
        await close()
        events.append("closed")
        are_closed.set()
        await asyncio.sleep(0)  # for the deletion, if it runs

    async def remove(_partition: object) -> None:
        events.append("removed")

    monkeypatch.setattr(table, "close", close_logs)
    monkeypatch.setattr(table, "checkpoint_log_start_offsets", lambda _: are_closed.wait())
    monkeypatch.setattr("odradek.handlers.delete_records.remove_old_segments", remove)
    deletion = DeleteRecordsPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="orders", partitions=[deletion])])
    disconnect_after_a_step(broker, request)
    broker.run(broker.node.stop())
    assert events == ["closed"]
    last = json.loads(broker.host.disk.read_file(PATH).splitlines()[-1])
    assert (last["outcome"], last["resource"], last["error"]) == ("unknown", "orders", "CancelledError")


def disconnect_after_a_step(broker: SimulatedBroker, request: Request) -> None:
    """As a connection that is lost: it cancels the task that awaits the answer."""

    async def exchange() -> None:
        answer = broker.handle(request, type(request).versions[1])
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))

    broker.run(exchange())
    broker.step(100)
