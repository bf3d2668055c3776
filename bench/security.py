"""What security costs: access control lists and quotas beside a broker without them, and TLS handshakes beside a load.

Access control lists and quotas are measured with Odradek only: the measure is the share of its own rate.
"""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.brokers import BrokerKind, RunningBroker, running
from bench.costs import alternate, costs
from bench.processes import cpu_seconds
from bench.results import Experiment, Run
from bench.tls_brokers import running_with_tls
from bench.topics import fresh_topic
from bench.turns import Experiments
from bench.workloads import (
    ACLS,
    GUARDED_RECORDS,
    HANDSHAKE_SECONDS,
    HANDSHAKES_PER_S,
    RATE_RECORDS_PER_S,
    Workload,
)

ANSWER_S = 60
ACLS_AT_ONCE = 1_000
PREFIXED_SHARE = 10  # one of so many rules is for a prefix
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # so that the first rules can be added
}
HIGH_QUOTAS = ("producer_byte_rate=1e12", "consumer_byte_rate=1e12", "request_percentage=1000000")


class Security(Experiments):
    def _acls(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        def add_rules(broker: RunningBroker) -> None:
            count = max(100, int(ACLS * min(1.0, self.scale)))
            add_acls(broker.address, count)
            if count != ACLS:
                experiment.note(f"measured with {count:,} rules.")

        return self._cost(kind.member(AUTHORIZER), kind, directory, add_rules)

    def _quotas(self, kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
        return self._cost(kind, kind, directory, lambda broker: set_quotas(broker.address))

    def _cost(
        self, guarded: BrokerKind, plain: BrokerKind, directory: Path, prepare: Callable[[RunningBroker], None]
    ) -> Run:
        workload = Workload("guarded", "", "produce", GUARDED_RECORDS, 100, batch_bytes=16_384).scaled(self.scale)
        with running(plain, directory / "plain") as first, running(guarded, directory / "guarded") as second:
            prepare(second)
            return costs(alternate(self.generator, first, second, workload))

    def _handshakes(self, kind: BrokerKind, directory: Path, experiment: Experiment) -> Run:
        seconds = max(1, round(HANDSHAKE_SECONDS * self.scale))
        with running_with_tls(kind, directory) as broker:
            self._handshake(broker, seconds, 0)  # a warm-up
            before_s = cpu_seconds(broker.pid)
            fastest = self._handshake(broker, seconds, 0)
            used_s = cpu_seconds(broker.pid) - before_s
            self._p99_ms(broker, seconds)
            quiet_ms = self._p99_ms(broker, seconds)
            with self._handshaking(broker, seconds + 3) as reached:
                busy_ms = self._p99_ms(broker, seconds)
            if reached and reached[0] < 0.98 * HANDSHAKES_PER_S:
                experiment.note(f"{kind.title} beside the load: {reached[0]:,.0f} handshakes/s.")
        return {
            "handshakes_per_s": fastest["handshakes_per_s"],
            "cpu_ms_per_handshake": used_s * 1000 / fastest["handshakes"],
            "quiet_p99_ms": quiet_ms,
            "handshaking_p99_ms": busy_ms,
            "handshaking_times": busy_ms / quiet_ms,
        }

    def _handshake(self, broker: RunningBroker, seconds: int, rate: int) -> dict[str, float]:
        return self.generator.run("handshakes", **self._handshake_flags(broker, seconds, rate))

    def _handshake_flags(self, broker: RunningBroker, seconds: int, rate: int) -> dict[str, object]:
        return {"brokers": broker.ssl_address, "ca": broker.ca, "seconds": seconds, "rate": rate}

    @contextlib.contextmanager
    def _handshaking(self, broker: RunningBroker, seconds: int) -> Iterator[list[float]]:
        """Handshakes at the fixed rate in the background; their rate is in the list at the end."""
        reached: list[float] = []
        failures: list[Exception] = []

        def shake() -> None:
            try:
                flags = self._handshake_flags(broker, seconds, HANDSHAKES_PER_S)
                reached.append(self.generator.run_at_lowest_priority("handshakes", **flags)["handshakes_per_s"])
            except Exception as failure:
                failures.append(failure)

        thread = threading.Thread(target=shake)
        thread.start()
        try:
            yield reached
        finally:
            thread.join()
        if failures:
            raise failures[0]

    def _p99_ms(self, broker: RunningBroker, seconds: int) -> float:
        flags = {"rate": RATE_RECORDS_PER_S, "seconds": seconds, "size": 100}
        with fresh_topic(broker) as topic:
            return float(self.generator.run("latency", brokers=broker.address, topic=topic, **flags)["p99_ms"])


def set_quotas(address: str) -> None:
    for entity in ("--user-default", "--client-id-default"):
        command = [sys.executable, "-m", "odradek", "quota", "set", entity, *HIGH_QUOTAS, "-b", address]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=ANSWER_S)


def add_acls(address: str, count: int) -> None:
    """Rules that let the load's user in, and rules of other users on other topics, up to `count`."""
    admin = AdminClient({"bootstrap.servers": address})
    anonymous = "User:ANONYMOUS"
    own = [
        acl(ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, anonymous, AclOperation.ALL),
        acl(ResourceType.TOPIC, "bench-", ResourcePatternType.PREFIXED, anonymous, AclOperation.ALL),
    ]
    others = [of_others(number) for number in range(count - len(own))]
    bindings = own + others
    for start in range(0, count, ACLS_AT_ONCE):
        for added in admin.create_acls(bindings[start : start + ACLS_AT_ONCE]).values():
            added.result(ANSWER_S)


def of_others(number: int) -> AclBinding:
    is_prefixed = number % PREFIXED_SHARE == 0
    pattern = ResourcePatternType.PREFIXED if is_prefixed else ResourcePatternType.LITERAL
    operation = AclOperation.READ if number % 2 else AclOperation.WRITE
    name = f"team-{number // 4}-" if is_prefixed else f"team-{number // 4}-events"
    return acl(ResourceType.TOPIC, name, pattern, f"User:member-{number % 500}", operation)


def acl(kind: ResourceType, name: str, pattern: ResourcePatternType, user: str, operation: AclOperation) -> AclBinding:
    return AclBinding(kind, name, pattern, user, "*", operation, AclPermissionType.ALLOW)
