"""A broker without its sockets, composed on one host: metadata, partitions, coordinators and handlers.

The simulator runs nodes; `server/broker` adds listeners.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.handlers import sasl_listeners
from odradek.host.logs import get_logger
from odradek.host.receive_budget import ReceiveBudget
from odradek.log.log_directory import (
    LOCK_FILE,
    LogDirectory,
    LogDirectoryError,
    make_durable_directory,
)
from odradek.metadata.embedded_store import FILE_NAME, MIGRATED_SUFFIX
from odradek.metadata.entities import BrokerImage
from odradek.metrics.broker_metrics import BrokerMetrics
from odradek.replica.clock_skew_guard import ClockSkewGuard
from odradek.replica.housekeeping import Housekeeping
from odradek.replica.measured_flushes import MeasuredWorkers
from odradek.replica.partition_table import PartitionTable
from odradek.server import serving
from odradek.server.access_control import build_audit_log, check_access_of_brokers
from odradek.server.coordination import coordination
from odradek.server.monitoring.collection import MetricsCollection
from odradek.server.monitoring.readiness import STOPPING, Readiness, registration_problems

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.configuration.listeners import Endpoint
    from odradek.handlers.context import SettingsCheck
    from odradek.handlers.sasl_listeners import SaslListeners
    from odradek.host.connecting import Network
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage
    from odradek.server.serving import Serving

log = get_logger(__name__)


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        host: Host,
        broker_network: Network | None = None,
        check_settings: SettingsCheck | None = None,
        metrics: BrokerMetrics | None = None,
        receive_budget: ReceiveBudget | None = None,
    ) -> None:
        """`broker_network` is the network of connections to other brokers, if it is not the host's own."""
        self._config = config
        self._host = host
        self._broker_network = broker_network
        self._check_settings = check_settings
        self._receive_budget = receive_budget or ReceiveBudget()
        self.metrics = metrics or BrokerMetrics(config.metrics_max_topics)
        self.collection = MetricsCollection(self.metrics.registry)
        self.readiness = Readiness()
        self._serving: Serving | None = None
        self.fatal_failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when the broker cannot continue: the reason, and what to do."""

    async def start(self) -> None:
        """Load the metadata, lock the log directories, open or recover every log."""
        config, host = self._config, self._host
        paths = [host.disk.absolute_path(path) for path in config.log_dirs]
        first_directory = paths[0]
        await host.workers.run(_prepare_directory, first_directory, host)
        if not config.zookeeper_connect:
            await host.workers.run(_check_is_single, first_directory, host)
        self._coordination = coordination(config, host, first_directory, self._broker_network)
        try:
            await self._start(paths)
        except BaseException:
            await self._coordination.store.close()
            raise

    async def _start(self, paths: Sequence[str]) -> None:
        config, host, metadata = self._config, self._host, self._coordination.metadata
        self._metadata = metadata
        self._channel = self._coordination.channel
        cluster_id = await self._coordination.store.cluster_id()
        directories = await host.workers.run(_open_directories, paths, host, cluster_id, config.node_id)
        usable = [directory for directory in directories if directory.failure is None]
        last_used = await host.workers.run(lambda: [directory.last_used_ms() for directory in usable])
        time = ClockSkewGuard(host.clock, max((each for each in last_used if each is not None), default=None))
        self._table = table = PartitionTable(
            replace(host, workers=MeasuredWorkers(host.workers, self.metrics.flushes, host.clock)),
            config.node_id,
            directories,
            lambda: metadata.broker_config,
            self._directory_failed,
            metadata.run_in_order,
            self._coordination.replication,
        )
        try:
            # After the directories are locked: a broker without a cluster fences every other controller.
            await self._coordination.start()
            check_access_of_brokers(config, metadata.image.acls)
            await metadata.run_in_order(lambda: self._open_logs(table, metadata))
        except BaseException:
            await host.workers.run(_close_after_failed_start, directories)
            raise
        self._time = time
        self._housekeeping = Housekeeping(table, host, lambda: metadata.broker_config, time)
        self._sasl: SaslListeners | None = None
        if any(protocol.has_sasl for protocol in config.listener_protocols.values()):
            self._sasl = sasl_listeners.SaslListeners(metadata, host)
            self._housekeeping.add(self._sasl)
        self._audit = build_audit_log(config, host)
        if self._audit is not None:
            await self._audit.start()
        self.readiness.add(self._problems)
        self.collection.prepare = self._compose_metrics
        if config.zookeeper_connect or metadata.image.topics:
            await self.compose_serving().load()

    def compose_serving(self) -> Serving:
        """Returns what requests need; the first call composes it. With partitions, or others that may give it some,
        that is at the start. If composing fails, the broker cannot continue, and no later call tries again, because
        some of the parts are registered already."""
        if self._serving is None:
            if self.fatal_failure.done():
                raise RuntimeError(self.fatal_failure.result())
            try:
                self._serving = self._compose_serving()
            except Exception as problem:
                self.cannot_serve(problem)
                raise
        return self._serving

    def _compose_serving(self) -> Serving:
        return serving.Serving(
            self._config,
            self._host,
            self._coordination,
            self._table,
            self._housekeeping,
            self._time,
            metrics=self.metrics,
            collection=self.collection,
            receive_budget=self._receive_budget,
            sasl=self._sasl,
            audit=self._audit,
            check_settings=self._check_settings,
        )

    def cannot_serve(self, problem: BaseException) -> None:
        """A part that requests need failed to load or to start."""
        if not self.fatal_failure.done():
            log.error("requests cannot be served", exc_info=problem)
            self.fatal_failure.set_result(
                f"requests cannot be served ({problem!r}): check that the installation of Odradek is complete and of "
                "one version, then start the broker again"
            )

    def _compose_metrics(self) -> None:
        """Most metrics are of what requests need."""
        if self.readiness.phase != STOPPING and not self.fatal_failure.done():
            self.compose_serving()

    def _problems(self) -> list[str]:
        """Why this broker should get no clients."""
        isolated = ["this broker is cut off from its cluster"] if self._coordination.is_isolated else []
        return [
            *isolated,
            *registration_problems(self._metadata.image, self._config.node_id),
            *(self._serving.problems() if self._serving is not None else ()),
        ]

    async def _open_logs(self, table: PartitionTable, metadata: MetadataCache) -> None:
        """Runs in order with commits, so that none is applied between the image that the table loads and the first
        image that it follows."""
        await table.load(metadata.image)
        metadata.subscribe(table.follow)

    def _directory_failed(self, directory: LogDirectory) -> None:
        """The broker stops when the first log directory, which holds the metadata, or every log directory failed."""
        directories = self._table.directories
        is_fatal = directory is directories[0] or all(each.failure is not None for each in directories)
        if is_fatal and not self.fatal_failure.done():
            self.fatal_failure.set_result(
                f"{directory.path} failed ({directory.failure}): repair the disk, then start the broker again"
            )
        if not is_fatal:
            self._coordination.directory_failed()

    @property
    def broker_config(self) -> BrokerConfig:
        """The current configuration: some settings change at run time."""
        return self._metadata.broker_config

    def follow_isolation(self, follower: Callable[[bool], None]) -> None:
        """Call with True when this broker is cut off from its cluster, and with False when it is back."""
        self._coordination.follow_isolation(
            lambda: self.compose_serving().fetch_sessions.last_replica_fetch_ms, follower
        )

    def follow_settings(self, follower: Callable[[], Awaitable[None]]) -> None:
        """Call after each change of settings. The answer to the request that made it waits for the follower."""

        async def follow(before: MetadataImage, after: MetadataImage) -> None:
            if after.configs is not before.configs:
                await follower()

        self._metadata.subscribe(follow)

    async def serve(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Register this broker with the addresses that its clients use, and start housekeeping."""
        config = self._config
        if self._sasl is not None:
            await self._sasl.load_keys()
        await self._coordination.join(BrokerImage(config.node_id, endpoints, config.rack), self._table)
        self._housekeeping.start()

    async def hand_over(self) -> None:
        """Give what this broker leads to other brokers, before its listeners close."""
        await self._coordination.hand_over()

    def release_waiting_requests(self) -> None:
        """Answer every waiting fetch with the records that are available, and every waiting member of a group."""
        if self._serving is not None:
            self._serving.release_waiting_requests()

    async def stop(self) -> None:
        """Flush and close every log, and write the clean-shutdown files."""
        if self._serving is not None:
            self._serving.stop_coordinators()
        await self._housekeeping.stop()
        await self._coordination.leave()
        await self._metadata.close()  # applies all commits before the table closes
        if self._serving is not None:
            await self._serving.close()
        await self._table.close()
        await self._coordination.store.close()
        if self._audit is not None:
            await self._audit.close()


def _prepare_directory(path: str, host: Host) -> None:
    """Create the directory if it is missing; LogDirectoryError unless it is a directory that can be written to."""
    advice = "set log.dirs to a directory that this user may write to"
    try:
        make_durable_directory(path, host)
    except OSError as problem:
        raise LogDirectoryError(f"{path} cannot be created ({problem.strerror}): {advice}") from problem
    if not host.disk.is_directory(path):
        raise LogDirectoryError(f"{path} is a file, not a directory: {advice}")
    try:
        host.disk.open(f"{path}/{LOCK_FILE}", create=True).close()
    except OSError as problem:
        raise LogDirectoryError(f"{path} is not writable ({problem.strerror}): {advice}") from problem


def _check_is_single(path: str, host: Host) -> None:
    """LogDirectoryError if the directory was migrated to a cluster: without zookeeper.connect the broker would begin
    with empty metadata."""
    file = f"{path}/{FILE_NAME}"
    if host.disk.exists(file + MIGRATED_SUFFIX) and not host.disk.exists(file):
        raise LogDirectoryError(
            f"zookeeper.connect is not set, and {path} was migrated to a cluster by `odradek metadata migrate`: set "
            "zookeeper.connect to the ZooKeeper of the cluster, or set log.dirs to another directory for a new broker"
        )


def _open_directories(paths: Sequence[str], host: Host, cluster_id: str, node_id: int) -> list[LogDirectory]:
    """Open the log directories. A directory with an OSError is marked as failed and not used, except the first, which
    holds the metadata: its OSError ends the start. So does a LogDirectoryError of any directory, for example one that
    belongs to another broker."""
    directories: list[LogDirectory] = []
    try:
        for path in paths:
            try:
                directory = LogDirectory.open(path, host, cluster_id=cluster_id, node_id=node_id)
            except OSError as problem:
                if not directories:
                    raise
                log.error("log directory failed", path=path, reason=problem)
                directory = LogDirectory.unusable(path, host, str(problem))
            directories.append(directory)
    except BaseException:
        _close_after_failed_start(directories)
        raise
    return directories


def _close_after_failed_start(directories: Sequence[LogDirectory]) -> None:
    """Close log directories when the start failed. A clean-shutdown file that was found is written again."""
    for directory in directories:
        directory.close(is_clean=directory.was_cleanly_shut_down)
