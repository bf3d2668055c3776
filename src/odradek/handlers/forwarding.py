"""Requests that the controller decides: answered here if this broker is the controller, otherwise forwarded to it.

A request is forwarded as the bytes that the client sent, in an Envelope with the client's principal and address. When
the controller changes or cannot write, the request is sent again within its timeout; NOT_CONTROLLER does not reach the
client.
"""

from __future__ import annotations

import asyncio
import ipaddress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.client.broker_connection import BrokerUnavailable
from odradek.handlers.context import CloseConnection
from odradek.handlers.partial_refusals import PartlyRefused
from odradek.handlers.refused_requests import refuse_request
from odradek.handlers.waiting_copies import WaitingCopies
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.compile_error_finder import error_finder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.refusal import Refusal
from odradek.security.principal_codec import encode_principal

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from odradek.controller.route import ControllerRoute, Deadline
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import Api
    from odradek.handlers.context import ClientConnection, RequestContext
    from odradek.handlers.quota_enforcement import RequestMeter
    from odradek.protocol.framing import RequestHeader
    from odradek.protocol.schema import Request, Response

log = get_logger(__name__)

T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 30_000  # of requests without a timeout
LONGEST_TIMEOUT_MS = 60_000
SHORTEST_ATTEMPT_MS = 1_000.0  # a request with a timeout of 0 is attempted too
LONGEST_ATTEMPT_MS = 20_000.0
ABANDONED_BYTES = 4096  # of an attempt without a client, beside its request: a bound on the number of attempts
PURPOSE = "forwarding"
TOPICS_PURPOSE = "forwarding of topics"
TOPIC_APIS = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics", "DeleteStreams"})
"""They are answered when the controller's broker has opened or closed all logs. Other requests do not wait for them: a
broker handles the requests of a connection one after another."""

_TIMED_OUT = Refusal(ErrorCode.REQUEST_TIMED_OUT, "The request timed out: no controller has answered it.")


class Forwarder:
    """The number of requests that wait here is bounded by the connections: each has one request at a time."""

    def __init__(self, route: ControllerRoute) -> None:
        self._route = route
        self._copies = WaitingCopies()

    async def answer(self, api: Api, header: RequestHeader, frame: bytes, context: RequestContext) -> Answer:
        """`MalformedMessage` when the request cannot be decoded."""
        if not self._copies.has_room(len(frame)):
            raise CloseConnection(f"requests of {self._copies.used_bytes} bytes wait for the controller")
        with self._copies.holding(len(frame)):
            return await self._answer(api, header, frame, context)

    async def _answer(self, api: Api, header: RequestHeader, frame: bytes, context: RequestContext) -> Answer:
        request = api.request.decode(memoryview(frame), header.body_position, header.api_version)
        deadline = self._route.deadline(_timeout_ms(request))
        prepared = PartlyRefused(api, header, frame, request, context.services.metrics.requests.of(api.name))
        await prepared.run(context)
        if prepared.is_answered:
            return prepared.answer()
        while True:
            if self._route.local is not None:
                deciding = decide_locally(api, prepared.request, context)
                response = await self._run_to_end(deciding, api.name, len(prepared.frame), context)
                if response is not None:
                    return prepared.answer(response)
            else:
                purpose = TOPICS_PURPOSE if api.name in TOPIC_APIS else PURPOSE
                forwarding = self._forward(prepared.frame, context.connection, deadline, purpose)
                data = await self._run_to_end(forwarding, api.name, len(prepared.frame), context)
                if isinstance(data, bytes):
                    return prepared.answer_encoded(data)
                if data is not ErrorCode.NOT_CONTROLLER:
                    log.error("the controller refused a forwarded request", api=api.name, reason=data.name)
                    refusal = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller refused the forwarded request.")
                    break
            if not await self._route.pause(deadline):
                refusal = _TIMED_OUT
                break
            prepared.shorten_timeout(deadline.remaining_ms)
        return prepared.answer(await refuse_request(api.handle, prepared.request, context, refusal))

    async def _run_to_end(
        self, deciding: Coroutine[Any, Any, T], api_name: str, frame_bytes: int, context: RequestContext
    ) -> T:
        """An attempt whose client disconnects runs to its end, because its write does, or its bytes stay in the
        connection to the controller; its memory counts until then. It is cancelled after the longest timeout: its write
        has had its turn by then, and what it waits for is that this broker applies the commit, which has no end while a
        log directory hangs."""
        attempt = asyncio.ensure_future(deciding if context.meter is None else _measured(deciding, context.meter))
        try:
            await asyncio.wait((attempt,))  # does not cancel the attempt with the caller
        except asyncio.CancelledError:
            size_bytes = frame_bytes + ABANDONED_BYTES
            self._copies.hold(size_bytes)
            limit = asyncio.get_running_loop().call_later(LONGEST_TIMEOUT_MS / 1000, attempt.cancel)
            attempt.add_done_callback(partial(self._end_abandoned, api_name, size_bytes, limit))
            context.services.audited_requests.keep(attempt)
            raise
        return attempt.result()

    def _end_abandoned(
        self, api_name: str, size_bytes: int, limit: asyncio.TimerHandle, attempt: asyncio.Task[Any]
    ) -> None:
        limit.cancel()
        self._copies.release(size_bytes)
        problem = None if attempt.cancelled() else attempt.exception()
        if problem is not None:
            log.error("a request failed after its client had disconnected", api=api_name, exc_info=problem)

    async def _forward(
        self, frame: bytes, connection: ClientConnection, deadline: Deadline, purpose: str
    ) -> bytes | ErrorCode:
        """The controller's answer, or the error of the attempt: NOT_CONTROLLER when another may succeed."""
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(connection.principal, connection.listener_name),
            client_host_address=_address_bytes(connection.host),
        )
        timeout_ms = min(max(deadline.remaining_ms, SHORTEST_ATTEMPT_MS), LONGEST_ATTEMPT_MS)
        try:
            client = self._route.client(purpose)
            response = await client.call(envelope, EnvelopeResponse, timeout_ms=timeout_ms, version=0)
        except BrokerUnavailable:
            return ErrorCode.NOT_CONTROLLER
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            return ErrorCode(response.error_code)
        data = bytes(response.response_data)
        await self._route.wait_until_applied(response.metadata_version, deadline)
        return data


async def _measured(deciding: Coroutine[Any, Any, T], meter: RequestMeter) -> T:
    result: T = await meter.measured(deciding)
    return result


async def decide_locally(api: Api, request: Request, context: RequestContext) -> Response | None:
    """The response of the controller in this process; None when another attempt may succeed: another broker is the
    controller, or the metadata store is away."""
    try:
        response: Response = await api.handle(request, context)
    except StoreError as problem:
        log.warning("the controller could not decide a request", api=api.name, reason=problem)
        return None
    errors = error_finder(type(response))(response)
    return None if errors and ErrorCode.NOT_CONTROLLER in errors else response


def _timeout_ms(request: Request) -> float:
    timeout_ms = getattr(request, "timeout_ms", DEFAULT_TIMEOUT_MS)
    return min(max(timeout_ms, 0), LONGEST_TIMEOUT_MS)


def _address_bytes(host: str) -> bytes:
    """Empty when the address is not that of an IP network."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return b""
