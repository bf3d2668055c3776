"""What the broker uses of ZooKeeper: one session with nodes, versions, ephemeral nodes, watches and atomic `multi`.

`host/kazoo_session` is the session on a network; `tests/simulation/simulated_zookeeper` the one in memory. All paths
are relative to the chroot of the connection string.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANY_VERSION = -1


class ZooKeeperError(Exception):
    """An operation was refused, or has no known outcome."""


class NoNode(ZooKeeperError):
    """The node, or the parent of a node to create, does not exist."""


class NodeExists(ZooKeeperError):
    """The node to create exists."""


class BadVersion(ZooKeeperError):
    """The data of the node has another version than the expected one."""


class NotEmpty(ZooKeeperError):
    """The node to delete has children."""


class EphemeralParent(ZooKeeperError):
    """An ephemeral node cannot have children."""


class NotPermitted(ZooKeeperError):
    """The node's access list does not permit the operation, or ZooKeeper did not accept the credentials."""


class ConnectionLost(ZooKeeperError):
    """The operation may or may not have been carried out."""


class NoAnswer(ConnectionLost):
    """ZooKeeper did not answer within the session timeout: it may be away for longer."""


class SessionExpired(ZooKeeperError):
    """The session has ended and its ephemeral nodes are gone. The operation may have been carried out before."""


class SessionClosed(ZooKeeperError):
    """The session was closed by this process."""


class MultiRefused(ZooKeeperError):
    """Nothing of a `multi` was carried out: its operation `index` was refused with `reason`."""

    def __init__(self, index: int, reason: ZooKeeperError) -> None:
        super().__init__(f"operation {index} was refused: {type(reason).__name__}")
        self.index = index
        self.reason = reason


class SessionEvent(enum.Enum):
    CONNECTED = enum.auto()  # to the session as it was, with its ephemeral nodes, or to the first or a new session
    DISCONNECTED = enum.auto()  # the session may continue, or may expire: which of both is known after reconnecting
    EXPIRED = enum.auto()  # the ephemeral nodes are gone; a new session follows with CONNECTED


class NodeStat(NamedTuple):
    """`created_zxid` and `modified_zxid` are the transactions that created the node and last set its data (czxid,
    mzxid). `ephemeral_owner` is the id of a session, or 0."""

    created_zxid: int
    modified_zxid: int
    version: int
    ephemeral_owner: int


@dataclass(frozen=True, slots=True)
class CreateNode:
    path: str
    data: bytes = b""
    is_ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class DeleteNode:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """With `ANY_VERSION`: check that the node exists."""

    path: str
    version: int = ANY_VERSION


Operation = CreateNode | SetData | DeleteNode | CheckVersion


@dataclass(frozen=True, slots=True)
class ZooKeeperTls:
    """PEM files: trusted certificates, and this broker's key with its certificate; None where there is none."""

    trusted: str | None
    key_and_certificate: str | None
    key_password: str | None = field(default=None, repr=False)
    checks_host_name: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """`connect` is Kafka's connection string: `host:port,host:port/chroot`. `auth` is empty, or a scheme and its
    credential: `digest:user:password` or `sasl:user:password`."""

    connect: str
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    auth: str = ""
    restricts_access: bool = False
    """Nodes can be changed by this identity only, and read by all."""
    tls: ZooKeeperTls | None = None


class ZooKeeperSession(Protocol):
    """All callbacks run on the event loop. Operations raise `ZooKeeperError`; they are carried out in the order in
    which they were called. Reads may be behind other sessions' writes, but never behind this session's own; `sync`
    ends that.

    A watcher is called once: when what it watches may have changed, or when the connection or session was lost. The
    node must then be read again to watch it further. After `close` no watcher is called.
    """

    @property
    def session_id(self) -> int:
        """0 before the first connection, and between the expiry of a session and the next."""

    async def start(self) -> None:
        """Connect; `ConnectionLost` after the connection timeout. The chroot is created if it is missing. Later calls
        return when the first has connected."""

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> None: ...

    async def create(self, path: str, data: bytes = b"", *, is_ephemeral: bool = False) -> NodeStat: ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> NodeStat: ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    async def get(self, path: str, watcher: Callable[[], None] | None = None) -> tuple[bytes, NodeStat]:
        """A watcher stays only if the node exists."""

    async def exists(self, path: str, watcher: Callable[[], None] | None = None) -> NodeStat | None:
        """The watcher waits for the creation of a node that does not exist."""

    async def children(self, path: str, watcher: Callable[[], None] | None = None) -> list[str]:
        """The names of the children, sorted."""

    async def multi(self, operations: Sequence[Operation]) -> None:
        """All operations or none; `MultiRefused` names the first that was refused."""

    async def sync(self, path: str) -> None:
        """Later reads see everything that any session wrote before this call."""

    async def close(self) -> None:
        """End the session: its ephemeral nodes are removed at once, if ZooKeeper can be reached."""
