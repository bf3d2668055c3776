"""Apache Kafka's tools on a broker and on its files: what only they do, beside what every client performs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.api_ranges import OTHERS, REQUIRED
from tests.clients.conftest import APACHE_KAFKA, Target
from tests.clients.wire.requests import new_topic_name
from tests.jvm.tools import ToolResult, ToolSession, run_tool

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]

RECORDS, VALUE_BYTES, SEGMENT_BYTES = (
    2_600,
    1_000,
    1_048_576,
)  # three segments, and batches that each earn an index entry
COMPLAINTS = ("Mismatch", "mismatch", "out of order", "not found", "isvalid: false", "Exception", "not indexed")


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


@pytest.fixture(scope="module")
def loaded(tools: ToolSession, target: Target) -> Path:
    """The directory of a partition that kafka-producer-perf-test filled, with an idempotent producer."""
    topic = new_topic_name()
    bootstrap = ("--bootstrap-server", target.bootstrap_servers)
    setting = f"segment.bytes={SEGMENT_BYTES}"
    tools.run("kafka-topics", *bootstrap, "--create", "--topic", topic, "--config", setting).checked()
    size = ["--num-records", str(RECORDS), "--record-size", str(VALUE_BYTES), "--throughput", "-1"]
    options = ["--command-property", "batch.size=8192", "--topic", topic]
    printed = tools.run("kafka-producer-perf-test", *bootstrap, *size, *options).checked()
    assert f"{RECORDS} records sent" in printed
    return target.log_directory / f"{topic}-0"


def files(directory: Path, suffix: str) -> list[Path]:
    return sorted(directory.glob(f"*{suffix}"))


def dump(tools: ToolSession, paths: list[Path], *options: str) -> str:
    printed = tools.run("kafka-dump-log", "--files", ",".join(map(str, paths)), *options).checked()
    assert [word for word in COMPLAINTS if word in printed] == []
    return printed


def test_dump_log_reads_our_files(tools: ToolSession, loaded: Path) -> None:
    logs = files(loaded, ".log")
    assert len(logs) == 3
    _check_records(dump(tools, logs, "--deep-iteration", "--print-data-log"), logs)
    rolled = [log.with_suffix("") for log in logs[:-1]]  # the indexes of the active segment are not written to disk
    indexes, time_indexes = ([path.with_suffix(suffix) for path in rolled] for suffix in (".index", ".timeindex"))
    checked = dump(tools, [*indexes, *time_indexes], "--index-sanity-check")
    assert checked.count("passed sanity check") == len(indexes) + len(time_indexes)
    # Without the option it looks up every entry in the log and complains of what is not there.
    assert len(re.findall(r"^offset: \d+ position: \d+$", dump(tools, indexes), re.MULTILINE)) > 100
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", dump(tools, time_indexes), re.MULTILINE)) > 4
    _check_snapshots(tools, loaded, logs)


def _check_records(printed: str, logs: list[Path]) -> None:
    batches = re.findall(
        r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (\d+) .* producerEpoch: 0 "
        r"partitionLeaderEpoch: 0 isTransactional: false isControl: false .* magic: 2 compresscodec: none crc: \d+ "
        r"isvalid: true$",
        printed,
        re.MULTILINE,
    )
    expected_offset = 0
    for base, last, count, sequence in batches:
        assert (int(base), int(sequence)) == (expected_offset, expected_offset)
        assert int(last) == expected_offset + int(count) - 1
        expected_offset += int(count)
    assert expected_offset == RECORDS
    assert re.findall(r"^Log starting offset: (\d+)$", printed, re.MULTILINE) == [str(int(log.stem)) for log in logs]
    payloads = re.findall(
        rf"^\| offset: (\d+) .* valueSize: {VALUE_BYTES} .* payload: [A-Z]{{{VALUE_BYTES}}}$", printed, re.MULTILINE
    )
    assert [int(offset) for offset in payloads] == list(range(RECORDS))


def _check_snapshots(tools: ToolSession, directory: Path, logs: list[Path]) -> None:
    """A snapshot of the producers is written where a segment begins, and says what came before it."""
    snapshots = files(directory, ".snapshot")
    assert [each.stem for each in snapshots] == [log.stem for log in logs[1:]]
    last = re.findall(
        r"^producerId: \d+ producerEpoch: 0 .* lastSequence: (\d+) lastOffset: (\d+) ",
        dump(tools, snapshots),
        re.MULTILINE,
    )
    assert last == [(str(int(log.stem) - 1),) * 2 for log in logs[1:]]


def test_log_dirs_tells_the_size_of_the_files(tools: ToolSession, target: Target, loaded: Path) -> None:
    topic = loaded.name.rsplit("-", 1)[0]
    options = ["--bootstrap-server", target.bootstrap_servers, "--describe", "--topic-list", topic]
    reported = json.loads(tools.run("kafka-log-dirs", *options).checked().splitlines()[-1])
    ((directory,),) = (broker["logDirs"] for broker in reported["brokers"])
    size_bytes = sum(log.stat().st_size for log in files(loaded, ".log"))
    expected = {"partition": loaded.name, "size": size_bytes, "offsetLag": 0, "isFuture": False}
    assert directory == {"partitions": [expected], "error": None, "logDir": str(target.log_directory)}


def test_consumer_perf_test_reads_all_as_a_group(tools: ToolSession, target: Target, loaded: Path) -> None:
    topic = loaded.name.rsplit("-", 1)[0]
    options = ["--topic", topic, "--num-records", str(RECORDS), "--group", f"{topic}-readers", "--timeout", "30000"]
    printed = tools.run("kafka-consumer-perf-test", "--bootstrap-server", target.bootstrap_servers, *options).checked()
    titles, figures = (line.split(", ") for line in printed.splitlines()[-2:])
    assert dict(zip(titles, figures, strict=True))["data.consumed.in.nMsg"] == str(RECORDS)


ELIGIBLE = "eligible.leader.replicas.version"


def test_features_changes_and_describes_levels(tools: ToolSession, target: Target) -> None:
    def features(*arguments: str) -> ToolResult:
        return tools.run("kafka-features", "--bootstrap-server", target.bootstrap_servers, *arguments)

    def levels() -> dict[str, str]:
        pattern = (
            r"^Feature: (\S+)\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+\s+FinalizedVersionLevel: (\S+)"
        )
        return dict(re.findall(pattern, features("describe").checked(), re.MULTILINE))

    expected = {ELIGIBLE: "1", "group.version": "1", "metadata.version": "4.3-IV0", "transaction.version": "2"}
    assert levels().items() >= expected.items()
    printed = features("downgrade", "--feature", f"{ELIGIBLE}=0", "--dry-run").checked()
    assert printed == f"{ELIGIBLE} can be downgraded to 0.\n"
    assert features("disable", "--feature", ELIGIBLE).checked() == f"{ELIGIBLE} was disabled.\n"
    assert levels()[ELIGIBLE] == "0"
    refused = features("downgrade", "--feature", f"{ELIGIBLE}=1")
    assert refused.status == 1
    assert "Can't downgrade to a newer version." in refused.output
    assert features("upgrade", "--feature", f"{ELIGIBLE}=1").checked() == f"{ELIGIBLE} was upgraded to 1.\n"
    assert levels()[ELIGIBLE] == "1"
    refused = features("upgrade", "--feature", f"{ELIGIBLE}=2")
    assert (refused.status, "only supports versions 0-1" in refused.output) == (1, True)
    assert "does not support this feature." in features("upgrade", "--feature", "no.such.version=1").output


def test_broker_api_versions_are_kafkas(jvm: None, target: Target, tmp_path: Path) -> None:
    """In a JVM of its own, as a user runs it. By default it waits 5 s for an answer, too little on a busy machine."""
    settings = tmp_path / "client.properties"
    settings.write_text("request.timeout.ms=60000\n")
    options = ["--bootstrap-server", target.bootstrap_servers, "--command-config", str(settings)]
    printed = run_tool("kafka-broker-api-versions", *options).checked()
    advertised = dict(re.findall(r"^\t(\w+\(\d+\)): ([\d to]+) \[usable: \d+\],?$", printed, re.MULTILINE))
    expected = REQUIRED | OTHERS
    if target.name != APACHE_KAFKA:
        others = {name: span for name, span in OTHERS.items() if name in advertised}
        expected = REQUIRED | others
    assert advertised == expected
