"""Classifies failures of a pipeline: whether a retry may succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from pyspark.errors import AnalysisException, ParseException

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.batch_numbers import BatchUnidentified
from odradek.pipelines.spark.continuing import CheckpointRefused, CheckpointTaken
from odradek.pipelines.spark.delivery import SplitsUnknown
from odradek.pipelines.spark.expectations import STOPS, ExpectationFailed
from odradek.pipelines.spark.failures import SparkProcessEnded
from odradek.pipelines.spark.java import JavaMissing
from odradek.pipelines.spark.sinks.run_epochs import RunReplaced
from odradek.pipelines.spark.sinks.table_changes import WarehouseRefused
from odradek.pipelines.spark.sinks.warehouse import WarehouseUnavailable
from odradek.pipelines.spark.steps import StepBroken
from odradek.pipelines.spark.topics import BrokersUnavailable, TopicMissing
from odradek.pipelines.spark.transactional_writer import TAKEN_OVER

if TYPE_CHECKING:
    from collections.abc import Iterator

# A retry cannot succeed until the definition, the data or what is installed changes.
NEVER: tuple[type[BaseException], ...] = (
    BatchUnidentified,
    CheckpointRefused,
    CheckpointTaken,
    ExpectationFailed,
    JavaMissing,
    RunReplaced,
    StepBroken,
    WarehouseRefused,
    AnalysisException,
    ParseException,
)
# An external system is unavailable or full; a retry succeeds once it is back.
LIKELY: tuple[type[BaseException], ...] = (
    BrokersUnavailable,
    TopicMissing,
    SparkProcessEnded,
    SplitsUnknown,
    WarehouseUnavailable,
    sa.exc.OperationalError,
    OSError,
)
# Parts of messages, for errors whose type is lost on the way through Spark.
NEVER_MESSAGES = (STOPS, TAKEN_OVER, "STATE_STORE_KEY_SCHEMA", "STATE_STORE_VALUE_SCHEMA", "STATE_SCHEMA")
LIKELY_MESSAGES = ("TimeoutException", "DisconnectException", "NotLeaderOrFollower", "No space left on device")


def healing_of(error: BaseException) -> Healing:
    chain = list(causes(error))
    if any(isinstance(each, NEVER) for each in chain) or has_message_part(chain, NEVER_MESSAGES):
        return Healing.NEVER
    if any(isinstance(each, LIKELY) for each in chain) or has_message_part(chain, LIKELY_MESSAGES):
        return Healing.LIKELY
    return Healing.PERHAPS


def causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def has_message_part(chain: list[BaseException], words: tuple[str, ...]) -> bool:
    return any(word in str(each) for each in chain for word in words)
