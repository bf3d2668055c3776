"""One run: a cluster, producers under load, faults, and a verdict."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.local.running_cluster import RunningCluster
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.faults.checks import Verdict, check_idempotent, check_replicas, check_transactional
from tests.faults.loads import IdempotentLoad, TransactionalLoad
from tests.waiting import eventually
from tests.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from odradek.protocol.messages.metadata import MetadataResponsePartition
    from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound="Response")

WAIT_S = 120.0
WARM_UP_S = 3.0
EVENTS, TRANSACTIONS, IDLE = "events", "transactions", "idle"
# Replicas are compacted independently: without compaction their bytes can be compared.
PROPERTIES: Mapping[str, str | int] = {"log.cleaner.backoff.ms": 3_600_000}
OUTPUT = Path("build/faults")


class View:
    """The metadata of one broker."""

    def __init__(self, response: MetadataResponse) -> None:
        self.controller = response.controller_id
        self.brokers = {broker.node_id for broker in response.brokers}
        self.partitions = {
            (topic.name or "", each.partition_index): each for topic in response.topics for each in topic.partitions
        }

    def leader(self, topic: str = EVENTS, index: int = 0) -> int:
        return self.partitions[topic, index].leader_id

    def in_sync(self, topic: str = EVENTS, index: int = 0) -> set[int]:
        return set(self.partitions[topic, index].isr_nodes)


class Run:
    """`settings` are those of the idempotent producers, of which each has a topic of its own."""

    def __init__(
        self,
        *,
        has_network: bool = False,
        partitions: int = 3,
        idle_partitions: int = 0,
        properties: Mapping[str, str | int] | None = None,
        producers: Mapping[str, Mapping[str, Any]] | None = None,
        records_per_s: int | None = None,
    ) -> None:
        self.cluster = RunningCluster(3, {**PROPERTIES, **(properties or {})}, has_network=has_network)
        self._partitions = partitions
        self._idle_partitions = idle_partitions
        self._producers = producers or {EVENTS: {}}
        self._records_per_s = records_per_s
        self.loads: dict[str, IdempotentLoad] = {}
        self.verdict = Verdict()

    def __enter__(self) -> Self:
        try:
            self.cluster.start()
            admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
            topics = [NewTopic(name, self._partitions, 3) for name in self._producers]
            topics.append(NewTopic(TRANSACTIONS, 3, 3))
            topics += [NewTopic(IDLE, self._idle_partitions, 3)] if self._idle_partitions else []
            for created in admin.create_topics(topics, operation_timeout=60).values():
                created.result(WAIT_S)
            self.wait_for_in_sync()
            self._start_loads()
        except BaseException:
            self.cluster.close()
            raise
        return self

    def _start_loads(self) -> None:
        servers = self.cluster.bootstrap_servers
        more = {} if self._records_per_s is None else {"records_per_s": self._records_per_s}
        for topic, settings in self._producers.items():
            self.loads[topic] = IdempotentLoad(servers, topic, self._partitions, settings, **more)
        self.transactional = TransactionalLoad(servers, TRANSACTIONS, 3, **more)
        for load in (*self.loads.values(), self.transactional):
            load.start()
        self.wait_for("first acknowledgements", self._is_running)
        time.sleep(WARM_UP_S)  # a poll's pause: under load, before the first fault

    def _is_running(self) -> bool:
        return all(len(load.acknowledged) > 100 for load in self.loads.values()) and bool(
            self.transactional.commit_times_s
        )

    def __exit__(self, kind: object, *_exception: object) -> None:
        if kind is not None:
            self.keep_output(os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].partition(" ")[0])
        for load in (*self.loads.values(), self.transactional):
            load.is_finishing.set()
        self.cluster.close()

    # Conditions

    def view(self, *, without: int | None = None) -> View:
        """The metadata of a running broker that is not `without`."""
        return View(self.call(MetadataRequest(topics=None), MetadataResponse, 12, without=without))

    @staticmethod
    def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = WAIT_S) -> float:
        """How long it took."""
        began_s = time.monotonic()
        eventually(condition, what, seconds=timeout_s)
        return time.monotonic() - began_s

    def wait_for_in_sync(self) -> None:
        """All replicas of all partitions are in sync, and every running broker knows the same leaders: a broker that
        was cut off would otherwise answer, or serve consumers, with what it knew before."""

        def is_in_sync() -> bool:
            views = [self._view_of(node_id) for node_id, broker in self.cluster.brokers.items() if broker.is_running]
            leaders = [
                {key: (each.leader_id, each.leader_epoch) for key, each in view.partitions.items()} for view in views
            ]
            return (
                bool(leaders[0])
                and all(each == leaders[0] for each in leaders)
                and all(
                    len(each.isr_nodes) == len(each.replica_nodes)
                    for view in views
                    for each in view.partitions.values()
                )
            )

        self.wait_for("all replicas are in sync", is_in_sync)

    def _view_of(self, node_id: int) -> View:
        """Without partitions, if the broker does not answer."""
        try:
            with WireClient(self.cluster.brokers[node_id].port) as client:
                return View(client.call(MetadataRequest(topics=None), MetadataResponse, 12))
        except OSError:
            return View(MetadataResponse(brokers=[], topics=[]))

    def wait_for_acknowledgements(self, after_s: float) -> None:
        """Of every partition, later than this moment."""

        def are_there() -> bool:
            return all(
                {each.partition for each in load.acknowledged[-20_000:] if each.time_s > after_s}
                == set(range(load.partitions))
                for load in self.loads.values()
            )

        self.wait_for("acknowledgements of all partitions", are_there, 240)

    # Requests to brokers

    def call(self, request: Request, response: type[R], version: int | None = None, *, without: int | None = None) -> R:
        """The answer of a running broker that is not `without`."""
        for node_id, broker in self.cluster.brokers.items():
            if node_id != without and broker.is_running:
                with contextlib.suppress(OSError), WireClient(broker.port) as client:
                    return client.call(request, response, version)
        raise AssertionError("no broker answers")

    def elect_preferred_leaders(self) -> None:
        """Each broker leads one of three partitions again, and producers write to it: a client may take seconds to
        connect to a broker that has returned."""
        self.wait_for_in_sync()

        def are_elected() -> bool:
            self.call(ElectLeadersRequest(topic_partitions=None), ElectLeadersResponse)
            return all(each.leader_id == each.replica_nodes[0] for each in self.partitions())

        self.wait_for("preferred leaders", are_elected)
        self.wait_for_acknowledgements(time.monotonic())
        time.sleep(WARM_UP_S)  # a poll's pause: under load, before the next fault

    def partitions(self) -> Collection[MetadataResponsePartition]:
        return self.view().partitions.values()

    def coordinator(self, key: str, *, of_transactions: bool) -> int:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=int(of_transactions))
        found: list[int] = []

        def is_known() -> bool:
            (answer,) = self.call(request, FindCoordinatorResponse, 4).coordinators
            found.append(answer.node_id)
            return answer.error_code == 0

        self.wait_for(f"the coordinator of {key}", is_known)
        return found[-1]

    def led_by(self, *, controller: bool) -> int:
        """A broker that leads a partition and is, or is not, the controller."""
        view = self.view()
        leaders = [view.leader(EVENTS, index) for index in range(3)]
        return next(each for each in leaders if (each == view.controller) is controller)

    def leaves_leadership(self, broker_id: int, *, timeout_s: float = WAIT_S) -> float:
        """How long it takes until the other brokers know other leaders for what the broker led."""

        def is_deposed() -> bool:
            view = self.view(without=broker_id)
            return all(view.leader(EVENTS, index) not in (broker_id, -1) for index in range(3))

        return self.wait_for(f"new leaders in place of broker {broker_id}", is_deposed, timeout_s)

    # Results

    def gap_s(self, begin_s: float, topic: str = EVENTS, end_s: float | None = None) -> float:
        return self.loads[topic].gap_s(begin_s, end_s or time.monotonic())

    def finish(self) -> Verdict:
        """Stop the load and check everything."""
        with ThreadPoolExecutor(4) as finishing:
            list(finishing.map(lambda load: load.finish(), (*self.loads.values(), self.transactional)))
        servers = self.cluster.bootstrap_servers
        for load in self.loads.values():
            check_idempotent(load, servers, self.verdict)
        check_transactional(self.transactional, servers, self.verdict)
        check_replicas(self.cluster, self.verdict, OUTPUT / "replicas")
        return self.verdict

    @property
    def problems(self) -> list[str]:
        """Errors that users would have seen."""
        return [problem for load in (*self.loads.values(), self.transactional) for problem in load.problems]

    def keep_output(self, name: str) -> None:
        directory = OUTPUT / name
        directory.mkdir(parents=True, exist_ok=True)
        for node_id, broker in self.cluster.brokers.items():
            (directory / f"broker-{node_id}.log").write_text(broker.output)
