"""The groups of a cluster in which a broker does not answer, or is too old to know the types of groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.broker_requests import KnownBroker
from odradek.admin.errors import BadCredentials, NoAnswer
from odradek.admin.groups import list_groups
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from odradek.conventions.failures import Failure


def requests(failures: dict[int, Failure], old: tuple[int, ...] = ()) -> Any:
    """Four brokers, the last of them fenced; the old ones do not know the types of groups."""
    brokers = {number: KnownBroker(number, "h", number, None, number == 4) for number in (1, 2, 3, 4)}

    def ask(broker: KnownBroker, _request: object, _type: object, versions: tuple[int, ...]) -> ListGroupsResponse:
        assert versions == (5, 4)
        failure = failures.get(broker.broker_id)
        if failure is not None:
            raise failure
        kind = "" if broker.broker_id in old else "Consumer"
        groups = [
            ListedGroup(group_id=f"g{broker.broker_id}", protocol_type="consumer", group_state="Reconciling",
                        group_type=kind),
            ListedGroup(group_id="workers", protocol_type="connect", group_state="Stable", group_type="Classic"),
        ]  # fmt: skip
        return ListGroupsResponse(groups=groups)

    return SimpleNamespace(describe=lambda: SimpleNamespace(brokers=brokers), ask=ask)


def test_a_broker_that_does_not_answer_hides_only_its_own() -> None:
    found, missing = list_groups(requests({2: NoAnswer("no response from h:2: refused")}))
    assert found == [("g1", "Rebalancing", "consumer"), ("g3", "Rebalancing", "consumer")]
    assert missing == {
        2: "no response from h:2: refused",
        4: "it is fenced; groups that others have taken over are listed",
    }


def test_an_old_broker_lists_its_groups_without_types() -> None:
    found, missing = list_groups(requests({}, old=(2,)))
    assert [each.kind for each in found] == ["consumer", "", "consumer"]
    assert list(missing) == [4]


def test_credentials_that_one_broker_refuses_are_refused_by_all() -> None:
    with pytest.raises(BadCredentials):
        list_groups(requests({1: BadCredentials("no")}))
