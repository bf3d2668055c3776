"""`odradek doctor` on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from odradek.testing import broker

if TYPE_CHECKING:
    from tests.commands import Run


def test_a_fresh_broker_is_healthy_and_lag_without_members_is_found(offline: Run) -> None:
    with broker() as running:
        address = running.bootstrap_servers
        found = offline("doctor", "-b", address, "--format", "json", "--lag-interval", "0").row
        assert [each for each in found["findings"] if each["check"] != "disk-full"] == []
        assert found["not_examined"] == []
        offline("topic", "create", "orders", "-b", address)
        offline("produce", "orders", "-v", "one", "-b", address)
        consumer = Consumer({"bootstrap.servers": address, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        ran = offline("doctor", "-b", address, "--lag-interval", "0")
        assert ran.code in (1, 2)  # 2 where the volume is nearly full
        assert "WARNING  groups have unread records and no members  [group-abandoned]" in ran.output
        assert "billing: 1 record" in ran.output
        assert "odradek group delete billing" in ran.output


def test_a_cluster_that_does_not_answer_is_a_problem(offline: Run) -> None:
    ran = offline("doctor")
    assert ran.code == 2
    assert "PROBLEM  no broker answers" in ran.output
    assert "not examined (no connection to a broker): broker-unreachable" in ran.output


def test_a_time_limit_ends_the_reading(offline: Run, bootstrap_server: str) -> None:
    ran = offline("doctor", "-b", bootstrap_server, "--timeout", "0.000001", "--format", "json")
    assert {each["reason"] for each in ran.row["not_examined"]} == {"1e-06 s were over; --timeout SECONDS gives more"}
    assert (ran.code, ran.row["status"]) == (3, "incomplete")


def test_a_failure_without_a_report_has_the_exit_code_of_wrong_usage(offline: Run) -> None:
    for arguments in (("--profile", "none-of-this-name"), ("-b", "host:port")):
        ran = offline("doctor", *arguments)
        assert (ran.code, ran.output) == (2, ""), ran.errors


def test_config_belongs_to_security(offline: Run) -> None:
    ran = offline("doctor", "--config", __file__)
    assert ran.code == 2
    assert "odradek doctor security" in ran.errors
