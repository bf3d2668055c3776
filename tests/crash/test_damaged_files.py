"""Damage to any file of a log directory is found by `odradek log verify`, or reported by the start that repairs it:
never does a consumer get an aborted record or a record twice, and none is lost in silence.

DAMAGED_FILES is how many damages are tried; `make soak` tries more.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.cli.log.verify import check_target, find_target
from odradek.host.host import real_host
from odradek.log.log_directory import read_meta_properties
from odradek.testing import BrokerError, RunningBroker
from tests.crash.damage import DAMAGES, KINDS, damage
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = int(os.environ.get("DAMAGED_FILES", "6"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
TOPICS = {"events": "delete", "others": "delete", "states": "compact"}
TRANSACTIONS = 60
DELETED_BEFORE = 20
PATIENCE_S = 10

pytestmark = pytest.mark.timeout(240 + 20 * COUNT)

PROPERTIES = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "log.index.interval.bytes": 200,
    "log.index.size.max.bytes": 1024,  # segments of some kilobytes
    "log.flush.offset.checkpoint.interval.ms": 100,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": 0,
}
Found = list[tuple[int, bytes | None, bytes | None]]
Records = dict[tuple[str, str], Found]
"""By isolation level and topic: offset, key and value."""


def write(servers: str) -> None:
    """Transactions of two producers that overlap and span segments; every third is aborted."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, 1, config={"cleanup.policy": policy}) for name, policy in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result(30)
    producers = [Producer({"bootstrap.servers": servers, "transactional.id": f"t{n}", "linger.ms": 0}) for n in (0, 1)]
    for producer in producers:
        producer.init_transactions(30)
        producer.begin_transaction()
    for number in range(TRANSACTIONS):
        for producer in producers:
            for name in TOPICS:
                for index in range(3):
                    producer.produce(name, b"%d/%d" % (number, index) * 60, b"key %d" % ((number + index) % 20))
                    producer.flush(30)
        producer = producers[number % 2]
        producer.abort_transaction(30) if number % 3 == 0 else producer.commit_transaction(30)
        producer.begin_transaction()
    for producer in producers:
        producer.commit_transaction(30)
    start = TopicPartition("events", 0, DELETED_BEFORE)
    admin.delete_records([start])[start].result(30)


def read(servers: str) -> Records:
    """Everything, except where the broker refuses to serve damaged records."""
    found: Records = {}
    for level in ("read_committed", "read_uncommitted"):
        found |= {(level, name): [] for name in TOPICS}
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "reader",
                "isolation.level": level,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in TOPICS])
        unread = set(TOPICS)
        while unread and (message := consumer.poll(PATIENCE_S)) is not None:
            if message.error() is None:
                found[level, str(message.topic())].append((message.offset() or 0, message.key(), message.value()))
            elif message.topic() is not None:  # the end, or damaged records
                unread.discard(str(message.topic()))
        consumer.close()
    return found


class Directories:
    """The same records after a clean stop and after a kill, and what is to be read from them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        running = RunningBroker(PROPERTIES, data_directory=str(path / "data"))
        running.start()
        write(running.bootstrap_servers)
        data = Path(running.data_directory)
        eventually(lambda: self._is_compacted(data), "compaction")
        running.kill()
        shutil.copytree(data, path / "killed")
        running.start()
        self.truth = read(running.bootstrap_servers)
        running.stop()
        shutil.copytree(data, path / "stopped")
        for name in ("killed", "stopped"):
            assert not findings_of(path / name)

    def _is_compacted(self, data: Path) -> bool:
        checkpoint = data / "cleaner-offset-checkpoint"
        segments = sorted((data / "states-0").glob("*.log"))
        return checkpoint.exists() and f"states 0 {int(segments[-1].stem)}" in checkpoint.read_text()


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Directories:
    return Directories(tmp_path_factory.mktemp("damaged"))


def findings_of(directory: Path) -> list[str]:
    check = check_target(find_target(str(directory)), is_live=False)
    return [f"{finding.path}: {finding.text}" for finding in check.all_findings if finding.is_problem]


def reports_of(output: str) -> list[str]:
    return [line for line in output.splitlines() if re.search(r"\b(warning|error)\b", line, re.IGNORECASE)]


def test_no_damage_is_silent(directories: Directories, record_property: Callable[[str, object], None]) -> None:
    combinations = [(kind, how, name) for kind in KINDS for how in DAMAGES for name in ("stopped", "killed")]
    random.Random(SEED).shuffle(combinations)
    failures: list[str] = []
    count = 0
    for number in range(max(COUNT, 1) * 4):
        if count == COUNT:
            break
        kind, how, name = combinations[number % len(combinations)]
        seed = SEED * 1_000_000 + number
        data = directories.path / "data"
        shutil.rmtree(data)
        shutil.copytree(directories.path / name, data)
        path = damage(data, kind, how, random.Random(seed))
        if path is None:
            continue
        count += 1
        problem = problem_after_damage(directories, data, kind, is_exchanged=how == "replace")
        if problem:
            failures.append(f"{how} {path.relative_to(data)} ({name}, seed {seed}): {problem}")
    record_property("damages", count)
    assert not failures, "\n".join(failures)


def problem_after_damage(directories: Directories, data: Path, kind: str, *, is_exchanged: bool) -> str | None:
    findings = findings_of(data)
    running = RunningBroker(PROPERTIES, data_directory=str(data))
    try:
        running.start()
    except BrokerError as refusal:
        return "the start fails as if it were a bug" if "bug in odradek" in str(refusal) else None
    try:
        found = read(running.bootstrap_servers)
        reports = reports_of(running.output)
        running.stop()
    finally:
        running.kill()
    is_noticed = bool(findings or reports)
    for key, read_records in found.items():
        if kind == "segment" and is_exchanged and is_noticed:
            continue  # nothing in a segment names its partition: records of the other one are served, and found
        problem = compare(read_records, key, directories.truth, is_noticed=is_noticed, is_segment=kind == "segment")
        if problem:
            return f"{problem}; {findings} {reports}"
    if is_noticed:
        return None
    # Such as a producer snapshot that was removed: an older one was used.
    left = findings_of(data)
    owner, owner_before = (
        read_meta_properties(str(each), real_host()) for each in (data, directories.path / "stopped")
    )
    return f"it was not reported, and leaves {left} {owner}" if left or owner != owner_before else None


def compare(records: Found, key: tuple[str, str], truth: Records, *, is_noticed: bool, is_segment: bool) -> str | None:
    """What consumers of a topic got, with records that were deleted if the start of the log was noticed to be lost."""
    if is_noticed:
        records = [each for each in records if key[1] != "events" or each[0] >= DELETED_BEFORE]
    allowed = set(truth[key])
    if is_segment and is_noticed:
        # With a segment, markers are lost that have aborted records in others. No checksum has the offset of a batch.
        contents = {each[1:] for each in truth["read_uncommitted", key[1]]}
        allowed |= {each for each in records if each[1:] in contents}
    if wrong := [each for each in records if each not in allowed]:
        return f"{key} has {len(wrong)} records more, as {wrong[0][0]}"
    if records != sorted(set(records)):
        return f"{key} has records twice or out of order"
    if records != truth[key] and not is_noticed:
        return f"{key} lacks {len(truth[key]) - len(records)} of {len(truth[key])} records in silence"
    return None
