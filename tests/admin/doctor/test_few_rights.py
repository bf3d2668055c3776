"""A user with few rights: what it may see is examined, and a missing right is named where it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.testing import broker
from tests.commands import Ran, run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": f'{MODULE} required user_poor="right";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RESTRICTED = "this user lacks Describe on the cluster, and sees some topics and groups only"


class Secured:
    """A broker with a topic, as an administrator and as a user without rights reach it."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._admin, self._user = (f"127.0.0.1:{ports[name]}" for name in ("PLAINTEXT", "SASL"))

    def administer(self, *arguments: str) -> None:
        assert run_odradek(*arguments, "-b", self._admin).code == 0

    def examine(self, *arguments: str, password: str = "right") -> Ran:
        login = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": "poor"}
        options = [each for name, value in login.items() for each in ("-X", f"{name}={value}")]
        given = ["-b", self._user, *options, "-X", f"sasl.password={password}"]
        return run_odradek("doctor", *arguments, *given)


@pytest.fixture
def secured() -> Iterator[Secured]:
    with broker(**SETTINGS) as running:
        found = Secured(running.ports)
        found.administer("topic", "create", "orders", "--config", "unclean.leader.election.enable=true")
        yield found


@pytest.mark.parametrize("subject", ["cluster", "security"])
def test_a_refused_password_is_no_broker_that_does_not_answer(secured: Secured, subject: str) -> None:
    ran = secured.examine(subject, password="wrong")
    assert ran.code == 2
    assert "PROBLEM  brokers and this client do not agree on security  [no-broker]" in ran.output
    assert "the broker refused the credentials of poor" in ran.output
    assert "no broker answers" not in ran.output
    assert ran.output.count("credentials") == 1  # and not again for each check


def test_a_user_gets_the_findings_in_what_it_may_see(secured: Secured) -> None:
    shown = secured.examine("--format", "json", "--lag-interval", "0").row
    assert shown["seen"] == {"brokers": 1, "topics": 0, "groups": 0}
    assert {"no-broker", "broker-unreachable", "broker-fenced", "mixed-versions"} <= set(shown["passed"])
    reasons = {each["check"]: each["reason"] for each in shown["not_examined"]}
    assert {reasons[each] for each in ("controller", "partition-offline", "group-lag", "disk-full")} == {RESTRICTED}
    assert reasons["open-files"] == "metrics of broker 0: this user is not authorized for the cluster"
    assert (shown["findings"], shown["status"]) == ([], "incomplete")
    rule = ["--allow-principal", "User:poor", "--operation", "Describe", "--operation", "DescribeConfigs"]
    secured.administer("acl", "add", *rule, "--topic", "orders")
    ran = secured.examine("--lag-interval", "0")
    assert "\nthis user may describe 1 broker, 1 topic, 0 groups\n" in ran.output
    assert "[unclean-election]\n  orders\n" in ran.output
    assert "could not be read (TOPIC_AUTHORIZATION_FAILED); this user needs Read): transaction-hanging" in ran.output


def test_the_rights_that_help_names_are_enough(secured: Secured) -> None:
    grant = ["acl", "add", "--allow-principal", "User:poor", "--operation"]
    for operation, resource in (
        ("Describe", ["--cluster"]), ("DescribeConfigs", ["--cluster"]), ("Describe", ["--group", "*"]),
        ("Describe", ["--topic", "*"]), ("DescribeConfigs", ["--topic", "*"]), ("Read", ["--topic", "*"]),
    ):  # fmt: skip
        secured.administer(*grant, operation, *resource)
    shown = secured.examine("--format", "json", "--lag-interval", "0").row
    assert shown["not_examined"] == []
