"""Malformed batches between good records: which of them a broker stores, and what clients make of these.

docs/batch-validation.md has the same classes in words.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from odradek.protocol.compression import Compression
from odradek.testing import broker
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.driver import LineDriver
from tests.clients.wire.batches import Batch
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, produce
from tests.jvm.jars import CLIENT_POM, java_command
from tests.protocol.malformed_batches import client_traps, malformed_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.clients.scenario.steps import Json

pytestmark = pytest.mark.timeout(600)  # the first run on a machine fetches and builds clients

CORPUS = [(name.split(": ")[1], data) for name, data in malformed_batches()] + list(client_traps())
ONE_BATCH, MANY_BATCHES = 1, 1 << 20  # bytes of a partition in a response
QUIET_MS = 3_000

LOST = "the record after it is lost, without an error"
NAMED = "an error names the partition, and the position is the offset"
UNNAMED = "an error does not name the partition"


def _kinds(place: str, *faults: str) -> set[str]:
    return {f"{fault}, {place}" for fault in faults}


FIRST, SECOND = "first of 3", "second of 3"
GAP = "offset deltas with a gap, counted"
NULL_LENGTHS = {each for place in (FIRST, SECOND) for each in _kinds(place, "key length -2", "value length -2")}
CUT_LENGTHS = {
    "garbage after the first record", "cut off", "cut off in the last record", "value length in the next record",
    *_kinds(FIRST, "record length too short", "key length huge", "value length huge"),
    *_kinds(SECOND, "record length too short", "key length huge", "value length huge", "record length negative"),
    *_kinds(SECOND, "record length zero", "record length too long", "record length beyond 64 bits"),
}  # fmt: skip
# Lengths that librdkafka does not read, or not in this way.
FIELDS = {
    *_kinds(FIRST, "key length beyond 64 bits"),
    *_kinds(SECOND, "key length beyond 64 bits", "timestamp beyond 64 bits"),
    *(kind for place in (FIRST, SECOND) for kind in _kinds(
        place, "header count huge", "header count beyond 64 bits", "one header too few", "header name length huge",
        "header value length huge",
    )),
}  # fmt: skip
# Those that franz-go does not read either.
LAX_FIELDS = {
    kind for place in (FIRST, SECOND) for kind in _kinds(
        place, "value length too short", "header count negative", "one header too many", "header without a name"
    )
}  # fmt: skip
COUNT_TOO_HIGH = {"count one too high", "count too high"}
COUNT_TOO_LOW = {"bytes after the last record", "count too low"}
READ_BY_ALL = {
    "offset deltas equal", "offset delta negative, second of 3",
    *_kinds(FIRST, "header value length -2"), *_kinds(SECOND, "header value length -2"),
}  # fmt: skip
BEYOND = {GAP, "offset delta 77, second of 3"}
HUGE_DELTA = "offset delta huge, second of 3"
STORED = {
    *NULL_LENGTHS, *CUT_LENGTHS, *FIELDS, *LAX_FIELDS, *COUNT_TOO_HIGH, *COUNT_TOO_LOW, *READ_BY_ALL, *BEYOND,
    HUGE_DELTA,
}  # fmt: skip
# Java reserves as many bytes as a compressed record says, and refuses to decode such a length of an uncompressed one.
UNNAMED_BY_JAVA = _kinds(SECOND, "record length too long", "record length beyond 64 bits")
NAMED_BY_JAVA = {*CUT_LENGTHS, *FIELDS, *LAX_FIELDS, *COUNT_TOO_HIGH, *COUNT_TOO_LOW, HUGE_DELTA} - UNNAMED_BY_JAVA
# By client and size of the responses; the record after batches of all other kinds is returned.
DISTURBED: dict[tuple[str, int], dict[str, set[str]]] = {
    ("librdkafka", ONE_BATCH): {LOST: {*CUT_LENGTHS, *NULL_LENGTHS, "count too low", GAP}},
    ("librdkafka", MANY_BATCHES): {LOST: {*CUT_LENGTHS, *NULL_LENGTHS}},
    ("java", ONE_BATCH): {NAMED: NAMED_BY_JAVA},
    ("java", MANY_BATCHES): {NAMED: NAMED_BY_JAVA, LOST: BEYOND},
    ("franz-go", ONE_BATCH): {LOST: {*CUT_LENGTHS, *FIELDS, *COUNT_TOO_HIGH, *BEYOND, HUGE_DELTA}},
    ("franz-go", MANY_BATCHES): {LOST: BEYOND},
}


def _confluent(bootstrap_servers: str) -> LineDriver:
    """In a process of its own, which can be killed."""
    return LineDriver([sys.executable, "-m", "tests.clients.drivers.confluent_driver", bootstrap_servers])


def _java(bootstrap_servers: str) -> LineDriver:
    return LineDriver(java_command("odradek.ClientDriver", bootstrap_servers, pom=CLIENT_POM))


CLIENTS: dict[str, Callable[[str], LineDriver]] = {
    "librdkafka": _confluent,
    "java": _java,
    "franz-go": franz_go_driver.franz_go_driver,
}


class Following(NamedTuple):
    """The end of the partition of a batch, after the record that follows it."""

    kind: str
    codec: str
    partition: int
    end_offset: int


class Served(NamedTuple):
    """A partition for each batch of the corpus, with a record before and after it."""

    bootstrap_servers: str
    answers: Counter[str]
    stored: list[Following]
    refused: list[Following]


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    properties = {"produce.validation": request.param, "log.retention.check.interval.ms": 24 * 3600 * 1000}
    with broker(properties) as running, Connection(running.bootstrap_servers) as connection:
        assert create_topic(connection, "t", len(CORPUS)) == "NONE"
        served = Served(running.bootstrap_servers, Counter(), [], [])
        for partition, (name, data) in enumerate(CORPUS):
            assert produce(connection, "t", Batch(values=[b"before"]).encode(), partition).error == "NONE"
            with Connection(running.bootstrap_servers) as throttled:  # after a refusal, for 100 ms
                answer = produce(throttled, "t", data, partition).error
            end_offset = produce(connection, "t", Batch(values=[b"after"]).encode(), partition).base_offset + 1
            kind, _, codec = name.rpartition(", ")
            served.answers[answer] += 1
            chosen = served.stored if answer == "NONE" else served.refused
            chosen.append(Following(kind, codec, partition, end_offset))
        yield served
        assert running.is_running


@pytest.fixture(
    params=[
        "librdkafka",
        pytest.param("java", marks=[pytest.mark.more, pytest.mark.jvm]),
        pytest.param("franz-go", marks=[pytest.mark.more, pytest.mark.go]),
    ]
)
def client(request: pytest.FixtureRequest, served: Served) -> Iterator[tuple[str, LineDriver]]:
    name: str = request.param
    if name == "java":
        request.getfixturevalue("jvm")
    if name == "franz-go" and (reason := franz_go_driver.missing()):
        pytest.skip(reason)
    driver = CLIENTS[name](served.bootstrap_servers)
    yield name, driver
    driver.close()


def read(driver: LineDriver, partitions: Iterable[Following], fetch_bytes: int) -> Json:
    """DriverEnded if the client hangs, in reading or in its close, or ends the process."""
    ends = [[each.partition, each.end_offset] for each in partitions]
    arguments = {"topic": "t", "ends": ends, "fetch_bytes": fetch_bytes, "quiet_ms": QUIET_MS}
    return driver.perform("read_to_ends", arguments)


def outcome(following: Following, answer: Json) -> str | None:
    if [following.end_offset - 1, "after"] in answer["records"].get(str(following.partition), []):
        return None
    error = answer["errors"].get(str(following.partition))
    return LOST if error is None else NAMED if error.startswith("at ") else UNNAMED


@pytest.mark.parametrize("served", ["complete"], indirect=True)
def test_complete_validation_stores_none_and_every_client_reads_all_other_records(
    served: Served, client: tuple[str, LineDriver]
) -> None:
    assert served.stored == []
    answer = read(client[1], served.refused, MANY_BATCHES)
    assert Counter(outcome(each, answer) for each in served.refused) == {None: len(CORPUS)}
    assert answer["errors"] == {}


@pytest.mark.parametrize("served", ["bounded"], indirect=True)
def test_bounded_validation_stores_some_and_clients_stop_at_these(
    served: Served, client: tuple[str, LineDriver]
) -> None:
    assert {each.kind for each in served.stored} == STORED
    name, driver = client
    unnamed = [each for each in served.stored if name == "java" and each.kind in UNNAMED_BY_JAVA]
    for fetch_bytes in (ONE_BATCH, MANY_BATCHES):
        codecs = ("NONE", "GZIP") if fetch_bytes == ONE_BATCH else [each.name for each in Compression]
        partitions = [each for each in served.stored if each not in unnamed and each.codec in codecs]
        answer = read(driver, partitions, fetch_bytes)
        found: dict[str, set[str]] = {}
        for each in partitions:
            if disturbed := outcome(each, answer):
                found.setdefault(disturbed, set()).add(each.kind)
        assert found == DISTURBED[name, fetch_bytes]
    for each in unnamed:
        answer = read(driver, [each], MANY_BATCHES)
        assert "error" in answer or outcome(each, answer) == NAMED
