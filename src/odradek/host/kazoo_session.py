"""A ZooKeeper session over the network, by kazoo (`host/kazoo_client`).

kazoo has threads of its own. They only hand results, watches and changes of state to the event loop; all state of the
session is read and changed there.
"""

from __future__ import annotations

import asyncio
import importlib.util
from contextlib import suppress
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.host.logs import get_logger
from odradek.host.zookeeper import (
    ANY_VERSION,
    CheckVersion,
    CreateNode,
    DeleteNode,
    MultiRefused,
    NoAnswer,
    NodeExists,
    NodeStat,
    SessionClosed,
    SessionEvent,
    SetData,
    ZooKeeperError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.host.zookeeper import Operation, ZooKeeperSession, ZooKeeperSettings

log = get_logger(__name__)

MAX_REQUESTS_IN_FLIGHT = 128
REPLACEMENT_PAUSE_S = 1.0
INSTALL_ADVICE = "install the extra: pip install 'odradek[cluster]'"


def connect(settings: ZooKeeperSettings) -> ZooKeeperSession:
    """A session that is not started. `ZooKeeperError` when kazoo is missing or the settings cannot be used."""
    try:
        import kazoo  # noqa: F401, PLC0415 - an extra
    except ImportError as problem:
        raise ZooKeeperError(f"zookeeper.connect needs kazoo, which is not installed: {INSTALL_ADVICE}") from problem
    if settings.auth.startswith("sasl:") and importlib.util.find_spec("puresasl") is None:
        raise ZooKeeperError("zookeeper.auth=sasl:… needs pure-sasl, which is not installed: pip install pure-sasl")
    return KazooSession(settings)


class KazooSession:
    def __init__(self, settings: ZooKeeperSettings) -> None:
        from odradek.host import kazoo_client  # noqa: PLC0415 - imports an extra

        self._kazoo = kazoo_client
        self._settings = settings
        servers, _, chroot = settings.connect.partition("/")
        self._servers = servers
        self._chroot = f"/{chroot.strip('/')}" if chroot.strip("/") else ""
        self._listeners: list[Callable[[SessionEvent], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._replacing: asyncio.Task[None] | None = None  # the client, whose thread has ended
        self._reachable = asyncio.Event()  # there is a session with a connection
        self._in_flight = asyncio.Semaphore(MAX_REQUESTS_IN_FLIGHT)
        self._is_closed = False
        self._session_id = 0
        self._deadline_s = settings.session_timeout_ms / 1000

    @property
    def session_id(self) -> int:
        return self._session_id

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> None:
        self._listeners.append(listener)

    async def start(self) -> None:
        if self._is_closed:
            raise SessionClosed
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def create(self, path: str, data: bytes = b"", *, is_ephemeral: bool = False) -> NodeStat:
        full = self._full(path)
        _, stat = await self._call(
            lambda client: client.create_async(full, data, ephemeral=is_ephemeral, include_data=True)
        )
        return _stat(stat)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> NodeStat:
        full = self._full(path)
        return _stat(await self._call(lambda client: client.set_async(full, data, version)))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        full = self._full(path)
        await self._call(lambda client: client.delete_async(full, version))

    async def get(self, path: str, watcher: Callable[[], None] | None = None) -> tuple[bytes, NodeStat]:
        full = self._full(path)
        data, stat = await self._call(lambda client: client.get_async(full, self._on_loop(watcher)))
        return data, _stat(stat)

    async def exists(self, path: str, watcher: Callable[[], None] | None = None) -> NodeStat | None:
        full = self._full(path)
        stat = await self._call(lambda client: client.exists_async(full, self._on_loop(watcher)))
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watcher: Callable[[], None] | None = None) -> list[str]:
        full = self._full(path)
        return sorted(await self._call(lambda client: client.get_children_async(full, self._on_loop(watcher))))

    async def multi(self, operations: Sequence[Operation]) -> None:
        def submit(client: Any) -> Any:
            transaction = client.transaction()
            for operation in operations:
                self._add(transaction, operation)
            return transaction.commit_async()

        for index, result in enumerate(await self._call(submit)):
            # The others have the code 0 (before the refused one) or of an inconsistency (after it).
            if isinstance(result, Exception) and (error := self._kazoo.known_error(result)) is not None:
                raise MultiRefused(index, error)

    async def sync(self, path: str) -> None:
        full = self._full(path)
        await self._call(lambda client: client.sync_async(full))

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._reachable.set()  # requests that wait for it are refused
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
        if self._replacing is not None:
            await asyncio.wait([self._replacing])
        if self._client is not None:
            await asyncio.to_thread(self._kazoo.stop, self._client)
        self._session_id = 0

    async def _start(self) -> None:
        if self._client is None:
            self._loop = asyncio.get_running_loop()
            await self._start_client()
        timeout_s = self._settings.connection_timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s):
                await self._reachable.wait()
        except TimeoutError:
            raise NoAnswer(
                f"ZooKeeper at {self._servers} did not answer within {timeout_s:g} s "
                "(zookeeper.connection.timeout.ms): start it, or correct zookeeper.connect"
            ) from None
        await self._create_chroot()

    async def _start_client(self) -> None:
        self._client = client = self._kazoo.new_client(
            self._servers, self._settings, lambda problem: self._post(self._follow_end, problem)
        )
        client.add_listener(lambda state: self._on_state(client, state))
        await asyncio.to_thread(client.start_async)

    async def _replace_client(self) -> None:
        ended: Any = self._client
        while not self._is_closed:
            await asyncio.sleep(REPLACEMENT_PAUSE_S)
            try:
                if ended is not None:
                    await asyncio.to_thread(self._kazoo.stop, ended)
                    ended = None
                await self._start_client()
                return
            except Exception as problem:
                log.error("a ZooKeeper client could not be started; retrying", exc_info=problem)

    async def _create_chroot(self) -> None:
        """Without the permission to create its first nodes, the chroot must exist."""
        names = self._chroot.split("/")[1:]
        for depth in range(1, len(names) + 1):
            path = "/" + "/".join(names[:depth])
            if await self._submit(methodcaller("exists_async", path)) is None:
                with suppress(NodeExists):
                    await self._submit(methodcaller("create_async", path))

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _add(self, transaction: Any, operation: Operation) -> None:
        path = self._full(operation.path)
        match operation:
            case CreateNode(_, data, is_ephemeral):
                transaction.create(path, data, ephemeral=is_ephemeral)
            case SetData(_, data, version):
                transaction.set_data(path, data, version)
            case DeleteNode(_, version):
                transaction.delete(path, version)
            case CheckVersion(_, version):
                transaction.check(path, version)

    async def _call(self, submit: Callable[[Any], Any]) -> Any:
        await self.start()
        return await self._submit(submit)

    async def _submit(self, submit: Callable[[Any], Any]) -> Any:
        """Requests wait here while there is no connection: kazoo would keep all of them, and send them after their
        callers have given up. A request that was sent may be carried out after its deadline."""
        if self._is_closed:
            raise SessionClosed
        try:
            async with asyncio.timeout(self._deadline_s), self._in_flight:
                await self._reachable.wait()
                if self._is_closed:
                    raise SessionClosed
                finished: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                submit(self._client).rawlink(lambda result: self._post(self._settle, finished, result))
                return await finished
        except TimeoutError:
            raise NoAnswer(f"ZooKeeper did not answer within {self._deadline_s:g} s") from None

    # On kazoo's threads

    def _post(self, callback: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop is closed: nothing waits any more
            log.debug("ZooKeeper answered after the end of the event loop")

    def _on_state(self, client: Any, state: str) -> None:
        client_id = client.client_id
        self._post(self._follow_state, state, client_id[0] if client_id else 0)

    def _on_loop(self, watcher: Callable[[], None] | None) -> _Watch | None:
        return None if watcher is None else _Watch(self, watcher)

    # On the event loop

    def _settle(self, finished: asyncio.Future[Any], result: Any) -> None:
        if finished.done():
            return
        if result.exception is None:
            finished.set_result(result.value)
        else:
            known = self._kazoo.known_error(result.exception)
            finished.set_exception(known or ZooKeeperError(repr(result.exception)))

    def _call_watcher(self, watcher: Callable[[], None]) -> None:
        if not self._is_closed:  # kazoo calls every watcher when a session is closed
            watcher()

    def _follow_end(self, problem: Exception | None) -> None:
        """The session is lost, as `_follow_state` has reported, and the next one needs another client."""
        if self._is_closed:
            return
        reason = "ZooKeeper did not authenticate this broker" if problem is None else repr(problem)
        log.error("the ZooKeeper client has ended; another one is started", reason=reason)
        self._replacing = asyncio.ensure_future(self._replace_client())

    def _follow_state(self, state: str, session_id: int) -> None:
        if self._is_closed:
            return
        event = _EVENTS[state]
        if event is SessionEvent.CONNECTED:
            self._session_id = session_id
            self._reachable.set()
        else:
            self._reachable.clear()
        if event is SessionEvent.EXPIRED:
            self._session_id = 0
        log.info("ZooKeeper session", state=event.name.lower(), session=f"{self._session_id:#x}")
        for listener in tuple(self._listeners):
            listener(event)


@dataclass(frozen=True, slots=True)
class _Watch:
    """kazoo keeps the watchers of a node in a set until it changes: one watcher that watches it again is equal."""

    session: KazooSession
    watcher: Callable[[], None]

    def __call__(self, _event: object) -> None:
        self.session._post(self.session._call_watcher, self.watcher)  # noqa: SLF001 - a part of the session


_EVENTS = {
    "CONNECTED": SessionEvent.CONNECTED,
    "SUSPENDED": SessionEvent.DISCONNECTED,
    "LOST": SessionEvent.EXPIRED,
}


def _stat(stat: Any) -> NodeStat:
    return NodeStat(stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner)
