"""`kafka-consumer-groups` and `kafka-get-offsets` agree with `odradek group`, on Apache Kafka as on Odradek: what one
shows the other shows, and each way to reset leaves twin groups at the same offsets whichever of the two does it.
"""

import functools
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.cli.group.test_group import make_consumer
from tests.clients.conftest import Target, wire_topic
from tests.clients.wire.connection import Connection
from tests.commands import Ran, run_odradek
from tests.jvm.tools import ToolSession

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]

SPACING_MS = 60_000  # between records; what asks for a time asks in the middle of it
COUNTS = {0: 20, 1: 10, 2: 0}  # records in each partition
FIRST_KEPT = 3  # in partition 0: the records before it are deleted
COMMITTED = {0: 5, 1: 7}  # nothing in partition 2

Offsets = dict[int, int]


class Odradek(Protocol):
    def __call__(self, *arguments: str) -> Ran: ...


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


@pytest.fixture
def odradek(target: Target) -> Odradek:
    return functools.partial(run_odradek, ODRADEK_BOOTSTRAP_SERVER=target.bootstrap_servers)


@pytest.fixture(scope="module")
def begin_ms() -> int:
    """When the first record of each partition was written."""
    return int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="module")
def filled_topic(target: Target, begin_ms: int) -> str:
    """A topic of three partitions, the last one empty, whose first records are deleted in the first one."""
    with Connection(target.bootstrap_servers) as connection:
        topic = wire_topic(connection, partitions=len(COUNTS))
    producer = confluent_kafka.Producer({"bootstrap.servers": target.bootstrap_servers, "log_level": 0})
    for partition, count in COUNTS.items():
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition, timestamp=begin_ms + number * SPACING_MS)
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": target.bootstrap_servers, "log_level": 0})
    (deleted,) = admin.delete_records([confluent_kafka.TopicPartition(topic, 0, FIRST_KEPT)]).values()
    deleted.result(30)
    return topic


def new_group(target: Target, topic: str) -> str:
    """A group without members that has committed something."""
    name = f"group-{uuid.uuid4().hex[:12]}"
    consumer = make_consumer(target.bootstrap_servers, name)
    places = [confluent_kafka.TopicPartition(topic, partition, offset) for partition, offset in COMMITTED.items()]
    deadline = time.monotonic() + 30
    while not commits(consumer, places):
        assert time.monotonic() < deadline
    consumer.close()
    return name


def commits(consumer: Any, places: list[confluent_kafka.TopicPartition]) -> bool:
    """False while the coordinator is not there: Apache Kafka names one before it has loaded its part of the offsets."""
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except confluent_kafka.KafkaException as error:
        if error.args[0].name() not in {"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}:
            raise
        return False
    return True


@contextmanager
def two_members(target: Target, group: str, topic: str) -> Iterator[None]:
    members = [make_consumer(target.bootstrap_servers, group, client_id) for client_id in ("one", "two")]
    try:
        for member in members:
            member.subscribe([topic])
        deadline = time.monotonic() + 30
        while sorted(len(member.assignment()) for member in members) != [1, 2]:
            assert time.monotonic() < deadline
            for member in members:
                member.poll(0.05)
        yield
    finally:
        for member in members:
            member.close()


def theirs(tools: ToolSession, target: Target, *arguments: str) -> list[dict[str, str]]:
    """The tables that kafka-consumer-groups prints, a row each."""
    printed = tools.run("kafka-consumer-groups", "--bootstrap-server", target.bootstrap_servers, *arguments).checked()
    rows, titles = [], []
    for line in printed.replace("COORDINATOR (ID)", "COORDINATOR").replace(" (1)", "").replace(" (0)", "").splitlines():
        cells = line.split()
        if cells[:1] == ["GROUP"]:
            titles = cells
        elif titles and cells:
            rows.append(dict(zip(titles, cells, strict=True)))
    return rows


def committed(target: Target, group: str) -> Offsets:
    admin = AdminClient({"bootstrap.servers": target.bootstrap_servers, "log_level": 0})
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(30)
    return {each.partition: each.offset for each in found.topic_partitions}


def test_both_describe_a_group_alike(
    tools: ToolSession, odradek: Odradek, target: Target, filled_topic: str, begin_ms: int
) -> None:
    group = new_group(target, filled_topic)
    with two_members(target, group, filled_topic):
        reported = odradek("group", "describe", group, "--format", "json").row
        now_ms = int(time.time() * 1000)
        lags = theirs(tools, target, "--describe", "--group", group)
        (state,) = theirs(tools, target, "--describe", "--group", group, "--state")
        members = theirs(tools, target, "--describe", "--group", group, "--members")
        refused = tools.run(
            "kafka-consumer-groups", "--bootstrap-server", target.bootstrap_servers, "--group", group,
            "--reset-offsets", "--to-earliest", "--topic", filled_topic, "--execute",
        )  # fmt: skip
        ran = odradek("group", "reset", group, "--to-earliest", "--execute")
    assert "is inactive, but the current state is Stable" in refused.output
    assert (ran.code, "is Stable with 2 active members" in ran.errors) == (1, True)
    assert [
        {
            "GROUP": group,
            "TOPIC": each["topic"],
            "PARTITION": str(each["partition"]),
            "CURRENT-OFFSET": dash(each["committed_offset"]),
            "LOG-END-OFFSET": dash(each["end_offset"]),
            "LAG": dash(each["lag"]),
            "CONSUMER-ID": each["member_id"],
        }
        for each in reported["partitions"]
    ] == [
        {title: cell for title, cell in row.items() if title not in ("HOST", "CLIENT-ID")}
        for row in sorted(lags, key=lambda row: row["PARTITION"])
    ]
    assert reported["lag"] == sum(int(row["LAG"]) for row in lags if row["LAG"] != "-") == 18
    assert reported["time_lag_ms"] == pytest.approx(now_ms - begin_ms - COMMITTED[0] * SPACING_MS, abs=10_000)
    assert (
        (state["STATE"], state["ASSIGNMENT-STRATEGY"])
        == (reported["state"], reported["assignor"])
        == ("Stable", "range")
    )
    assert state["COORDINATOR"] == reported["coordinator"]
    assert {(row["CONSUMER-ID"], row["CLIENT-ID"], row["HOST"].strip("/"), row["#PARTITIONS"]) for row in members} == {
        (each["member_id"], each["client_id"], each["host"], str(len(each["assignment"])))
        for each in reported["members"]
    }


def dash(number: int | None) -> str:
    return "-" if number is None else str(number)


@pytest.mark.soak
def test_every_reset_leaves_twins_alike(
    tools: ToolSession, odradek: Odradek, target: Target, filled_topic: str, begin_ms: int, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{filled_topic},0,1\n{filled_topic},1,99\n")
    moment_ms = begin_ms + 6 * SPACING_MS + SPACING_MS // 2
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment_ms / 1000)) + f".{moment_ms % 1000:03d}"
    ago_s = (int(time.time() * 1000) - begin_ms - 3 * SPACING_MS - SPACING_MS // 2) // 1000
    ways: list[tuple[list[str], list[str], Offsets]] = [
        # First, because time goes on: half a minute later it is another record.
        (["--by-duration", f"PT{ago_s}S"], ["--by-duration", f"{ago_s}s"], {0: 4, 1: 4}),
        (["--to-earliest"], ["--to-earliest"], {0: 3, 1: 0}),
        (["--to-latest"], ["--to-latest"], {0: 20, 1: 10}),
        (["--to-datetime", f"{moment}Z"], ["--to-time", f"{moment}+00:00"], {0: 7, 1: 7}),
        (["--to-offset", "9"], ["--to-offset", "9"], {0: 9, 1: 9}),
        (["--to-offset", "1"], ["--to-offset", "1"], {0: 3, 1: 1}),
        (["--shift-by", "2"], ["--shift", "2"], {0: 7, 1: 9}),
        (["--shift-by", "-6"], ["--shift", "-6"], {0: 3, 1: 1}),
        (["--from-file", str(file)], ["--from-file", str(file)], {0: 3, 1: 10}),
    ]
    for their_way, our_way, expected in ways:
        their_group, our_group = (new_group(target, filled_topic) for _ in range(2))
        scope = [] if "--from-file" in their_way else ["--all-topics"]
        planned = odradek("group", "reset", our_group, *our_way, "--format", "json").rows
        assert committed(target, our_group) == COMMITTED, "a dry run changed something"
        done = odradek("group", "reset", our_group, *our_way, "--execute", "--format", "json").rows
        rows = theirs(tools, target, "--group", their_group, "--reset-offsets", *scope, *their_way, "--execute")
        assert {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in rows} == expected, their_way
        assert committed(target, our_group) == committed(target, their_group) == expected, our_way
        for moves in (planned, done):
            assert {each["partition"]: (each["before"], each["after"]) for each in moves} == {
                partition: (COMMITTED[partition], offset) for partition, offset in expected.items()
            }


@pytest.mark.soak
def test_get_offsets_tells_the_same_ends(
    tools: ToolSession, odradek: Odradek, target: Target, filled_topic: str
) -> None:
    group = new_group(target, filled_topic)
    for spec, way in (("earliest", "--to-earliest"), ("latest", "--to-latest")):
        arguments = ["--bootstrap-server", target.bootstrap_servers, "--topic", filled_topic, "--time", spec]
        lines = tools.run("kafka-get-offsets", *arguments).checked().split()
        assert odradek("group", "reset", group, way, "--topic", filled_topic, "--execute").code == 0
        assert lines == [
            f"{filled_topic}:{partition}:{offset}" for partition, offset in sorted(committed(target, group).items())
        ]


def test_both_list_and_delete_groups(tools: ToolSession, odradek: Odradek, target: Target, filled_topic: str) -> None:
    group, other = (new_group(target, filled_topic) for _ in range(2))
    listed = {row["GROUP"]: row["STATE"] for row in theirs(tools, target, "--list", "--state")}
    ours = {row["group"]: row["state"] for row in odradek("group", "list", "--format", "json").rows}
    assert listed[group] == ours[group] == "Empty"
    assert listed[other] == ours[other] == "Empty"
    assert odradek("group", "delete", group, "--yes").code == 0
    theirs(tools, target, "--delete", "--group", other)
    left = {row["group"] for row in odradek("group", "list", "--format", "json").rows}
    assert not left & {group, other}
    missing = tools.run("kafka-consumer-groups", "--bootstrap-server", target.bootstrap_servers,
                        "--describe", "--group", group)  # fmt: skip
    assert "GroupIdNotFoundException" in missing.output
    assert "there is no group" in odradek("group", "describe", group).errors
