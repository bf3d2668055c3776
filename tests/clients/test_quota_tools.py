"""`kafka-configs` agrees with `odradek quota`, on Apache Kafka as on Odradek: each shows and removes what the other
has set."""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.commands import run_odradek
from tests.jvm.tools import ToolSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.conftest import Target
    from tests.commands import Ran

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


@pytest.fixture
def kafka_configs(tools: ToolSession, target: Target) -> Callable[..., str]:
    server = ("--bootstrap-server", target.bootstrap_servers)
    return lambda *arguments: tools.run("kafka-configs", *server, *arguments).checked()


@pytest.fixture
def odradek(target: Target) -> Callable[..., Ran]:
    return functools.partial(run_odradek, ODRADEK_BOOTSTRAP_SERVER=target.bootstrap_servers)


def test_both_set_show_and_remove_the_same_quotas(
    kafka_configs: Callable[..., str], odradek: Callable[..., Ran]
) -> None:
    user, client_id = f"u{uuid.uuid4().hex[:10]}", f"c{uuid.uuid4().hex[:10]}"
    of_both = ("--entity-type", "users", "--entity-name", user, "--entity-type", "clients", "--entity-name", client_id)
    kafka_configs("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=12.5", *of_both)
    row = odradek("quota", "list", "--user", user, "--format", "json").row
    assert row["entity"] == {"user": user, "client-id": client_id}
    assert row["quotas"] == {"producer_byte_rate": 1024, "request_percentage": 12.5}
    ran = odradek("quota", "set", "--user", user, "--client-id", client_id, "consumer_byte_rate=2048")
    assert ran.code == 0, ran.errors
    described = kafka_configs("--describe", *of_both)
    for setting in ("producer_byte_rate=1024.0", "request_percentage=12.5", "consumer_byte_rate=2048.0"):
        assert setting in described
    kafka_configs("--alter", "--delete-config", "producer_byte_rate", *of_both)
    ran = odradek("quota", "remove", "--user", user, "--client-id", client_id)
    assert [line.split()[-2] for line in ran.output.splitlines()] == ["consumer_byte_rate", "request_percentage"]
    assert odradek("quota", "list", "--user", user).output == "no such quotas\n"


def test_both_know_quotas_of_addresses(kafka_configs: Callable[..., str], odradek: Callable[..., Ran]) -> None:
    of_address = ("--entity-type", "ips", "--entity-name", "192.0.2.77")
    kafka_configs("--alter", "--add-config", "connection_creation_rate=9000", *of_address)
    assert "9,000 connections/s" in odradek("quota", "list", "--ip", "192.0.2.77").output
    assert odradek("quota", "remove", "--ip", "192.0.2.77").code == 0
    assert "connection_creation_rate" not in kafka_configs("--describe", *of_address)
