"""Everything of a broker below its sockets, put together on one host: metadata, partitions, handlers.

This is what the simulator runs; `server/broker` adds listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group_coordinator import GroupCoordinator
from odradek.coordinator.producer_ids import ProducerIds
from odradek.handlers.api_versions import AdvertisedApis
from odradek.handlers.context import Services
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.fetch_sessions import FetchSessions
from odradek.handlers.registry import build_registry
from odradek.host.logs import get_logger
from odradek.log.log_directory import LogDirectory, make_durable_directory
from odradek.metadata.controller import Controller
from odradek.metadata.embedded_store import FILE_NAME, EmbeddedStore
from odradek.metadata.image import BrokerImage
from odradek.replica.housekeeping import Housekeeping
from odradek.replica.partition_table import PartitionTable
from odradek.security.authorizer import AllowAll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.host.host import Host
    from odradek.metadata.broker_configs import BrokerConfig
    from odradek.metadata.listeners import Endpoint

log = get_logger(__name__)


class Node:
    def __init__(self, config: BrokerConfig, host: Host) -> None:
        self._config = config
        self._host = host

    async def start(self) -> None:
        """Load the metadata, take the log directories, open or recover every log."""
        config, host = self._config, self._host
        first_directory = config.log_dirs[0]
        await host.workers.run(make_durable_directory, first_directory, host)
        store = EmbeddedStore(host, f"{first_directory}/{FILE_NAME}", config.node_id)
        self._controller = controller = Controller(store, config, host.entropy)
        cluster_id = (await controller.load()).cluster_id
        directories = [
            await host.workers.run(_open_directory, path, host, cluster_id, config.node_id) for path in config.log_dirs
        ]
        self._table = table = PartitionTable(host, directories, lambda: controller.broker_config)
        await controller.bump_leader_epochs()
        await table.load(controller.image)
        controller.subscribe(table.follow)
        self._groups = GroupCoordinator(host, controller, table)
        self._groups.start()
        self._housekeeping = Housekeeping(table, host, lambda: controller.broker_config)
        apis = build_registry()
        services = Services(
            host=host,
            controller=controller,
            partitions=table,
            fetch_sessions=FetchSessions(config.fetch_session_cache_slots, host.clock, host.entropy),
            producer_ids=ProducerIds(controller),
            groups=self._groups,
            authorizer=AllowAll(),
            advertised_apis=AdvertisedApis(apis.values()),
        )
        self.dispatcher = Dispatcher(apis, services)

    async def serve(self, endpoints: Mapping[str, Endpoint]) -> None:
        """Make this broker known under the addresses that its clients use."""
        config = self._config
        await self._controller.register_broker(BrokerImage(config.node_id, endpoints, config.rack))
        self._housekeeping.start()

    def release_waiting_requests(self) -> None:
        """Answer every long poll with what there is, and every waiting member of a group."""
        self._groups.stop()
        self._table.wake_waiting_fetches()

    async def stop(self) -> None:
        """Flush everything and leave the clean-shutdown mark."""
        self._groups.stop()
        await self._housekeeping.stop()
        await self._table.close()
        await self._controller.close()


def _open_directory(path: str, host: Host, cluster_id: str, node_id: int) -> LogDirectory:
    return LogDirectory.open(path, host, cluster_id=cluster_id, node_id=node_id)
