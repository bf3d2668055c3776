"""The claim to be the controller, in ZooKeeper: the ephemeral node `/controller`, and the epoch that fences commits.

Both change in one `multi`, so the owner of `/controller` has the epoch of the same transaction. A commit checks the
version of `/controller_epoch` (`fence`), and never trusts the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.zookeeper import (
    BadVersion,
    CheckVersion,
    ConnectionLost,
    CreateNode,
    DeleteNode,
    MultiRefused,
    NoAnswer,
    NodeExists,
    NoNode,
    SessionExpired,
    SetData,
)
from odradek.metadata.zookeeper_layout import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    decode_controller,
    decode_epoch,
    encode_controller,
)

if TYPE_CHECKING:
    from odradek.host.clock import Clock
    from odradek.host.zookeeper import Operation, ZooKeeperSession

ATTEMPTS = 100  # of one claim: each failure is a claim of another broker, or a lost connection


class Fenced(Exception):
    """Another controller has claimed a higher epoch."""


class ControllerClaim:
    def __init__(self, session: ZooKeeperSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._node_versions: dict[int, int] = {}  # of /controller_epoch, by controller epoch

    async def claim(self, node_id: int, *, takes_over: bool) -> int | None:
        """The next controller epoch; None when there is a controller and this one does not take over."""
        for _ in range(ATTEMPTS):
            data, stat = await self._session.get(CONTROLLER_EPOCH)
            claimed_epoch = decode_epoch(data) + 1
            operations: list[Operation] = []
            if takes_over and (present := await self._session.exists(CONTROLLER)) is not None:
                operations.append(DeleteNode(CONTROLLER, present.version))
            operations += [
                CreateNode(CONTROLLER, encode_controller(node_id, self._clock.now_ms()), is_ephemeral=True),
                SetData(CONTROLLER_EPOCH, b"%d" % claimed_epoch, stat.version),
            ]
            try:
                await self._session.multi(operations)
            except MultiRefused as refused:
                if isinstance(refused.reason, NodeExists) and not takes_over:
                    return None
                if not isinstance(refused.reason, NodeExists | NoNode | BadVersion):
                    raise refused.reason from refused
                await self._session.sync(CONTROLLER_EPOCH)
                continue
            except NoAnswer:
                raise
            except (ConnectionLost, SessionExpired):
                if not await self._owns(claimed_epoch):
                    continue
            self._node_versions = {claimed_epoch: stat.version + 1}
            return claimed_epoch
        raise ConnectionLost(f"the controller epoch could not be claimed in {ATTEMPTS} attempts")

    async def fence(self, controller_epoch: int, *, is_newest: bool = False) -> CheckVersion:
        """The operation that refuses a `multi` when another controller has claimed a higher epoch. `Fenced` when that
        is known already; with `is_newest` it is read."""
        version = None if is_newest else self._node_versions.get(controller_epoch)
        if version is None:
            if is_newest:
                await self._session.sync(CONTROLLER_EPOCH)
            data, stat = await self._session.get(CONTROLLER_EPOCH)
            if decode_epoch(data) != controller_epoch:
                raise Fenced
            version = stat.version
            self._node_versions = {controller_epoch: version}
        return CheckVersion(CONTROLLER_EPOCH, version)

    async def controller_id(self) -> int | None:
        """The broker that has claimed to be the controller and whose session is alive."""
        try:
            data, _ = await self._session.get(CONTROLLER)
        except NoNode:
            return None
        return decode_controller(data)

    async def remove_claim_of(self, node_id: int) -> None:
        """Remove the claim of an earlier process of this broker, which has ended."""
        try:
            data, stat = await self._session.get(CONTROLLER)
            if decode_controller(data) == node_id and stat.ephemeral_owner != self._session.session_id:
                # With the epoch unchanged, no other broker has claimed in between.
                _, epoch_stat = await self._session.get(CONTROLLER_EPOCH)
                if epoch_stat.modified_zxid == stat.created_zxid:
                    check = CheckVersion(CONTROLLER_EPOCH, epoch_stat.version)
                    await self._session.multi([check, DeleteNode(CONTROLLER, stat.version)])
        except (NoNode, MultiRefused):
            return

    async def _owns(self, controller_epoch: int) -> bool:
        """Whether a claim whose answer was lost has happened, and its session is alive."""
        await self._session.sync(CONTROLLER_EPOCH)
        try:
            _, stat = await self._session.get(CONTROLLER)
        except NoNode:
            return False
        data, epoch_stat = await self._session.get(CONTROLLER_EPOCH)
        return (
            stat.ephemeral_owner == self._session.session_id
            and decode_epoch(data) == controller_epoch
            and epoch_stat.modified_zxid == stat.created_zxid
        )
