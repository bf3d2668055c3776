"""Bugs that the simulation of a whole cluster must find: those of replication, and some of coordinators that move."""

from typing import Any

from odradek.coordinator.runtime import runtime
from odradek.coordinator.runtime.loading import replay_log
from odradek.coordinator.runtime.pending_transactions import PendingTransactions
from odradek.coordinator.runtime.shard_log import ShardLog
from odradek.coordinator.runtime.state_machine import StateMachine
from odradek.coordinator.transactions import transaction_rules
from odradek.coordinator.transactions.cluster_markers import ClusterMarkers
from odradek.coordinator.transactions.local_markers import LocalMarkers
from odradek.protocol.errors import ErrorCode
from tests.replication.planted_bugs import BUGS as BUGS_OF_REPLICATION
from tests.transactions.mutations import end_or_fence

_append_locally = LocalMarkers.append_marker


class _CommittedPart:
    """A log that ends at its high watermark."""

    def __init__(self, log: ShardLog) -> None:
        self._log = log

    @property
    def log_end_offset(self) -> int:
        return self._log.high_watermark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def _replay_committed(machine: StateMachine, log: ShardLog, pending: PendingTransactions) -> int:
    return await replay_log(machine, _CommittedPart(log), pending)


def _append_on_this_broker(self: ClusterMarkers, *args: Any, **_: Any) -> Any:
    """As on a broker without others: a partition that it does not lead counts as deleted."""
    outcome = _append_locally(self._local, *args)
    is_elsewhere = isinstance(outcome, ErrorCode) and outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_elsewhere else outcome


BUGS: dict[str, list[tuple[Any, str, Any]]] = {
    **BUGS_OF_REPLICATION,
    "a coordinator loads only what is committed": [(runtime, "replay_log", _replay_committed)],
    "markers are written only by the coordinator's own broker": [
        (ClusterMarkers, "append_marker", _append_on_this_broker)
    ],
    "the next transaction is fenced before the markers": [(transaction_rules, "end_transaction", end_or_fence)],
}
