"""The groups of a cluster in which a broker does not answer, or is too old to know the types of groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.cli.client.broker_requests import KnownBroker
from odradek.cli.client.group_listing import list_groups
from odradek.cli.client.kafka_errors import BadCredentials, NoAnswer
from odradek.cli.framework.failure import Failure
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsResponse


def requests(failures: dict[tuple[int, int], Failure]) -> Any:
    """Four brokers, the last of them fenced; failures are by broker and version."""
    brokers = {number: KnownBroker(number, "h", number, None, number == 4) for number in (1, 2, 3, 4)}

    def ask(broker: KnownBroker, _request: object, _type: object, version: int) -> ListGroupsResponse:
        failure = failures.get((broker.broker_id, version))
        if failure is not None:
            raise failure
        kind = "Consumer" if version == 5 else ""
        groups = [
            ListedGroup(group_id=f"g{broker.broker_id}", protocol_type="consumer", group_state="Reconciling",
                        group_type=kind),
            ListedGroup(group_id="workers", protocol_type="connect", group_state="Stable", group_type="Classic"),
        ]  # fmt: skip
        return ListGroupsResponse(groups=groups)

    return SimpleNamespace(describe=lambda: SimpleNamespace(brokers=brokers), ask=ask)


def test_a_broker_that_does_not_answer_hides_only_its_own() -> None:
    found, missing = list_groups(requests({(2, 5): NoAnswer("no response from h:2: refused")}))
    assert found == [("g1", "Rebalancing", "consumer"), ("g3", "Rebalancing", "consumer")]
    assert missing == {
        2: "no response from h:2: refused",
        4: "it is fenced; groups that others have taken over are listed",
    }


def test_an_old_broker_lists_its_groups_without_types() -> None:
    found, missing = list_groups(requests({(2, 5): Failure("the broker closed the connection")}))
    assert [each.kind for each in found] == ["consumer", "", "consumer"]
    assert list(missing) == [4]


def test_credentials_that_one_broker_refuses_are_refused_by_all() -> None:
    with pytest.raises(BadCredentials):
        list_groups(requests({(1, 5): BadCredentials("no")}))
