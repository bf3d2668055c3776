"""The settings of consumer, share and streams groups: their table, and the limits set by broker properties."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import ConfigError, Value
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.configuration.broker_configs import BrokerConfig

_DURATION = re.compile(r"(?ai)P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?")


def offset_reset(value: Value) -> str | None:
    text = str(value)
    if text in ("earliest", "latest"):
        return None
    strategy, _, duration = text.partition(":")
    if strategy == "by_duration" and _DURATION.fullmatch(duration):
        return None
    return "the value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"


GROUP_CONFIGS = read_table(
    """
consumer.assignment.interval.ms INT 1000 [0,] - < group.consumer.assignment.interval.ms
    The least time between two assignments of the group.
consumer.heartbeat.interval.ms INT 5000 [1,] - < group.consumer.heartbeat.interval.ms
    How often members report.
consumer.session.timeout.ms INT 45000 [1,] - < group.consumer.session.timeout.ms
    After how long without a heartbeat a member is removed.
share.assignment.interval.ms INT 1000 [0,] - < group.share.assignment.interval.ms
    The least time between two assignments of the group.
share.auto.offset.reset STRING latest offset-reset -
    Where a share group begins in a partition: earliest, latest, or by_duration:<ISO 8601 duration> before now.
share.delivery.count.limit INT 5 [2,] - < group.share.delivery.count.limit
    How often a record is delivered at most.
share.heartbeat.interval.ms INT 5000 [1,] - < group.share.heartbeat.interval.ms
    How often members report.
share.isolation.level STRING read_uncommitted {read_committed,read_uncommitted} -
    Whether records of open or aborted transactions are delivered.
share.partition.max.record.locks INT 2000 [100,] - < group.share.partition.max.record.locks
    How many records of a partition may be in flight.
share.record.lock.duration.ms INT 30000 [1000,] - < group.share.record.lock.duration.ms
    How long a delivered record is locked for its consumer.
share.renew.acknowledge.enable BOOLEAN true - -
    Whether a consumer may renew its lock on a record.
share.session.timeout.ms INT 45000 [1,] - < group.share.session.timeout.ms
    After how long without a heartbeat a member is removed.
streams.assignment.interval.ms INT 1000 [0,] - < group.streams.assignment.interval.ms
    The least time between two assignments of the group.
streams.heartbeat.interval.ms INT 5000 [1,] - < group.streams.heartbeat.interval.ms
    How often members report.
streams.initial.rebalance.delay.ms INT 3000 [0,] - < group.streams.initial.rebalance.delay.ms
    How long a new group waits for more members before its first assignment.
streams.num.standby.replicas INT 0 [0,] - < group.streams.num.standby.replicas
    How many standby replicas each task has.
streams.session.timeout.ms INT 45000 [1,] - < group.streams.session.timeout.ms
    After how long without a heartbeat a member is removed.
""",
    {"offset-reset": offset_reset},
)


def _limits() -> Iterator[tuple[str, str | None, str]]:
    """The broker properties that limit each setting, in the order of Kafka's checks."""
    for kind, names in (
        ("consumer", ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")),
        (
            "share",
            (
                "heartbeat.interval.ms",
                "session.timeout.ms",
                "record.lock.duration.ms",
                "delivery.count.limit",
                "partition.max.record.locks",
                "assignment.interval.ms",
            ),
        ),
        ("streams", ("heartbeat.interval.ms", "session.timeout.ms")),
    ):
        for name in names:
            yield f"{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
    yield "streams.num.standby.replicas", None, "group.streams.max.standby.replicas"
    yield (
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    )


_LIMITS = tuple(_limits())


def effective_group_values(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Value]:
    return {
        name: definition.parse(overrides[name])
        if name in overrides
        else broker.values[definition.synonyms[0].name]
        if definition.synonyms
        else definition.default
        for name, definition in GROUP_CONFIGS.items()
    }


def check_group_configs(overrides: Mapping[str, str], broker: BrokerConfig) -> Refusal | None:
    for name in overrides:
        if name not in GROUP_CONFIGS:
            return _refuse(f"Unknown group config name: {name}")
    try:
        values = effective_group_values(overrides, broker)
    except ConfigError as error:
        return _refuse(str(error))

    def number(source: Mapping[str, Value], name: str) -> int:
        return cast("int", source[name])

    for name, lowest, highest in _LIMITS:
        if name.endswith("assignment.interval.ms") and name not in overrides:
            continue
        if lowest is not None and number(values, name) < number(broker.values, lowest):
            return _refuse(f"{name} must be greater than or equal to {lowest}")
        if number(values, name) > number(broker.values, highest):
            return _refuse(f"{name} must be less than or equal to {highest}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if number(values, session) <= number(values, heartbeat):
            return _refuse(f"{session} must be greater than {heartbeat}")
    return None


def _refuse(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)
