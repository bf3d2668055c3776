"""`odradek quota`, on a real broker: what it sets, lists, removes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands import Run

NewName = Callable[[], str]


def test_a_quota_is_set_listed_and_removed(odradek: Run, new_name: NewName) -> None:
    user = new_name()
    ran = odradek("quota", "set", "--user", user, "producer_byte_rate=1048576", "request_percentage=12.5")
    assert (
        ran.output == f"user {user}: producer_byte_rate = 1,048,576 bytes/s\nuser {user}: request_percentage = 12.5 %\n"
    )
    odradek("quota", "set", "--user", user, "--client-id", "etl", "consumer_byte_rate=1000")
    rows = odradek("quota", "list", "--user", user, "--format", "json").rows
    assert rows == [
        {"entity": {"user": user}, "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}},
        {"entity": {"user": user, "client-id": "etl"}, "quotas": {"consumer_byte_rate": 1000.0}},
    ]
    assert f"user {user}, client-id etl" in odradek("quota", "list").output
    assert odradek("quota", "remove", "--user", user, "request_percentage").output == (
        f"user {user}: request_percentage removed\n"
    )
    assert odradek("quota", "remove", "--user", user, "--format", "json").row["removed"] == ["producer_byte_rate"]
    assert odradek("quota", "remove", "--user", user, "--client-id", "etl").code == 0
    assert odradek("quota", "list", "--user", user).output == "no such quotas\n"


def test_addresses_and_defaults_have_quotas(odradek: Run) -> None:
    odradek("quota", "set", "--ip", "192.0.2.7", "connection_creation_rate=20")
    odradek("quota", "set", "--client-id-default", "producer_byte_rate=9000000000")
    listed = odradek("quota", "list").output
    assert "ip 192.0.2.7" in listed
    assert "default client-id" in listed
    assert odradek("quota", "remove", "--ip", "192.0.2.7").code == 0
    assert odradek("quota", "remove", "--client-id-default").code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("set", "producer_byte_rate=1"), "name what to limit"),
        (("set", "--user", "a", "producer_bite_rate=1"), "producer_byte_rate"),
        (("set", "--user", "a", "producer_byte_rate=0"), "greater than 0"),
        (("set", "--user", "a", "connection_creation_rate=1"), "user has no quota connection_creation_rate"),
        (("set", "--user", "a", "--ip", "::1", "producer_byte_rate=1"), "cannot be combined"),
        (("set", "--user", "a", "--user-default", "producer_byte_rate=1"), "exclude each other"),
        (("remove", "--user", "nobody-has-this-name"), "has no quotas"),
        (("set", "--user", "a", "producer_byte_rate=1.5"), "cannot be a fractional value"),
    ],
)
def test_a_mistake_is_explained(odradek: Run, arguments: tuple[str, ...], reason: str) -> None:
    ran = odradek("quota", *arguments)
    assert reason in ran.errors
    assert ran.code != 0
