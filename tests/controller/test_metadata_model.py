"""Two brokers with a controller, a cache and a failing connection each, on one shared store, under any sequence of
decisions, take-overs and failures.

What must always hold: commits follow each other, and no controller commits after a later one has; every cache equals
the fold of the commits up to its version, and reaches the newest; what was answered is in the store exactly once, even
when the connection broke at the commit and the operation arrived late; producer ids are never allocated twice.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.controller.channel import LocalControllerChannel
from odradek.controller.controller import Controller
from odradek.controller.decisions.configs import AlterOperation, ConfigAlteration, ConfigOperation
from odradek.controller.decisions.topics import NewPartitions, NewTopic
from odradek.controller.requests import AllocateProducerIds, AlterConfigs, CreatePartitions, CreateTopics, DeleteTopics
from odradek.metadata.cache import MetadataCache
from odradek.metadata.change_codec import decode_changes
from odradek.metadata.changes import Change, TopicCreated
from odradek.metadata.commit_parts import join_parts
from odradek.metadata.entities import BrokerImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from tests.example_counts import examples
from tests.metadata.inline_host import CountingEntropy
from tests.metadata.key_value_store import CLUSTER_ID, HEAD, Disconnected, Failure, KeyValueStore, Table

HISTORY_COMMITS = 4  # few, so that a cache that fell behind must load
NAMES = ("a", "b", "c.d")

brokers = st.integers(0, 1)
names = st.sampled_from(NAMES)


class ImpatientClock:
    """Timers run as soon as everything that can run has run."""

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        return 0.0

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.Handle:
        assert delay_ms > 0
        return asyncio.get_running_loop().call_soon(callback)


class Commits:
    """Every commit that became visible in the table, as it did, and the image after each."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.log: list[tuple[int, list[Change]]] = []
        self.images = [empty_image(CLUSTER_ID)]
        table.watchers.append(self._record)

    def _record(self) -> None:
        head = json.loads(self._table.values[HEAD][1])
        for version, controller_epoch, parts in head["commits"]:
            if version > len(self.log):
                assert version == len(self.log) + 1
                numbered = [(number, self._table.values[key][1]) for number, key in enumerate(parts)]
                changes = decode_changes(join_parts(numbered, len(parts)))
                self.log.append((controller_epoch, changes))
                self.images.append(self.images[-1].apply_all(changes))


class Broker:
    def __init__(self, node_id: int, table: Table, commits: Commits, entropy: CountingEntropy) -> None:
        self._commits = commits
        self._entropy = entropy
        self._config = BrokerConfig.from_properties({"node.id": str(node_id)})
        self.node_id = node_id
        self.controller_store = KeyValueStore(table, HISTORY_COMMITS)
        self.cache_store = KeyValueStore(table, HISTORY_COMMITS)
        self.cache = MetadataCache(self.cache_store, self._config, ImpatientClock())
        self.cache.subscribe(self._follow)
        self.followed: list[int] = []
        self.channel: LocalControllerChannel | None = None
        self.controller: Controller | None = None

    async def start_controller(self) -> None:
        controller = Controller(self.controller_store, self._config, self._entropy)
        await controller.start()
        self.controller = controller
        self.channel = LocalControllerChannel(controller, self.cache)
        endpoints = {"PLAINTEXT": Endpoint("localhost", 9092)}
        await self.channel.register_broker(BrokerImage(self.node_id, endpoints))

    async def _follow(self, before: MetadataImage, after: MetadataImage) -> None:
        assert before.version < after.version
        assert after == self._commits.images[after.version]
        assert not self.followed or self.followed[-1] == before.version, "subscribers see every image in order"
        await asyncio.sleep(0)
        assert self.cache.image is after, "no commit is applied while a subscriber runs"
        self.followed.append(after.version)


class MetadataMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.table = Table()
        self.commits = Commits(self.table)
        entropy = CountingEntropy()
        self.brokers = [Broker(node_id, self.table, self.commits, entropy) for node_id in range(2)]
        self.allocated: list[int] = []
        self.answered_topics: list[Any] = []

    def teardown(self) -> None:
        for broker in self.brokers:
            self.loop.run_until_complete(broker.cache.close())
        self.loop.close()

    @initialize()
    def load(self) -> None:
        for broker in self.brokers:
            self.loop.run_until_complete(broker.cache.load())

    def attempt(self, *requests: Awaitable[None]) -> None:
        """Concurrently; a failure is allowed, a false answer is not."""

        async def run() -> None:
            for outcome in await asyncio.gather(*requests, return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, Disconnected | StoreError):
                    raise outcome

        self.loop.run_until_complete(run())

    @rule(broker=brokers)
    def take_over(self, broker: int) -> None:
        self.attempt(self.brokers[broker].start_controller())

    @rule(broker=brokers, operations=st.integers(0, 8), failure=st.sampled_from(Failure), is_cache=st.booleans())
    def break_connection(self, broker: int, operations: int, failure: Failure, is_cache: bool) -> None:
        chosen = self.brokers[broker]
        connection = (chosen.cache_store if is_cache else chosen.controller_store).connection
        connection.failing_operation = operations
        connection.failure = failure

    @rule()
    def late_operations_arrive(self) -> None:
        async def arrive() -> None:
            late, self.table.late[:] = list(self.table.late), []
            for operation in late:
                operation()

        self.loop.run_until_complete(arrive())

    @rule(broker=brokers, name=names)
    def create(self, broker: int, name: str) -> None:
        self.attempt(self._create(self.brokers[broker], name))

    @rule(name=names)
    def create_on_both(self, name: str) -> None:
        self.attempt(*(self._create(broker, name) for broker in self.brokers))

    async def _create(self, broker: Broker, name: str) -> None:
        if broker.channel is None:
            return
        (result,) = await broker.channel.ask(
            CreateTopics([NewTopic(name=name, partition_count=2, replication_factor=1)])
        )
        if result.error is ErrorCode.NONE:
            self.answered_topics.append(result.topic_id)
            created = next(version for version, each in enumerate(self._created(), 1) if result.topic_id in each)
            assert broker.cache.applied_version >= created, "the request sees its own change"

    def _created(self) -> list[set[Any]]:
        """The ids of the topics that each commit creates."""
        return [
            {change.topic.topic_id for change in changes if isinstance(change, TopicCreated)}
            for _, changes in self.commits.log
        ]

    @rule(broker=brokers, name=names)
    def delete(self, broker: int, name: str) -> None:
        self._ask(broker, lambda channel: channel.ask(DeleteTopics([name])))

    @rule(broker=brokers, name=names, count=st.integers(1, 4))
    def grow(self, broker: int, name: str, count: int) -> None:
        self._ask(broker, lambda channel: channel.ask(CreatePartitions([NewPartitions(name=name, count=count)])))

    @rule(broker=brokers, value=st.integers(1000, 1003))
    def configure(self, broker: int, value: int) -> None:
        operation = ConfigOperation("message.max.bytes", AlterOperation.SET, str(value))
        alteration = ConfigAlteration(ConfigResourceType.BROKER, "", [operation])
        self._ask(broker, lambda channel: channel.ask(AlterConfigs([alteration])))

    @rule(concurrent=st.lists(brokers, min_size=1, max_size=4))
    def allocate(self, concurrent: list[int]) -> None:
        self.attempt(*(self._allocate(self.brokers[broker]) for broker in concurrent))

    async def _allocate(self, broker: Broker) -> None:
        if broker.channel is not None:
            self.allocated.append(await broker.channel.ask(AllocateProducerIds(10)))

    def _ask(self, broker: int, ask: Callable[[LocalControllerChannel], Awaitable[Any]]) -> None:
        channel = self.brokers[broker].channel
        if channel is not None:
            self.attempt(ask(channel))

    @invariant()
    def no_controller_commits_after_a_later_one(self) -> None:
        epochs = [controller_epoch for controller_epoch, _ in self.commits.log]
        assert epochs == sorted(epochs)

    @invariant()
    def answers_are_in_the_store_exactly_once(self) -> None:
        created = [topic_id for ids in self._created() for topic_id in ids]
        assert len(set(created)) == len(created)
        assert set(self.answered_topics) <= set(created)
        assert len(set(self.allocated)) == len(self.allocated)
        assert all(first + 10 <= self.commits.images[-1].next_producer_id for first in self.allocated)

    @invariant()
    def controllers_decide_on_a_fold_of_the_commits(self) -> None:
        for broker in self.brokers:
            if broker.controller is not None:
                assert broker.controller.image == self.commits.images[broker.controller.image.version]

    @invariant()
    def caches_reach_the_newest_commit(self) -> None:
        """Also after a read that failed: it is retried."""
        newest = self.commits.images[-1]
        for broker in self.brokers:
            if broker.cache.applied_version < 0:
                continue
            self.loop.run_until_complete(self._reach(broker, newest.version))
            assert broker.cache.image == newest
            assert broker.cache.applied_version == newest.version
            expected = newest.configs_of(ConfigResourceType.BROKER, "").get("message.max.bytes", "1048588")
            assert str(broker.cache.broker_config.values["message.max.bytes"]) == expected

    async def _reach(self, broker: Broker, version: int) -> None:
        try:
            await broker.cache.wait_until_applied(version)
        except Disconnected:
            await broker.cache.wait_until_applied(version)


TestMetadata = MetadataMachine.TestCase
TestMetadata.settings = settings(
    max_examples=examples(20), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
