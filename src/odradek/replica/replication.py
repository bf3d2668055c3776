"""Replication of a broker: a fetcher for each leader that it follows, and the in-sync sets of what it leads.

`follow` is a subscriber of the metadata, after the partition table: it finds the partitions as the table has applied
them. The partitions ask here for what they know of other brokers (`ReplicationContext`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.broker_connection import BrokerUnavailable
from odradek.configuration.broker_config_table import RACK_AWARE_SELECTOR
from odradek.host.logs import get_logger
from odradek.metadata.broker_addresses import broker_address
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_BROKER_EPOCH
from odradek.replica.fetch_request_session import PartitionKey
from odradek.replica.follower_fetcher import FollowerFetcher
from odradek.replica.in_sync_requests import InSyncRequests
from odradek.replica.leadership import Leadership
from odradek.replica.replication_counts import ReplicationCounts
from odradek.replica.replication_throttle import (
    FOLLOWER,
    LEADER,
    ReplicationThrottle,
    rate_name,
    throttled_partitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_clients import BrokerClients
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Clock, Timer
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.image import MetadataImage
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable
    from odradek.replica.replication_context import InSyncChannel, Proposer

log = get_logger(__name__)

PURPOSE = "replication"
CHECKS_PER_LAG_TIME = 2  # of in-sync sets, as in Kafka
SHORTEST_CHECK_MS = 100.0
CONTACT_CHECK_MS = 500.0
SHORTEST_LOOK_AHEAD_MS = 1.0  # answers to one request are taken a little after each other
SILENCE_PER_SESSION_TIMEOUT = 1.4


class Replication:
    """Made before the partition table, which it is a part of; `start` binds the two."""

    def __init__(
        self,
        node_id: int,
        clients: BrokerClients,
        channel: InSyncChannel,
        broker_config: Callable[[], BrokerConfig],
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._clients = clients
        self._broker_config = broker_config
        self._clock = clock
        self._requests = InSyncRequests(channel, clock)
        self._brokers: dict[int, BrokerImage] = {}
        self._own_broker_epoch = NO_BROKER_EPOCH
        self._table: PartitionTable | None = None
        self._fetchers: dict[int, FollowerFetcher] = {}
        self._timer: Timer | None = None
        self._contact_timer: Timer | None = None
        self._check_timer: Timer | None = None
        self._to_check: dict[Proposer, float] = {}  # when each is due
        self._is_stopped = False
        self.counts = ReplicationCounts()
        self.leader_throttle = self._throttle(LEADER)
        self.follower_throttle = self._throttle(FOLLOWER)

    def _throttle(self, side: str) -> ReplicationThrottle:
        name = rate_name(side)
        return ReplicationThrottle(lambda: self._broker_config().dynamic_number(name), self._clock.monotonic_ms)

    # ReplicationContext

    @property
    def lag_time_max_ms(self) -> float:
        return self._broker_config().replica_lag_time_max_ms

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    def broker_epoch(self, node_id: int) -> int | None:
        if node_id == self._node_id:
            return self._own_broker_epoch
        broker = self._brokers.get(node_id)
        return None if broker is None or not broker.is_active else broker.broker_epoch

    @property
    def serves_consumers_from_followers(self) -> bool:
        return self._broker_config().replica_selector_class == RACK_AWARE_SELECTOR

    def request_in_sync(self, proposer: Proposer) -> None:
        self._requests.add(proposer)

    def count_in_sync_change(self, *, left: int, joined: int) -> None:
        self.counts.in_sync_shrinks += left
        self.counts.in_sync_expands += joined

    def check_in_sync_after(self, delay_ms: float, proposer: Proposer) -> None:
        self._to_check[proposer] = self._clock.monotonic_ms() + delay_ms
        if self._check_timer is None:
            self._check_timer = self._clock.call_after(delay_ms, self._check_refused)

    def _check_refused(self) -> None:
        """One timer serves all: it is set again for those that are not due."""
        self._check_timer = None
        if self._is_stopped:
            return
        now_ms = self._clock.monotonic_ms()
        due = [proposer for proposer, due_ms in self._to_check.items() if due_ms <= now_ms]
        for proposer in due:
            del self._to_check[proposer]
        if self._to_check:
            delay_ms = max(min(self._to_check.values()) - now_ms, SHORTEST_LOOK_AHEAD_MS)
            self._check_timer = self._clock.call_after(delay_ms, self._check_refused)
        for proposer in due:
            proposer.check_in_sync()

    # Life

    def start(self, table: PartitionTable, image: MetadataImage, broker_epoch: int) -> None:
        """Follow and lead as the table does. Called once, between two commits, after the table has loaded its logs and
        this broker has registered. The metadata may have an earlier registration of it, under which it must not fetch:
        its log may have lost records since (KIP-903)."""
        self._table = table
        self._own_broker_epoch = broker_epoch
        self._brokers = dict(image.brokers)
        self._follow_throttles(image)
        self.follow_all()
        self._schedule_check()
        self._schedule_contact_check()

    def register_again(self, broker_epoch: int) -> None:
        """This broker has another registration, because its session had expired."""
        self._own_broker_epoch = broker_epoch

    def stop(self) -> None:
        """Nothing is fetched, and no in-sync set is changed, from this on."""
        self._is_stopped = True
        for timer in (self._timer, self._contact_timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        self._requests.stop()
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()

    # Following the metadata

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Subscriber of the metadata cache, after `PartitionTable.follow`."""
        if self._is_stopped or self._table is None:
            return
        if before.configs is not after.configs:
            self._follow_throttles(after)
        if before.brokers is not after.brokers:
            self._brokers = dict(after.brokers)
            self.follow_all()
        if before.topics is after.topics:
            return
        for name, topic in before.topics.items():
            successor = after.topics.get(name)
            if successor is not topic and (successor is None or successor.topic_id != topic.topic_id):
                for image in topic.partitions:
                    self._release(PartitionKey(topic.topic_id, image.index), None)
        for name, topic in after.topics.items():
            if before.topics.get(name) is not topic:
                hosted = self._table.topic(name)
                for image in topic.partitions:
                    key = PartitionKey(topic.topic_id, image.index)
                    partition = None if hosted is None else hosted.get(image.index)
                    if partition is None:
                        self._release(key, None)
                    else:
                        self._assign(key, partition)

    def _follow_throttles(self, image: MetadataImage) -> None:
        for side, throttle in ((LEADER, self.leader_throttle), (FOLLOWER, self.follower_throttle)):
            throttle.set_partitions(throttled_partitions(image, side, self._node_id))

    def follow_all(self) -> None:
        """Check every partition: brokers have changed, or logs were opened later than the metadata placed them."""
        if self._is_stopped or self._table is None:
            return
        for node_id, fetcher in tuple(self._fetchers.items()):
            if self._address(node_id) != fetcher.client.address:
                del self._fetchers[node_id]
                fetcher.stop()
        for partition in self._table:
            self._assign(PartitionKey(partition.topic_id, partition.index), partition)
            if partition.followers is not None:
                partition.followers.check_in_sync()  # one that is not registered any more is not waited for

    def _assign(self, key: PartitionKey, partition: Partition) -> None:
        """Give the partition to the fetcher of its leader, and to no other."""
        is_followed = partition.leadership is Leadership.FOLLOWER and partition.is_online
        image = partition.image
        fetcher = self._fetcher(image.leader) if is_followed and image is not None else None
        self._release(key, fetcher)
        if fetcher is not None and not fetcher.follows(key, partition):
            fetcher.add(partition)

    def _release(self, key: PartitionKey, kept: FollowerFetcher | None) -> None:
        for node_id, fetcher in tuple(self._fetchers.items()):
            if fetcher is not kept and key in fetcher.keys:
                fetcher.remove(key)
                if not fetcher.keys:
                    fetcher.stop()
                    del self._fetchers[node_id]

    def _fetcher(self, leader: int) -> FollowerFetcher | None:
        """None while the leader has no registration with an address."""
        fetcher = self._fetchers.get(leader)
        if fetcher is not None:
            return fetcher
        address = self._address(leader)
        if address is None:
            return None
        try:
            client = self._clients.to(address, PURPOSE)
        except BrokerUnavailable as problem:
            log.warning("a leader cannot be followed", leader=leader, reason=problem)
            return None
        fetcher = self._fetchers[leader] = FollowerFetcher(
            client,
            self._node_id,
            lambda: self._own_broker_epoch,
            self._broker_config,
            self._clock,
            self.follower_throttle,
            self.counts,
        )
        return fetcher

    def _address(self, node_id: int) -> BrokerAddress | None:
        return broker_address(self._brokers.get(node_id), self._broker_config().inter_broker_listener_name)

    # In-sync sets

    def _schedule_check(self) -> None:
        interval_ms = max(self.lag_time_max_ms / CHECKS_PER_LAG_TIME, SHORTEST_CHECK_MS)
        self._timer = self._clock.call_after(interval_ms, self._check_in_sync)

    def _check_in_sync(self) -> None:
        self._schedule_check()
        for partition in self._led_with_followers():
            assert partition.followers is not None
            partition.followers.check_in_sync()

    def _schedule_contact_check(self) -> None:
        self._contact_timer = self._clock.call_after(CONTACT_CHECK_MS, self._check_contact)

    def _check_contact(self) -> None:
        """At intervals: a leader whose followers are silent may have been replaced without its knowledge. By this time
        the controller has fenced either them or this broker. Requests that wait for them are refused, so that clients
        look for another leader; the records may be committed later, and a retry finds them."""
        self._schedule_contact_check()
        silence_ms = SILENCE_PER_SESSION_TIMEOUT * self._broker_config().broker_session_timeout_ms
        for partition in self._led_with_followers():
            waiting = tuple(partition.waiting_acknowledgements)
            if waiting and partition.followers is not None and partition.followers.is_cut_off(silence_ms):
                for each in waiting:
                    each.finish(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _led_with_followers(self) -> Iterable[Partition]:
        assert self._table is not None
        return [partition for partition in self._table if partition.followers is not None]
