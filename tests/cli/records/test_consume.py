"""`odradek consume`: where it starts, where it stops, what it writes, and what it says of parts that cannot be read."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.records.record_reader import PartitionRange, Start
from odradek.cli.records.consume import MissingRecords, led_partitions, read_start, waiting_text
from odradek.conventions.failures import Failure
from odradek.testing import broker
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, produce
from tests.console.test_unreadable import HANGING, append
from tests.protocol.malformed_batches import batch, hostile_batches, malformed_batches, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Ran, Run


@pytest.fixture
def filled(odradek: Run, topic: str) -> str:
    """Partition 0 holds 0 to 9, partition 1 holds 10 to 14; record n was written at n seconds past 2020."""
    for partition, numbers in ((0, range(10)), (1, range(10, 15))):
        lines = "".join(f"{1577836800000 + 1000 * number}|k{number}|{number}\n" for number in numbers)
        assert odradek("produce", topic, "-p", str(partition), "-f", "%T|%k|%v", stdin=lines).code == 0
    return topic


def numbers(output: str) -> list[int]:
    return sorted(int(line) for line in output.splitlines())


def test_from_beginning_until_end(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "--from-beginning", "--until-end")
    assert (ran.code, ran.errors) == (0, "")
    assert numbers(ran.output) == list(range(15))


def test_until_end_alone_starts_at_the_beginning(odradek: Run, filled: str) -> None:
    assert numbers(odradek("consume", filled, "-e").output) == list(range(15))


def test_from_end_until_end_is_nothing(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "--from-end", "--until-end")
    assert (ran.code, ran.output) == (0, "")


def test_an_empty_topic_ends_at_once(odradek: Run, topic: str) -> None:
    ran = odradek("consume", topic, "--until-end")
    assert (ran.code, ran.output) == (0, "")


def test_order_within_a_partition_is_kept(odradek: Run, filled: str) -> None:
    assert odradek("consume", filled, "-e", "-p", "0").output.split() == [str(number) for number in range(10)]


def test_partitions_are_chosen(odradek: Run, filled: str) -> None:
    assert numbers(odradek("consume", filled, "-e", "-p", "1").output) == list(range(10, 15))
    assert numbers(odradek("consume", filled, "-e", "-p", "0", "-p", "1").output) == list(range(15))


def test_from_an_offset(odradek: Run, filled: str) -> None:
    assert numbers(odradek("consume", filled, "-e", "--offset", "3").output) == [*range(3, 10), 13, 14]


def test_from_a_time(odradek: Run, filled: str) -> None:
    expected = [7, 8, 9, 10, 11, 12, 13, 14]
    assert numbers(odradek("consume", filled, "-e", "--from-time", "2020-01-01T00:00:07Z").output) == expected
    assert numbers(odradek("consume", filled, "-e", "--from-time", "1577836806001").output) == expected


def test_from_a_time_after_everything_is_the_end(odradek: Run, filled: str) -> None:
    assert odradek("consume", filled, "-e", "--from-time", "-1h").output == ""


def test_last_counts_from_the_end_of_each_partition(odradek: Run, filled: str) -> None:
    assert numbers(odradek("consume", filled, "-e", "--last", "2").output) == [8, 9, 13, 14]
    assert numbers(odradek("consume", filled, "-e", "--last", "100").output) == list(range(15))


def test_records_of_several_topics_have_their_topic(odradek: Run, new_name: Callable[[], str]) -> None:
    prefix = new_name()
    topics = [f"{prefix}-a", f"{prefix}-b"]
    assert odradek("topic", "create", *topics).code == 0
    for topic in topics:
        assert odradek("produce", topic, "-k", "key", "-v", f"value of {topic}").code == 0
    expected = {f"{topic}\tvalue of {topic}" for topic in topics}
    assert set(odradek("consume", *topics, "-e").output.splitlines()) == expected
    assert set(odradek("consume", f"{prefix}-*", "-n", "2", "--from-beginning").output.splitlines()) == expected
    assert odradek("consume", f"{prefix}-?", "-e", "--keys").output.count("\tkey\tvalue of ") == 2
    ran = odradek("consume", f"{prefix}-[ab]", "-g", prefix, "-e")
    assert set(ran.output.splitlines()) == expected
    assert f"group {prefix} assigned partition 0 of {topics[0]}; partition 0 of {topics[1]}" in ran.errors
    assert odradek("consume", *topics, "-g", prefix, "-e").output == ""
    lags = odradek("group", "describe", prefix, "--format", "json").row["partitions"]
    assert [(each["topic"], each["lag"]) for each in lags] == [(topic, 0) for topic in topics]


def test_what_is_read_is_counted() -> None:
    ranges = {"t": [PartitionRange(0, 4, 5)]}
    assert waiting_text(ranges) == "reading t from 1 offset before its end; Ctrl-C to stop"
    assert waiting_text({**ranges, "u": [PartitionRange(0, 0, 1999)]}).startswith("reading t, u from 2,000 offsets")
    assert waiting_text({"t": [PartitionRange(0, 5, 5)]}) == "waiting for records of t; Ctrl-C to stop"


def test_max_records(odradek: Run, filled: str) -> None:
    assert odradek("consume", filled, "--from-beginning", "-p", "0", "-n", "3").output.split() == ["0", "1", "2"]


def test_timeout_ends_the_wait(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "--from-beginning", "--timeout", "4s")
    assert ran.code == 0
    assert numbers(ran.output) == list(range(15))


def test_default_is_what_comes_from_now_on(bootstrap_server: str, odradek: Run, filled: str) -> None:
    command = [
        sys.executable,
        "-m",
        "odradek",
        "consume",
        filled,
        "-n",
        "1",
        "--timeout",
        "60s",
        "-b",
        bootstrap_server,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:  # it may not have begun to listen yet
            assert odradek("produce", filled, "--value", "new").code == 0
        output, _ = process.communicate(timeout=60)
    assert output == b"new\n"


def test_format_with_every_verb_and_escape(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "-p", "1", "-k", "key", "-v", "value", "-H", "a=1", "-H", "b=2", "-T", "1577934245678")
    ran = odradek("consume", topic, "-e", "-f", r"%t|%p|%o|%k|%v|%s|%h|%T|%D|%K|%S|%%|\t|\\|\x41|\n")
    assert ran.output == (
        f"{topic}|1|0|key|value|value|a=1,b=2|1577934245678|2020-01-02T03:04:05.678Z|3|5|%|\t|\\|A|\n"
    )


def test_a_format_is_written_exactly(odradek: Run, filled: str) -> None:
    assert odradek("consume", filled, "-p", "1", "-e", "-f", "%v,").output == "10,11,12,13,14,"


def test_conveniences_are_columns(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "-p", "1", "-n", "1", "--from-beginning", "--keys", "--timestamps", "--offsets")
    assert ran.output == "2020-01-01T00:00:10.000Z\t1:0\tk10\t10\n"


def test_headers_column(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "-v", "v", "-H", "a=1", "-H", "a=2")
    assert odradek("consume", topic, "-e", "--headers").output == "a=1,a=2\tv\n"


def test_nulls(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "-k", "k", "--null-value")
    assert odradek("consume", topic, "-e").output == "\n"
    assert odradek("consume", topic, "-e", "--null-marker", "NULL").output == "NULL\n"
    assert odradek("consume", topic, "-e", "-f", "%S").output == "-1"


def test_binary_values_are_written_untouched(bootstrap_server: str, odradek: Run, topic: str) -> None:
    odradek("produce", topic, stdin=b"\xff\x00\xfe\n")
    command = [sys.executable, "-m", "odradek", "consume", topic, "-e", "-b", bootstrap_server]
    assert subprocess.run(command, check=True, capture_output=True).stdout == b"\xff\x00\xfe\n"


def test_json_is_an_object_a_line(odradek: Run, filled: str) -> None:
    rows = odradek("consume", filled, "-p", "1", "-e", "--format", "json").rows
    assert rows[0] == {
        "topic": filled,
        "partition": 1,
        "offset": 0,
        "timestamp": 1577836810000,
        "timestamp_type": "create_time",
        "key": "k10",
        "value": "10",
        "headers": [],
    }
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]


def test_a_missing_topic_fails_and_is_not_created(odradek: Run, new_name: Any) -> None:
    name = new_name()
    ran = odradek("consume", name, "-e")
    assert ran.code == 1
    assert f"topic {name}: there is no such topic" in ran.errors
    assert name not in odradek("topic", "list").output


def test_a_missing_partition_is_named_with_those_there_are(odradek: Run, topic: str) -> None:
    ran = odradek("consume", topic, "-p", "5")
    assert ran.code == 1
    assert f"topic {topic} has no partition 5; it has partitions 0–1" in ran.errors


def test_an_offset_that_is_not_there_is_named_with_those_there_are(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "--offset", "99")
    assert ran.code == 1
    assert "no offset 99" in ran.errors
    assert "partition 0: offsets 0–9, next 10" in ran.errors


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--from-beginning", "--last", "1"), "exclude each other"),
        (("--offset", "0", "--from-end"), "exclude each other"),
        (("-f", "%q"), "%q is not one of"),
        (("-f", "%v", "--keys"), "--output-format excludes --keys"),
        (("-f", "%v\\"), "write it twice"),
        (("--format", "json", "-f", "%v"), "it excludes --output-format"),
        (("--format", "json", "--keys", "--offsets"), "it excludes --offsets and --keys"),
        (("--format", "json", "--null-marker", "NULL"), "it excludes --null-marker"),
        (("--from-time", "noon"), "'noon' is not a time"),
        (("--timeout", "soon"), "'soon' is not a duration"),
        (("--format", "xml"), "xml"),
    ],
)
def test_wrong_usage(offline: Run, arguments: tuple[str, ...], complaint: str) -> None:
    ran = offline("consume", "a", *arguments)
    assert ran.code == 2
    assert complaint in ran.errors


@pytest.mark.parametrize("time", ["1900-01-01", "-9999w", "0"])
def test_a_time_before_everything_is_the_beginning(odradek: Run, filled: str, time: str) -> None:
    ran = odradek("consume", filled, "-e", "--from-time", time)
    assert (ran.code, ran.errors) == (0, "")
    assert numbers(ran.output) == list(range(15))


def test_bytes_in_a_format_are_written_as_they_are(bootstrap_server: str, odradek: Run, filled: str) -> None:
    command = [sys.executable, "-m", "odradek", "consume", filled, "-e", "-n", "1", "-p", "0", "-b", bootstrap_server]
    done = subprocess.run([*command, "-f", b"\xff%v\\n"], capture_output=True, check=True)
    assert done.stdout == b"\xff0\n"


def test_an_empty_group_id_is_refused_where_the_client_would_abort(odradek: Run, filled: str) -> None:
    ran = odradek("consume", filled, "-e", "-g", "readers", "-X", "group.id=")
    assert (ran.code, ran.output) == (1, "")
    assert "leave it out" in ran.errors


@pytest.mark.parametrize(
    ("offset", "expected"), [("earliest", range(10)), ("latest", []), ("-3", range(7, 10)), ("-99", range(10))]
)
def test_offset_takes_names_and_distances_from_the_end(
    odradek: Run, topic: str, offset: str, expected: list[int]
) -> None:
    lines = "".join(f"{number}\n" for number in range(10))
    assert odradek("produce", topic, "-p", "0", stdin=lines).code == 0
    ran = odradek("consume", topic, "-o", offset, "--until-end")
    assert (ran.code, ran.output.split()) == (0, [str(number) for number in expected])


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(from_beginning=True)),
        ("beginning", Start(from_beginning=True)),
        ("latest", Start()),
        ("end", Start()),
        ("0", Start(offset=0)),
        ("17", Start(offset=17)),
        ("-5", Start(last=5)),
        (str(2**63 - 1), Start(offset=2**63 - 1)),
    ],
)
def test_names_numbers_and_distances_from_the_end(text: str, start: Start) -> None:
    assert read_start(text) == start


@pytest.mark.parametrize("text", ["", "-", "--5", "middle", "1.5", "٣", str(2**63), "9" * 50])
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(ValueError, match="offset"):
        read_start(text)


def test_unreadable_batches_are_named_and_the_others_are_read(offline: Run) -> None:
    with broker() as running:

        def odradek(*arguments: str) -> Ran:
            return offline(*arguments, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)

        assert odradek("topic", "create", "poisoned", "--partitions", "1").code == 0
        wrong_delta = batch(records(1, first=77), 1, last_delta=0)
        named = dict(hostile_batches())["header name not UTF-8, GZIP"]
        append(running, "poisoned", [batch(records(1), 1), HANGING, named, wrong_delta])
        ran = odradek("consume", "poisoned", "-e", "-f", r"%o %h %v\n")
        assert (ran.code, ran.output) == (1, "0  value\n2 \\xc3(\\xff=v value\n")
        assert "not read: poisoned-0, offset 1: compressed records are corrupt" in ran.errors
        assert "not read: poisoned-0, offset 3: offset delta 77 after -1" in ran.errors
        assert "not all records could be read: 2 partitions or batches are missing" in ran.errors
        assert odradek("consume", "poisoned", "-n", "1", "--from-beginning").code == 0

        ran = odradek("consume", "poisoned", "-g", "readers", "--from-beginning", "-f", r"%o\n")
        assert (ran.code, ran.output) == (1, "0\n")
        assert "`odradek group reset readers --topic poisoned:0 --to-offset 2 --execute` passes over it" in ran.errors
        assert odradek("group", "reset", "readers", "--topic", "poisoned:0", "--to-offset", "2", "--execute").code == 0
        assert odradek("consume", "poisoned", "-g", "readers", "-f", r"%o\n").output == "2\n"
        assert odradek("group", "describe", "readers").code == 0


def test_a_corpus_of_malformed_batches_ends_with_what_is_missing(offline: Run) -> None:
    """Whatever a broker stores that reads headers only, with a record after each batch."""
    with broker({"produce.validation": "header"}) as running, Connection(running.bootstrap_servers) as connection:
        assert create_topic(connection, "corpus") == "NONE"
        offsets, count = [], 0
        for _name, data in malformed_batches():
            with Connection(running.bootstrap_servers) as throttled:  # after a refusal
                count += produce(throttled, "corpus", data).error == "NONE"
            offsets.append(produce(connection, "corpus", batch(records(1), 1)).base_offset)
        assert count > 400
        ran = offline("consume", "corpus", "-e", "-f", r"%o\n", ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
    assert (ran.code, ran.output.split()) == (1, [str(each) for each in offsets])
    assert ran.errors.count("not read: corpus-0, offset") == 20
    assert f"{count} partitions or batches are missing; the first 20 are named" in ran.errors


def test_partitions_without_a_leader_are_named_and_not_read() -> None:
    partitions = [SimpleNamespace(id=each, leader=None if each == 1 else "somewhere") for each in range(3)]
    cluster: Any = SimpleNamespace(
        describe_topics=lambda names: [SimpleNamespace(name=each, partitions=partitions) for each in names]
    )
    missing = MissingRecords()
    assert led_partitions(cluster, ["t"], (), missing) == {"t": [0, 2]}
    with pytest.raises(Failure, match="1 partition or batch is missing"):
        missing.check()
    with pytest.raises(Failure, match="no partition of t has a leader"):
        led_partitions(cluster, ["t"], (1,), missing)
