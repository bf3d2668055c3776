"""Quotas of clients while requests are handled: what a request has used, and how long its client is throttled for it.

A `RequestMeter` exists only while a quota of a user or client id is configured. It is charged once, when the response
is known or the connection is closed; the bytes of a Produce request when it begins to wait. A Produce request that is
answered at once is charged without a meter. The throttle time goes into the response, and into
`ClientConnection.throttle_ms`: the connection takes no further request for that long, so that a client that ignores the
throttle time is throttled all the same (KIP-219).

Departures from Kafka: the request percentage counts the time on the event loop, of which there is one, but neither
that of workers, which read from disks, nor that of sending. Time before the client is authenticated is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.handlers.answers import API_VERSIONS_KEY
from odradek.protocol.messages.produce import ProduceRequest
from odradek.security.quotas.client_quotas import ClientQuotas
from odradek.security.quotas.connection_rate import ConnectionRates
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, LimitedMutations, MutationQuota
from odradek.security.quotas.rate import QuotaWindow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import Api
    from odradek.host.clock import Clock
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Response
    from odradek.security.principals import Principal
    from odradek.security.quotas.client_quotas import ClientLimits

THROTTLE_FIELD = "throttle_time_ms"

PRODUCE_KEY = ProduceRequest.api_key
_SIZE_AND_CORRELATION_BYTES = 8


class LimitedClient(Protocol):
    """The peer of a connection, as far as quotas are concerned."""

    principal: Principal
    listener_name: str
    limits: ClientLimits | None
    throttle_ms: int


class QuotaEnforcement:
    """Owns the quotas of a broker; `follow` keeps them up to date with the metadata."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        window = QuotaWindow(config.quota_window_num, config.quota_window_size_seconds * 1000)
        controller_window = QuotaWindow(
            config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000
        )
        self.clients = ClientQuotas(window, controller_window)
        self.connections = ConnectionRates(window)
        self.broker_listener = config.inter_broker_listener_name if config.zookeeper_connect else None
        """None for a single broker."""
        self.is_active = False
        """Whether any request must be measured: the one check that requests pay for without quotas."""

    def load(self, image: MetadataImage) -> None:
        self.clients.update(image.client_quotas)
        self.connections.update(image.client_quotas)
        self.is_active = self.clients.is_active

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        if after.client_quotas is not before.client_quotas:
            self.load(after)

    def now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    def begin(
        self, api: Api, header: RequestHeader, client: LimitedClient, size_bytes: int, started_ms: float
    ) -> RequestMeter:
        """`started_ms` is the monotonic time, which the caller has read."""
        return RequestMeter(self, self._clock, api, header, client, size_bytes, started_ms)

    def charge_produce(
        self,
        client: LimitedClient,
        client_id: str | None,
        size_bytes: int,
        started_ms: float,
        response: Response | None,
    ) -> None:
        """For a Produce request that is answered at once: does what a meter does, in few calls, because producers send
        many small requests."""
        clients = self.clients
        limits = client.limits
        if (
            limits is None
            or limits.version != clients.version
            or limits.client_id != (client_id or "")
            or limits.user != client.principal.name
        ):
            limits = client.limits = clients.limits_of(client.principal.name, client_id or "")
        precise_ms = self._clock.monotonic_ms()
        spent_ms = None if response is None else precise_ms - started_ms
        throttle_ms = clients.record_produce_request(limits, size_bytes, spent_ms, int(precise_ms))
        if response is not None:
            throttle_ms = _raise_throttle_time(response, throttle_ms)
        client.throttle_ms = throttle_ms

    def mutation_quota(self, client: LimitedClient, client_id: str | None, *, is_strict: bool) -> MutationQuota:
        """The quota of a request that changes topics."""
        if not self.is_active:
            return UNLIMITED_MUTATIONS
        limits = self.clients.limits_of(client.principal.name, client_id or "")
        bucket = self.clients.mutation_bucket(limits, self.now_ms())
        if bucket is None:
            return UNLIMITED_MUTATIONS
        return LimitedMutations(*bucket, self.now_ms, is_strict=is_strict)


class RequestMeter:
    """The use of one request."""

    __slots__ = (
        "_api",
        "_client",
        "_clock",
        "_is_charged",
        "_is_exempt",
        "_is_running",
        "_limits",
        "_quotas",
        "_size_bytes",
        "_spent_ms",
        "_started_ms",
        "_throttle_ms",
    )

    def __init__(
        self,
        quotas: QuotaEnforcement,
        clock: Clock,
        api: Api,
        header: RequestHeader,
        client: LimitedClient,
        size_bytes: int,
        started_ms: float,
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self._api = api
        self._client = client
        self._size_bytes = size_bytes
        self._limits = client.limits = quotas.clients.limits_of(
            client.principal.name, header.client_id or "", client.limits
        )
        # Brokers find out by ApiVersions whether others are reachable. What only brokers send becomes exempt when its
        # handler has found that a broker sends it (`is_broker_request`).
        self._is_exempt = api.key == API_VERSIONS_KEY and client.listener_name == quotas.broker_listener
        self._is_charged = False
        self._throttle_ms = 0
        self._spent_ms = 0.0
        self._is_running = True
        self._started_ms = started_ms

    # --- time on the event loop

    def pause(self) -> None:
        """The request waits."""
        if self._is_running:
            self._is_running = False
            self._spent_ms += self._clock.monotonic_ms() - self._started_ms

    def begin_wait(self) -> None:
        """The request waits for the first time. The bytes of a Produce request are charged at once, because its batches
        are appended even if the client closes its connection. The throttle time follows from them when it ends."""
        self.pause()
        if self._api.key == PRODUCE_KEY:
            self._quotas.clients.record_produce(self._limits, self._size_bytes, int(self._clock.monotonic_ms()))
            self._size_bytes = 0

    def resume(self) -> None:
        self._is_running = True
        self._started_ms = self._clock.monotonic_ms()

    def measured(self, awaited: Awaitable[Any]) -> Awaitable[Any]:
        """The same awaitable, of which each step on the event loop is counted."""
        return _Measured(self, awaited)

    # --- what a request is charged for

    def exempt(self) -> None:
        """The request is one of a broker."""
        self._is_exempt = True

    @property
    def largest_fetch_bytes(self) -> int:
        return self._quotas.clients.largest_fetch_bytes(self._limits)

    def charge_fetch(self, size_bytes: int) -> int:
        """Charges a consumer for a response with this many bytes. A throttle time other than 0 means that the response
        is withheld: the client gets an empty one."""
        precise_ms = self._clock.monotonic_ms()
        now_ms = int(precise_ms)
        request_throttle_ms = self._charge_time(precise_ms, now_ms)
        fetched = self._quotas.clients.record_fetch(self._limits, size_bytes, request_throttle_ms, now_ms)
        self._is_charged = True
        self._throttle_ms = fetched.throttle_ms
        return fetched.throttle_ms if fetched.is_withheld else 0

    def finish(self, response: Response | None) -> None:
        """Puts the throttle time into the response and the connection. Without a response (acks=0) the request
        percentage does not throttle."""
        throttle_ms = self._charge(has_response=response is not None)
        if self._is_exempt:
            return  # the connection goes on, also if the response has the throttle time of a change of topics
        self._client.throttle_ms = _raise_throttle_time(response, throttle_ms)

    def abandon(self) -> None:
        """The request ends without an answer, because its connection is closed. It is charged as if it had one, so that
        a client does not escape its quota by disconnecting."""
        self._charge(has_response=True)

    def finish_encoded(self, header: RequestHeader, answer: Answer) -> None:
        """The same for a response that the controller may have encoded. `answer` is changed."""
        throttle_ms = self._charge(has_response=True)
        if self._is_exempt:
            return
        position = _throttle_position(self._api, header.api_version)
        if position is not None and answer is not None and len(answer) == 1:
            frame = bytearray(answer[0])  # type: ignore[arg-type]  # answers of the controller contain no slices
            field = slice(position, position + 4)
            throttle_ms = max(throttle_ms, int.from_bytes(frame[field], "big"))
            frame[field] = throttle_ms.to_bytes(4, "big")
            answer[0] = bytes(frame)
        self._client.throttle_ms = throttle_ms

    def _charge(self, *, has_response: bool) -> int:
        if self._is_charged or self._is_exempt:
            return self._throttle_ms
        self._is_charged = True
        precise_ms = self._clock.monotonic_ms()
        now_ms = int(precise_ms)
        throttle_ms = 0
        if self._api.key == PRODUCE_KEY:
            throttle_ms = self._quotas.clients.record_produce(self._limits, self._size_bytes, now_ms)
        if has_response:
            request_throttle_ms = self._charge_time(precise_ms, now_ms)
            if request_throttle_ms > throttle_ms:
                return request_throttle_ms
        return throttle_ms

    def _charge_time(self, precise_ms: float, now_ms: int) -> int:
        if self._is_running:
            self._is_running = False
            self._spent_ms += precise_ms - self._started_ms
        spent_ms, self._spent_ms = self._spent_ms, 0.0
        return self._quotas.clients.record_request_time(self._limits, spent_ms, now_ms)


class _Measured:
    """Runs an awaitable and counts the time of each of its steps."""

    __slots__ = ("_awaited", "_meter")

    def __init__(self, meter: RequestMeter, awaited: Awaitable[Any]) -> None:
        self._meter = meter
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        meter, steps = self._meter, self._awaited.__await__()
        sent: Any = None
        raised: BaseException | None = None
        while True:
            meter.resume()
            try:
                if raised is not None:
                    yielded = steps.throw(raised)
                else:
                    yielded = next(steps) if sent is None else steps.send(sent)
            except StopIteration as finished:
                return finished.value
            finally:
                meter.pause()
            sent, raised = None, None
            try:
                sent = yield yielded
            except BaseException as problem:
                raised = problem


def _raise_throttle_time(response: Response | None, throttle_ms: int) -> int:
    """Puts a longer throttle time into the response, if it has the field. Returns the longer one."""
    known_ms: int | None = getattr(response, THROTTLE_FIELD, None)
    if known_ms is None:
        return throttle_ms
    if throttle_ms <= known_ms:
        return known_ms
    setattr(response, THROTTLE_FIELD, throttle_ms)
    return throttle_ms


def _throttle_position(api: Api, version: int) -> int | None:
    """The position of the throttle time in a response frame, with which the bodies of these responses begin."""
    first = api.response.fields[0]
    if first.name != THROTTLE_FIELD:
        return None
    flexible_from = api.response.flexible_from
    return _SIZE_AND_CORRELATION_BYTES + (flexible_from is not None and version >= flexible_from)
