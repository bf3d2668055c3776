"""The metadata store of a cluster: the log of commits, with snapshots, in ZooKeeper.

`zookeeper_layout` has the nodes, `zookeeper_claim` the controller epoch, `zookeeper_snapshots` what keeps the log
short. Readers start at the head. A commit replaces the head in one `multi` that is refused when another commit came
first, or when another controller has claimed a higher epoch.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.host.logs import get_logger
from odradek.host.zookeeper import (
    BadVersion,
    ConnectionLost,
    CreateNode,
    MultiRefused,
    NoAnswer,
    NodeExists,
    NoNode,
    SessionEvent,
    SessionExpired,
    SetData,
    ZooKeeperError,
)
from odradek.metadata.change_codec import decode_changes
from odradek.metadata.commit_parts import encode_commit
from odradek.metadata.recent_commits import RecentCommits
from odradek.metadata.snapshot import empty_image, image_from_changes
from odradek.metadata.store import Commit, CommitOutcome, StoreError
from odradek.metadata.zookeeper_claim import ControllerClaim, Fenced
from odradek.metadata.zookeeper_layout import (
    CLUSTER_ID,
    CONTROLLER_EPOCH,
    HEAD,
    PARTS,
    PERSISTENT_PARENTS,
    SNAPSHOTS,
    ChangeNode,
    Head,
    change_path,
    decode_change,
    decode_cluster_id,
    decode_head,
    encode_change,
    encode_cluster_id,
    encode_head,
    parts_name,
)
from odradek.metadata.zookeeper_nodes import read_parts, write_parts
from odradek.metadata.zookeeper_snapshots import Snapshots
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from typing import TypeVar

    from odradek.host.host import Host
    from odradek.host.zookeeper import ZooKeeperSession
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

    T = TypeVar("T")

log = get_logger(__name__)

READS_AT_ONCE = 64
READ_ATTEMPTS = 5  # when nodes are removed while they are read, or the connection is lost
COMMIT_ATTEMPTS = 5
RETRY_PAUSE_S = 0.05
SMALL_BYTES = 64 << 10  # decoded on the event loop; larger data on a worker


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One commit, however often it is tried."""

    version: int
    controller_epoch: int
    token: str
    parts: Sequence[bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.parts))

    @property
    def parts_path(self) -> str:
        return f"{PARTS}/{parts_name(self.version, self.token)}"

    def node(self) -> ChangeNode:
        if len(self.parts) == 1:
            return ChangeNode(self.controller_epoch, self.token, 0, self.parts[0])
        return ChangeNode(self.controller_epoch, self.token, len(self.parts))


class ZooKeeperStore:
    """Owns the session: `close` ends it."""

    def __init__(self, host: Host, session: ZooKeeperSession, initial_cluster_id: str | None = None) -> None:
        """`initial_cluster_id` is the id of a cluster that does not exist; without it the id is random."""
        self._initial_cluster_id = initial_cluster_id
        self._host = host
        self._session = session
        self.claims = ControllerClaim(session, host.clock)
        self._snapshots = Snapshots(session, self.load, self.read_head, self._changing_head, host.workers, host.entropy)
        self._recent = RecentCommits()
        self._watchers: list[Callable[[], None]] = []
        self._follower: asyncio.Task[None] | None = None
        self._head_may_have_changed = asyncio.Event()
        self._is_prepared = False
        self._may_be_behind = True  # the server of this session may lack commits of others
        self._known_head: tuple[Head, int] | None = None  # with the version of its node
        self._one_change_of_head = asyncio.Lock()
        session.subscribe(self._follow_session)

    async def cluster_id(self) -> str:
        async with self._readable_errors():
            return await self._retry_reading(self._read_cluster_id)

    async def load(self) -> MetadataImage:
        async with self._readable_errors():
            self._may_be_behind = True
            return await self._retry_reading(self._load)

    async def changes_since(self, version: int) -> Sequence[Commit] | None:
        async with self._readable_errors():
            return await self._retry_reading(lambda: self._read_commits_after(version))

    def watch(self, callback: Callable[[], None]) -> None:
        self._watchers.append(callback)
        self._head_may_have_changed.set()
        if self._follower is None:
            self._follower = asyncio.ensure_future(self._follow_head())

    async def claim_controller(self, node_id: int) -> int:
        async with self._readable_errors():
            controller_epoch = await self.claims.claim(node_id, takes_over=True)
            assert controller_epoch is not None
            return controller_epoch

    async def claim_if_vacant(self, node_id: int) -> int | None:
        """Like `claim_controller`, but None when there is a controller whose session is alive."""
        async with self._readable_errors():
            return await self.claims.claim(node_id, takes_over=False)

    async def commit(self, changes: Sequence[Change], *, expected_version: int, controller_epoch: int) -> CommitOutcome:
        parts = await self._host.workers.run(encode_commit, changes)
        attempt = _Attempt(expected_version + 1, controller_epoch, self._host.entropy.uuid().hex, parts)
        try:
            async with self._readable_errors():
                outcome = await self._commit(attempt)
        except BaseException:
            self._may_be_behind = True
            raise
        finally:  # also after an exception: the commit may have happened
            self._notify_watchers()
        if outcome is CommitOutcome.COMMITTED:
            self._recent.add(Commit(attempt.version, controller_epoch, tuple(changes)))
            if self._known_head is not None:
                self._snapshots.begin_if_due(self._known_head[0], lambda: self.claims.fence(controller_epoch))
        else:
            self._may_be_behind = True
        return outcome

    async def settle(self) -> None:
        """Wait for the snapshot that is being taken."""
        await self._snapshots.settle()

    async def close(self) -> None:
        await self._snapshots.stop()
        if self._follower is not None:
            self._follower.cancel()
        await self._session.close()

    async def read_head(self, watcher: Callable[[], None] | None = None) -> tuple[Head, int]:
        """The head, and the version of its node."""
        if self._may_be_behind:
            await self._session.sync(HEAD)
            self._may_be_behind = False
        data, stat = await self._session.get(HEAD, watcher)
        return decode_head(data), stat.version

    # Watching

    def _follow_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.CONNECTED:
            self._head_may_have_changed.set()
        else:
            self._may_be_behind = True

    async def _follow_head(self) -> None:
        """Watch first, then notify: a commit after the read calls the watcher again."""
        while True:
            await self._head_may_have_changed.wait()
            self._head_may_have_changed.clear()
            try:
                async with self._readable_errors():
                    await self.read_head(self._head_may_have_changed.set)
            except StoreError as problem:
                log.debug("the metadata in ZooKeeper cannot be watched; retrying", reason=problem)
                await asyncio.sleep(RETRY_PAUSE_S)
                self._head_may_have_changed.set()
            else:
                self._notify_watchers()

    def _notify_watchers(self) -> None:
        for callback in self._watchers:
            callback()

    # Reading

    @asynccontextmanager
    async def _readable_errors(self) -> AsyncIterator[None]:
        try:
            await self._prepare()
            yield
        except (ZooKeeperError, MalformedMessage) as problem:
            text = str(problem) or type(problem).__name__
            raise StoreError(f"the metadata in ZooKeeper cannot be used: {text}") from problem

    async def _prepare(self) -> None:
        """Create the nodes that are missing. The head is the last: when it exists, all others do."""
        if self._is_prepared:
            return
        await self._session.start()
        if await self._session.exists(HEAD) is None:
            random_id = base64.urlsafe_b64encode(self._host.entropy.uuid().bytes).decode().rstrip("=")
            cluster_id = self._initial_cluster_id or random_id
            nodes = [(path, b"") for path in PERSISTENT_PARENTS]
            nodes += [
                (CLUSTER_ID, encode_cluster_id(cluster_id)),
                (CONTROLLER_EPOCH, b"0"),
                (HEAD, encode_head(Head())),
            ]
            for path, data in nodes:
                with suppress(NodeExists):
                    await self._session.create(path, data)
        self._is_prepared = True

    async def _retry_reading(self, read: Callable[[], Awaitable[T]]) -> T:
        """A node that is gone was removed after the head was read, by a snapshot that a newer head names."""
        for _ in range(READ_ATTEMPTS - 1):
            try:
                return await read()
            except NoNode:
                self._may_be_behind = True
            except NoAnswer:
                raise
            except (ConnectionLost, SessionExpired):
                await asyncio.sleep(RETRY_PAUSE_S)
        return await read()

    async def _read_cluster_id(self) -> str:
        return decode_cluster_id((await self._session.get(CLUSTER_ID))[0])

    async def _load(self) -> MetadataImage:
        head, _ = await self.read_head()
        cluster_id = await self._read_cluster_id()
        encoded = b""
        if head.snapshot_name:
            encoded = await read_parts(self._session, f"{SNAPSHOTS}/{head.snapshot_name}", head.snapshot_parts)
        commits = await self._read_commits(head.snapshot_version, head.version)

        def build() -> MetadataImage:
            changes = decode_changes(encoded) if encoded else []
            for commit in commits:
                changes += commit.changes
            return image_from_changes(empty_image(cluster_id), changes, head.version)

        return build() if len(encoded) < SMALL_BYTES else await self._host.workers.run(build)

    async def _read_commits_after(self, version: int) -> Sequence[Commit] | None:
        head, _ = await self.read_head()
        if version < head.history_version:
            return None
        recent = self._recent.after(version, head.version)
        return recent if recent is not None else await self._read_commits(version, head.version)

    async def _read_commits(self, version: int, newest_version: int) -> list[Commit]:
        commits: list[Commit] = []
        for start in range(version + 1, newest_version + 1, READS_AT_ONCE):
            end = min(start + READS_AT_ONCE, newest_version + 1)
            commits += await asyncio.gather(*(self._read_commit(each) for each in range(start, end)))
        return commits

    async def _read_commit(self, version: int) -> Commit:
        node = decode_change((await self._session.get(change_path(version)))[0])
        encoded = node.changes
        if node.part_count:
            path = f"{PARTS}/{parts_name(version, node.token)}"
            encoded = await read_parts(self._session, path, node.part_count)
        if len(encoded) < SMALL_BYTES:
            return Commit(version, node.controller_epoch, decode_changes(encoded))
        return Commit(version, node.controller_epoch, await self._host.workers.run(decode_changes, encoded))

    # Committing

    async def _commit(self, attempt: _Attempt) -> CommitOutcome:
        for _ in range(COMMIT_ATTEMPTS):
            try:
                async with self._one_change_of_head:
                    outcome = await self._try_commit(attempt)
            except Fenced:
                return CommitOutcome.FENCED
            except NoAnswer:
                raise
            except (ConnectionLost, SessionExpired):
                self._known_head = None
                outcome = await self._retry_reading(lambda: self._outcome_of(attempt))
            if outcome is not None:
                return outcome
        raise ConnectionLost(f"version {attempt.version} could not be committed in {COMMIT_ATTEMPTS} attempts")

    async def _try_commit(self, attempt: _Attempt) -> CommitOutcome | None:
        """None when the head has changed: it says whether another commit came first."""
        fence = await self.claims.fence(attempt.controller_epoch)
        head, node_version = self._known_head or await self.read_head()
        self._known_head = None
        if head.version != attempt.version - 1:
            # The claim is read again, because being fenced is the stronger reason.
            await self.claims.fence(attempt.controller_epoch, is_newest=True)
            is_conflict = (await self.read_head())[0].version != attempt.version - 1
            return CommitOutcome.VERSION_CONFLICT if is_conflict else None
        if len(attempt.parts) > 1:
            await write_parts(self._session, attempt.parts_path, attempt.parts, fence)
        after = replace(head, version=attempt.version, commit_bytes=head.commit_bytes + attempt.size_bytes)
        change = CreateNode(change_path(attempt.version), encode_change(attempt.node()))
        try:
            await self._session.multi([fence, SetData(HEAD, encode_head(after), node_version), change])
        except MultiRefused as refused:
            if not isinstance(refused.reason, BadVersion):
                raise refused.reason from refused
            if refused.index == 0:
                return CommitOutcome.FENCED
            self._may_be_behind = True
            return None
        self._known_head = after, node_version + 1
        return CommitOutcome.COMMITTED

    async def _outcome_of(self, attempt: _Attempt) -> CommitOutcome | None:
        """The outcome of a commit whose answer was lost; None when it did not happen and cannot happen any more.
        ZooKeeper carries out the requests of a session in order, and none of an earlier connection once the session
        has another one or has expired."""
        self._may_be_behind = True
        head, _ = await self.read_head()
        if head.version < attempt.version:
            return None
        if attempt.version <= head.history_version:
            raise ConnectionLost(f"the outcome of version {attempt.version} is unknown: its history is gone")
        node = decode_change((await self._session.get(change_path(attempt.version)))[0])
        return CommitOutcome.COMMITTED if node.token == attempt.token else CommitOutcome.VERSION_CONFLICT

    @asynccontextmanager
    async def _changing_head(self) -> AsyncIterator[None]:
        """For a change of the head that is not a commit."""
        async with self._one_change_of_head:
            self._known_head = None
            yield
