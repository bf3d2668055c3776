"""ZooKeeper in memory, for the simulator: one tree of nodes, and sessions whose connections break when a test says so.

An `Ensemble` carries out operations in one order, as a quorum does. A `SimulatedSession` has the interface of
`host/zookeeper`. Faults are chosen by the test: `delay` before an operation is carried out and before its answer,
`lose_request` and `lose_answer`, `disconnect`, `expire`. `tests/host/test_zookeeper_model` compares it with a real
server.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from odradek.host.zookeeper import (
    ANY_VERSION,
    BadVersion,
    CheckVersion,
    ConnectionLost,
    CreateNode,
    DeleteNode,
    EphemeralParent,
    MultiRefused,
    NodeExists,
    NodeStat,
    NoNode,
    NotEmpty,
    Operation,
    SessionClosed,
    SessionEvent,
    SessionExpired,
    SetData,
    ZooKeeperError,
)
from tests.simulation.simulated_clock import pass_time

T = TypeVar("T")

FIRST_SESSION_ID = 0x100


@dataclass(slots=True)
class Node:
    data: bytes
    created_zxid: int
    modified_zxid: int
    version: int = 0
    ephemeral_owner: int = 0
    children: set[str] = field(default_factory=set)

    @property
    def stat(self) -> NodeStat:
        return NodeStat(self.created_zxid, self.modified_zxid, self.version, self.ephemeral_owner)

    def copy(self) -> Node:
        return Node(
            self.data, self.created_zxid, self.modified_zxid, self.version, self.ephemeral_owner, set(self.children)
        )


class Ensemble:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self.zxid = 0
        self.sessions: dict[int, SimulatedSession] = {}
        self._session_count = 0

    def open_session(self, session: SimulatedSession) -> int:
        self._session_count += 1
        session_id = FIRST_SESSION_ID + self._session_count
        self.zxid += 1
        self.sessions[session_id] = session
        return session_id

    def end_session(self, session_id: int) -> None:
        self.sessions.pop(session_id, None)
        owned = [path for path, node in self.nodes.items() if node.ephemeral_owner == session_id]
        self.zxid += 1
        for path in owned:
            self._delete(DeleteNode(path))

    def multi(self, operations: Sequence[Operation], session_id: int) -> None:
        """All or nothing: each operation sees the effects of those before it."""
        before = {path: node.copy() for path, node in self.nodes.items()} if len(operations) > 1 else None
        self.zxid += 1
        effects: list[Callable[[], None]] = []
        for index, operation in enumerate(operations):
            try:
                self.apply(operation, session_id, effects)
            except ZooKeeperError as reason:
                if before is not None:
                    self.nodes = before
                raise MultiRefused(index, reason) from reason
        for fire in effects:
            fire()

    def change(self, operation: Operation, session_id: int) -> None:
        self.zxid += 1
        effects: list[Callable[[], None]] = []
        self.apply(operation, session_id, effects)
        for fire in effects:
            fire()

    def apply(self, operation: Operation, session_id: int, effects: list[Callable[[], None]]) -> None:
        match operation:
            case CreateNode():
                self._create(operation, session_id)
                effects.append(lambda: self._changed(operation.path, has_other_siblings=True))
            case SetData():
                node = self._node(operation.path, operation.version)
                node.data, node.version, node.modified_zxid = operation.data, node.version + 1, self.zxid
                effects.append(lambda: self._changed(operation.path, has_other_siblings=False))
            case DeleteNode():
                self._delete(operation, effects)
            case CheckVersion():
                self._node(operation.path, operation.version)

    def _node(self, path: str, version: int = ANY_VERSION) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path)
        return node

    def _create(self, operation: CreateNode, session_id: int) -> None:
        path = operation.path
        parent = self.nodes.get(_parent(path))
        if parent is None:
            raise NoNode(_parent(path))
        if path in self.nodes:
            raise NodeExists(path)
        if parent.ephemeral_owner:
            raise EphemeralParent(path)
        owner = session_id if operation.is_ephemeral else 0
        self.nodes[path] = Node(operation.data, self.zxid, self.zxid, 0, owner)
        parent.children.add(path.rpartition("/")[2])

    def _delete(self, operation: DeleteNode, effects: list[Callable[[], None]] | None = None) -> None:
        path = operation.path
        node = self._node(path, operation.version)
        if node.children:
            raise NotEmpty(path)
        del self.nodes[path]
        self.nodes[_parent(path)].children.discard(path.rpartition("/")[2])
        if effects is None:
            self._changed(path, has_other_siblings=True, is_deleted=True)
        else:
            effects.append(lambda: self._changed(path, has_other_siblings=True, is_deleted=True))

    def _changed(self, path: str, *, has_other_siblings: bool, is_deleted: bool = False) -> None:
        for session in tuple(self.sessions.values()):
            session.fire(session.data_watchers, path)
            if is_deleted:
                session.fire(session.child_watchers, path)
            if has_other_siblings:
                session.fire(session.child_watchers, _parent(path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class SimulatedSession:
    """`delay_s` is asked for the pauses before an operation and before its answer. The n-th next operation is lost on
    its way when `lose_request` is n, or its answer when `lose_answer` is n; both end the connection."""

    def __init__(self, ensemble: Ensemble, delay_s: Callable[[], float] = lambda: 0.0) -> None:
        self._ensemble = ensemble
        self._delay_s = delay_s
        self._context = contextvars.copy_context()  # of the broker whose session it is
        self._listeners: list[Callable[[SessionEvent], None]] = []
        self._session_id = 0
        self._is_started = False
        self._is_closed = False
        self._connected = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._connection = 0  # its number: answers of an earlier one never arrive
        self.data_watchers: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self.child_watchers: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self.lose_request: int | None = None
        self.lose_answer: int | None = None

    @property
    def session_id(self) -> int:
        return self._session_id

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> None:
        self._listeners.append(listener)

    async def start(self) -> None:
        if self._is_closed:
            raise SessionClosed
        if not self._is_started:
            self._is_started = True
            self.reconnect()
        await self._connected.wait()
        if self._is_closed:
            raise SessionClosed

    async def create(self, path: str, data: bytes = b"", *, is_ephemeral: bool = False) -> NodeStat:
        def carry_out() -> NodeStat:
            self._ensemble.change(CreateNode(path, data, is_ephemeral), self._session_id)
            return self._ensemble.nodes[path].stat

        return await self._call(carry_out)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> NodeStat:
        def carry_out() -> NodeStat:
            self._ensemble.change(SetData(path, data, version), self._session_id)
            return self._ensemble.nodes[path].stat

        return await self._call(carry_out)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._call(lambda: self._ensemble.change(DeleteNode(path, version), self._session_id))

    async def get(self, path: str, watcher: Callable[[], None] | None = None) -> tuple[bytes, NodeStat]:
        def carry_out() -> tuple[bytes, NodeStat]:
            node = self._ensemble.nodes.get(path)
            if node is None:
                raise NoNode(path)
            self._watch(self.data_watchers, path, watcher)
            return node.data, node.stat

        return await self._call(carry_out)

    async def exists(self, path: str, watcher: Callable[[], None] | None = None) -> NodeStat | None:
        def carry_out() -> NodeStat | None:
            self._watch(self.data_watchers, path, watcher)
            node = self._ensemble.nodes.get(path)
            return None if node is None else node.stat

        return await self._call(carry_out)

    async def children(self, path: str, watcher: Callable[[], None] | None = None) -> list[str]:
        def carry_out() -> list[str]:
            node = self._ensemble.nodes.get(path)
            if node is None:
                raise NoNode(path)
            self._watch(self.child_watchers, path, watcher)
            return sorted(node.children)

        return await self._call(carry_out)

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._call(lambda: self._ensemble.multi(operations, self._session_id))

    async def sync(self, path: str) -> None:
        await self._call(lambda: None)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.data_watchers.clear()  # nobody is interested any more
        self.child_watchers.clear()
        self._drop_connection()
        if self._session_id:
            self._ensemble.end_session(self._session_id)
        self._session_id = 0
        self._connected.set()  # wakes those that wait for a connection

    # Faults

    def disconnect(self) -> None:
        """The connection breaks; the session goes on until `expire`, or continues with `reconnect`."""
        if self._connected.is_set() and not self._is_closed:
            self._drop_connection()
            self._tell(SessionEvent.DISCONNECTED)

    def reconnect(self) -> None:
        """To the session as it was, or to a new one when there is none."""
        if self._is_closed or self._connected.is_set():
            return
        self._connection += 1
        if self._session_id and self._session_id not in self._ensemble.sessions:
            self._session_id = 0
            self._tell(SessionEvent.EXPIRED)
        if not self._session_id:
            self._session_id = self._ensemble.open_session(self)
        self._connected.set()
        self._tell(SessionEvent.CONNECTED)

    def expire(self) -> None:
        """The ensemble ends the session. The client learns of it when it reconnects."""
        self.disconnect()
        self._ensemble.end_session(self._session_id)

    def abandon(self) -> None:
        """The client's process is killed. The ensemble keeps the session until `expire`."""
        self._is_closed = True
        self._listeners.clear()
        self.data_watchers.clear()
        self.child_watchers.clear()
        self._connected.clear()
        self._connection += 1

    def fire(self, watchers: dict[str, list[Callable[[], None]]], path: str) -> None:
        for watcher in watchers.pop(path, ()):
            self._later(watcher)

    def _watch(
        self, watchers: dict[str, list[Callable[[], None]]], path: str, watcher: Callable[[], None] | None
    ) -> None:
        if watcher is not None:
            watchers[path].append(partial(contextvars.copy_context().run, watcher))

    def _later(self, watcher: Callable[[], None]) -> None:
        def call() -> None:
            if not self._is_closed:
                watcher()

        asyncio.get_running_loop().call_later(self._delay_s(), call)

    def _tell(self, event: SessionEvent) -> None:
        for listener in tuple(self._listeners):
            self._context.copy().run(listener, event)

    def _drop_connection(self) -> None:
        self._connected.clear()
        self._connection += 1
        for watchers in (self.data_watchers, self.child_watchers):
            for path in tuple(watchers):
                self.fire(watchers, path)

    async def _call(self, carry_out: Callable[[], T]) -> T:
        await self.start()
        connection = self._connection
        async with self._one_at_a_time:  # a connection keeps the order of requests
            return await self._carry_out(carry_out, connection)

    async def _carry_out(self, carry_out: Callable[[], T], connection: int) -> T:
        await pass_time(self._delay_s())
        self._check(connection)
        if _counts_to_zero(self, "lose_request"):
            self.disconnect()
            self._later(self.reconnect)
            raise ConnectionLost
        failure: ZooKeeperError | None = None
        try:
            result = carry_out()
        except ZooKeeperError as refused:
            failure = refused
        if _counts_to_zero(self, "lose_answer"):
            self.disconnect()
            self._later(self.reconnect)
            raise ConnectionLost
        await pass_time(self._delay_s())
        self._check(connection)
        if failure is not None:
            raise failure
        return result

    def _check(self, connection: int) -> None:
        if self._is_closed:
            raise SessionClosed
        if not self._session_id:
            raise SessionExpired
        if connection != self._connection:
            raise ConnectionLost


def _counts_to_zero(session: SimulatedSession, fault: str) -> bool:
    count: int | None = getattr(session, fault)
    if count is None:
        return False
    setattr(session, fault, count - 1 if count else None)
    return count == 0
