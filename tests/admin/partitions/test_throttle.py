"""The throttle of a reassignment: each broker is asked for its own rate, as it alone accepts its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.admin.partitions import LEADERS, Move, remove_throttle, set_throttle
from odradek.admin.settings import Kind, Operation
from odradek.cli.partition import reassign
from odradek.cli.partition.reassign import submit
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests

BROKER, TOPIC = Kind.BROKER, Kind.TOPIC
CONTROLLER_ID, STOPPED_ID = 1, 4


class Brokers:
    """Brokers 1 to 3, which refuse settings of other brokers, as `handlers/own_settings` does, and a stopped one."""

    def __init__(self, *, refusing: int | None = None) -> None:
        self.accepted: list[tuple[int, int, str, int]] = []
        """The broker that was asked, the resource's type and name, the operation on its first setting."""
        self._refusing = refusing
        self.answer: AlterPartitionReassignmentsResponse | Failure = AlterPartitionReassignmentsResponse()

    def describe(self) -> DescribedCluster:
        ids = (1, 2, 3, STOPPED_ID)
        brokers = {each: KnownBroker(each, "host", 9092, None, each == STOPPED_ID) for each in ids}
        return DescribedCluster("cluster", CONTROLLER_ID, brokers)

    def ask_any(self, request: Any, *_: object) -> DescribeConfigsResponse:
        setting = DescribeConfigsResourceResult(name=LEADERS, value="0:1", config_source=1)
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=TOPIC, resource_name=each.resource_name, configs=[setting])
                for each in request.resources
            ]
        )

    def ask_controller(self, request: Any, *_: object) -> Any:
        if isinstance(request, AlterPartitionReassignmentsRequest):
            if isinstance(self.answer, Failure):
                raise self.answer
            return self.answer
        return self._alter(CONTROLLER_ID, request)

    def ask(self, broker: KnownBroker, request: Any, *_: object) -> IncrementalAlterConfigsResponse:
        assert not broker.is_fenced
        return self._alter(broker.broker_id, request)

    def _alter(self, asked: int, request: Any) -> IncrementalAlterConfigsResponse:
        responses = []
        for each in request.resources:
            is_refused = each.resource_type == BROKER and (each.resource_name != str(asked) or asked == self._refusing)
            if not is_refused:
                operation = each.configs[0].config_operation
                self.accepted.append((asked, each.resource_type, each.resource_name, operation))
            responses.append(
                AlterConfigsResourceResponse(
                    error_code=ErrorCode.INVALID_REQUEST if is_refused else ErrorCode.NONE,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
            )
        return IncrementalAlterConfigsResponse(responses=responses)

    @property
    def requests(self) -> BrokerRequests:
        return cast("BrokerRequests", self)


def move(before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    return Move(PartitionState("t", 0, before[0], before, before), after)


def test_each_broker_gets_its_rate_itself_and_the_controller_the_topics() -> None:
    brokers = Brokers()
    set_throttle(brokers.requests, [move((1, 2), (1, 3))], 1000)
    rates = [(each, BROKER, str(each), Operation.SET) for each in (1, 2, 3)]
    assert brokers.accepted == [*rates, (CONTROLLER_ID, TOPIC, "t", Operation.SET)]
    brokers.accepted.clear()
    remove_throttle(brokers.requests, ["t"], [3, 2, 1])
    rates = [(each, BROKER, str(each), Operation.DELETE) for each in (1, 2, 3)]
    assert brokers.accepted == [(CONTROLLER_ID, TOPIC, "t", Operation.DELETE), *rates]


def test_a_broker_that_refuses_its_rate_leaves_the_topics_unchanged() -> None:
    brokers = Brokers(refusing=2)
    with pytest.raises(Failure, match="throttle of broker 2"):
        set_throttle(brokers.requests, [move((1, 2), (1, 3))], 1000)
    assert not [each for each in brokers.accepted if each[1] == TOPIC]


def test_a_broker_that_does_not_run_is_left_out() -> None:
    """So that the replicas of a broken broker can be moved with a throttle."""
    brokers = Brokers()
    set_throttle(brokers.requests, [move((1, STOPPED_ID), (1, 3))], 1000)
    remove_throttle(brokers.requests, [], [1, 3, STOPPED_ID])
    assert {asked for asked, *_ in brokers.accepted} == {1, 3}


MOVES = [move((1, 2), (1, 3))]
DENIED = AlterPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
REFUSED = AlterPartitionReassignmentsResponse(
    responses=[
        ReassignableTopicResponse(
            name="t",
            partitions=[
                ReassignablePartitionResponse(partition_index=0, error_code=ErrorCode.INVALID_REPLICA_ASSIGNMENT)
            ],
        )
    ]
)
REMOVED, KEPT = "; the throttle was removed", "removes it when no reassignment is running"


def present(brokers: Brokers, *, adding: tuple[int, ...] = ()) -> ClusterState:
    return ClusterState(brokers.describe(), [PartitionState("other", 0, 1, (1, 2), (1, 2), adding=adding)])


@pytest.mark.parametrize("answer", [REFUSED, DENIED], ids=["refused", "denied"])
def test_a_refused_reassignment_has_no_throttle(
    monkeypatch: pytest.MonkeyPatch, answer: AlterPartitionReassignmentsResponse
) -> None:
    brokers = Brokers()
    brokers.answer = answer
    monkeypatch.setattr(reassign, "read_state", lambda _requests: present(brokers))
    with pytest.raises(Failure) as raised:
        submit(brokers.requests, MOVES, 1000)
    assert raised.value.message.endswith(REMOVED)
    last = {(resource_type, name): operation for _, resource_type, name, operation in brokers.accepted}
    assert last == dict.fromkeys([(BROKER, "1"), (BROKER, "2"), (BROKER, "3"), (TOPIC, "t")], Operation.DELETE)


@pytest.mark.parametrize(
    ("answer", "adding"), [(REFUSED, (2,)), (Failure("no response"), ())], ids=["others-are-running", "not-answered"]
)
def test_a_throttle_that_may_be_needed_is_kept_and_reported(
    monkeypatch: pytest.MonkeyPatch, answer: AlterPartitionReassignmentsResponse | Failure, adding: tuple[int, ...]
) -> None:
    brokers = Brokers()
    brokers.answer = answer
    monkeypatch.setattr(reassign, "read_state", lambda _requests: present(brokers, adding=adding))
    with pytest.raises(Failure) as raised:
        submit(brokers.requests, MOVES, 1000)
    assert raised.value.message.endswith(KEPT)
    assert {operation for *_, operation in brokers.accepted} == {Operation.SET}


def test_a_failure_without_a_throttle_does_not_mention_it() -> None:
    brokers = Brokers()
    brokers.answer = REFUSED
    with pytest.raises(Failure) as raised:
        submit(brokers.requests, MOVES, None)
    assert "throttle" not in raised.value.message
    assert brokers.accepted == []
