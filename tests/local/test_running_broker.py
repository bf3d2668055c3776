"""The broker that tests get: quick to start, alone in its directory, gone when it should be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # not in __all__

from odradek.testing import BrokerError, RunningBroker, broker
from tests.waiting import eventually


def accepts(running: RunningBroker) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((running.host, running.port)) == 0


def produce(running: RunningBroker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers})
    producer.produce("kept", value)
    assert producer.flush(20) == 0


def read_all(running: RunningBroker, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": running.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("kept", 0, 0)])
    values = [message.value() for message in consumer.consume(count, 20)]
    consumer.close()
    return values


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def test_it_starts_with_less_than_a_second_of_cpu() -> None:
    """CPU time, because other tests run beside this one; `make bench` measures how long a start takes."""
    with broker() as running:
        assert 0 < cpu_seconds(running.pid) < 1
        assert accepts(running)


def test_a_real_client_can_use_it_and_nothing_is_left_behind() -> None:
    with broker() as running:
        produce(running, b"hello")
        assert read_all(running, 1) == [b"hello"]
        pid, directory = running.pid, running.data_directory
        assert os.path.isdir(directory)
    assert not is_alive(pid)
    assert not os.path.exists(os.path.dirname(directory))


def test_properties_are_kafkas_with_dots_or_underscores() -> None:
    with broker({"num.partitions": 4}, auto_create_topics_enable=True) as running:
        metadata = Producer({"bootstrap.servers": running.bootstrap_servers}).list_topics("made-by-asking", timeout=20)
        deadline = time.monotonic() + 20
        while len(metadata.topics["made-by-asking"].partitions) != 4 and time.monotonic() < deadline:
            metadata = Producer({"bootstrap.servers": running.bootstrap_servers}).list_topics(
                "made-by-asking", timeout=20
            )
        assert len(metadata.topics["made-by-asking"].partitions) == 4


def test_the_first_poll_of_a_group_does_not_wait_for_further_members() -> None:
    with broker() as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        resource = ConfigResource(ConfigResource.Type.BROKER, str(next(iter(admin.list_topics(timeout=60).brokers))))
        settings = admin.describe_configs([resource])[resource].result(timeout=60)
        assert settings["group.initial.rebalance.delay.ms"].value == "0"


def test_a_test_may_set_the_rebalance_delay() -> None:
    running = RunningBroker({"group.initial.rebalance.delay.ms": 700})
    try:
        assert "--override=group.initial.rebalance.delay.ms=700" in running._command()
        assert "--override=group.initial.rebalance.delay.ms=0" not in running._command()
    finally:
        running.close()


def test_two_brokers_do_not_meet() -> None:
    with broker() as one, broker() as other:
        assert one.port != other.port
        assert one.data_directory != other.data_directory


def test_restart_keeps_port_and_data() -> None:
    with broker() as running:
        produce(running, b"before")
        port, pid = running.port, running.pid
        running.restart()
        assert (running.port, running.pid != pid) == (port, True)
        assert read_all(running, 1) == [b"before"]


def test_no_client_gets_the_port_of_a_broker_that_restarts() -> None:
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        lowest, highest = map(int, file.read().split())
    with broker() as running:
        assert not lowest <= running.port <= highest


def test_kill_is_a_crash_and_start_recovers() -> None:
    with broker() as running:
        produce(running, b"acknowledged")
        running.kill()
        assert not running.is_running
        assert not accepts(running)
        running.start()
        assert read_all(running, 1) == [b"acknowledged"]


def test_stop_twice_is_fine() -> None:
    with broker() as running:
        running.stop()
        running.stop()
        assert not running.is_running


def test_a_directory_of_ones_own_is_kept(tmp_path: Path) -> None:
    directory = str(tmp_path / "data")
    with RunningBroker(data_directory=directory) as running:
        produce(running, b"kept")
    with RunningBroker(data_directory=directory) as running:
        assert read_all(running, 1) == [b"kept"]


def test_a_broker_that_does_not_start_shows_what_it_printed() -> None:
    with pytest.raises(BrokerError, match=r"no\.such\.setting"), broker({"no.such.setting": "1"}):
        pass


def test_settings_in_the_environment_are_not_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_NO_SUCH_SETTING", "1")
    with broker() as running:
        assert running.is_running


def test_output_is_kept() -> None:
    with broker() as running:
        running.stop()
        eventually(lambda: "stopped" in running.output, "the log of the stop")


PARENT = """
from odradek.testing import RunningBroker
running = RunningBroker(data_directory={directory!r}).start()
print(running.pid, flush=True)
input()
"""


def test_a_killed_test_process_takes_its_broker_along(tmp_path: Path) -> None:
    program = PARENT.format(directory=str(tmp_path / "data"))
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait(20)
        eventually(lambda: not is_alive(pid))
