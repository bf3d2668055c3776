"""From a frame to an answer: read the header, find the API, decode, call its handler, encode.

It uses no sockets: the server, or the simulator, passes frames in and writes the answers.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, NoReturn

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.answers import API_VERSIONS_KEY, Answer, encode_answer, frame_response
from odradek.handlers.api import FlexibleVersions
from odradek.handlers.authentication_steps import answer_raw_token, log_login
from odradek.handlers.context import CloseConnection, RequestContext
from odradek.handlers.quota_enforcement import PRODUCE_KEY
from odradek.handlers.request_record import MeasuredApi, RequestRecord, count_errors
from odradek.handlers.slow_requests import SlowRequests
from odradek.handlers.unsupported_features import API_KEYS
from odradek.host.logs import get_logger
from odradek.protocol.framing import RequestHeader, decode_request_header
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Response
from odradek.security.sasl.authentication import SASL_AUTHENTICATE_KEY, SASL_HANDSHAKE_KEY, Authentication

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping

    from odradek.handlers.api import Api
    from odradek.handlers.context import ClientConnection, RequestForwarder, Services
    from odradek.handlers.quota_enforcement import RequestMeter

log = get_logger(__name__)

API_KEY_BYTES = 2  # at the start of every request
_ANSWERED_ALWAYS = (SASL_HANDSHAKE_KEY, API_VERSIONS_KEY, SASL_AUTHENTICATE_KEY)

__all__ = ["API_VERSIONS_KEY", "Answer", "AwaitedAnswer", "Dispatcher", "LaterAnswer", "discard_unstarted"]


class LaterAnswer:
    """The answer to a request that waits for a coordinator. A connection takes it with `then`, which needs no task;
    anyone else can await it."""

    __slots__ = ("_record", "_response")

    def __init__(self, record: RequestRecord, response: WaitingResponse) -> None:
        self._record = record
        self._response = response

    def then(self, receive: Callable[[Answer | Awaitable[Answer] | CloseConnection], None]) -> None:
        """Pass the answer on when it comes; or that the connection must be closed; or, if the request has to wait for
        something else as well, an awaitable of the answer."""
        self._response.then(lambda response: receive(self._encode(response)))

    def cancel(self) -> None:
        self._record.abandon()
        self._response.cancel()

    def _encode(self, response: Any) -> Answer | Awaitable[Answer] | CloseConnection:
        if response is not None and not isinstance(response, (Response, Exception)):
            return AwaitedAnswer(self._record, response)
        try:
            if isinstance(response, Exception):
                raise response
            return self._record.finish(response)
        except CloseConnection as closing:
            self._record.fail()
            return closing
        except Exception as problem:
            self._record.fail()
            return _failed(self._record.measured.api, self._record.header, problem)

    def __await__(self) -> Generator[Any, None, Answer]:
        return _answer_later(self._record, self._response).__await__()


class AwaitedAnswer:
    """The answer to a request that waits: it is encoded by the task that awaits it."""

    __slots__ = ("_record", "_response")

    def __init__(self, record: RequestRecord, response: Awaitable[Any]) -> None:
        self._record = record
        self._response = response

    def __await__(self) -> Generator[Any, None, Answer]:
        return _answer_later(self._record, self._response).__await__()

    def discard(self) -> None:
        """Called when the connection closes, instead of awaiting the answer or while it is awaited."""
        self._record.abandon()
        discard_unstarted(self._response)


def discard_unstarted(awaited: object) -> None:
    """Close a coroutine that was not awaited, because its task was cancelled before it began."""
    if isinstance(awaited, AwaitedAnswer):
        awaited.discard()
    elif inspect.iscoroutine(awaited) and inspect.getcoroutinestate(awaited) == inspect.CORO_CREATED:
        awaited.close()


class Dispatcher:
    """Hands each request to its API's handler."""

    def __init__(self, apis: Mapping[int, Api], services: Services) -> None:
        self._apis = apis
        self._services = services
        self._quotas = services.quotas
        self._clock = services.host.clock
        self.slow_requests = slow = SlowRequests(self._clock.monotonic_ms())
        requests = services.metrics.requests
        self._measured = {key: MeasuredApi(api, requests.of(api.name), slow) for key, api in apis.items()}
        self.serves_no_clients = False
        """Set while this broker is cut off from its cluster. Other brokers can still see that it runs."""
        self._flexible_from = FlexibleVersions(apis).__getitem__

    def handle(
        self, frame: memoryview, connection: ClientConnection, now_ms: float | None = None
    ) -> Answer | Awaitable[Answer]:
        """The answer as a list of parts with their frame size, or an awaitable of it when it must wait. `now_ms` is the
        time if the caller has just read the clock.

        Raises MalformedMessage or CloseConnection when the connection must be closed without an answer. The frame's
        memory is not read after this has returned.
        """
        if connection.is_restricted:
            token = self._check_authentication(frame, connection)
            if token is not None:
                return token
        header = decode_request_header(frame, self._flexible_from)
        if self.serves_no_clients and header.api_key not in _ANSWERED_ALWAYS:
            raise CloseConnection("this broker is cut off from the cluster")
        measured = self._measured.get(header.api_key) or self._refuse_unknown(header, connection)
        api, version = measured.api, header.api_version
        if not api.min_version <= version <= api.max_version:
            return self._answer_unknown_version(api, header)
        started_ms = self._clock.monotonic_ms() if now_ms is None else now_ms
        queue_ms = started_ms - connection.received_ms if connection.received_ms else 0.0
        is_counted = self._quotas.is_active and connection.is_authenticated
        # A Produce request that is answered at once needs no meter.
        has_meter = is_counted and header.api_key != PRODUCE_KEY
        meter = self._quotas.begin(api, header, connection, len(frame), started_ms) if has_meter else None
        context = RequestContext(self._services, connection, version, header.client_id, api.name, meter)
        if api.is_forwarded and self._services.forwarder is not None:
            record = RequestRecord(measured, header, context, self._clock, queue_ms, started_ms)
            return self._forward(record, bytes(frame), self._services.forwarder)
        request = api.request.decode(frame, header.body_position, version)
        try:
            response = api.handle(request, context)
            if response is None or isinstance(response, Response):
                if is_counted:
                    self._charge(meter, header, connection, len(frame), started_ms, response)
                answer = encode_answer(api, header, response)
                count_errors(measured.metrics, response)
                ended_ms = self._clock.monotonic_ms()
                handler_ms = ended_ms - started_ms
                measured.metrics.answered(queue_ms, handler_ms)
                if connection.throttle_ms or queue_ms + handler_ms >= self.slow_requests.threshold_ms:
                    measured.count_throttle_and_slowness(header, connection, queue_ms, handler_ms, ended_ms)
                return answer
        except CloseConnection:
            context.abandon()
            measured.closed(queue_ms, self._clock.monotonic_ms() - started_ms)
            raise
        except Exception as problem:
            measured.closed(queue_ms, self._clock.monotonic_ms() - started_ms)
            raise _failed(api, header, problem) from problem
        if is_counted:
            meter = context.meter = meter or self._quotas.begin(api, header, connection, len(frame), started_ms)
            meter.begin_wait()
        record = RequestRecord(measured, header, context, self._clock, queue_ms, started_ms)
        return _pending_answer(record, response)

    def _charge(
        self,
        meter: RequestMeter | None,
        header: RequestHeader,
        connection: ClientConnection,
        request_bytes: int,
        started_ms: float,
        response: Response | None,
    ) -> None:
        if meter is None:
            self._quotas.charge_produce(connection, header.client_id, request_bytes, started_ms, response)
        else:
            meter.finish(response)

    def load_handlers(self) -> Iterator[None]:
        """Imports the handlers that are not loaded, one at each step."""
        for api in self._apis.values():
            if not api.is_loaded:
                api.load(api)
                yield

    def _answer_unknown_version(self, api: Api, header: RequestHeader) -> Answer:
        if header.api_key != API_VERSIONS_KEY:
            raise MalformedMessage(
                f"{api.name} version {header.api_version} is not one of this broker's "
                f"({api.min_version} to {api.max_version})"
            )
        # A client with newer versions gets the supported ones in the format of version 0 (KIP-511).
        return frame_response(header.correlation_id, self._services.advertised_apis.unsupported_version(), 0, False)

    def begin_connection(self, connection: ClientConnection) -> None:
        """Called once for each connection: a client of a SASL listener must authenticate first."""
        services = self._services
        protocol = services.config.listener_protocols.get(connection.listener_name)
        if protocol is not None and protocol.has_sasl:
            if services.sasl_mechanisms is None:
                raise RuntimeError("a SASL listener needs mechanisms")
            connection.authentication = Authentication(services.sasl_mechanisms(connection.listener_name))
            connection.is_restricted = True

    def certificate_accepted(self, connection: ClientConnection) -> None:
        """Called for each client that has authenticated by its certificate; one of a SASL listener must also log in."""
        log_login(connection, self._services, "TLS")

    def end_connection(self, connection: ClientConnection) -> None:
        """Called once when a connection is closed."""
        if connection.telemetry_instance is not None and self._services.telemetry is not None:
            self._services.telemetry.connection_closed(connection.telemetry_instance)

    def _check_authentication(self, frame: memoryview, connection: ClientConnection) -> Awaitable[Answer] | Answer:
        """CloseConnection when the request must not come at this point; the answer to a token without a header; None
        when the request may be handled."""
        authentication = connection.authentication
        if authentication is None:
            return None
        if not authentication.is_complete and len(frame) > self._services.config.sasl_server_max_receive_size:
            raise CloseConnection(f"a request of {len(frame)} bytes came before authentication was complete")
        if authentication.expects_raw_token:
            return answer_raw_token(authentication, bytes(frame), connection, self._services)
        if len(frame) < API_KEY_BYTES:
            raise MalformedMessage("the request has no API key")
        api_key = int.from_bytes(frame[:API_KEY_BYTES], "big", signed=True)
        refusal = authentication.refuse(api_key, self._services.host.clock.monotonic_ms())
        if refusal is not None:
            raise CloseConnection(refusal)
        return None

    async def _forward(self, record: RequestRecord, frame: bytes, forwarder: RequestForwarder) -> Answer:
        api, header, meter = record.measured.api, record.header, record.context.meter
        try:
            answering = forwarder.answer(api, header, frame, record.context)
            if meter is None:
                answer = await answering
            else:
                meter.pause()
                answer = await meter.measured(answering)
                meter.finish_encoded(header, answer)
            record.count()
            return answer
        except asyncio.CancelledError:
            record.abandon()
            raise
        except (CloseConnection, MalformedMessage):
            record.fail()
            raise
        except Exception as problem:
            record.fail()
            raise _failed(api, header, problem) from problem

    def _refuse_unknown(self, header: RequestHeader, connection: ClientConnection) -> NoReturn:
        self._report_unsupported(header, connection)
        raise MalformedMessage(f"API key {header.api_key} is not one of this broker's")

    def _report_unsupported(self, header: RequestHeader, connection: ClientConnection) -> None:
        feature = API_KEYS.get(header.api_key)
        if feature is not None:
            services = self._services
            services.unsupported_features.report(
                feature, services.host.clock, client=connection.host, client_id=header.client_id
            )


def _pending_answer(record: RequestRecord, response: Awaitable[Any]) -> LaterAnswer | AwaitedAnswer:
    return LaterAnswer(record, response) if isinstance(response, WaitingResponse) else AwaitedAnswer(record, response)


async def _answer_later(record: RequestRecord, awaited: Awaitable[Any]) -> Answer:
    meter = record.context.meter
    try:
        response = await (awaited if meter is None else meter.measured(awaited))
        if response is not None and not isinstance(response, Response):
            response = await response  # it waited for a coordinator, and waits for something else
        return record.finish(response)
    except CloseConnection:
        record.fail()
        raise
    except Exception as problem:
        record.fail()
        raise _failed(record.measured.api, record.header, problem) from problem


def _failed(api: Api, header: RequestHeader, problem: Exception) -> CloseConnection:
    """An exception of a handler is a bug or a disk failure: it is logged, and the client's connection is closed."""
    log.error("request failed", api=api.name, version=header.api_version, client_id=header.client_id, exc_info=problem)
    return CloseConnection(f"{api.name} failed: {problem}")
