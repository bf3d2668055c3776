"""The periodic duties of the controller: preferred leaders, unclean elections where they are allowed, replacements.

Runs on every broker of a cluster and does nothing while another broker is the controller.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.controller.decisions.requested_elections import MAX_ELECTIONS_PER_ROUND
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.controller import Controller
    from odradek.host.clock import Clock, Timer
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

ROUND_MS = 1000.0


class AbsentBrokers:
    """How long each broker has been away, as the present controller has seen it.

    A controller that takes over counts from its first look, so a change of controller can only delay a replacement.
    """

    def __init__(self) -> None:
        self._since_ms: dict[int, float] = {}

    def observe(self, image: MetadataImage, now_ms: float) -> None:
        """A broker that shuts down is away as well. One that is unregistered is away only while it has replicas."""
        active = {broker.node_id for broker in image.brokers.values() if broker.is_active}
        known = set(image.brokers)
        known.update(
            replica
            for topic in image.topics.values()
            for partition in topic.partitions
            for replica in partition.replicas
        )
        away = known - active
        self._since_ms = {node_id: self._since_ms.get(node_id, now_ms) for node_id in away}

    def longer_than(self, duration_ms: float, now_ms: float) -> frozenset[int]:
        return frozenset(node_id for node_id, since_ms in self._since_ms.items() if now_ms - since_ms >= duration_ms)


class ControllerDuties:
    def __init__(
        self,
        clock: Clock,
        find_controller: Callable[[], Controller | None],
        read_config: Callable[[], BrokerConfig],
    ) -> None:
        self._clock = clock
        self._find_controller = find_controller
        self._read_config = read_config
        self._controller: Controller | None = None  # of the rounds so far
        self._absent = AbsentBrokers()
        self._next_rebalance_ms = 0.0
        self._next_unclean_ms = 0.0
        self._timer: Timer | None = None
        self._round: asyncio.Task[None] | None = None
        self._is_stopping = False

    def start(self) -> None:
        self._timer = self._clock.call_after(ROUND_MS, self._begin_round)

    async def stop(self) -> None:
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            await asyncio.wait([self._round])

    def _begin_round(self) -> None:
        self._round = asyncio.ensure_future(self._run_round())

    async def _run_round(self) -> None:
        try:
            controller = self._find_controller()
            if controller is not None and controller.is_active:
                await self._run_duties(controller)
        except StoreError as problem:
            log.warning("duties of the controller were interrupted", reason=problem)
        except Exception as problem:
            log.error("duties of the controller failed", exc_info=problem)
        finally:
            self._round = None
            if not self._is_stopping:
                self.start()

    async def _run_duties(self, controller: Controller) -> None:
        now_ms, config = self._clock.monotonic_ms(), self._read_config()
        if controller is not self._controller:
            self._controller = controller
            self._absent = AbsentBrokers()
            self._next_rebalance_ms = now_ms + config.leader_imbalance_check_interval_seconds * 1000
            self._next_unclean_ms = now_ms + config.unclean_leader_election_interval_ms
        if config.auto_leader_rebalance_enable and now_ms >= self._next_rebalance_ms:
            count = await controller.cluster.give_back_leaders()
            if count:
                log.info("partitions were given back to their preferred leaders", count=count)
            if count < MAX_ELECTIONS_PER_ROUND:
                self._next_rebalance_ms = now_ms + config.leader_imbalance_check_interval_seconds * 1000
        if now_ms >= self._next_unclean_ms:
            await controller.cluster.repair()
            self._next_unclean_ms = now_ms + config.unclean_leader_election_interval_ms
        if config.absent_broker_replacement_ms >= 0:
            self._absent.observe(controller.image, now_ms)
            away = self._absent.longer_than(config.absent_broker_replacement_ms, now_ms)
            count = await controller.cluster.replace_replicas(away) if away else 0
            if count:
                log.info("replicas of absent brokers are made on other brokers", brokers=sorted(away), count=count)
