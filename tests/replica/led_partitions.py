"""A partition in memory that this broker leads, for tests of its log and its offsets."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from odradek.host.workers import DirectoryWorkers, WorkerPool
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import LogDirectory
from odradek.log.partition_log import PartitionLog
from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica.partition import Partition
from odradek.replica.truncating import Truncations
from tests.simulation.simulated_host import Simulation

T = TypeVar("T")
HERE, ELSEWHERE = 0, 1
ALONE = (HERE,)
WITH_A_FOLLOWER = (HERE, ELSEWHERE)
PATH = "/data/topic-0"


class InlineWorkers:
    """Runs each job at once, in the caller's turn."""

    async def run(self, job: Callable[..., T], *arguments: Any) -> T:
        return job(*arguments)


class LedPartition:
    """`in_sync` without a follower: each append is committed at once; with one, by `advance_high_watermark`."""

    def __init__(self, simulation: Simulation, config: LogConfig, in_sync: tuple[int, ...] = WITH_A_FOLLOWER) -> None:
        self.simulation = simulation
        self.config = config
        self.in_sync = in_sync
        self.leader_epoch = 0
        simulation.disk.make_directories(PATH)
        self.open(clean_shutdown=True)

    def open(
        self,
        *,
        clean_shutdown: bool,
        recovery_point_offset: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
    ) -> None:
        self.log = PartitionLog.open(
            PATH,
            self.config,
            self.simulation.host,
            clean_shutdown=clean_shutdown,
            recovery_point_offset=recovery_point_offset,
            log_start_offset=log_start_offset,
        )
        workers: WorkerPool = InlineWorkers()  # type: ignore[assignment]  # runs work at once
        self.partition = Partition(
            "topic",
            UUID(int=1),
            0,
            self.log,
            LogDirectory("/data", self.simulation.host, None, None, False),
            DirectoryWorkers(workers, workers),
            self._fail,
            Truncations(),
            high_watermark=high_watermark,
        )
        self.lead()

    def lead(self) -> None:
        self.leader_epoch += 1
        image = PartitionImage(0, WITH_A_FOLLOWER, self.in_sync, HERE, self.leader_epoch, self.leader_epoch)
        assert self.partition.become_leader(image) is ErrorCode.NONE

    def truncate_to(self, offset: int) -> None:
        """As a follower, between two leaderships."""
        self.leader_epoch += 1
        image = PartitionImage(0, WITH_A_FOLLOWER, self.in_sync, ELSEWHERE, self.leader_epoch, self.leader_epoch)
        assert self.partition.become_follower(image) is ErrorCode.NONE
        self.simulation.loop.run_until_complete(self.partition.follower_log.truncate_to(offset))
        self.lead()

    def _fail(self, _directory: LogDirectory, problem: OSError) -> None:
        raise AssertionError(problem)
