"""Every client uses topics of a stream by their full names where it lets them, and by their aliases. The answers are
those that Apache Kafka gives for ordinary topics, also in transactions and for groups."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from odradek.testing import RunningBroker, broker
from tests.clients.client_limits import LIMITS
from tests.clients.conftest import ODRADEK
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.stand_in import StandIn
from tests.clients.recorded import recorded_answers
from tests.clients.scenario import transactions
from tests.clients.test_scenario import DRIVERS, MARKS
from tests.clients.transcript import Transcript
from tests.clients.wire.connection import Connection
from tests.commands import run_odradek

REFUSES_FULL_NAMES = "kafka-python"
IN_EVERY_RUN = "confluent-kafka"
JAVA_ALIAS = {"committed": "asks for all offsets of the group, which have the full names of their topics"}


def _cases() -> Iterator[object]:
    for client in DRIVERS:
        if client in ("kafka-tools", "java-4.3"):
            continue
        for is_alias in (False, True):
            if client == REFUSES_FULL_NAMES and not is_alias:
                continue
            marks = [] if client == IN_EVERY_RUN else [pytest.mark.more]
            yield pytest.param(client, is_alias, marks=[*MARKS.get(client, []), *marks])


@pytest.fixture(scope="module")
def server() -> Iterator[RunningBroker]:
    with broker({"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("client", "is_alias"), [*_cases()])
def test_topics_of_a_stream_are_topics(
    client: str, is_alias: bool, server: RunningBroker, request: pytest.FixtureRequest
) -> None:
    if pytest.mark.jvm in MARKS.get(client, []):
        request.getfixturevalue("jvm")
    if client == "franz-go" and (reason := franz_go_driver.missing()):
        pytest.skip(reason)
    stream = f"{client}-{'alias' if is_alias else 'name'}"
    made = run_odradek("stream", "create", f"/names/{stream}", ODRADEK_BOOTSTRAP_SERVER=server.bootstrap_servers)
    assert made.code == 0, made.errors
    prefix = f"names.{stream}.." if is_alias else f"/names/{stream}:"

    driver = DRIVERS[client](server.bootstrap_servers)
    try:
        with Connection(server.bootstrap_servers) as connection:
            stand_in = StandIn(server.bootstrap_servers)
            limits = LIMITS[client]
            if client == "java" and is_alias:
                limits = replace(limits, stand_in={**limits.stand_in, **JAVA_ALIAS})
            transcript = Transcript(driver, stand_in, limits, ODRADEK, connection, prefix)
            expected = recorded_answers("transactions", transactions.STEPS, may_miss=False)
            transcript.perform(transactions.STEPS, expected)
    finally:
        driver.close()
    assert not transcript.differences, "\n".join(str(each) for each in transcript.differences)
