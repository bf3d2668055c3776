"""The brokers that Odradek is compared with when its metrics and its processes are measured."""

from pathlib import Path

from bench.own_rates import broker_command
from bench.unmeasured_broker import RECORDERS


def test_every_recorder_of_metrics_exists() -> None:
    assert [(owner.__name__, name) for owner, name in RECORDERS if not callable(getattr(owner, name, None))] == []


def test_command_names_port_and_directory_of_the_run(tmp_path: Path) -> None:
    command = broker_command("-m odradek broker --processes 2", {"zookeeper.connect": "127.0.0.1:2181/a"})
    words = command.command(tmp_path, 9092)
    assert words[1:5] == ["-m", "odradek", "broker", "--processes"]
    assert "listeners=PLAINTEXT://127.0.0.1:9092" in words
    assert f"log.dirs={tmp_path / 'data'}" in words
    assert "zookeeper.connect=127.0.0.1:2181/a" in words
