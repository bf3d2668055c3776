"""A Hypothesis model of a leader with two followers: appends, fetches in any epoch and registration, time, lost answers
of the controller, fenced brokers, and values of `min.insync.replicas` that change on each side.

The model knows what no leader knows: which sets the controller really has, and what each follower really stores. Every
in-sync and every eligible replica of the controller has all that is committed, whatever the leader believes."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_change import Intention, PartitionRules, change_partition
from odradek.host.workers import DirectoryWorkers
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import LogDirectory
from odradek.log.partition_log import PartitionLog
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica.followers import Followers
from odradek.replica.partition import ALL_IN_SYNC, Partition
from odradek.replica.truncating import Truncations
from tests.example_counts import examples
from tests.handlers.requests import batch
from tests.replica.fake_replication import FakeReplication
from tests.replica.led_partitions import PATH, InlineWorkers
from tests.replication.planted_bugs import BUGS, planted
from tests.simulation.simulated_host import Simulation

LEADER, FOLLOWERS = 0, (1, 2)
REPLICAS = (LEADER, *FOLLOWERS)
FIRST_MIN_IN_SYNC = 2
FIRST_BROKER_EPOCH = 1  # in `FakeReplication`


class InSyncModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.simulation = Simulation(0)
        self.simulation.disk.make_directories(PATH)
        config = LogConfig(min_insync_replicas=FIRST_MIN_IN_SYNC)
        workers: Any = InlineWorkers()
        self.context = FakeReplication(*REPLICAS)
        self.partition = Partition(
            "topic",
            UUID(int=1),
            0,
            PartitionLog.open(PATH, config, self.simulation.host, clean_shutdown=True),
            LogDirectory("/data", self.simulation.host, None, None, False),
            DirectoryWorkers(workers, workers),
            self._fail,
            Truncations(),
            replication=self.context,
        )
        self.controller = PartitionImage(0, REPLICAS, REPLICAS, LEADER, 1, 1)
        self.min_in_sync_of_leader = self.min_in_sync_of_controller = FIRST_MIN_IN_SYNC
        self.stored = dict.fromkeys(FOLLOWERS, 0)  # what each follower really has
        self.high_watermark = 0
        assert self.partition.become_leader(self.controller) is ErrorCode.NONE

    def _fail(self, directory: LogDirectory, problem: OSError) -> None:
        raise AssertionError(problem)

    @property
    def followers(self) -> Followers:
        followers = self.partition.followers
        assert followers is not None
        return followers

    @rule(count=st.integers(1, 3), acks=st.sampled_from([ALL_IN_SYNC, 1]))
    def append(self, count: int, acks: int) -> None:
        image = self.partition.image
        assert image is not None
        in_sync = self.followers.in_sync.confirmed
        has_too_few = bool(image.eligible_leader_replicas) or len(in_sync) < self.min_in_sync_of_leader
        result = self.partition.append(memoryview(batch(*[b"v"] * count)), acks)
        is_refused = has_too_few and acks == ALL_IN_SYNC
        assert result.error is (ErrorCode.NOT_ENOUGH_REPLICAS if is_refused else ErrorCode.NONE)

    @rule(follower=st.sampled_from(FOLLOWERS), share=st.floats(0, 1))
    def fetch(self, follower: int, share: float) -> None:
        """The follower has got records, and asks for those after them."""
        behind = self.partition.log.log_end_offset - self.stored[follower]
        self.stored[follower] += round(share * behind)
        self._fetch(follower)

    @rule(follower=st.sampled_from(FOLLOWERS))
    def fetch_again(self, follower: int) -> None:
        self._fetch(follower)

    def _fetch(self, follower: int) -> None:
        epoch = self.context.epochs[follower]
        assert self.followers.record_fetch(follower, self.stored[follower], 0, epoch) is ErrorCode.NONE

    @rule(follower=st.sampled_from(FOLLOWERS))
    def a_follower_restarts_without_its_records(self, follower: int) -> None:
        """The controller removes it from the set before it may register (an unclean shutdown)."""
        if follower in self.controller.in_sync_replicas + self.controller.eligible_leader_replicas:
            self._change(tuple(each for each in self.controller.in_sync_replicas if each != follower), lost=follower)
            self.apply_metadata()
        self.stored[follower] = 0
        self.context.epochs[follower] += 1

    @rule(follower=st.sampled_from(FOLLOWERS), behind=st.integers(1, 2), offset=st.integers(0, 50))
    def a_fetch_of_an_earlier_registration_arrives_late(self, follower: int, behind: int, offset: int) -> None:
        epoch = self.context.epochs[follower] - behind
        known = self.followers.in_sync.followers[follower].broker_epoch
        offset = min(offset, self.partition.log.log_end_offset)
        if epoch < FIRST_BROKER_EPOCH:
            return
        if epoch < known:
            assert self.followers.record_fetch(follower, offset, 0, epoch) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif follower not in self.controller.in_sync_replicas:
            self.followers.record_fetch(follower, offset, 0, epoch)  # known by nothing but its epoch: it must not join

    @rule(follower=st.sampled_from(FOLLOWERS), is_fenced=st.booleans())
    def a_registration_is_fenced_or_not(self, follower: int, is_fenced: bool) -> None:
        (self.context.fenced.add if is_fenced else self.context.fenced.discard)(follower)

    @rule(duration_ms=st.sampled_from([10.0, 60.0, 150.0]))
    def time_passes(self, duration_ms: float) -> None:
        self.context.now_ms += duration_ms
        self.followers.check_in_sync()

    # The controller

    def _change(self, in_sync: tuple[int, ...], lost: int | None = None) -> None:
        intention = Intention(
            election=ElectionKind.ONLINE, in_sync=in_sync, unclean_shutdowns=() if lost is None else (lost,)
        )
        rules = PartitionRules(min_in_sync=self.min_in_sync_of_controller, allows_unclean=False, can_lead=LEADER.__eq__)
        self.controller = change_partition(self.controller, intention, rules) or self.controller

    @rule(min_in_sync=st.integers(1, 3))
    def the_minimum_of_the_leader_changes(self, min_in_sync: int) -> None:
        self.min_in_sync_of_leader = min_in_sync
        self.partition.configure(replace(self.partition.log.config, min_insync_replicas=min_in_sync))

    @rule(min_in_sync=st.integers(1, 3), is_repaired=st.booleans())
    def the_minimum_of_the_controller_changes(self, min_in_sync: int, is_repaired: bool) -> None:
        self.min_in_sync_of_controller = min_in_sync
        if is_repaired:
            self._change(self.controller.in_sync_replicas)

    def _decide(self, proposal: InSyncProposal) -> InSyncResult:
        if proposal.partition_epoch != self.controller.partition_epoch:
            return InSyncResult(ErrorCode.INVALID_UPDATE_VERSION)
        if any(self.context.broker_epoch(member) != epoch for member, epoch in proposal.in_sync_replicas):
            return InSyncResult(ErrorCode.INELIGIBLE_REPLICA)
        self._change(tuple(member for member, _ in proposal.in_sync_replicas))
        return InSyncResult(ErrorCode.NONE, 1, self.controller.partition_epoch, tuple(self.controller.in_sync_replicas))

    @rule(is_answered=st.booleans())
    @precondition(lambda self: self.context.waiting)
    def the_controller_decides(self, is_answered: bool) -> None:
        proposer = self.context.waiting.pop(0)
        proposal = proposer.proposal()
        if proposal is None:
            return
        result = self._decide(proposal)
        if not is_answered:
            result = InSyncResult(ErrorCode.REQUEST_TIMED_OUT)
        if not proposer.resolve(proposal, result):
            self.context.waiting.append(proposer)

    @rule()
    def apply_metadata(self) -> None:
        assert self.partition.become_leader(self.controller) is ErrorCode.NONE

    @rule()
    def the_leadership_is_withdrawn_and_applied_again(self) -> None:
        """In the same leader epoch, as when applying the metadata has failed. The controller may have carried out what
        was proposed before."""
        image = self.partition.image
        assert image is not None
        self.partition.withdraw()
        assert self.partition.become_leader(image) is ErrorCode.NONE

    # What holds

    @invariant()
    def the_controllers_sets_have_all_that_is_committed(self) -> None:
        high_watermark = self.partition.high_watermark
        for member in self.controller.in_sync_replicas + self.controller.eligible_leader_replicas:
            if member != LEADER:
                assert self.stored[member] >= high_watermark, f"replica {member} lacks committed records"

    @invariant()
    def the_high_watermark_never_decreases_and_stands_below_the_minimum(self) -> None:
        high_watermark = self.partition.high_watermark
        assert self.high_watermark <= high_watermark <= self.partition.log.log_end_offset
        self.high_watermark = high_watermark

    @invariant()
    def the_leader_stays_a_member(self) -> None:
        in_sync = self.followers.in_sync
        assert LEADER in in_sync.confirmed
        assert in_sync.proposed is None or LEADER in in_sync.proposed

    def teardown(self) -> None:
        self.simulation.close()


TestInSyncModel = InSyncModel.TestCase
TestInSyncModel.settings = settings(max_examples=examples(30), stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param("a replica joins before it has what is committed", marks=pytest.mark.more),  # a rare history
        "the high watermark does not wait for followers",
        "the high watermark trusts an in-sync set that is not confirmed",
    ],
)
def test_the_model_finds_planted_bugs(bug: str) -> None:
    found = settings(
        max_examples=1000, stateful_step_count=30, deadline=None, derandomize=True, phases=[Phase.generate]
    )
    with planted(BUGS[bug]), pytest.raises(AssertionError):
        run_state_machine_as_test(InSyncModel, settings=found)
