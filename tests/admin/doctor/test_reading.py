"""What brokers refuse is reported as not examined, not as passed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from odradek.admin.cluster_state import PartitionState
from odradek.admin.doctor.cluster_facts import GroupFacts, compare, read_groups
from odradek.admin.doctor.cluster_rules import CHECKS
from odradek.admin.doctor.findings import exit_code, run_checks
from odradek.admin.doctor.reader import Reader
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.testing import broker
from tests.admin.doctor.cluster_facts import healthy
from tests.commands import run_odradek

REFUSED = "settings of 2 topics could not be read (TOPIC_AUTHORIZATION_FAILED); this user needs DescribeConfigs"
UNREADABLE = {"under-min-isr", "min-isr-of-all", "unclean-election", "retention", "transaction-hanging"}


def test_settings_that_a_user_may_not_describe_are_not_examined() -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with broker(**settings) as running:
        address = running.bootstrap_servers
        for topic in ("orders", "pumps"):
            run_odradek("topic", "create", topic, "--config", "unclean.leader.election.enable=true", "-b", address)
        examined = diagnose(address)
        assert not UNREADABLE & set(examined["not_examined"])
        assert "unclean-election" in examined["findings"]
        rule = ["--allow-principal", "User:ANONYMOUS", "--operation", "Describe", "--topic"]
        assert run_odradek("acl", "add", *rule, "orders", "-b", address).code == 0
        partly = diagnose(address)
        assert UNREADABLE - set(partly["not_examined"]) == {"unclean-election"}
        assert partly["findings"]["unclean-election"]["where"] == ["pumps"]
        assert run_odradek("acl", "add", *rule, "pumps", "-b", address).code == 0
        refused = diagnose(address)
    assert set(refused["not_examined"]) >= UNREADABLE
    assert refused["not_examined"]["retention"] == REFUSED


def diagnose(address: str) -> dict[str, Any]:
    row = run_odradek("doctor", "-b", address, "--lag-interval", "0", "--format", "json").row
    return {
        "findings": {each["check"]: each for each in row["findings"]},
        "not_examined": {each["check"]: each["reason"] for each in row["not_examined"]},
    }


class RefusingBroker:
    """Lists a group, and does not return its offsets."""

    def ask(self, _broker: object, request: object, _response: object, _version: int) -> Any:
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(groups=[ListedGroup(group_id="billing", group_state="Stable")])
        refused = OffsetFetchResponseGroup(group_id="billing", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return OffsetFetchResponse(groups=[refused])


def test_groups_whose_offsets_are_refused_are_not_examined() -> None:
    reader = Reader(10)
    requests: Any = RefusingBroker()
    state: Any = SimpleNamespace(brokers={1: SimpleNamespace(is_fenced=False)}, partitions=[])
    (group,) = read_groups(requests, state, reader)
    assert group.lag == 0
    assert reader.reasons == {
        "groups": "offsets of 1 group could not be read (GROUP_AUTHORIZATION_FAILED); this user needs Describe"
    }


class BrokerOfOnePartition:
    """Has a group that has read two partitions; the leader of the second one is away."""

    def ask(self, _broker: object, request: object, _response: object, _version: int) -> Any:
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(groups=[ListedGroup(group_id="billing", group_state="Stable")])
        if isinstance(request, ListOffsetsRequest):
            answered = ListOffsetsPartitionResponse(partition_index=0, offset=5_000)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[answered])])
        offsets = [OffsetFetchResponsePartitions(partition_index=each, committed_offset=1_000) for each in (0, 1)]
        topics = [OffsetFetchResponseTopics(name="t", partitions=offsets)]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="billing", topics=topics)])


def test_the_lag_of_a_group_is_unknown_while_a_partition_has_no_leader() -> None:
    """Counted as read, the partition would make the lag fall when a broker dies."""
    reader = Reader(10)
    requests: Any = BrokerOfOnePartition()
    partitions = [PartitionState("t", 0, 1, (1,), (1,)), PartitionState("t", 1, -1, (2,), (2,))]
    state: Any = SimpleNamespace(brokers={1: SimpleNamespace(is_fenced=False)}, partitions=partitions)
    (group,) = read_groups(requests, state, reader)
    assert group.lag is None
    assert reader.reasons == {"groups": "lag of 1 groups: the leader of a partition does not answer"}
    (compared,), changes = compare([GroupFacts("billing", "Stable", 4_000)], [group], 1.0)
    assert (compared.lag, changes["billing"].growth) == (None, 0)
    assert exit_code(run_checks(CHECKS, healthy(groups=[compared], group_changes=changes))) == 0
