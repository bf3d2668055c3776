"""The controller's results, one for each thing that a request names: error code, Kafka's message, and outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import uuid

    from odradek.configuration.config_types import ConfigEntry
    from odradek.metadata.client_quotas import QuotaEntity
    from odradek.metadata.entities import TopicImage


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """`configs` are a new topic's effective settings, which CreateTopics 5 and later returns."""

    name: str | None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: uuid.UUID | None = None
    topic: TopicImage | None = None
    configs: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResult:
    resource_type: int
    resource_name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaResult:
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
