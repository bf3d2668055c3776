"""Transactions of every client on a cluster, where other brokers than the coordinator write most of the markers: a
client that goes on at once finds its last transaction unfinished.

`make test` runs one client of the scenario, `make more` one of the other test, `make soak` all. franz-go meets an
unfinished transaction in almost every round, librdkafka rarely.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from odradek.local.running_cluster import RunningCluster
from tests.clients.client_limits import LIMITS
from tests.clients.conftest import ODRADEK
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.driver import Driver
from tests.clients.drivers.stand_in import StandIn
from tests.clients.recorded import recorded_answers
from tests.clients.scenario import transactions
from tests.clients.scenario.steps import DONE
from tests.clients.scenario.topics import create
from tests.clients.test_scenario import DRIVERS, MARKS
from tests.clients.transcript import Transcript
from tests.clients.wire.connection import Connection
from tests.pipelines.committed import committed_records

BROKERS = 3
PARTITIONS = 30
ROUNDS_OF_A_PRODUCER = 20
SCENARIO_IN_EVERY_RUN = "confluent-kafka"
ROUNDS_IN_EVERY_RUN = "franz-go"
PROPERTIES: dict[str, str | int] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}

pytestmark = [pytest.mark.more, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with RunningCluster(BROKERS, PROPERTIES, has_network=False) as running:
        yield running


def _parameter(name: str, *values: Any, soaks: bool) -> Any:
    return pytest.param(name, *values, marks=MARKS.get(name, []) + ([pytest.mark.soak] if soaks else []))


@pytest.fixture
def driver(client: str, cluster: RunningCluster, request: pytest.FixtureRequest) -> Iterator[Driver]:
    if pytest.mark.jvm in MARKS.get(client, []):
        request.getfixturevalue("jvm")
    if client == "franz-go" and (reason := franz_go_driver.missing()):
        pytest.skip(reason)
    driver = DRIVERS[client](cluster.bootstrap_servers)
    yield driver
    driver.close()


@pytest.mark.parametrize(
    "client", [_parameter(name, soaks=name != SCENARIO_IN_EVERY_RUN) for name in DRIVERS if name != "kafka-tools"]
)
def test_a_cluster_gives_the_answers_of_the_scenario(client: str, driver: Driver, cluster: RunningCluster) -> None:
    steps = [
        replace(step, arguments={**step.arguments, "replication_factor": BROKERS})
        if step.verb == "create_topic"
        else step
        for step in transactions.STEPS
    ]
    with Connection(cluster.brokers[1].bootstrap_servers) as connection:
        stand_in = StandIn(cluster.bootstrap_servers)
        transcript = Transcript(driver, stand_in, LIMITS[client], ODRADEK, connection)
        transcript.perform(steps, recorded_answers("transactions", steps))
    assert not transcript.differences, "\n".join(str(each) for each in transcript.differences)


@pytest.mark.more
@pytest.mark.parametrize(
    ("client", "producers"),
    [
        _parameter(ROUNDS_IN_EVERY_RUN, 1, soaks=False),
        *(_parameter(name, 15, soaks=True) for name in ("java", "confluent-kafka", "franz-go")),
    ],
)
def test_a_producer_goes_on_in_the_moment_of_each_answer(
    client: str, producers: int, driver: Driver, cluster: RunningCluster
) -> None:
    """Producers with one transactional id, each of which commits and aborts 20 times."""
    topic = f"alternate-{client}-{producers}"
    assert driver.perform("create_topic", create(topic, PARTITIONS, replication_factor=BROKERS)) == DONE
    arguments = {"topic": topic, "partitions": PARTITIONS, "rounds": ROUNDS_OF_A_PRODUCER, "transactional_id": topic}
    answers = [driver.perform("alternate", arguments) for _ in range(producers)]
    records = committed_records(cluster.bootstrap_servers, topic)
    rounds = producers * ROUNDS_OF_A_PRODUCER
    print(f"{client}: {len(records) / PARTITIONS:g} of {rounds} rounds", Counter(map(str, answers)))
    assert answers == producers * [{"rounds": ROUNDS_OF_A_PRODUCER}]
    assert Counter((each.partition(), each.value()) for each in records) == {
        (partition, b"kept"): rounds for partition in range(PARTITIONS)
    }
