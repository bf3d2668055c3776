"""Streams through the requests that have them, and topics of streams through all others: by full name and by alias."""

import pytest

from odradek.configuration.config_types import ConfigSource
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.create_streams import (
    CreateStreamsRequest,
    CreateStreamsResponse,
    StreamChange,
    StreamPermission,
    StreamResult,
    StreamSetting,
)
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.delete_streams import DeleteStreamsRequest, DeleteStreamsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_streams import DescribeStreamsRequest, DescribeStreamsResponse
from odradek.protocol.messages.edit_streams import EditStreamsRequest, EditStreamsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.security.acls.authorizer import AclAuthorizer
from odradek.security.acls.bindings import PatternType, Permission
from odradek.security.acls.decisions import AccessRules
from odradek.security.authorizer import Operation
from odradek.security.principals import Principal
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    TOPIC_RESOURCE,
    alter_configs,
    batch,
    create_topic,
    delete_records,
    fetch,
    list_offset,
    produce,
)

PATH, TOPIC, ALIAS = "/plant/pumps", "/plant/pumps:warning", "plant.pumps..warning"
NONE = ErrorCode.NONE


def create_stream(broker: SimulatedBroker, path: str = PATH, *, partitions: int = 0, **values: str) -> StreamResult:
    permissions = [StreamPermission(name=name, expression=text) for name, text in values.items() if "_" not in name]
    settings = [StreamSetting(name=name.replace("_", "."), value=text) for name, text in values.items() if "_" in name]
    change = StreamChange(path=path, default_partitions=partitions, settings=settings, permissions=permissions)
    (result,) = broker.call(CreateStreamsRequest(streams=[change]), CreateStreamsResponse, 0).results
    return result


def edit_stream(broker: SimulatedBroker, change: StreamChange) -> StreamResult:
    (result,) = broker.call(EditStreamsRequest(streams=[change]), EditStreamsResponse, 0).results
    return result


def setting(broker: SimulatedBroker, topic: str, name: str = "retention.ms") -> tuple[str | None, int, str]:
    resource = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name])
    (result,) = broker.call(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse, 4).results
    assert result.error_code == NONE
    return result.configs[0].value, result.configs[0].config_source, result.resource_name


def metadata(broker: SimulatedBroker, *names: str, creates: bool = False) -> list[tuple[str | None, ErrorCode, int]]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=creates
    )
    answer = broker.call(request, MetadataResponse, 12)
    return [(topic.name, ErrorCode(topic.error_code), len(topic.partitions)) for topic in answer.topics]


def test_topics_inherit_and_an_edit_reaches_them_at_once(simulated: SimulatedBroker) -> None:
    assert create_stream(simulated, partitions=2, retention_ms="7000").error_code == NONE
    create_topic(simulated, TOPIC, partitions=-1)
    create_topic(simulated, f"{PATH}:own", partitions=-1, retention_ms="1")
    inherited, own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert metadata(simulated, TOPIC) == [(TOPIC, NONE, 2)]
    assert setting(simulated, TOPIC)[:2] == ("7000", inherited)
    assert setting(simulated, f"{PATH}:own")[:2] == ("1", own)
    version = simulated.services.image.version
    changed = StreamChange(path=PATH, settings=[StreamSetting(name="retention.ms", value="9000")])
    assert edit_stream(simulated, changed).error_code == NONE
    assert simulated.services.image.version == version + 1
    assert setting(simulated, TOPIC)[:2] == ("9000", inherited)
    assert [simulated.partition(TOPIC, index).log.config.retention_ms for index in (0, 1)] == [9000, 9000]
    assert simulated.partition(f"{PATH}:own").log.config.retention_ms == 1
    alter_configs(simulated, TOPIC_RESOURCE, TOPIC, retention_ms="5")
    assert setting(simulated, TOPIC)[:2] == ("5", own)
    alter_configs(simulated, TOPIC_RESOURCE, TOPIC, retention_ms=None)
    assert setting(simulated, TOPIC)[:2] == ("9000", inherited)
    simulated.restart()
    assert setting(simulated, TOPIC)[:2] == ("9000", inherited)
    assert simulated.partition(TOPIC).log.config.retention_ms == 9000


def test_a_topic_of_a_stream_keeps_its_records_through_a_restart_and_goes_with_its_stream(
    simulated: SimulatedBroker,
) -> None:
    create_stream(simulated)
    create_topic(simulated, TOPIC)
    assert produce(simulated, TOPIC, batch()).error_code == NONE
    simulated.restart()
    assert fetch(simulated, TOPIC).high_watermark == 1
    deleted = simulated.call(DeleteStreamsRequest(paths=[PATH]), DeleteStreamsResponse, 0)
    assert [each.error_code for each in deleted.results] == [NONE]
    assert metadata(simulated, TOPIC) == [(TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert produce(simulated, TOPIC, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_a_client_names_by_an_alias_is_answered_by_it(simulated: SimulatedBroker) -> None:
    create_stream(simulated)
    create_topic(simulated, ALIAS)
    assert list(simulated.services.image.topics) == [TOPIC]
    assert metadata(simulated, ALIAS) == [(ALIAS, NONE, 1)]
    assert metadata(simulated, TOPIC) == [(TOPIC, NONE, 1)]
    assert metadata(simulated, "other.pumps..warning") == [
        ("other.pumps..warning", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    ]
    assert produce(simulated, ALIAS, batch()).error_code == NONE
    assert fetch(simulated, ALIAS).high_watermark == 1
    assert setting(simulated, ALIAS)[2] == ALIAS
    assert list_offset(simulated, ALIAS, -1).offset == 1


def test_without_streams_a_name_like_an_alias_is_an_ordinary_one(simulated: SimulatedBroker) -> None:
    create_topic(simulated, ALIAS)
    assert list(simulated.services.image.topics) == [ALIAS]
    result = create_stream(simulated)
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert f"'{ALIAS}'" in (result.error_message or "")


@pytest.fixture
def guarded(simulated: SimulatedBroker) -> SimulatedBroker:
    """Only the administrator, and whom a stream allows, may do something."""
    metadata_cache = simulated.services.metadata
    rules = AccessRules(frozenset({"User:admin"}))
    simulated.services.authorizer = AclAuthorizer(lambda: metadata_cache.image, rules)
    as_user(simulated, "admin")
    create_stream(simulated, produce="u:pump", consume="u:screen", topic="u:chief", admin="u:chief | u:clerk")
    return simulated


def as_user(broker: SimulatedBroker, name: str) -> None:
    broker.client.principal = Principal("User", name)


def test_whoever_may_produce_makes_topics_on_demand_and_a_consumer_does_not(guarded: SimulatedBroker) -> None:
    as_user(guarded, "screen")
    assert metadata(guarded, TOPIC, creates=True) == [(TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    as_user(guarded, "pump")
    assert metadata(guarded, TOPIC, creates=True) == [(TOPIC, NONE, 1)]
    assert metadata(guarded, "plain", creates=True) == [("plain", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    assert produce(guarded, TOPIC, batch()).error_code == NONE
    assert fetch(guarded, TOPIC).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    as_user(guarded, "screen")
    assert fetch(guarded, TOPIC).high_watermark == 1
    assert produce(guarded, TOPIC, batch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert fetch(guarded, ALIAS).high_watermark == 1


def test_a_stream_that_makes_no_topics_on_demand(guarded: SimulatedBroker) -> None:
    as_user(guarded, "chief")
    assert edit_stream(guarded, StreamChange(path=PATH, creates_topics=0)).error_code == NONE
    as_user(guarded, "pump")
    assert metadata(guarded, TOPIC, creates=True) == [(TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]


def test_who_may_see_edit_and_delete_a_stream(guarded: SimulatedBroker) -> None:
    def described() -> list[tuple[str, int, int]]:
        answer = guarded.call(DescribeStreamsRequest(), DescribeStreamsResponse, 0)
        return [(each.path, each.error_code, len(each.permissions)) for each in answer.streams]

    change = StreamChange(path=PATH, default_partitions=3)
    seen = {}
    for user in ("pump", "chief", "nobody"):
        as_user(guarded, user)
        seen[user] = (described(), edit_stream(guarded, change).error_code)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert seen == {"pump": ([(PATH, NONE, 0)], denied), "chief": ([(PATH, NONE, 5)], NONE), "nobody": ([], denied)}
    assert create_stream(guarded, "/other").error_code == denied
    for user, error in (("pump", denied), ("clerk", denied), ("chief", NONE)):
        as_user(guarded, user)
        deleted = guarded.call(DeleteStreamsRequest(paths=[PATH]), DeleteStreamsResponse, 0)
        assert [each.error_code for each in deleted.results] == [error]


def add_rule(broker: SimulatedBroker, principal: str, operation: Operation, permission: Permission, name: str) -> None:
    as_user(broker, "admin")
    creation = AclCreation(
        resource_type=TOPIC_RESOURCE, resource_name=name, resource_pattern_type=PatternType.PREFIXED,
        principal=principal, host="*", operation=operation, permission_type=permission,
    )  # fmt: skip
    (result,) = broker.call(CreateAclsRequest(creations=[creation]), CreateAclsResponse, 3).results
    assert result.error_code == NONE


def test_a_rule_for_settings_gives_no_other_right(guarded: SimulatedBroker) -> None:
    """Permissions give any right, and deleting a stream removes records."""
    add_rule(guarded, "User:tuner", Operation.ALTER_CONFIGS, Permission.ALLOW, "/plant/")
    as_user(guarded, "tuner")
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert edit_stream(guarded, StreamChange(path=PATH, default_partitions=2)).error_code == NONE
    mine = [StreamPermission(name="consume", expression="u:tuner")]
    assert edit_stream(guarded, StreamChange(path=PATH, permissions=mine)).error_code == denied
    deleted = guarded.call(DeleteStreamsRequest(paths=[PATH]), DeleteStreamsResponse, 0)
    assert [each.error_code for each in deleted.results] == [denied]


def test_rules_that_deny_hold_for_a_stream_and_for_topics_on_demand(guarded: SimulatedBroker) -> None:
    add_rule(guarded, "User:pump", Operation.CREATE, Permission.DENY, f"{PATH}:")
    as_user(guarded, "pump")
    assert metadata(guarded, TOPIC, creates=True) == [(TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    as_user(guarded, "admin")
    create_topic(guarded, TOPIC)
    add_rule(guarded, "User:chief", Operation.DELETE, Permission.DENY, TOPIC)
    as_user(guarded, "chief")
    deleted = guarded.call(DeleteStreamsRequest(paths=[PATH]), DeleteStreamsResponse, 0)
    assert [each.error_code for each in deleted.results] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_rules_are_added_and_removed_by_aliases_too(guarded: SimulatedBroker) -> None:
    for name in (ALIAS, "plant.pumps.."):
        add_rule(guarded, "User:x", Operation.READ, Permission.ALLOW, name)
    assert {each.resource_name for each in guarded.services.image.acls.bindings} == {TOPIC, f"{PATH}:"}
    chosen = DeleteAclsFilter(
        resource_type_filter=TOPIC_RESOURCE, resource_name_filter=ALIAS, pattern_type_filter=PatternType.PREFIXED,
        principal_filter=None, host_filter=None, operation=Operation.ANY, permission_type=Permission.ANY,
    )  # fmt: skip
    guarded.call(DeleteAclsRequest(filters=[chosen]), DeleteAclsResponse, 3)
    assert {each.resource_name for each in guarded.services.image.acls.bindings} == {f"{PATH}:"}


def test_an_owner_whose_name_is_no_word_has_the_permissions_of_the_stream(guarded: SimulatedBroker) -> None:
    add_rule(guarded, "User:CN=Ann Smith,O=a & b", Operation.CREATE, Permission.ALLOW, "/")
    as_user(guarded, "CN=Ann Smith,O=a & b")
    assert create_stream(guarded, "/hers").error_code == NONE
    create_topic(guarded, "/hers:a")
    assert produce(guarded, "/hers:a", batch()).error_code == NONE
    as_user(guarded, "nobody")
    assert produce(guarded, "/hers:a", batch()).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_a_topic_had_is_there_after_a_restart_beside_topics_of_streams(simulated: SimulatedBroker) -> None:
    """The checkpoints name all partitions of a log directory."""
    create_stream(simulated)
    for name in (TOPIC, "plain"):
        create_topic(simulated, name)
        for _ in range(3):
            assert produce(simulated, name, batch()).error_code == NONE
        delete_records(simulated, name, 2)
    simulated.restart()
    for name in (TOPIC, "plain"):
        partition = simulated.partition(name)
        assert (partition.log.log_start_offset, partition.high_watermark) == (2, 3)


def test_a_stream_that_goes_leaves_no_ordinary_topic_to_clients_with_aliases() -> None:
    broker = SimulatedBroker(auto_create_topics_enable="true")
    try:
        assert metadata(broker, ALIAS, creates=True) == [(ALIAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert metadata(broker, "plain", creates=True) == [("plain", NONE, 1)]
    finally:
        broker.close()


def test_a_stream_that_is_asked_for_and_does_not_exist_is_named(simulated: SimulatedBroker) -> None:
    (answer,) = simulated.call(DescribeStreamsRequest(paths=["/none"]), DescribeStreamsResponse, 0).streams
    assert (answer.path, answer.error_code) == ("/none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert "'/none'" in (answer.error_message or "")
