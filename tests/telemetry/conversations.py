"""Conversations about telemetry: requests with fixed instance ids, whose answers are recorded from Apache Kafka.

Each conversation has ids with a prefix of its own, which its subscriptions match, so that none disturbs another.
"""

import base64
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.telemetry.subscriptions import java_set_order, subscription_id, uuid_text
from tests.telemetry.otlp_data import counter, metrics_data
from tests.wire import WireClient

CLIENT_METRICS = 16
WAIT_S = 30.0
LONG, SHORT = 60_000, 100
DATA = metrics_data(counter("org.apache.kafka.producer.record.send.total", 5))


class Get(NamedTuple):
    """The number is that of the instance in the conversation; None asks for a new id. `patiently` repeats the request
    while it is throttled."""

    instance: int | None = 1
    patiently: bool = False


class Push(NamedTuple):
    instance: int | UUID = 1
    subscription_offset: int = 0  # added to the right subscription id
    is_terminating: bool = False
    compression: int = 0
    metrics: bytes = b""
    patiently: bool = False


class Alter(NamedTuple):
    """Changes the subscription of the conversation."""

    settings: Mapping[str, str]


Step = Get | Push | Alter
Settings = dict[str, dict[str, str]]  # by the name of a subscription


def _one(interval_ms: int = LONG, metrics: str = "org.apache.kafka.producer.") -> Settings:
    return {"only": {"interval.ms": str(interval_ms), "metrics": metrics}}


CONVERSATIONS: dict[str, tuple[Settings, list[Step]]] = {
    "subscriptions are given once in an interval": (_one(), [Get(), Get(), Get(2), Get(None)]),
    "a client without a subscription": ({}, [Get(), Push(), Get()]),
    "all metrics": (_one(metrics="*"), [Get()]),
    "an empty prefix of metrics": ({"only": {"interval.ms": "5000"}}, [Get()]),
    "several metrics": (_one(metrics="a.b,c.d,org.x,org.y,consumer.fetch,producer.,z,y,x,w,v,u,t,s"), [Get()]),
    "two subscriptions": (
        {
            "first": {"interval.ms": "70000", "metrics": "a.b,c.d"},
            "second": {"interval.ms": "60000", "metrics": "c.d,e.f"},
        },
        [Get(), Push(metrics=DATA)],
    ),
    "one of two subscriptions has all metrics": (
        {"first": {"metrics": "a.b"}, "second": {"interval.ms": "60000", "metrics": "*"}},
        [Get()],
    ),
    "a push follows at once, the next one is throttled": (
        _one(),
        [Get(), Push(metrics=DATA), Push(metrics=DATA), Get()],
    ),
    "a push without a request for subscriptions": (_one(), [Push(metrics=DATA), Push(metrics=DATA), Get()]),
    "reserved ids": (_one(), [Push(UUID(int=0)), Push(UUID(int=1))]),
    "a wrong subscription id": (_one(), [Get(), Push(subscription_offset=1), Push(), Get()]),
    "an unknown compression type": (_one(), [Get(), Push(compression=9), Get(), Push()]),
    "a negative compression type": (_one(), [Get(), Push(compression=-1)]),
    "a push that is too large": (_one(), [Get(), Push(metrics=bytes(1_048_577)), Get()]),
    "a wrong subscription id comes before size and compression": (
        _one(),
        [Get(), Push(subscription_offset=1, compression=9, metrics=bytes(1_048_577))],
    ),
    "an unknown compression type comes before size": (_one(), [Get(), Push(compression=9, metrics=bytes(1_048_577))]),
    "the last push": (
        _one(),
        [
            Get(),
            Push(metrics=DATA),
            Push(is_terminating=True, metrics=DATA),
            Push(is_terminating=True),
            Push(is_terminating=True),
            Push(),
            Push(),
            Get(),
        ],
    ),
    "the last push with a wrong subscription id": (
        _one(),
        [Get(), Push(is_terminating=True, subscription_offset=1), Push(is_terminating=True), Push(is_terminating=True)],
    ),
    "codecs": (
        _one(),
        [
            step
            for codec in Compression
            for step in (Get(codec + 1), Push(codec + 1, compression=codec, metrics=compress(codec, DATA)))
        ],
    ),
    "bytes that cannot be decompressed": (
        _one(),
        [
            step
            for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
            for step in (Get(codec), Push(codec, compression=codec, metrics=b"not compressed at all"))
        ],
    ),
    "after an interval": (
        _one(SHORT),
        [Get(), Push(metrics=DATA), Push(metrics=DATA, patiently=True), Get(patiently=True), Push(metrics=DATA)],
    ),
    "a changed subscription is given at once": (
        _one(),
        [
            Get(),
            Get(),
            Alter({"metrics": "org.apache.kafka.consumer."}),
            Get(),
            Push(metrics=DATA),
            Alter({"interval.ms": "50000"}),
            Push(metrics=DATA),
        ],
    ),
    "a client asks again after a wrong subscription id": (
        _one(),
        [Get(), Push(subscription_offset=1), Get(), Get(), Push(), Get()],
    ),
}


def converse(port: int, name: str) -> list[Any]:
    settings, steps = CONVERSATIONS[name]
    number = list(CONVERSATIONS).index(name)
    return _Conversation(port, number, settings).run(steps)


class _Conversation:
    def __init__(self, port: int, number: int, settings: Settings) -> None:
        self._port = port
        self._prefix = b"tele" + number.to_bytes(2, "big")
        self._number = number
        self._settings = {name: dict(each) for name, each in settings.items()}
        self._probes = 1_000

    def run(self, steps: list[Step]) -> list[Any]:
        with WireClient(self._port) as client:
            for name, settings in self._settings.items():
                pattern = f"client_instance_id={base64.urlsafe_b64encode(self._prefix).decode()}.*"
                self._alter(client, name, {**settings, "match": pattern})
            self._await_settings()
            return [self._take(client, step) for step in steps]

    def _take(self, client: WireClient, step: Step) -> Any:
        if isinstance(step, Alter):
            self._settings["only"] |= step.settings
            self._alter(client, "only", step.settings)
            self._await_settings()
            return "altered"
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self._get(client, step) if isinstance(step, Get) else self._push(client, step)
            error = answer["error"] if isinstance(answer, dict) else answer
            if not step.patiently or error != "THROTTLING_QUOTA_EXCEEDED" or time.monotonic() > deadline:
                return answer
            time.sleep(0.01)  # a poll's pause

    def _id(self, number: int) -> UUID:
        return UUID(bytes=self._prefix + number.to_bytes(10, "big"))

    def _get(self, client: WireClient, step: Get) -> dict[str, Any]:
        wanted = UUID(int=0) if step.instance is None else self._id(step.instance)
        answer = client.call(
            GetTelemetrySubscriptionsRequest(client_instance_id=wanted), GetTelemetrySubscriptionsResponse
        )
        is_new = step.instance is None
        return {
            "error": ErrorCode(answer.error_code).name,
            "id": "new" if is_new and answer.client_instance_id.int > 1 else uuid_text(answer.client_instance_id),
            "subscription": "any" if is_new else answer.subscription_id,
            "codecs": list(answer.accepted_compression_types),
            "interval": answer.push_interval_ms,
            "most": answer.telemetry_max_bytes,
            "delta": answer.delta_temporality,
            "metrics": list(answer.requested_metrics),
        }

    def _push(self, client: WireClient, step: Push) -> str:
        instance = step.instance if isinstance(step.instance, UUID) else self._id(step.instance)
        request = PushTelemetryRequest(
            client_instance_id=instance,
            subscription_id=self._expected_subscription(instance) + step.subscription_offset,
            terminating=step.is_terminating,
            compression_type=step.compression,
            metrics=step.metrics,
        )
        return ErrorCode(client.call(request, PushTelemetryResponse).error_code).name

    def _expected_subscription(self, instance: UUID) -> int:
        """Computed by our rule: a push is accepted only if Kafka computes the same."""
        metrics: dict[str, None] = {}
        interval_ms = 300_000
        for settings in self._settings.values():
            metrics |= dict.fromkeys(each for each in settings.get("metrics", "").split(",") if each)
            interval_ms = min(interval_ms, int(settings.get("interval.ms", "300000")))
        chosen = ("*",) if "*" in metrics else java_set_order(list(metrics))
        return subscription_id(chosen, interval_ms, instance)

    def _alter(self, client: WireClient, name: str, settings: Mapping[str, str]) -> None:
        resource = AlterConfigsResource(
            resource_type=CLIENT_METRICS,
            resource_name=f"{self._number}-{name}",
            configs=[AlterableConfig(name=key, config_operation=0, value=value) for key, value in settings.items()],
        )
        answer = client.call(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
        assert [each.error_code for each in answer.responses] == [0], answer

    def _await_settings(self) -> None:
        """Until an instance that was not seen before gets the metrics and the interval of the settings."""
        if not self._settings:
            return
        deadline = time.monotonic() + WAIT_S
        while True:
            self._probes += 1
            with WireClient(self._port) as client:
                instance = self._id(self._probes)
                request = GetTelemetrySubscriptionsRequest(client_instance_id=instance)
                answer = client.call(request, GetTelemetrySubscriptionsResponse)
            if answer.subscription_id == self._expected_subscription(instance):
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)  # a poll's pause
