"""A Hypothesis model of one partition: appends, flushes that end late, changes of leadership with old and new epochs,
truncation as a follower, waiting fetches and produce requests. The invariants of `replica/partition` hold after each
step."""

import asyncio
import random
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.host.workers import DirectoryWorkers
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import LogDirectory
from odradek.log.partition_log import PartitionLog
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchIsolation
from odradek.replica.leadership import Leadership
from odradek.replica.partition import ALL_IN_SYNC, Partition
from odradek.replica.partition_fetch import fetch_from
from odradek.replica.truncating import Truncations
from odradek.replica.waiting_requests import WaitingFetch, WaitingProduce
from tests.example_counts import examples
from tests.handlers.requests import batch
from tests.replica.held_workers import HeldWorkers
from tests.simulation.simulated_host import Simulation

HERE, ELSEWHERE, NO_LEADER = 0, 1, -1
FLUSH_MESSAGES = 3
TIMEOUT_MS = 1_000
IN_SYNC_SETS = st.sampled_from([(HERE,), (HERE, ELSEWHERE)])
PATH = "/data/topic-0"


class PartitionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.simulation = Simulation(0)
        self.simulation.disk.make_directories(PATH)
        self.workers = HeldWorkers()
        self.workers.held.add("flush")
        config = LogConfig(flush_messages=FLUSH_MESSAGES, min_insync_replicas=2)
        log = PartitionLog.open(PATH, config, self.simulation.host, clean_shutdown=True)
        self.partition = Partition(
            "topic",
            UUID(int=1),
            0,
            log,
            LogDirectory("/data", self.simulation.host, None, None, False),
            DirectoryWorkers(self.workers, self.workers),
            self._fail_directory,
            self._truncations(),
        )
        self.recovery_point_offset = 0  # checkpointed
        self.failure: OSError | None = None
        self.leader, self.leader_epoch, self.partition_epoch = NO_LEADER, -1, -1
        self.in_sync: tuple[int, ...] = (HERE,)
        self.high_watermark = 0
        self.batch_ends: list[int] = []
        self.committed: list[int] = []  # what the listener was called with
        self.partition.on_high_watermark(self.committed.append)
        self.waiting: list[tuple[int, WaitingProduce, asyncio.Task[Any]]] = []
        self.fetches: list[tuple[int, asyncio.Task[None]]] = []  # the high watermark when it began to wait

    def _fail_directory(self, directory: LogDirectory, problem: OSError) -> None:
        raise AssertionError(problem)

    def _truncations(self) -> Truncations[Partition]:
        truncations: Truncations[Partition] = Truncations()
        truncations.on_end(self._checkpoint)
        return truncations

    async def _checkpoint(self, partition: Partition) -> None:
        self.recovery_point_offset = partition.log.recovery_point_offset

    def run(self, coroutine: Any) -> Any:
        return self.simulation.loop.run_until_complete(coroutine)

    def step(self) -> None:
        async def pause() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.run(pause())

    def image(self, leader: int, leader_epoch: int, partition_epoch: int) -> PartitionImage:
        return PartitionImage(0, (HERE, ELSEWHERE), self.in_sync, leader, leader_epoch, partition_epoch)

    def apply(self, leader: int, image: PartitionImage) -> ErrorCode:
        async def change() -> ErrorCode:
            if leader == HERE:
                return self.partition.become_leader(image)
            if leader == ELSEWHERE:
                return self.partition.become_follower(image)
            return self.partition.resign(image)

        refusal = self.run(change())
        self.step()
        assert isinstance(refusal, ErrorCode)
        return refusal

    # Leadership

    @initialize(in_sync=IN_SYNC_SETS)
    def this_broker_leads(self, in_sync: tuple[int, ...]) -> None:
        self.a_new_leader_is_elected(HERE, in_sync, 1)

    @rule(leader=st.sampled_from([HERE, HERE, ELSEWHERE, NO_LEADER]), in_sync=IN_SYNC_SETS, step=st.integers(1, 3))
    def a_new_leader_is_elected(self, leader: int, in_sync: tuple[int, ...], step: int) -> None:
        self.leader, self.leader_epoch, self.in_sync = leader, self.leader_epoch + step, in_sync
        self.partition_epoch += 1
        image = self.image(leader, self.leader_epoch, self.partition_epoch)
        assert self.apply(leader, image) is ErrorCode.NONE
        assert self.partition.is_leader == (leader == HERE)

    @rule(in_sync=IN_SYNC_SETS)
    @precondition(lambda self: self.leader == HERE)
    def the_in_sync_set_changes(self, in_sync: tuple[int, ...]) -> None:
        self.in_sync = in_sync
        self.partition_epoch += 1
        image = self.image(HERE, self.leader_epoch, self.partition_epoch)
        assert self.apply(HERE, image) is ErrorCode.NONE

    @rule(leader=st.sampled_from([HERE, ELSEWHERE, NO_LEADER]), behind=st.integers(1, 3))
    def an_older_leader_epoch_is_refused(self, leader: int, behind: int) -> None:
        before = (self.partition.leadership, self.partition.leader_epoch, self.partition.partition_epoch)
        image = self.image(leader, self.leader_epoch - behind, self.partition_epoch + 5)
        assert self.apply(leader, image) is ErrorCode.FENCED_LEADER_EPOCH
        assert before == (self.partition.leadership, self.partition.leader_epoch, self.partition.partition_epoch)

    @rule(behind=st.integers(1, 3))
    def an_older_partition_epoch_is_refused(self, behind: int) -> None:
        before = self.partition.image
        image = PartitionImage(0, (HERE,), (), self.leader, self.leader_epoch, self.partition_epoch - behind)
        assert self.apply(self.leader, image) is ErrorCode.INVALID_UPDATE_VERSION
        assert self.partition.image is before

    # Records

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=4), acks=st.sampled_from([ALL_IN_SYNC, 1, 1]))
    def append_batches(self, counts: list[int], acks: int) -> None:
        for count in counts:
            self._append(count, acks)

    def _append(self, count: int, acks: int) -> None:
        async def produce() -> None:
            partition = self.partition
            end_before = partition.log.log_end_offset
            result = partition.append(memoryview(batch(*[b"v"] * count)), acks)
            if self.leader != HERE:
                assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif acks == ALL_IN_SYNC and len(self.in_sync) < 2:
                assert result.error is ErrorCode.NOT_ENOUGH_REPLICAS
            else:
                assert (result.error, result.base_offset) == (ErrorCode.NONE, end_before)
                self.batch_ends.append(result.last_offset + 1)
                if acks == ALL_IN_SYNC:
                    end_offset = result.last_offset + 1
                    waiting = WaitingProduce([(partition, end_offset)], TIMEOUT_MS, self.simulation.clock)
                    self.waiting.append((end_offset, waiting, asyncio.ensure_future(waiting.wait())))
                return
            assert partition.log.log_end_offset == end_before

        self.run(produce())

    @rule()
    @precondition(lambda self: self.workers.waiting)
    def a_flush_ends(self) -> None:
        self.workers.release()
        self.step()

    @rule(chance=st.randoms(use_true_random=False))
    @precondition(lambda self: self.leader == HERE and len(self.in_sync) == 2)
    def followers_catch_up(self, chance: random.Random) -> None:
        async def advance() -> None:
            log = self.partition.log
            end = log.log_end_offset
            if end - log.recovery_point_offset >= FLUSH_MESSAGES:
                end = log.recovery_point_offset  # the leader's own part
            ends = [each for each in self.batch_ends if each <= end]  # followers have whole batches
            if ends:
                self.partition.advance_high_watermark(chance.choice(ends))

        self.run(advance())

    @rule(chance=st.randoms(use_true_random=False))
    @precondition(lambda self: self.leader == ELSEWHERE)
    def truncate_as_follower(self, chance: random.Random) -> None:
        self.workers.release_all()  # the log is not truncated during a flush
        self.step()
        self.workers.held.add("flush")
        log = self.partition.log
        self.run(
            self.partition.follower_log.truncate_to(
                max(log.log_start_offset, log.log_end_offset - chance.randint(0, 4))
            )
        )
        assert self.recovery_point_offset == log.recovery_point_offset, "checkpointed before the next append"
        self.high_watermark = min(self.high_watermark, log.log_end_offset)
        self.batch_ends = [each for each in self.batch_ends if each <= log.log_end_offset]

    @rule()
    @precondition(lambda self: self.leader == HERE)
    def a_fetch_begins_to_wait(self) -> None:
        async def wait() -> None:
            waiting = WaitingFetch([self.partition], 1, TIMEOUT_MS, self.simulation.clock)
            self.fetches.append((self.partition.high_watermark, asyncio.ensure_future(waiting.wait())))

        self.run(wait())

    @rule()
    def requests_time_out(self) -> None:
        async def pass_time() -> None:
            done = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(2 * TIMEOUT_MS / 1000, done.set_result, None)
            await done

        self.run(pass_time())
        self.step()
        assert all(task.done() for _, _, task in self.waiting)
        assert all(task.done() for _, task in self.fetches)

    # Invariants

    @invariant()
    def the_high_watermark_is_within_the_log(self) -> None:
        log = self.partition.log
        assert log.log_start_offset <= self.partition.high_watermark <= log.log_end_offset

    @invariant()
    def records_due_for_a_flush_are_committed_only_when_durable(self) -> None:
        assert self.partition.high_watermark - self.partition.log.recovery_point_offset < FLUSH_MESSAGES

    @invariant()
    def the_high_watermark_of_a_leader_never_decreases(self) -> None:
        assert self.partition.leadership is not Leadership.LEADER or (
            self.partition.high_watermark >= self.high_watermark
        )
        self.high_watermark = self.partition.high_watermark

    @invariant()
    def the_listener_saw_every_high_watermark(self) -> None:
        assert not self.committed or self.committed[-1] >= self.partition.high_watermark or self.leader != HERE

    @invariant()
    def readers_see_only_what_is_theirs(self) -> None:
        partition = self.partition
        for isolation, end_offset in (
            (FetchIsolation.HIGH_WATERMARK, partition.high_watermark),
            (FetchIsolation.TRANSACTION_COMMITTED, partition.high_watermark),
            (FetchIsolation.LOG_END, partition.log.log_end_offset),
        ):
            result = fetch_from(
                partition,
                partition.log.log_start_offset,
                1 << 20,
                current_leader_epoch=-1,
                last_fetched_epoch=-1,
                whole_first_batch=True,
                isolation=isolation,
            )
            if self.leader != HERE:
                assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            assert result.error is ErrorCode.NONE
            assert (result.records is not None) == (end_offset > partition.log.log_start_offset)

    @invariant()
    def nothing_waits_for_what_has_happened(self) -> None:
        self.step()
        unanswered = []
        for end_offset, waiting, task in self.waiting:
            if task.done():
                (error,) = task.result()
                assert error is not ErrorCode.NONE or self.was_committed(end_offset)
            else:
                assert self.partition.is_leader
                assert self.partition.high_watermark < end_offset
                unanswered.append((end_offset, waiting, task))
        self.waiting = unanswered
        self.fetches = [each for each in self.fetches if not each[1].done()]
        for high_watermark, _ in self.fetches:
            assert self.partition.is_leader
            assert self.partition.high_watermark == high_watermark

    def was_committed(self, end_offset: int) -> bool:
        return any(offset >= end_offset for offset in self.committed)

    def teardown(self) -> None:
        self.workers.release_all()
        self.step()
        for task in asyncio.all_tasks(self.simulation.loop):
            task.cancel()
        self.step()
        self.simulation.close()


PartitionModel.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=50, deadline=None)
TestPartitionModel = PartitionModel.TestCase
