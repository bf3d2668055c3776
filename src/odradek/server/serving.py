"""What requests need of a broker besides its metadata and its partitions: coordinators, quotas, sessions, handlers, and
the metrics of all these.

Half of a broker's modules are here. A broker without partitions composes this when its first client comes, or in the
background once it is ready, so that its start does not wait for it (`Node.compose_serving`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.controller.expired_tokens import ExpiredTokens
from odradek.coordinator.groups.group_coordinator import GroupCoordinator
from odradek.coordinator.producer_ids import ProducerIds
from odradek.coordinator.runtime.shard import ShardState
from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.handlers.api import AdvertisedApis
from odradek.handlers.context import Services
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.fetch_sessions import FetchSessions
from odradek.handlers.produce_conversions import ProduceConversions
from odradek.handlers.quota_enforcement import QuotaEnforcement
from odradek.replica.compaction import Compaction
from odradek.replica.retention import Retention
from odradek.security.audit.events import NoAudit
from odradek.server.access_control import build_authorizer
from odradek.server.monitoring.census import Census
from odradek.server.node_samples import NodeSamples
from odradek.telemetry.client_telemetry import ClientTelemetry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.coordinator.runtime.shard import Shard
    from odradek.handlers.context import SettingsCheck
    from odradek.handlers.sasl_listeners import SaslListeners
    from odradek.host.host import Host
    from odradek.host.receive_budget import ReceiveBudget
    from odradek.metadata.image import MetadataImage
    from odradek.metrics.broker_metrics import BrokerMetrics
    from odradek.replica.clock_skew_guard import ClockSkewGuard
    from odradek.replica.housekeeping import Housekeeping
    from odradek.replica.partition_table import PartitionTable
    from odradek.security.audit.events import Audit
    from odradek.server.coordination import Coordination
    from odradek.server.monitoring.collection import MetricsCollection


class Serving:
    def __init__(
        self,
        config: BrokerConfig,
        host: Host,
        coordination: Coordination,
        table: PartitionTable,
        housekeeping: Housekeeping,
        time: ClockSkewGuard,
        *,
        metrics: BrokerMetrics,
        collection: MetricsCollection,
        receive_budget: ReceiveBudget,
        sasl: SaslListeners | None,
        audit: Audit | None,
        check_settings: SettingsCheck | None,
    ) -> None:
        metadata, channel = coordination.metadata, coordination.channel
        self._metadata = metadata
        self._table = table
        self._coordination = coordination
        self.groups = GroupCoordinator(host, metadata, channel, table, time)
        producer_ids = ProducerIds(channel)
        self.transactions = TransactionCoordinator(
            host, metadata, channel, table, self.groups, producer_ids, time, coordination.peers
        )
        table.after_late_opening = self._follow_late_opening
        self.groups.start()
        self.transactions.start()
        self._add_periodic_tasks(housekeeping, host)
        telemetry = None
        if config.client_telemetry_enable:
            telemetry = ClientTelemetry(host.clock, host.entropy, lambda: metadata.image.configs)
            housekeeping.add(telemetry)
        self.quotas = quotas = QuotaEnforcement(config, host.clock)
        quotas.load(metadata.image)
        metadata.subscribe(quotas.follow)
        apis = coordination.apis()
        self.fetch_sessions = FetchSessions(config.fetch_session_cache_slots, host.clock, host.entropy)
        self._produce_conversions = ProduceConversions(host.workers, receive_budget)
        self._services = services = Services(
            host=host,
            metadata=metadata,
            controller=channel,
            partitions=table,
            fetch_sessions=self.fetch_sessions,
            producer_ids=producer_ids,
            groups=self.groups,
            transactions=self.transactions,
            authorizer=build_authorizer(config, metadata, host, housekeeping.add),
            audit=NoAudit() if audit is None else audit,
            quotas=quotas,
            advertised_apis=AdvertisedApis(apis.values()),
            produce_conversions=self._produce_conversions,
            sasl_mechanisms=None if sasl is None else sasl.mechanisms,
            forwarder=coordination.forwarder,
            apis=apis,
            check_settings=check_settings,
            metrics=metrics,
            collect_metrics=collection.collect,
            telemetry=telemetry,
        )
        self.dispatcher = Dispatcher(apis, services)
        metadata.subscribe(self._follow_slow_request_setting)
        self._follow_slow_request_setting(metadata.image, metadata.image)
        self._add_metrics(collection)

    def _add_periodic_tasks(self, housekeeping: Housekeeping, host: Host) -> None:
        table, metadata = self._table, self._metadata
        self._compaction = compaction = Compaction(table, host, lambda: metadata.broker_config)
        table.moves.old_copies.after_move = compaction.follow_move
        table.removals.before_removal = compaction.forget
        housekeeping.add(compaction)
        housekeeping.add(Retention(table, host))
        housekeeping.add(ExpiredTokens(self._coordination.channel, metadata))

    def _add_metrics(self, collection: MetricsCollection) -> None:
        services, metadata, coordination = self._services, self._metadata, self._coordination
        census = Census(
            self._table,
            self.groups,
            self.transactions,
            lambda: metadata.image,
            lambda: coordination.is_controller,
            services.metrics.traffic,
            services.host.clock,
        )
        collection.before(census.refresh)
        services.metrics.registry.add(census.samples)
        services.metrics.registry.add(NodeSamples(services, coordination).samples)

    async def load(self) -> None:
        """Read what is stored about partitions; not needed without any."""
        await self._compaction.load()

    def problems(self) -> list[str]:
        """Why this broker should get no clients."""
        return [
            *_loading_problems("group", self.groups.present_shards()),
            *_loading_problems("transaction", self.transactions.present_shards()),
        ]

    def _follow_slow_request_setting(self, _before: MetadataImage, _after: MetadataImage) -> None:
        self.dispatcher.slow_requests.configure(self._metadata.broker_config.slow_request_ms)

    def _follow_late_opening(self) -> None:
        self.groups.topic.follow_leaderships()
        self.transactions.topic.follow_leaderships()
        if self._coordination.replication is not None:
            self._coordination.replication.follow_all()

    def release_waiting_requests(self) -> None:
        """Answer every waiting fetch with the records that are available, and every waiting member of a group."""
        self.stop_coordinators()
        self._table.wake_waiting_fetches()

    def stop_coordinators(self) -> None:
        self.transactions.stop()
        self.groups.stop()

    async def close(self) -> None:
        """The logs are open, because audited requests that wait for a result use them."""
        await self._services.audited_requests.close()
        self._produce_conversions.close()
        self._services.time_lookups.close()


def _loading_problems(coordinator: str, shards: Iterable[Shard[Any]]) -> list[str]:
    loading = sum(each.state is ShardState.LOADING for each in shards)
    return [f"{loading} partitions of the {coordinator} coordinator are loading"] if loading else []
