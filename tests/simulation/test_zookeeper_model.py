"""The simulated ZooKeeper answers as a real server does, on generated sequences of operations of two sessions."""

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from odradek.host.kazoo_session import KazooSession
from odradek.host.zookeeper import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    MultiRefused,
    NodeStat,
    SetData,
    ZooKeeperError,
    ZooKeeperSession,
    ZooKeeperSettings,
)
from odradek.testing import RunningZooKeeper
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession

SESSIONS = 2
PATHS = ("/a", "/b", "/a/c", "/a/d", "/a/c/e")
_numbers = itertools.count()

paths = st.sampled_from(PATHS)
versions = st.sampled_from([-1, -1, 0, 1, 2])
data = st.sampled_from([b"", b"x", b"y" * 1000])
operations = st.one_of(
    st.builds(CreateNode, paths, data, st.sampled_from([False, False, True])),
    st.builds(SetData, paths, data, versions),
    st.builds(DeleteNode, paths, versions),
    st.builds(CheckVersion, paths, versions),
)
steps = st.tuples(
    st.integers(0, SESSIONS - 1),
    st.one_of(
        operations,
        st.lists(operations, min_size=2, max_size=4),
        st.tuples(st.sampled_from(["get", "exists", "children"]), paths),
        st.tuples(st.sampled_from(["get", "exists", "children"]), paths),
        st.just("reopen"),
    ),
)


class Run:
    """One sequence on one kind of ZooKeeper: what each step answered, and which watches were called."""

    def __init__(self, connect: Callable[[], ZooKeeperSession]) -> None:
        self._connect = connect
        self._sessions = [connect() for _ in range(SESSIONS)]
        self._owners: dict[int, int] = {0: 0}
        self.answers: list[Any] = []
        self.called: dict[int, asyncio.Event] = {}
        self._watching: list[list[int]] = [[] for _ in range(SESSIONS)]  # the steps with a watch of an open session

    async def carry_out(self, sequence: Sequence[tuple[int, Any]]) -> None:
        for session in self._sessions:
            await self._start(session)
        for number, (index, step) in enumerate(sequence):
            if step == "reopen":
                await self._sessions[index].close()
                for each in self._watching[index]:  # a change reached the session before its end or did not
                    del self.called[each]
                self._watching[index].clear()
                self._sessions[index] = self._connect()
                await self._start(self._sessions[index])
                continue
            try:
                if isinstance(step, tuple):
                    self._watching[index].append(number)
                self.answers.append(self._comparable(await self._step(self._sessions[index], step, number)))
            except MultiRefused as refused:
                self.answers.append((refused.index, type(refused.reason)))
            except ZooKeeperError as refused:
                self.answers.append(type(refused))

    async def tree(self) -> tuple[list[Any], list[tuple[str, str]]]:
        """Every node, and the order in which the nodes were created and changed."""
        session = self._sessions[0]
        nodes, moments = [], []
        for path in PATHS:
            stat = await session.exists(path)
            if stat is not None:
                nodes.append((path, await session.children(path), self._comparable(await session.get(path))))
                moments += [(stat.created_zxid, path, "created"), (stat.modified_zxid, path, "modified")]
        return nodes, [(path, what) for _, path, what in sorted(moments)]

    @property
    def watches(self) -> dict[int, bool]:
        """Of each step that watches: whether the watch was called."""
        return {number: called.is_set() for number, called in self.called.items()}

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions))

    async def _start(self, session: ZooKeeperSession) -> None:
        await session.start()
        self._owners[session.session_id] = len(self._owners)

    async def _step(self, session: ZooKeeperSession, step: Any, number: int) -> Any:
        match step:
            case CreateNode(path, content, is_ephemeral):
                return await session.create(path, content, is_ephemeral=is_ephemeral)
            case SetData(path, content, version):
                return await session.set(path, content, version)
            case DeleteNode(path, version):
                return await session.delete(path, version)
            case CheckVersion():
                return await session.multi([step])
            case [*many] if isinstance(step, list):
                return await session.multi(many)
            case (kind, path):
                self.called[number] = asyncio.Event()
                return await getattr(session, kind)(path, self.called[number].set)

    def _comparable(self, answer: Any) -> Any:
        match answer:
            case NodeStat():
                is_unchanged = answer.created_zxid == answer.modified_zxid
                return is_unchanged, answer.version, self._owners[answer.ephemeral_owner]
            case (bytes() as content, NodeStat() as stat):
                return content, self._comparable(stat)
        return answer


@pytest.mark.more
@pytest.mark.timeout(300)
def test_model_and_server_agree(zookeeper_server: RunningZooKeeper) -> None:
    # Without shrinking: an example takes a tenth of a second, and is short.
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    @given(st.lists(steps, min_size=4, max_size=25))
    def compare(sequence: list[tuple[int, Any]]) -> None:
        asyncio.run(scenario(sequence))

    async def scenario(sequence: list[tuple[int, Any]]) -> None:
        ensemble = Ensemble()
        chroot = f"/model/{os.getpid()}-{next(_numbers)}"
        connection = ZooKeeperSettings(connect=zookeeper_server.connect + chroot, session_timeout_ms=60_000)
        model = Run(lambda: SimulatedSession(ensemble))
        real = Run(lambda: KazooSession(connection))
        try:
            await model.carry_out(sequence)
            await real.carry_out(sequence)
            assert real.answers == model.answers
            assert await real.tree() == await model.tree()
            async with asyncio.timeout(60):
                for number, called in model.called.items():
                    if called.is_set():
                        await real.called[number].wait()
            assert real.watches == model.watches
        finally:
            await real.close()
            await model.close()

    compare()


async def test_no_watch_is_called_after_close(zookeeper_server: RunningZooKeeper) -> None:
    connection = ZooKeeperSettings(connect=f"{zookeeper_server.connect}/closed-{os.getpid()}")
    called = 0

    def count() -> None:
        nonlocal called
        called += 1

    for _ in range(5):
        session = KazooSession(connection)
        await session.start()
        for number in range(50):
            await session.exists(f"/{number}", count)
        await session.close()
    assert called == 0
