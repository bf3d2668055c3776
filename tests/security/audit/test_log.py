"""The audit log on the simulated disk: every line arrives, files rotate, a disk that fails delays no one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from odradek.host.host import real_host
from odradek.security.audit.events import Action, Actor
from odradek.security.audit.log import AuditLog
from odradek.security.audit.rotating_file import RotatingFile
from odradek.security.authorizer import Operation, Resource, ResourceType
from tests.simulation.simulated_host import Simulation

ACTOR = Actor("User:alice", "10.0.0.1", "CLIENTS", None, "CreateTopics")
PATH = "/audit/audit.log"


@pytest.fixture
def simulation() -> Any:
    simulation = Simulation(0)
    yield simulation
    simulation.close()


def lines(simulation: Simulation, path: str = PATH) -> list[dict[str, Any]]:
    return [json.loads(line) for line in simulation.host.disk.read_file(path).splitlines()]


def create(simulation: Simulation, **changes: int) -> AuditLog:
    settings = {"max_bytes": 1 << 20, "max_files": 3, "lines_per_second": 5, **changes}
    return AuditLog(simulation.host, PATH, **settings)


async def pass_time(simulation: Simulation, duration_ms: float) -> None:
    """Simulated time."""
    is_over = asyncio.Event()
    simulation.host.clock.call_after(duration_ms, is_over.set)
    await is_over.wait()


def test_lines_beyond_the_rate_are_counted(simulation: Simulation) -> None:
    async def run() -> None:
        log = create(simulation)
        await log.start()
        for number in range(20):
            log.performed(ACTOR, Action("Create", "Topic", f"t{number}"))
        await pass_time(simulation, 2000)
        log.denied(ACTOR, Operation.READ, Resource(ResourceType.GROUP, "g"))
        await log.close()

    simulation.loop.run_until_complete(run())
    found = lines(simulation)
    assert [each.get("resource") for each in found] == ["t0", "t1", "t2", "t3", "t4", None, "g"]
    assert found[5] == {"time": found[5]["time"], "outcome": "left out", "count": 15}


def test_logins_leave_lines_for_the_others(simulation: Simulation) -> None:
    async def run() -> None:
        log = create(simulation, lines_per_second=20)
        await log.start()
        for _ in range(1000):
            log.authenticated(ACTOR, Action("Login", "Cluster", "kafka-cluster", "SASL_AUTHENTICATION_FAILED"))
        log.performed(ACTOR, Action("Create", "Topic", "t"))
        await pass_time(simulation, 2000)
        await log.close()

    simulation.loop.run_until_complete(run())
    found = lines(simulation)
    assert [each.get("resource") for each in found] == ["kafka-cluster", "kafka-cluster", "t", None]
    assert found[3]["count"] == 998


def test_denials_leave_lines_for_changes(simulation: Simulation) -> None:
    async def run() -> None:
        log = create(simulation, lines_per_second=20)
        await log.start()
        for number in range(1000):
            log.denied(ACTOR, Operation.DELETE, Resource(ResourceType.TOPIC, f"denied{number}"))
        log.performed(ACTOR, Action("Delete", "Topic", "t"))
        await pass_time(simulation, 2000)
        await log.close()

    simulation.loop.run_until_complete(run())
    found = lines(simulation)
    assert [each.get("resource") for each in found[10:]] == ["t", None]
    assert found[11]["count"] == 990


def test_denials_leave_room_for_changes_while_the_disk_hangs(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.security.audit.log.MOST_WAITING_LINES", 10)

    async def run() -> None:
        log = create(simulation, lines_per_second=100)
        await log.start()
        for number in range(20):  # nothing is written before the event loop gets its turn
            log.denied(ACTOR, Operation.DELETE, Resource(ResourceType.TOPIC, f"denied{number}"))
        log.performed(ACTOR, Action("Delete", "Topic", "t"))
        await log.close()

    simulation.loop.run_until_complete(run())
    assert [each.get("resource") for each in lines(simulation)][5:] == ["t", None]


def test_a_denial_on_a_worker_thread_is_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"

    async def run() -> None:
        host = real_host()
        log = AuditLog(host, str(path), max_bytes=4096, max_files=1, lines_per_second=10)
        await log.start()
        await host.workers.run(log.denied, ACTOR, Operation.READ, Resource(ResourceType.TOPIC, "t"))
        await log.close()
        host.workers.close()

    asyncio.run(run())
    assert json.loads(path.read_text())["resource"] == "t"


def test_other_users_cannot_read_the_files_of_an_older_version(tmp_path: Path) -> None:
    for name in ("audit.log", "audit.log.1"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)

    async def run() -> None:
        host = real_host()
        log = AuditLog(host, str(tmp_path / "audit.log"), max_bytes=4096, max_files=3, lines_per_second=10)
        await log.start()
        await log.close()
        host.workers.close()

    asyncio.run(run())
    assert [each.stat().st_mode & 0o777 for each in tmp_path.iterdir()] == [0o600] * 2


def test_files_rotate_and_the_oldest_is_removed(simulation: Simulation) -> None:
    disk = simulation.host.disk
    file = RotatingFile(disk, PATH, max_bytes=10, max_files=3)
    for text in (b"first\n", b"second\n", b"third\n", b"fourth\n"):
        file.append(text)
    file.close()
    RotatingFile(disk, PATH, max_bytes=20, max_files=3).append(b"fifth\n")  # a restart continues the file
    contents = [disk.read_file(path) for path in (PATH, f"{PATH}.1", f"{PATH}.2")]
    assert contents == [b"fourth\nfifth\n", b"third\n", b"second\n"]
    assert not disk.exists(f"{PATH}.3")


def test_one_file_is_begun_again(simulation: Simulation) -> None:
    file = RotatingFile(simulation.host.disk, PATH, max_bytes=10, max_files=1)
    for text in (b"first\n", b"second\n"):
        file.append(text)
    assert simulation.host.disk.read_file(PATH) == b"second\n"


def test_lines_that_could_not_be_written_are_counted(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        log = create(simulation)
        await log.start()
        append = log._file.append

        def fail(_lines: bytes) -> None:
            raise OSError(5, "the disk is broken")

        monkeypatch.setattr(log._file, "append", fail)
        log.performed(ACTOR, Action("Create", "Topic", "lost"))
        await pass_time(simulation, 1000)
        monkeypatch.setattr(log._file, "append", append)
        await log.close()

    simulation.loop.run_until_complete(run())
    assert [each["count"] for each in lines(simulation)] == [1]


def test_the_count_of_lost_lines_survives_further_failures(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written as soon as the disk works, without a further event."""

    async def run() -> None:
        log = create(simulation)
        await log.start()
        append = log._file.append

        def fail(_lines: bytes) -> None:
            raise OSError(5, "the disk is broken")

        monkeypatch.setattr(log._file, "append", fail)
        for number in range(3):
            log.performed(ACTOR, Action("Create", "Topic", f"t{number}"))
        await pass_time(simulation, 3500)
        monkeypatch.setattr(log._file, "append", append)
        await pass_time(simulation, 1500)
        (found,) = lines(simulation)
        assert (found["outcome"], found["count"]) == ("left out", 3)
        await log.close()

    simulation.loop.run_until_complete(run())
    assert len(lines(simulation)) == 1
