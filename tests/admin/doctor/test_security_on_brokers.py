"""`odradek doctor security` on real brokers: open to everybody, secured by `odradek secure init`, and Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing import broker
from tests.commands import run_odradek

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jvm.shared_kafka import KafkaAddress


def findings(*arguments: str) -> dict[str, Any]:
    row = run_odradek("doctor", "security", "--format", "json", *arguments).row
    return {each["check"]: each for each in row["findings"]} | {"not examined": row["not_examined"]}


def test_an_open_broker_has_all_problems(tmp_path: Path) -> None:
    with broker(**{"listeners": "PLAINTEXT://0.0.0.0:0", "advertised.listeners": "PLAINTEXT://127.0.0.1:0"}) as running:
        run_odradek("topic", "create", "orders", "-b", running.bootstrap_servers)
        found = findings("-b", running.bootstrap_servers)
    assert {"encryption", "authentication", "authorizer", "anonymous", "quotas", "audit-log"} <= set(found)
    assert "1 topic, such as orders" in found["anonymous"]["where"][0]
    assert [each["check"] for each in found["not examined"]] == ["credential-files"]


def test_a_broker_of_secure_init_has_only_warnings(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    assert run_odradek("secure", "init", str(certs)).code == 0
    properties = dict(
        line.split("=", 1) for line in (certs / "broker.properties").read_text().splitlines() if "=" in line
    )
    properties["listeners"] = "SSL://127.0.0.1:0"
    (certs / "broker.pem").chmod(0o644)
    with broker(**{name: value for name, value in properties.items() if not name.startswith("#")}) as running:
        arguments = ["-b", running.bootstrap_servers, "--secure", str(certs)]
        found = findings(*arguments, "--config", str(certs / "broker.properties"))
    assert found.pop("not examined") == []
    assert set(found) == {"credential-files", "auto-create-topics", "quotas", "audit-log"}
    assert found["credential-files"]["advice"] == f"chmod 600 {certs / 'broker.pem'}"


def test_a_cluster_that_does_not_answer_is_a_problem(offline: Any) -> None:
    ran = offline("doctor", "security")
    assert ran.code == 2
    assert "PROBLEM  no broker answers" in ran.output


@pytest.mark.oracle
@pytest.mark.timeout(300)
def test_apache_kafka_is_examined_as_well(apache_kafka: KafkaAddress) -> None:
    found = findings("-b", apache_kafka.bootstrap_servers)
    assert [each["check"] for each in found["not examined"]] == ["credential-files"]
    assert {"authorizer", "anonymous"} <= set(found)
    assert "encryption" not in found  # it listens on 127.0.0.1 only
