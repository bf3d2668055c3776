"""Rules of the rigs pipeline that SQL cannot say: a pump from which nothing has been heard for a while."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "silent"


class Silence(StatefulProcessor):
    """One warning when a pump has been silent for the time in the definition; the next after it was heard again.

    A pump has one timer. When it goes off and the pump was heard meanwhile, it is set again for the remaining time:
    a record costs one update of the state and no timer.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.heard = handle.getValueState("heard", "heard_ms BIGINT, event_ms BIGINT, reported_ms BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        was_silent = not self.heard.exists()
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        newest = max((milliseconds(row.event_time), milliseconds(row.reported_at)) for row in rows)
        self.heard.update((now_ms, *newest))
        if was_silent:
            self.handle.registerTimer(now_ms + self.timeout_ms)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        heard_ms, event_ms, reported_ms = self.heard.get()
        silent_ms = timerValues.getCurrentProcessingTimeInMs() - heard_ms
        if silent_ms < self.timeout_ms:
            self.handle.registerTimer(heard_ms + self.timeout_ms)
            return
        self.heard.clear()
        yield Row(
            hcid=key[0],
            rule=RULE,
            value=silent_ms / 1000,
            bound=self.timeout_ms / 1000,
            event_time=moment(event_ms),
            reported_at=moment(reported_ms + self.timeout_ms),  # when silence became a fact: latency counts from here
        )


def milliseconds(time: datetime) -> int:
    """Spark hands over times without a zone, in the machine's own."""
    return round(time.timestamp() * 1000)


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
