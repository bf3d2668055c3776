"""The groups of a cluster, each broker's asked for separately: one that does not answer hides only its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import check
from odradek.admin.errors import NoAnswer, RefusedConnection
from odradek.admin.transactions import retry_while_loading
from odradek.conventions.failures import Failure
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker

TIMEOUT_S = 5.0
CONSUMERS = ("consumer", "")  # protocol types; the latter has offsets and never had members
REBALANCING = frozenset({"Assigning", "Reconciling"})  # of the consumer protocol; commands have one word for both


class ListedGroup(NamedTuple):
    name: str
    state: str
    kind: str


def list_groups(requests: BrokerRequests) -> tuple[list[ListedGroup], dict[int, str]]:
    """Consumer groups by name; and the brokers that did not answer, with the reasons. Failure if none answered."""
    found: list[ListedGroup] = []
    missing: dict[int, str] = {}
    has_answer = False
    reason: Failure | None = None
    for broker in requests.describe().brokers.values():
        if broker.is_fenced:
            missing[broker.broker_id] = "it is fenced; groups that others have taken over are listed"
            continue
        try:
            answer = retry_while_loading(lambda broker=broker: _ask(requests, broker), lambda found: found.error_code)  # type: ignore[misc]  # mypy does not infer a lambda with a default
        except RefusedConnection:
            raise
        except Failure as failure:
            missing[broker.broker_id] = failure.message
            reason = failure
            continue
        has_answer = True
        check(answer.error_code, None, f"groups of broker {broker.broker_id}")
        found += [
            ListedGroup(
                each.group_id,
                "Rebalancing" if each.group_state in REBALANCING else each.group_state,
                each.group_type.lower(),
            )
            for each in answer.groups
            if each.protocol_type in CONSUMERS
        ]
    if reason is not None and not has_answer:
        raise reason
    return sorted(found), missing


def _ask(requests: BrokerRequests, broker: KnownBroker) -> ListGroupsResponse:
    try:
        return requests.ask(broker, ListGroupsRequest(), ListGroupsResponse, 5)
    except (NoAnswer, RefusedConnection):
        raise
    except Failure:
        return requests.ask(broker, ListGroupsRequest(), ListGroupsResponse, 4)  # Kafka before 3.8
