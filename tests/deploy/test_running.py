"""What can be run of deploy/ without Docker, systemd and Kubernetes: the commands that they start, as processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from odradek.local.ports import find_stable_port
from tests.commands import Ran, run_odradek
from tests.deploy.deploy_files import (
    PROPERTIES_PATH,
    ROOT,
    UNITS,
    Invocation,
    compose_invocations,
    image_healthcheck,
    instruction,
    unit_invocation,
    unit_values,
)

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.testing import RunningZooKeeper

PROGRAM = [sys.executable, "-m", "odradek"]
INTERNAL_PORT, HOST_PORT, METRICS_PORT = 9092, 19092, 9644  # in a container
PORTS = (INTERNAL_PORT, HOST_PORT, METRICS_PORT)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
# MemoryDenyWriteExecute= of a unit, by Linux's own means; kernels before 6.3 ignore it.
DENY_WRITE_EXECUTE = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class ComposeProcesses:
    """The services of the Compose file, each as a process on this machine: other ports, other directories, and
    127.0.0.1 in place of the names of services."""

    def __init__(self, zookeeper: str, directory: Path) -> None:
        self._zookeeper = zookeeper
        self._directory = directory
        self.invocations = {each.origin.removeprefix("compose.yaml: "): each for each in compose_invocations()}
        brokers = [name for name, each in self.invocations.items() if each.is_broker]
        self.ports = {(name, port): find_stable_port() for name in brokers for port in PORTS}
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def address(self, name: str, port: int = HOST_PORT) -> str:
        return f"127.0.0.1:{self.ports[name, port]}"

    def start(self, name: str) -> dict[str, Any]:
        """The object of the first line."""
        each = self.invocations[name]
        arguments = [*map(self._translated_address, each.arguments), "--format=json"]
        variables = {key: self._translated(name, value) for key, value in each.environment.items()}
        if each.is_broker:
            path = self._directory / f"{name}.properties"
            text = (each.properties or "").replace("/var/lib/odradek", str(self._directory / name))
            path.write_text(text.replace("0.0.0.0:9644", self.address(name, METRICS_PORT)))
            arguments = [str(path) if argument == PROPERTIES_PATH else argument for argument in arguments]
        self.processes[name] = process = subprocess.Popen(
            [*PROGRAM, *arguments], env={**ENVIRONMENT, **variables}, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"{name} ended with exit code {process.wait(60)}"
        ready: dict[str, Any] = json.loads(line)
        return ready

    def is_healthy(self, name: str) -> bool:
        """The answer of the image's health check."""
        option, code = image_healthcheck()
        command = [sys.executable, option, code.replace("127.0.0.1:9644", self.address(name, METRICS_PORT))]
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0

    def stop(self, name: str) -> int:
        process = self.processes.pop(name)
        process.send_signal(signal.Signals[instruction("STOPSIGNAL")])
        process.communicate(timeout=120)
        return process.returncode

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.communicate()

    def _translated(self, name: str, value: str) -> str:
        """A value of the environment of a broker."""
        value = value.replace("zookeeper:2181", self._zookeeper)
        value = re.sub(r"://:(\d+)", lambda port: f"://{self.address(name, int(port[1]))}", value)
        value = re.sub(r"(odradek-\d):(\d+)", lambda found: self.address(found[1], int(found[2])), value)
        return re.sub(r"localhost:\d+", lambda _: self.address(name), value)

    def _translated_address(self, argument: str) -> str:
        """An argument of the console."""
        published = {str(HOST_PORT + number): f"odradek-{number + 1}" for number in range(3)}
        argument = re.sub(r"localhost:(\d+)", lambda port: self.address(published[port[1]]), argument)
        return argument.replace("127.0.0.1:8484", "127.0.0.1:0")


@pytest.fixture
def services(zookeeper_server: RunningZooKeeper, tmp_path: Path) -> Any:
    with ExitStack() as stack:
        processes = ComposeProcesses(zookeeper_server.connect, tmp_path)
        stack.callback(processes.close)
        yield processes


@pytest.mark.timeout(240)
def test_the_services_of_the_compose_file_are_a_cluster(services: ComposeProcesses) -> None:
    brokers = ["odradek-1", "odradek-2", "odradek-3"]
    with ThreadPoolExecutor(3) as starting:
        ready = list(starting.map(services.start, brokers))
    assert [each["node_id"] for each in ready] == [1, 2, 3]
    assert [each["listener"] for each in ready[0]["endpoints"]] == ["INTERNAL", "HOST"]

    def odradek(*arguments: str, stdin: str = "", server: str = "odradek-1") -> Ran:
        ran = run_odradek(*arguments, stdin=stdin, ODRADEK_BOOTSTRAP_SERVER=services.address(server))
        assert ran.code == 0, ran.errors
        return ran

    odradek("topic", "create", "pump", "--partitions", "3")
    odradek("produce", "pump", stdin="first\n")
    (topic,) = odradek("topic", "describe", "pump", "--format", "json").rows
    assert all(len(each["replicas"]) == 3 for each in topic["partitions"])
    assert all(services.is_healthy(each) for each in brokers)

    console = services.start("console")
    with urllib.request.urlopen(console["console"], timeout=60) as response:
        assert "Overview" in response.read().decode()
    assert console["bootstrap_servers"].split(",") == [services.address(each) for each in brokers]

    assert services.stop("odradek-1") == 0, "a controlled shutdown"
    odradek("produce", "pump", stdin="second\n", server="odradek-2")
    read = odradek("consume", "pump", "--from-beginning", "--until-end", server="odradek-3")
    assert sorted(read.output.split()) == ["first", "second"]
    assert not services.is_healthy("odradek-1")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_is_ready_when_its_broker_is(unit: Path, tmp_path: Path) -> None:
    each = unit_invocation(unit)
    values = unit_values(unit)
    assert values["Type"] == ["notify"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(str(tmp_path / "notify"))
        notifications.settimeout(60)
        process = start_unit(each, values, tmp_path)
        try:
            assert notifications.recv(100) == b"READY=1"
            assert process.stdout is not None
            address = process.stdout.readline().split(" is ready on ")[1].split(" ")[0]
            ran = run_odradek("topic", "create", "pump", ODRADEK_BOOTSTRAP_SERVER=address)
            assert ran.code == 0, ran.errors
            process.send_signal(signal.Signals[values["KillSignal"][0]])
            assert notifications.recv(100) == b"STOPPING=1"
            process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0
    data = tmp_path / "data"
    assert not [path for path in data.rglob("*") if path.stat().st_mode & 0o007], "readable by others"


def start_unit(each: Invocation, values: dict[str, list[str]], directory: Path) -> subprocess.Popen[str]:
    """The broker of a unit, with the restrictions that need no systemd."""
    text = (each.properties or "").replace("/var/lib/odradek", str(directory / "data")).replace(":9092", ":0")
    path = directory / "server.properties"
    path.write_text(text)
    arguments = [str(path) if argument.startswith("/etc/odradek/") else argument for argument in each.arguments]
    variables = {**ENVIRONMENT, **each.environment, "NOTIFY_SOCKET": str(directory / "notify")}
    return subprocess.Popen(
        [sys.executable, "-c", DENY_WRITE_EXECUTE, *PROGRAM, *arguments],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        umask=int(values["UMask"][0], 8),
    )


def test_the_commands_of_the_documentation_name_files_that_exist() -> None:
    text = (ROOT / "docs" / "deploying.md").read_text()
    named = {word for line in text.splitlines() for word in re.findall(r"(?<![\w/.])deploy/[\w./@*-]+", line)}
    missing = [each for each in sorted(named) if not list(ROOT.glob(shlex.split(each)[0].rstrip(".")))]
    assert named
    assert missing == []
