"""`odradek doctor` on a cluster of three brokers of which one dies, and on Apache Kafka."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from odradek.testing import cluster
from tests.commands import run_odradek

if TYPE_CHECKING:
    from typing import Any

    from tests.jvm.shared_kafka import KafkaAddress

WAIT_S = 60


def diagnose(address: str) -> dict[str, Any]:
    found = run_odradek("doctor", "-b", address, "--lag-interval", "0", "--format", "json").row
    found["checks"] = {each["check"]: each for each in found["findings"] if each["check"] != "disk-full"}
    return found


@pytest.mark.more
@pytest.mark.timeout(180)
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, 11 or newer, on the PATH")
def test_a_dead_broker_is_found_with_what_it_takes_away() -> None:
    with cluster(brokers=3) as running:
        address = running.bootstrap_servers
        run_odradek("topic", "create", "orders", "--replication-factor", "3", "-b", address)
        run_odradek("topic", "create", "single", "--replication-factor", "1", "--partitions", "3", "-b", address)
        assert list(diagnose(address)["checks"]) == ["replication-factor"]
        running.kill(2)
        deadline = time.monotonic() + WAIT_S
        while "broker-fenced" not in (checks := diagnose(address)["checks"]):
            assert time.monotonic() < deadline
        assert {"broker-fenced", "under-replicated", "partition-offline", "replication-factor"} <= set(checks)
        assert checks["broker-fenced"]["where"][0].startswith("broker 2 at ")
        assert checks["partition-offline"]["where_count"] == 1


@pytest.mark.oracle
@pytest.mark.timeout(300)
def test_apache_kafka_is_diagnosed_as_well(apache_kafka: KafkaAddress) -> None:
    """Every fact is read; what is found depends on the other tests that use this broker."""
    producer = Producer({"bootstrap.servers": apache_kafka.bootstrap_servers})
    producer.produce("doctor", b"one")
    producer.flush(30)
    found = diagnose(apache_kafka.bootstrap_servers)
    assert found["not_examined"] == []
    assert not {"no-broker", "controller", "broker-fenced", "broker-unreachable"} & set(found["checks"])
