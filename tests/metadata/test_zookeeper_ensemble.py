"""An ensemble of three real servers, of which one after the other is killed: no commit is lost or made twice."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from odradek.host.kazoo_session import KazooSession
from odradek.host.zookeeper import ZooKeeperSettings
from odradek.local.ports import find_stable_port
from odradek.local.zookeeper import answers, configuration, find_jars, java_command
from odradek.metadata.changes import ProducerIdsAllocated
from odradek.metadata.store import CommitOutcome
from odradek.metadata.zookeeper_store import ZooKeeperStore
from tests.metadata.inline_host import inline_host

HOST = "127.0.0.1"
QUORUM_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
COMMITS_PER_ROUND = 50
WAIT_S = 120


class Server:
    def __init__(self, directory: Path, number: int, port: int, peers: str) -> None:
        self.port = port
        self._directory = directory
        directory.mkdir()
        (directory / "myid").write_text(str(number))
        quorum = "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n"
        (directory / "zoo.cfg").write_text(configuration(str(directory), HOST, port) + quorum + peers)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = java_command(find_jars(None), QUORUM_MAIN, str(self._directory / "zoo.cfg"))
        with (self._directory / "out").open("wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def kill(self) -> None:
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    async def wait_until_serving(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while not await asyncio.to_thread(answers, HOST, self.port):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)  # a poll's pause


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[list[Server]]:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    lines = [f"server.{number}={HOST}:{find_stable_port()}:{find_stable_port()}\n" for number in (1, 2, 3)]
    with ExitStack() as resources:
        servers = []
        for number in (1, 2, 3):
            server = Server(tmp_path / str(number), number, find_stable_port(), "".join(lines))
            resources.callback(server.kill)
            server.start()
            servers.append(server)
        yield servers


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_commits_survive_the_death_of_each_server(ensemble: list[Server]) -> None:
    await asyncio.gather(*(server.wait_until_serving() for server in ensemble))
    connect = ",".join(f"{HOST}:{server.port}" for server in ensemble) + "/cluster"
    settings = ZooKeeperSettings(connect=connect, session_timeout_ms=10_000, connection_timeout_ms=WAIT_S * 1000)
    store, reader = (ZooKeeperStore(inline_host(), KazooSession(settings)) for _ in range(2))
    epoch = await store.claim_controller(1)
    version = 0
    for victim in ensemble:
        for number in range(COMMITS_PER_ROUND):
            if number == COMMITS_PER_ROUND // 2:
                victim.kill()
            change = [ProducerIdsAllocated(version + 1)]
            outcome = await store.commit(change, expected_version=version, controller_epoch=epoch)
            assert outcome is CommitOutcome.COMMITTED
            version += 1
        assert (await reader.load()).version == version
        victim.start()
        await victim.wait_until_serving()
    found = await reader.changes_since(0)
    assert found is not None
    assert [list(each.changes) for each in found] == [[ProducerIdsAllocated(n)] for n in range(1, version + 1)]
    await asyncio.gather(store.close(), reader.close())
