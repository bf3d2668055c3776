"""Real brokers on disks that break, hang or fill up: nothing is acknowledged that is not safe, others are served."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header
from odradek.testing import RunningBroker
from tests.crash.load import read_everything
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

FAULTY_BROKER = Path(__file__).with_name("faulty_broker.py")
PATIENCE_S = 60.0
SMALL_DISK_BYTES = 8 << 20


class FaultyBroker(RunningBroker):
    """Its disk is controlled by files, see `faulty_broker`."""

    def __init__(self, directory: Path) -> None:
        self.one, self.two, self.control = directory / "one", directory / "two", directory / "control"
        self.control.mkdir()
        super().__init__({"log.dirs": f"{self.one},{self.two}"}, data_directory=str(directory))

    def _command(self) -> list[str]:
        _, _, _, _, *rest = super()._command()
        return [sys.executable, str(FAULTY_BROKER), str(self.control), "broker", *rest]

    def set_fault(self, name: str, below: Path) -> None:
        prepared = self.control / "prepared"
        prepared.write_text(f"{below}/")
        prepared.rename(self.control / name)

    def clear_fault(self, name: str) -> None:
        (self.control / name).unlink()

    def sync_count(self, below: Path) -> int:
        return sum(line.startswith(str(below)) for line in (self.control / "syncs").read_text().splitlines())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[FaultyBroker]:
    with FaultyBroker(tmp_path) as broker:
        yield broker


def make_topic(running: RunningBroker, name: str, partition_count: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partition_count, config=settings)])[name].result(30)


class Sender:
    """One record at a time; the outcome of each is awaited, and nothing is tried again."""

    def __init__(self, running: RunningBroker) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": running.bootstrap_servers,
                "acks": "all",
                "retries": 0,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self.outcomes: list[tuple[str | None, int | None]] = []

    def begin(self, topic: str, value: bytes, partition: int = 0) -> None:
        def note(error: KafkaError | None, message: Message) -> None:
            self.outcomes.append((error.name() if error else None, message.offset()))

        self._producer.produce(topic, value, partition=partition, on_delivery=note)

    def poll(self) -> None:
        self._producer.poll(0)

    def await_outcomes(self, count: int) -> list[tuple[str | None, int | None]]:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.outcomes) < count:
            assert time.monotonic() < deadline, "no answer"
            self._producer.poll(0.1)
        return self.outcomes

    def send(self, topic: str, value: bytes, partition: int = 0) -> str | None:
        self.begin(topic, value, partition)
        return self.await_outcomes(len(self.outcomes) + 1)[-1][0]


def await_output(running: FaultyBroker, text: str) -> None:
    """Another thread reads what the broker prints."""
    eventually(lambda: text in running.output, lambda: running.output)


@pytest.mark.more(but="fail-sync")
@pytest.mark.parametrize("fault", ["fail-sync", "fail-write"])
def test_a_broken_disk_takes_its_directory_and_no_other(running: FaultyBroker, fault: str) -> None:
    make_topic(running, "topic", 2, flush_messages="1")
    partition_of = {"one": 0, "two": 1} if (running.one / "topic-0").exists() else {"one": 1, "two": 0}
    sender = Sender(running)
    for partition in (0, 1):
        assert sender.send("topic", b"before", partition) is None
    running.set_fault(fault, running.two)
    assert sender.send("topic", b"lost", partition_of["two"]) == "KAFKA_STORAGE_ERROR"
    running.clear_fault(fault)
    assert sender.send("topic", b"kept", partition_of["one"]) is None
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    leaders = {each.id: each.leader for each in admin.list_topics("topic", 30).topics["topic"].partitions.values()}
    assert leaders == {partition_of["one"]: 0, partition_of["two"]: -1}
    await_output(running, "log directory failed")
    running.restart()
    records = read_everything(running.bootstrap_servers, "topic", 2)
    assert [value for _, value in records[partition_of["one"]]] == [b"before", b"kept"]
    assert records[partition_of["two"]][0] == (0, b"before"), "what was acknowledged"


def test_the_broker_ends_when_nothing_is_left(running: FaultyBroker) -> None:
    make_topic(running, "topic", 2)
    sender = Sender(running)
    running.set_fault("fail-write", running.one.parent)
    for partition in (0, 1):
        sender.begin("topic", b"lost", partition)
    process = running.process
    assert process is not None
    assert process.wait(PATIENCE_S) == 1
    await_output(running, "repair the disk, then start the broker again")


def test_a_slow_sync_keeps_only_those_who_wait_for_it(running: FaultyBroker) -> None:
    make_topic(running, "flushed", flush_messages="1")
    make_topic(running, "quick")
    senders, other = [Sender(running) for _ in range(8)], Sender(running)
    for sender in senders:
        assert sender.send("flushed", b"quick still") is None
    place = next(path for path in (running.one, running.two) if (path / "flushed-0").exists()) / "flushed-0"
    running.set_fault("hold-sync", place)
    before = running.sync_count(place)
    for sender in senders:
        sender.begin("flushed", b"slow")
    for _ in range(10):
        assert other.send("quick", b"not kept waiting") is None
    await_appended(place, 2 * len(senders))
    for sender in senders:
        sender.poll()
        assert len(sender.outcomes) == 1, "nothing is acknowledged before it is on the disk"
    running.clear_fault("hold-sync")
    for sender in senders:
        assert sender.await_outcomes(2)[1][0] is None
    assert running.sync_count(place) - before <= 3, "those who wait together share a sync"


def await_appended(directory: Path, end_offset: int) -> None:
    """All records have been appended; they are not readable before they are durable."""
    eventually(lambda: log_end_offset((directory / f"{0:020d}.log").read_bytes()) >= end_offset)


def log_end_offset(segment: bytes) -> int:
    position = end_offset = 0
    while position + HEADER_SIZE_BYTES <= len(segment):
        header = read_batch_header(segment, position)
        position += header.size_bytes
        end_offset = header.base_offset + header.last_offset_delta + 1
    return end_offset


def test_a_full_disk_is_an_error_until_there_is_room(running: FaultyBroker) -> None:
    make_topic(running, "topic")
    sender = Sender(running)
    assert sender.send("topic", b"before") is None
    running.set_fault("full", running.one.parent)
    for _ in range(3):
        assert sender.send("topic", b"x" * 1000) == "KAFKA_STORAGE_ERROR"
    running.clear_fault("full")
    assert sender.send("topic", b"after") is None
    running.kill()
    running.start()
    assert [value for _, value in read_everything(running.bootstrap_servers, "topic", 1)[0]] == [b"before", b"after"]


class BrokerOnSmallDisk(RunningBroker):
    """Its data directory is a file system in memory, mounted for this process only."""

    def _command(self) -> list[str]:
        return [*_SMALL_DISK, self.data_directory, *super()._command()]


_SMALL_DISK = [
    "unshare", "--user", "--map-root-user", "--mount",
    "sh", "-c", f'mount -t tmpfs -o size={SMALL_DISK_BYTES} tmpfs "$0" && exec "$@"',
]  # fmt: skip


@pytest.fixture
def on_small_disk(tmp_path: Path) -> Iterator[RunningBroker]:
    if shutil.which("unshare") is None or subprocess.run([*_SMALL_DISK, str(tmp_path), "true"], check=False).returncode:
        pytest.skip("this machine does not allow mounting a file system in a namespace")
    (tmp_path / "data").mkdir()
    with BrokerOnSmallDisk(data_directory=str(tmp_path / "data")) as broker:
        yield broker


def test_a_disk_that_is_really_full_serves_again_when_there_is_room(on_small_disk: RunningBroker) -> None:
    for name in ("large", "small"):
        make_topic(on_small_disk, name, file_delete_delay_ms="0")
    sender = Sender(on_small_disk)
    kept = 0
    while sender.send("large", b"x" * 300_000) is None:
        kept += 1
        assert kept * 300_000 < SMALL_DISK_BYTES
    assert sender.send("large", b"x" * 300_000) == "KAFKA_STORAGE_ERROR"
    found = read_everything(on_small_disk.bootstrap_servers, "large", 1)[0]
    assert [len(value) for _, value in found] == [300_000] * kept, "all that was acknowledged, and nothing torn"
    admin = AdminClient({"bootstrap.servers": on_small_disk.bootstrap_servers})
    admin.delete_topics(["large"])["large"].result(30)
    deadline = time.monotonic() + PATIENCE_S
    while sender.send("small", b"y" * 300_000) is not None:
        assert time.monotonic() < deadline, "there is room again"
    found = read_everything(on_small_disk.bootstrap_servers, "small", 1)[0]
    assert [len(value) for _, value in found] == [300_000]
    on_small_disk.stop()
    assert "Traceback" not in on_small_disk.output
