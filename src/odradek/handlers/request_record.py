"""What a request has to be recorded with when its response is known: its API, header, quota meter and times.

The stages of a request, in which its time is counted:

- queue: from the arrival of its last bytes to its turn on the connection, without the waits of the request before it
- handler: on the event loop, until the response or the first wait
- log: waiting for a worker: fsync by flush.messages, reads of old records, conversion of large batches
- replication: waiting for other replicas, or for the commit of a coordinator's records
- controller: waiting for the controller
- wait: as the client asked: a fetch for records, a member for its group
- throttle: after the response, because of a quota
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from odradek.handlers.answers import Answer, encode_answer
from odradek.metrics.request_metrics import CONNECTION_CLOSED
from odradek.protocol.compile_error_finder import error_finder
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.handlers.api import Api
    from odradek.handlers.context import ClientConnection, RequestContext
    from odradek.handlers.slow_requests import SlowRequests
    from odradek.host.clock import Clock
    from odradek.metrics.request_metrics import ApiMetrics
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Response

LOG = "log"
REPLICATION = "replication"
CONTROLLER = "controller"
WAIT = "wait"

BY_DESIGN = frozenset({WAIT})
NO_WAITS: Mapping[str, float] = MappingProxyType({})
_ERROR_NAMES = {int(error): error.name for error in ErrorCode}
_STAGES = {
    "Fetch": WAIT,
    "JoinGroup": WAIT,
    "SyncGroup": WAIT,
    "SaslAuthenticate": WAIT,
    "ListOffsets": LOG,
    "DescribeLogDirs": LOG,
    "OffsetForLeaderEpoch": LOG,
    "DescribeBrokerMetrics": WAIT,
    "InitProducerId": CONTROLLER,
    "FindCoordinator": CONTROLLER,
    "Metadata": CONTROLLER,
}
"""What a request waits for where its handler does not say it. Forwarded requests wait for the controller, all others
for replicas or coordinators."""


def count_errors(metrics: ApiMetrics, response: Response | None) -> None:
    """Once for each error code that the response has; a request with acks=0 has none."""
    if response is None:
        return
    errors = error_finder(type(response))(response)
    if errors:
        for code in errors:
            metrics.failed(_ERROR_NAMES.get(code, str(code)))


class MeasuredApi:
    """An API with its metrics."""

    __slots__ = ("_slow", "api", "metrics", "stage")

    def __init__(self, api: Api, metrics: ApiMetrics, slow: SlowRequests) -> None:
        self.api = api
        self.metrics = metrics
        self.stage = _STAGES.get(api.name, CONTROLLER if api.is_forwarded else REPLICATION)
        self._slow = slow

    def closed(self, queue_ms: float, handler_ms: float) -> None:
        """The connection is closed instead of an answer."""
        self.metrics.failed(CONNECTION_CLOSED)
        self.metrics.answered(queue_ms, handler_ms)

    def count_throttle_and_slowness(
        self,
        header: RequestHeader,
        connection: ClientConnection,
        queue_ms: float,
        handler_ms: float,
        now_ms: float,
        waits: Mapping[str, float] = NO_WAITS,
    ) -> None:
        """Counts the throttling of a request, and reports it if it has taken long; `waits` are its waits by stage."""
        metrics = self.metrics
        if connection.throttle_ms:
            metrics.throttled(connection.throttle_ms)
        waited_ms = sum([duration_ms for stage, duration_ms in waits.items() if stage not in BY_DESIGN])
        if queue_ms + handler_ms + waited_ms >= self._slow.threshold_ms:
            metrics.slow_count += 1
            times_ms = {"queue": queue_ms, "handler": handler_ms, **waits}
            self._slow.report(self.api.name, header, connection, times_ms, now_ms)


class RequestRecord:
    """A request that waits."""

    __slots__ = ("_clock", "_handler_ms", "_paused_ms", "_queue_ms", "context", "header", "measured")

    def __init__(
        self,
        measured: MeasuredApi,
        header: RequestHeader,
        context: RequestContext,
        clock: Clock,
        queue_ms: float,
        started_ms: float,
    ) -> None:
        self.measured = measured
        self.header = header
        self.context = context
        self._clock = clock
        self._queue_ms = queue_ms
        self._paused_ms = clock.monotonic_ms()
        self._handler_ms = self._paused_ms - started_ms

    def finish(self, response: Response | None) -> Answer:
        """Charges quotas, encodes the response and counts the request."""
        context = self.context
        if context.meter is not None:
            context.meter.finish(response)
        answer = encode_answer(self.measured.api, self.header, response)
        count_errors(self.measured.metrics, response)
        self.count()
        return answer

    def abandon(self) -> None:
        """The client has disconnected."""
        self.context.abandon()

    def fail(self) -> None:
        """The connection is closed instead of an answer."""
        self.abandon()
        self.measured.metrics.failed(CONNECTION_CLOSED)
        self.count()

    def count(self) -> None:
        now_ms = self._clock.monotonic_ms()
        measured, context = self.measured, self.context
        waits = context.waits
        if waits is None:
            waits = {measured.stage: now_ms - self._paused_ms}
        else:
            rest_ms = max(now_ms - self._paused_ms - sum(waits.values()), 0.0)
            waits[measured.stage] = waits.get(measured.stage, 0.0) + rest_ms
        queue_ms, handler_ms = self._queue_ms, self._handler_ms
        measured.metrics.answered_later(queue_ms, handler_ms, waits)
        measured.count_throttle_and_slowness(self.header, context.connection, queue_ms, handler_ms, now_ms, waits)
