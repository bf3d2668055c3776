"""Memory of incomplete and waiting requests stays within the budget, but for one connection that may exceed it; every
connection that waits is served, those of one address in the order in which they began to wait; one address does not
delay others; and everything is given back."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.host.receive_budget import FREE_BYTES, SMALL_BYTES, TURN_BYTES, ReceiveBudget, Share
from tests.example_counts import examples

KIBIBYTE = 1 << 10
LARGEST_FRAME_BYTES = 3 << 20
FRAME_SIZES = st.one_of(st.integers(8, 2 * FREE_BYTES), st.integers(8, LARGEST_FRAME_BYTES))


class Peer:
    """A connection that receives frames of one size after another, and does what the budget says."""

    def __init__(self, budget: ReceiveBudget, frame_bytes: int, granted: list[Peer], owner: str = "a") -> None:
        self.budget = budget
        self.frame_bytes = frame_bytes
        self.unread_bytes = 0
        self.is_reading = True
        self.granted = granted
        self.share = Share(self.resume, owner)

    def resume(self) -> None:
        self.granted.append(self)
        self.is_reading = True

    @property
    def turn_bytes(self) -> int:
        if self.share.is_granted:
            return min(TURN_BYTES, self.missing_bytes)
        return self.budget.turn_of(self.share) if self.budget.is_short else TURN_BYTES

    @property
    def missing_bytes(self) -> int:
        return self.frame_bytes - self.unread_bytes

    def receive(self, arrived_bytes: int) -> int:
        """How many frames are complete."""
        turn = self.turn_bytes
        assert turn > 0
        completed, self.unread_bytes = divmod(self.unread_bytes + min(arrived_bytes, turn), self.frame_bytes)
        if self.unread_bytes == 0:
            self.budget.release(self.share)
            return completed
        self.budget.charge(self.share, self.unread_bytes)
        self.is_reading = self.budget.may_read(self.share, self.unread_bytes, self.missing_bytes)
        return completed

    def close(self) -> None:
        self.is_reading = False
        self.unread_bytes = 0
        self.budget.release(self.share)


class ReceiveBudgetModel(RuleBasedStateMachine):
    @initialize(limit_bytes=st.sampled_from([0, 1, 64 * KIBIBYTE, 1 << 20, 8 << 20]))
    def begin(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.budget = ReceiveBudget(limit_bytes)
        self.peers: list[Peer] = []
        self.copies: list[int] = []
        self.granted: list[Peer] = []
        self.queue: list[Peer] = []

    def follow_queue(self) -> None:
        """Those that were granted had waited longest, of their owner."""
        for peer in self.granted:
            assert peer is next(each for each in self.queue if each.share.owner == peer.share.owner)
            self.queue.remove(peer)
        self.granted.clear()

    @rule(frame_bytes=FRAME_SIZES, owner=st.sampled_from("abc"))
    def open(self, frame_bytes: int, owner: str) -> None:
        self.peers.append(Peer(self.budget, frame_bytes, self.granted, owner))

    @rule(data=st.data(), is_copied=st.booleans())
    def receive(self, data: st.DataObject, is_copied: bool) -> None:
        reading = [peer for peer in self.peers if peer.is_reading]
        if reading:
            peer = data.draw(st.sampled_from(reading))
            self.receive_by(peer, data.draw(st.integers(1, TURN_BYTES)), is_copied)

    def receive_by(self, peer: Peer, arrived_bytes: int, is_copied: bool) -> None:
        completed = peer.receive(arrived_bytes)
        self.follow_queue()
        if not peer.is_reading:
            self.queue.append(peer)
        for _ in range(completed if is_copied else 0):
            self.copies.append(peer.frame_bytes)
            self.budget.keep_copy(peer.frame_bytes)

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def handle_copy(self, data: st.DataObject) -> None:
        self.budget.drop_copy(self.copies.pop(data.draw(st.integers(0, len(self.copies) - 1))))
        self.follow_queue()

    @precondition(lambda self: self.peers)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        peer = self.peers.pop(data.draw(st.integers(0, len(self.peers) - 1)))
        if peer in self.queue:
            self.queue.remove(peer)
        peer.close()
        self.follow_queue()

    @invariant()
    def memory_is_bounded(self) -> None:
        if self.limit_bytes == 0:
            assert not self.budget.is_short
            return
        beyond = [peer for peer in self.peers if peer.share.is_granted and not peer.share.charged_bytes]
        assert len([peer for peer in beyond if peer.unread_bytes > FREE_BYTES]) <= 1
        counted = [max(peer.unread_bytes - FREE_BYTES, 0) for peer in self.peers if peer not in beyond]
        largest_bytes = self.limit_bytes * 3 // 2 + FREE_BYTES * (len(self.peers) + len(self.copies) + 1)
        assert sum(counted) <= largest_bytes
        copied_bytes = self.limit_bytes // 2 + LARGEST_FRAME_BYTES
        assert sum(counted) + sum(self.copies) <= largest_bytes + copied_bytes

    @invariant()
    def what_is_held_is_charged(self) -> None:
        charged = sum(peer.share.charged_bytes for peer in self.peers)
        assert self.budget.used_bytes == charged + sum(self.copies)

    @invariant()
    def somebody_makes_progress(self) -> None:
        if self.budget.has_waiting:
            assert self.copies or any(peer.share.is_granted for peer in self.peers)
            assert self.budget.is_short
        assert self.budget.waiting_count == len(self.queue)

    @invariant()
    def those_that_do_not_read_wait(self) -> None:
        waiting = [peer for peer in self.peers if self.budget.is_waiting(peer.share)]
        assert sorted(map(id, waiting)) == sorted(map(id, self.queue))
        assert all(not peer.is_reading for peer in waiting)

    def teardown(self) -> None:
        """All frames arrive: nobody waits for ever. All connections close: nothing is charged."""
        for _ in range(len(self.peers) + 1):
            while self.copies:
                self.budget.drop_copy(self.copies.pop())
            self.follow_queue()
            for peer in self.peers:
                while peer.is_reading and peer.unread_bytes:
                    self.receive_by(peer, peer.missing_bytes, is_copied=False)
        assert not self.budget.has_waiting
        for peer in self.peers:
            peer.close()
        assert self.budget.used_bytes == 0


TestReceiveBudget = ReceiveBudgetModel.TestCase
TestReceiveBudget.settings = settings(max_examples=examples(50), stateful_step_count=50, deadline=None)


def test_a_frame_that_is_larger_than_the_budget_is_received_and_delays_no_frame_that_fits() -> None:
    budget = ReceiveBudget(64 * KIBIBYTE)
    granted: list[Peer] = []
    large, other = Peer(budget, LARGEST_FRAME_BYTES, granted), Peer(budget, 32 * KIBIBYTE, granted)
    while large.unread_bytes < LARGEST_FRAME_BYTES // 2:
        large.receive(TURN_BYTES)
        assert large.is_reading
    for _ in range(4):
        assert other.receive(TURN_BYTES) >= 1
        assert other.is_reading
    while large.unread_bytes:
        large.receive(TURN_BYTES)
    other.close()
    assert budget.used_bytes == 0


def test_small_frames_never_wait() -> None:
    budget = ReceiveBudget(64 * KIBIBYTE)
    large = [Peer(budget, LARGEST_FRAME_BYTES, []) for _ in range(20)]
    for _ in range(2):
        for peer in large:
            if peer.is_reading and not peer.share.is_granted:
                peer.receive(TURN_BYTES)
    assert budget.has_waiting
    small = Peer(budget, FREE_BYTES, [])
    assert small.receive(FREE_BYTES - 1) == 0
    assert small.is_reading
    assert small.receive(1) == 1


def test_an_address_that_leaves_its_requests_incomplete_does_not_delay_others() -> None:
    """Also not those with requests that are larger than what is read without room."""
    limit_bytes = 8 << 20
    budget = ReceiveBudget(limit_bytes)
    stalled = [Peer(budget, 1 << 20, [], "attacker") for _ in range(500)]
    for peer in stalled:
        while peer.is_reading and peer.missing_bytes > 1:
            peer.receive(min(TURN_BYTES, peer.missing_bytes - 1))
    assert budget.waiting_count > 400
    assert budget.used_bytes < limit_bytes
    client = Peer(budget, 1 << 20, [], "client")
    for _ in range(3):
        completed = 0
        while not completed:
            assert client.is_reading
            completed = client.receive(TURN_BYTES)
    small = Peer(budget, SMALL_BYTES, [], "client")
    assert small.receive(TURN_BYTES) >= 1


def test_the_owner_with_the_least_memory_is_next() -> None:
    budget = ReceiveBudget(1 << 20)
    order: list[Peer] = []
    blocking = Peer(budget, LARGEST_FRAME_BYTES, order, "a")
    while not blocking.share.is_granted:
        blocking.receive(TURN_BYTES)
    second, third, last = (Peer(budget, 1 << 20, order, owner) for owner in "acb")
    for peer in (second, third, last):
        while peer.is_reading:
            peer.receive(256 * KIBIBYTE)
    assert order == []
    blocking.close()
    assert order == [last]


@pytest.mark.parametrize(
    ("owners", "connections", "frame_bytes"), [(8, 1, 1_000_000), (5, 2, 1_000_000), (10, 3, 200_000)]
)
def test_addresses_with_large_frames_take_turns(owners: int, connections: int, frame_bytes: int) -> None:
    """All of them send one frame after another, a tenth at a time."""
    budget = ReceiveBudget(4 << 20)
    peers = [Peer(budget, frame_bytes, [], str(owner)) for owner in range(owners) for _ in range(connections)]
    completed = dict.fromkeys((peer.share.owner for peer in peers), 0)
    for _ in range(600):
        for peer in peers:
            if peer.is_reading:
                completed[peer.share.owner] += peer.receive(frame_bytes // 10)
    assert min(completed.values()) > 10
    assert max(completed.values()) < 3 * min(completed.values())
