"""Client telemetry of one broker: the instances that have asked for subscriptions, and the values that they pushed.

The behaviour towards clients is that of Kafka's ClientMetricsManager: at most 16,384 instances, the least recently used
one makes room; an instance ends with its connection, or after three intervals without a request. The values that it has
pushed stay until they expire.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.host.worker_turns import WorkerTurns
from odradek.protocol.compression import Compression, decompress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.telemetry.client_values import ClientValueStore
from odradek.telemetry.instances import ClientInstance
from odradek.telemetry.otlp import read_metrics
from odradek.telemetry.subscriptions import ALL_METRICS, read_subscriptions, request_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Clock
    from odradek.host.entropy import Entropy
    from odradek.metadata.image import ConfigResource
    from odradek.protocol.records import Pause
    from odradek.telemetry.client_values import ClientValues
    from odradek.telemetry.otlp import Point
    from odradek.telemetry.subscriptions import ClientFacts, Requested, Subscription
    from odradek.telemetry.totals import Aggregate

MOST_INSTANCES = 16_384
LARGEST_RATIO = 8  # of decompressed to `telemetry.max.bytes`
MOST_PARSED_BYTES = 1 << 20
MOST_WAITING_PUSHES = 32
EXPIRY_CHECK_MS = 10_000
RESERVED_IDS = frozenset({UUID(int=0), UUID(int=1)})


class Push(NamedTuple):
    """The fields of a PushTelemetry request."""

    instance_id: UUID
    subscription_id: int
    is_terminating: bool
    compression: int
    metrics: bytes


def read_push(push: Push, most_bytes: int, pause: Pause | None = None) -> list[Point] | None:
    """The values of a push; None if it cannot be read. Decompression stops at the limit, and allocates no more.
    `pause`: see `read_metrics`."""
    try:
        limit_bytes = min(LARGEST_RATIO * most_bytes, MOST_PARSED_BYTES)
        data = decompress(Compression(push.compression), push.metrics, limit_bytes)
        return read_metrics(data, pause)
    except MalformedMessage:
        return None


class ClientTelemetry:
    """A periodic task of housekeeping: it forgets what has expired."""

    name = "expiry of client telemetry"

    def __init__(
        self, clock: Clock, entropy: Entropy, configs: Callable[[], Mapping[ConfigResource, Mapping[str, str]]]
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._configs = configs
        self._seen_configs: Mapping[ConfigResource, Mapping[str, str]] | None = None
        self._subscriptions: tuple[Subscription, ...] = ()
        self._version = 0
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()  # the least recently used first
        self.values = ClientValueStore()
        self.read_turns = WorkerTurns(MOST_WAITING_PUSHES)  # pushes are parsed one at a time

    def subscribe(self, instance_id: UUID, client: ClientFacts) -> tuple[UUID, Requested] | ErrorCode:
        """The id of the instance, a new one if it has none, and what it is asked for."""
        if instance_id.int == 0:
            instance_id = self._new_id()
        now_ms = self._clock.monotonic_ms()
        instance = self._instance(instance_id, client, now_ms)
        error = instance.check_get(now_ms)
        if error:
            return error
        instance.last_error = ErrorCode.NONE
        return instance_id, instance.requested

    def begin_push(self, push: Push, client: ClientFacts, most_bytes: int) -> ClientInstance | ErrorCode:
        """The instance if the push is accepted; its metrics are to be read then."""
        if push.instance_id in RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        now_ms = self._clock.monotonic_ms()
        instance = self._instance(push.instance_id, client, now_ms)
        error = instance.check_push(
            now_ms,
            subscription_id=push.subscription_id,
            is_terminating=push.is_terminating,
            compression=push.compression,
            size_bytes=len(push.metrics),
            most_bytes=most_bytes,
        )
        return error or instance

    def finish_push(self, instance: ClientInstance, push: Push, points: list[Point] | None) -> ErrorCode:
        """Keep the values that `read_push` has found, of the metrics that the client was asked for."""
        if points is None:
            instance.last_error = ErrorCode.INVALID_RECORD
            return ErrorCode.INVALID_RECORD
        requested = instance.requested.metrics
        if push.metrics and requested:
            self.values.take(
                push.instance_id,
                instance.client,
                points if ALL_METRICS in requested else [each for each in points if each.name.startswith(requested)],
                received_bytes=len(push.metrics),
                now_ms=self._clock.now_ms(),
                expires_ms=instance.expires_ms,
            )
        instance.last_error = ErrorCode.NONE
        return ErrorCode.NONE

    def connection_closed(self, instance_id: UUID) -> None:
        """The connection through which the instance was created has closed."""
        self._instances.pop(instance_id, None)

    def instance(self, instance_id: UUID) -> ClientInstance | None:
        return self._instances.get(instance_id)

    def instance_ids(self) -> list[UUID]:
        """Instances that are known by requests or by values, the most recently used first."""
        known = dict.fromkeys(reversed(self._instances))
        return [*known, *(each for each, _ in self.values.items() if each not in known)]

    def values_of(self, instance_id: UUID) -> ClientValues | None:
        return self.values.get(instance_id)

    def aggregates(self) -> list[Aggregate]:
        """The metrics of all clients in a bounded number, for /metrics and the console."""
        return self.values.aggregates()

    @property
    def has_subscriptions(self) -> bool:
        self._follow_subscriptions()
        return bool(self._subscriptions)

    @property
    def instance_count(self) -> int:
        return len(self._instances)

    # --- a periodic task

    def interval_ms(self, config: BrokerConfig) -> float:  # noqa: ARG002 - the interface of periodic tasks
        return EXPIRY_CHECK_MS

    async def run(self, now_ms: int) -> None:  # noqa: ARG002 - expiry goes by the monotonic clock
        self.expire()

    async def stop(self) -> None:
        pass  # it works on memory only

    def expire(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for instance_id in [each for each, found in self._instances.items() if found.expires_ms <= now_ms]:
            del self._instances[instance_id]
        self.values.expire(now_ms)

    # --- instances

    def _instance(self, instance_id: UUID, client: ClientFacts, now_ms: float) -> ClientInstance:
        """Created, or made again if subscriptions have changed: the times of its requests are then reset, so that the
        client gets the change at once."""
        self._follow_subscriptions()
        instance = self._instances.get(instance_id)
        if instance is not None and instance.expires_ms <= now_ms:
            instance = None
        if instance is None or instance.subscription_version < self._version:
            facts = client if instance is None else instance.client
            requested = request_of(self._subscriptions, instance_id, facts)
            instance = self._instances[instance_id] = ClientInstance(facts, requested, self._version)
            if len(self._instances) > MOST_INSTANCES:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        instance.touch(now_ms)
        return instance

    def _follow_subscriptions(self) -> None:
        configs = self._configs()
        if configs is not self._seen_configs:
            self._seen_configs = configs
            subscriptions = read_subscriptions(configs)
            if subscriptions != self._subscriptions:
                self._subscriptions = subscriptions
                self._version += 1

    def _new_id(self) -> UUID:
        while (candidate := self._entropy.uuid()) in self._instances:
            pass
        return candidate
