"""The coordinator of transactions: shards of `__transaction_state` on the runtime, with what their rules need of the
broker. Handlers call it; it answers at once, or when the records of the decision are committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from odradek.controller.decisions.topics import NewTopic
from odradek.conventions.dataclass import dataclass
from odradek.coordinator.runtime.expiry import Expiry
from odradek.coordinator.runtime.internal_topic import InternalTopic, replication_factor
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.transactions import transaction_rules as rules
from odradek.coordinator.transactions.cluster_markers import ClusterMarkers
from odradek.coordinator.transactions.confirmations import ClusterConfirmations, LocalConfirmations
from odradek.coordinator.transactions.local_markers import LocalMarkers
from odradek.coordinator.transactions.markers import MarkerWriter
from odradek.coordinator.transactions.transaction import ProducerIdentity, TransactionVersion
from odradek.coordinator.transactions.transaction_shard import TransactionShard
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.producer_ids import ProducerIds
    from odradek.coordinator.runtime.shard import Shard
    from odradek.coordinator.runtime.waiting_response import WaitingResponse
    from odradek.coordinator.transactions.peers import Peers
    from odradek.coordinator.transactions.transaction import Transaction
    from odradek.coordinator.transactions.transaction_rules import Outcome
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.clock_skew_guard import ClockSkewGuard
    from odradek.replica.partition_table import PartitionTable

TRANSACTIONS_TOPIC = "__transaction_state"
IDS_PER_SLICE = 500

NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def transactions_topic(config: BrokerConfig, broker_count: int) -> NewTopic:
    values: Mapping[str, Any] = config.values
    replicas = replication_factor(config, "transaction.state.log.replication.factor", broker_count)
    return NewTopic(
        name=TRANSACTIONS_TOPIC,
        partition_count=values["transaction.state.log.num.partitions"],
        replication_factor=replicas,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(min(values["transaction.state.log.min.isr"], replicas)),
            "segment.bytes": str(values["transaction.state.log.segment.bytes"]),
            "unclean.leader.election.enable": "false",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """The broker's settings for transactions, as plain values that rules take."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 7 * 24 * 60 * 60_000  # of transactional ids that are not used
    expiry_check_interval_ms: int = 60 * 60_000
    verifies_partitions: bool = True
    commit_timeout_ms: int = 5_000  # how long an answer waits for its records to be committed


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    values: Any = config.values
    return TransactionSettings(
        max_timeout_ms=values["transaction.max.timeout.ms"],
        expiration_ms=values["transactional.id.expiration.ms"],
        expiry_check_interval_ms=values["transaction.remove.expired.transaction.cleanup.interval.ms"],
        verifies_partitions=values["transaction.partition.verification.enable"],
    )


class InitResult(NamedTuple):
    error: ErrorCode
    identity: ProducerIdentity = NO_IDENTITY


# The rule of a request, by the transaction, the time and a new producer id, if one was allocated.
Decide: TypeAlias = "Callable[[Transaction | None, int, int | None], Outcome]"
MakeResult: TypeAlias = "Callable[[ErrorCode, Transaction | None], InitResult]"


class TransactionCoordinator:
    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        controller: ControllerChannel,
        partitions: PartitionTable,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
        time: ClockSkewGuard,
        peers: Peers | None = None,
    ) -> None:
        """`peers` are the other brokers of a cluster."""
        self._host = host
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._settings: tuple[BrokerConfig, TransactionSettings] | None = None
        self._is_stopping = False
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            host.clock, self._make_shard, answer_timeout_ms=lambda: self.settings().commit_timeout_ms
        )
        self.topic = InternalTopic(
            TRANSACTIONS_TOPIC, transactions_topic, self._runtime, metadata, controller, partitions, host.clock
        )
        self._expiry = Expiry(
            self._runtime,
            host.clock,
            time,
            interval_ms=lambda: self.settings().expiry_check_interval_ms,
            keys=lambda shard: shard.transactions,
            expire=lambda shard, transactional_id: shard.expire(transactional_id, self.settings().expiration_ms),
            keys_per_slice=IDS_PER_SLICE,
        )
        self.leaders = LocalMarkers(partitions, groups, host.clock)
        run = self._runtime.run
        leaders = self.leaders if peers is None else ClusterMarkers(self.leaders, peers, host.clock, run)
        self._markers = MarkerWriter(leaders, host.clock, run)
        self.confirmations: LocalConfirmations | ClusterConfirmations
        if peers is None:
            self.confirmations = LocalConfirmations(self)
        else:
            self.confirmations = ClusterConfirmations(self, peers, host.clock, run)
        self.find = self._runtime.find
        self.shards = self._runtime.shards
        self.present_shards = self._runtime.present_shards

    def _make_shard(self, shard: Shard[TransactionShard]) -> TransactionShard:
        return TransactionShard(shard, self._host.clock.now_ms, self._markers)

    def settings(self) -> TransactionSettings:
        """Read again for every decision, because some settings change at run time."""
        config = self._metadata.broker_config
        if self._settings is None or self._settings[0] is not config:
            self._settings = config, transaction_settings(config)
        return self._settings[1]

    # Requests

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> InitResult | Awaitable[InitResult]:
        if not 0 < timeout_ms <= self.settings().max_timeout_ms:
            return InitResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

        def decide(current: Transaction | None, now_ms: int, new_producer_id: int | None) -> Outcome:
            return rules.init_producer(current, timeout_ms, expected, now_ms, new_producer_id)

        return self._decide_with_producer_id(
            transactional_id,
            decide,
            lambda transaction: ProducerIdentity(transaction.producer_id, transaction.producer_epoch),
        )

    def end(
        self, transactional_id: str, producer: ProducerIdentity, version: TransactionVersion, *, commits: bool
    ) -> InitResult | Awaitable[InitResult]:
        def decide(current: Transaction | None, now_ms: int, new_producer_id: int | None) -> Outcome:
            return rules.end_transaction(
                current, producer, version, now_ms, commits=commits, new_producer_id=new_producer_id
            )

        return self._decide_with_producer_id(transactional_id, decide, rules.answer_identity)

    def _decide_with_producer_id(
        self, transactional_id: str, decide: Decide, identity_of: Callable[[Transaction], ProducerIdentity]
    ) -> InitResult | Awaitable[InitResult]:
        """A producer id is allocated only for a rule that needs one, and the rule decides again: another request
        may have changed the transaction since."""

        def result(error: ErrorCode, transaction: Transaction | None) -> InitResult:
            has_identity = error is ErrorCode.NONE and transaction is not None
            return InitResult(error, identity_of(transaction) if has_identity and transaction else NO_IDENTITY)

        decided = self._decide(transactional_id, decide, result, None)
        return self._decide_with_new_id(transactional_id, decide, result) if decided is None else decided

    def _decide(
        self, transactional_id: str, decide: Decide, result: MakeResult, new_producer_id: int | None
    ) -> InitResult | WaitingResponse | None:
        """None when the rule needs a new producer id."""
        shard = self._runtime.find_for_shared_write(transactional_id)
        if isinstance(shard, ErrorCode):
            return InitResult(shard)
        outcome = decide(shard.get(transactional_id), shard.now_ms(), new_producer_id)
        return None if outcome.needs_producer_id else shard.carry_out(transactional_id, outcome, result)

    async def _decide_with_new_id(self, transactional_id: str, decide: Decide, result: MakeResult) -> InitResult:
        while True:
            try:
                new_producer_id = await self._producer_ids.allocate()
            except StoreError:
                return InitResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            decided = self._decide(transactional_id, decide, result, new_producer_id)
            if decided is not None:
                return decided if isinstance(decided, InitResult) else await decided

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        version: TransactionVersion,
    ) -> ErrorCode | WaitingResponse:
        shard = self._runtime.find_for_shared_write(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        outcome = rules.add_partitions(
            shard.get(transactional_id), producer, frozenset(partitions), version, shard.now_ms()
        )
        return shard.carry_out(transactional_id, outcome, lambda error, _: error)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode] | WaitingResponse:
        """A partition that has joined is confirmed when that is committed: otherwise a crash could leave what is
        written there without its transaction, open for ever."""
        shard = self._runtime.find_for_shared_write(transactional_id)
        if isinstance(shard, ErrorCode):
            return dict.fromkeys(partitions, shard)
        verified = rules.verify_partitions(shard.get(transactional_id), producer, partitions)
        return shard.answer_directly(verified, lambda error: dict.fromkeys(partitions, error))

    # Shards

    def start(self) -> None:
        """Begin to load the shards; a client whose shard is loading gets COORDINATOR_LOAD_IN_PROGRESS."""
        self.topic.follow_leaderships()
        self._expiry.start()
        self._metadata.subscribe(self.follow)

    def stop(self) -> None:
        """Every request that waits gets NOT_COORDINATOR."""
        self._is_stopping = True
        self._expiry.stop()
        self._runtime.stop()

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Called when the metadata has changed, after the partition table."""
        if before.topics is not after.topics and not self._is_stopping:
            self.topic.follow_leaderships()
