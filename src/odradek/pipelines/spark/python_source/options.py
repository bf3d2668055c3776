"""The options of the source: the subset of Spark's Kafka connector's options that pipelines use."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.python_source.offsets import Partition, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

EARLIEST, LATEST = -2, -1  # the sentinel offsets of Kafka's protocol
CLIENT = "kafka."
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class Edge:
    """The start or end of reading: a time, or offsets with a default for partitions that are not named."""

    other: int
    offsets: Mapping[Partition, int] = field(default_factory=dict)
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TopicOptions:
    topics: tuple[str, ...]
    pattern: str | None
    start: Edge
    end: Edge
    most: int | None  # records per batch of a stream
    is_loss_fatal: bool
    has_headers: bool
    client: tuple[tuple[str, str], ...]  # settings of librdkafka

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TopicOptions:
        """Parses Spark's options, whose names are case-insensitive."""
        given = {name.lower(): value for name, value in options.items()}
        client = {name.removeprefix(CLIENT): value for name, value in given.items() if name.startswith(CLIENT)}
        most = given.get("maxoffsetspertrigger")
        return cls(
            topics=tuple(filter(None, given.get("subscribe", "").split(","))),
            pattern=given.get("subscribepattern"),
            start=edge(given, "starting", EARLIEST),
            end=edge(given, "ending", LATEST),
            most=None if most is None else int(most),
            is_loss_fatal=given.get("failondataloss", "true").lower() != "false",
            has_headers=given.get("includeheaders", "false").lower() == "true",
            client=tuple(sorted(librdkafka_settings(client).items())),
        )

    def wants(self, topic: str) -> bool:
        if self.pattern is None:
            return topic in self.topics
        return topic not in INTERNAL and re.fullmatch(self.pattern, topic) is not None


def edge(given: Mapping[str, str], which: str, default: int) -> Edge:
    time = given.get(f"{which}timestamp")
    if time is not None:
        return Edge(LATEST, time_ms=int(time))  # a time after the last record means the end
    text = given.get(f"{which}offsets")
    if text is None:
        return Edge(default)
    if text in {"earliest", "latest"}:
        return Edge(EARLIEST if text == "earliest" else LATEST)
    return Edge(default, from_json(json.loads(text)))
