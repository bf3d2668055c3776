"""The producer that writes a pipeline's records, and its client settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline, TopicTarget

LARGEST_REQUEST_BYTES = str(32 * 1024 * 1024)  # the topic's limit applies
# A micro-batch is complete when all of it is flushed, so that large requests save CPU and add no latency.
MICRO_BATCH_SETTINGS = {"linger.ms": "100", "batch.size": str(128 * 1024)}
# Each producer setting, and the setting that bounds it.
LIMITS = {"linger.ms": "delivery.timeout.ms", "batch.size": "buffer.memory"}


class Producer(NamedTuple):
    """A cluster and client settings; records with equal producers are written together."""

    servers: str
    settings: tuple[tuple[str, str], ...]


def producer_of(pipeline: Pipeline, target: TopicTarget | None = None) -> Producer:
    own: Mapping[str, str] = {} if target is None else target.kafka
    servers = (target.bootstrap_servers if target is not None else None) or pipeline.bootstrap_servers
    settings = {"max.request.size": LARGEST_REQUEST_BYTES, **pipeline.kafka, **own}
    return Producer(servers, tuple(sorted(settings.items())))


def producer_options(producer: Producer, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    own = dict(producer.settings)
    if defaults is None:
        defaults = {key: value for key, value in MICRO_BATCH_SETTINGS.items() if LIMITS[key] not in own}
    client = {**defaults, **own, "bootstrap.servers": producer.servers}
    return {f"kafka.{key}": value for key, value in client.items()}
