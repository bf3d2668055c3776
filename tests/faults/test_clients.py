"""Clients of every library go on when the leader of their partition and the coordinator of their group are killed, in a
group and in transactions: nothing that was acknowledged is lost, and each record is copied once.

`make test` runs one library, `make faults` all.
"""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from odradek.local.running_cluster import RunningCluster
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.driver import DriverEnded
from tests.clients.scenario.produce import produce
from tests.clients.scenario.steps import COPY_PREFIX, EPOCH_MS, record
from tests.clients.test_scenario import DRIVERS, MARKS
from tests.groups.kinds import EACH_CLIENT, Kind
from tests.groups.members.member_settings import MemberSettings
from tests.groups.processed import Processed
from tests.groups.running_member import RunningMember
from tests.groups.topics import Topics
from tests.pipelines.committed import committed_records
from tests.waiting import eventually
from tests.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.protocol.messages.metadata import MetadataResponsePartition
    from odradek.protocol.schema import Request, Response
    from tests.clients.drivers.driver import Driver
    from tests.clients.scenario.steps import Json

R = TypeVar("R", bound="Response")

PATIENCE_S = 240.0
ONE_MORE_S = 5.0  # before another record is produced
PARTITIONS = 4
CHUNK = 5
GROUP_OF_COPIES = "copiers"
PROPERTIES: dict[str, str | int] = {
    "group.initial.rebalance.delay.ms": 300,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
LIBRARIES = ("java", "kafka-python", "aiokafka", "franz-go", "confluent-kafka")
IN_EVERY_RUN = "aiokafka"
KINDS = [kind for kind in EACH_CLIENT if kind.library != "confluent"]

pytestmark = [pytest.mark.timeout(900)]


def marks_of(library: str) -> list[Any]:
    return MARKS.get(library, []) + ([] if library == IN_EVERY_RUN else [pytest.mark.faults])


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with RunningCluster(3, PROPERTIES, has_network=False) as running:
        yield running


class View:
    """What brokers that run say about the cluster."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster

    def _call(self, request: Request, response: type[R], version: int) -> R:
        for broker in self._cluster.brokers.values():
            if broker.is_running:
                try:
                    with WireClient(broker.port) as client:
                        return client.call(request, response, version)
                except OSError:
                    continue
        raise AssertionError("no broker answers")

    def _partitions(self) -> dict[tuple[str, int], MetadataResponsePartition]:
        topics = self._call(MetadataRequest(topics=None), MetadataResponse, 12).topics
        return {(topic.name or "", each.partition_index): each for topic in topics for each in topic.partitions}

    def leader(self, topic: str, index: int = 0) -> int:
        found: list[int] = []

        def is_known() -> bool:
            partition = self._partitions().get((topic, index))
            found.append(-1 if partition is None else partition.leader_id)
            return found[-1] >= 0

        eventually(is_known, f"a leader of {topic}-{index}")
        return found[-1]

    def coordinator(self, key: str, *, of_transactions: bool) -> int:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=int(of_transactions))
        found: list[int] = []

        def is_known() -> bool:
            (answer,) = self._call(request, FindCoordinatorResponse, 4).coordinators
            found.append(answer.node_id)
            return answer.error_code == 0

        eventually(is_known, f"the coordinator of {key}")
        return found[-1]

    def is_in_sync(self) -> bool:
        return all(len(each.isr_nodes) == len(each.replica_nodes) for each in self._partitions().values())


def kill_and_restart(
    cluster: RunningCluster,
    broker: int,
    until: Callable[[], bool],
    instead: Callable[[], object] | str,
) -> None:
    """The broker stays away until the clients have made progress without it."""
    cluster.kill(broker)
    eventually(until, instead, seconds=PATIENCE_S)
    cluster.start(broker)
    eventually(View(cluster).is_in_sync, "all replicas are in sync", seconds=PATIENCE_S)


@pytest.fixture
def needs(request: pytest.FixtureRequest) -> Callable[[str], None]:
    def check(library: str) -> None:
        if library == "java":
            request.getfixturevalue("jvm")
        if library == "franz-go" and (reason := franz_go_driver.missing()):
            pytest.skip(reason)

    return check


def goes_on(topics: Topics, group: str) -> bool:
    """Whether the group commits everything after one more record for each partition. A client whose last commit was
    refused commits again only with the next record."""
    topics.produce(1)
    topics.flush()
    give_up_s = time.monotonic() + ONE_MORE_S
    while time.monotonic() < give_up_s:
        if topics.committed(group) == topics.ends:
            return True
        time.sleep(0.1)  # a poll's pause
    return False


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind), marks=marks_of(kind.library)) for kind in KINDS])
def test_a_group_processes_everything_when_its_leader_and_its_coordinator_die(
    cluster: RunningCluster, needs: Callable[[str], None], kind: Kind
) -> None:
    needs(kind.library)
    name = f"group-{kind}"
    topics = Topics(cluster.bootstrap_servers, replicas=3)
    topics.make(**{name: PARTITIONS})
    settings = {"group": name, "heartbeat_ms": 1000, **kind.settings}
    members = [
        RunningMember(kind.library, MemberSettings(cluster.bootstrap_servers, each, (name,), **settings))
        for each in ("c1", "c2")
    ]
    try:
        eventually(
            lambda: [len(each.held) for each in members] == [2, 2],
            lambda: [(each, each.held, each.errors[-1000:]) for each in members],
        )
        view = View(cluster)
        for of_coordinator in (False, True):
            topics.produce(50)
            topics.flush()
            eventually(lambda: topics.committed(name) == topics.ends, "all committed", seconds=PATIENCE_S)
            broker = view.coordinator(name, of_transactions=False) if of_coordinator else view.leader(name)
            topics.produce(50)  # on its way when the broker is killed
            kill_and_restart(cluster, broker, partial(goes_on, topics, name), "records are processed")
        for member in members:
            member.leave()
        assert not Processed(members).skipped(topics.ends)
    finally:
        for member in members:
            if member.is_alive:
                member.kill()


class Copying(threading.Thread):
    """Produces records in chunks, and copies each chunk in a transaction with the offset of its group. What fails is
    repeated, as an application does."""

    def __init__(self, make_driver: Callable[[], Driver], source: str, target: str) -> None:
        super().__init__(daemon=True)
        self._make_driver = make_driver
        self._driver = make_driver()
        self._source, self._target = source, target
        self.acknowledged: dict[int, str] = {}  # values by offset
        self.copied = 0
        self.failures: list[object] = []
        self.problem: BaseException | None = None
        self.is_finishing = False  # after the chunk that it copies
        self.is_stopping = False

    def run(self) -> None:
        try:
            for chunk in itertools.count():
                if self.is_finishing:
                    return
                self._produce([f"{chunk}-{number}" for number in range(CHUNK)])
                end_offset = max(self.acknowledged) + 1
                while (missing := end_offset - self._committed()) > 0:
                    self._copy(missing)
                self.copied = len(self.acknowledged)
        except BaseException as problem:
            self.problem = problem
        finally:
            self._driver.close()

    def has_copied(self, count: int) -> bool:
        """Or has failed for good."""
        return self.copied >= count or not self.is_alive()

    def _perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        """None when it failed."""
        assert not self.is_stopping, f"the test has ended: {self.failures[-3:]}"
        try:
            answer = self._driver.perform(verb, arguments)
        except DriverEnded as problem:
            self.failures.append(problem)
            self._driver = self._make_driver()
            return None
        if isinstance(answer, dict) and (answer.get("error", "NONE") != "NONE" or "exception" in answer):
            self.failures.append(answer)
            time.sleep(0.1)  # a poll's pause
            return None
        return answer

    def _produce(self, values: list[str]) -> None:
        records = [record(each, timestamp=EPOCH_MS) for each in values]
        while values:
            answer = self._perform("produce", produce(self._source, records[-len(values) :], idempotent=True))
            for each in answer or []:
                if each.get("offset") is None:
                    self.failures.append(each)
                    break  # it may have been written; it is sent again with the next ones
                self.acknowledged[each["offset"]] = values.pop(0)

    def _committed(self) -> int:
        while True:
            answer = self._perform(
                "committed", {"topic": self._source, "partition": 0, "group": f"{GROUP_OF_COPIES}-{self._source}"}
            )
            if answer is not None:
                return int(answer["offset"] or 0)

    def _copy(self, count: int) -> None:
        arguments = {
            "topic": self._source,
            "target": self._target,
            "group": f"{GROUP_OF_COPIES}-{self._source}",
            "transactional_id": f"copier-{self._source}",
            "count": count,
            "commits": True,
        }
        self._perform("copy", arguments)


@pytest.mark.more
@pytest.mark.parametrize("library", [pytest.param(each, marks=marks_of(each)) for each in LIBRARIES])
def test_each_record_is_copied_once_when_leaders_and_coordinators_die(
    cluster: RunningCluster, needs: Callable[[str], None], library: str
) -> None:
    needs(library)
    source, target = f"source-{library}", f"copies-{library}"
    Topics(cluster.bootstrap_servers, replicas=3).make(**{source: 1, target: 1})
    view = View(cluster)
    copying = Copying(lambda: DRIVERS[library](cluster.bootstrap_servers), source, target)
    copying.start()
    try:
        of_transactions = partial(view.coordinator, f"copier-{source}", of_transactions=True)
        of_group = partial(view.coordinator, f"{GROUP_OF_COPIES}-{source}", of_transactions=False)
        for find in (partial(view.leader, target), of_transactions, of_group):
            eventually(partial(copying.has_copied, copying.copied + 1), "copies", seconds=PATIENCE_S)
            assert copying.is_alive(), (copying.problem, copying.failures)
            more = partial(copying.has_copied, copying.copied + CHUNK + 1)  # not only one that was about to end
            kill_and_restart(cluster, find(), more, lambda: copying.failures[-5:])
        copying.is_finishing = True
        copying.join(PATIENCE_S)
    finally:
        copying.is_stopping = True
    assert copying.problem is None, (copying.problem, copying.failures)
    assert not copying.is_alive()
    print(f"{library}: {len(copying.acknowledged)} records, {len(copying.failures)} failures: {copying.failures[:3]}")
    written = {each.offset() or 0: each.value() for each in committed_records(cluster.bootstrap_servers, source)}
    assert {offset: written.get(offset) for offset in copying.acknowledged} == {
        offset: value.encode() for offset, value in copying.acknowledged.items()
    }
    copies = [each.value() for each in committed_records(cluster.bootstrap_servers, target)]
    assert copies == [COPY_PREFIX + (written[offset] or b"") for offset in sorted(written)]
