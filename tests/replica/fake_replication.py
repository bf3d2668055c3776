"""The rest of the cluster for tests of one partition: registrations of brokers, time, proposals to the controller."""

from odradek.replica.replication_context import Proposer


class FakeReplication:
    """A `ReplicationContext` whose proposals wait for the test to answer them."""

    def __init__(self, *registered: int) -> None:
        self.now_ms = 0.0
        self.lag_time_max_ms = 100.0
        self.epochs: dict[int, int] = dict.fromkeys(registered, 1)
        self.fenced: set[int] = set()
        self.serves_consumers_from_followers = False
        self.leader_throttle = None
        self.waiting: list[Proposer] = []
        self.to_check: list[tuple[float, Proposer]] = []
        self.in_sync_changes: list[tuple[int, int]] = []

    def monotonic_ms(self) -> float:
        return self.now_ms

    def broker_epoch(self, node_id: int) -> int | None:
        return None if node_id in self.fenced else self.epochs.get(node_id)

    def request_in_sync(self, proposer: Proposer) -> None:
        self.waiting.append(proposer)

    def check_in_sync_after(self, delay_ms: float, proposer: Proposer) -> None:
        self.to_check.append((self.now_ms + delay_ms, proposer))

    def count_in_sync_change(self, *, left: int, joined: int) -> None:
        self.in_sync_changes.append((left, joined))
