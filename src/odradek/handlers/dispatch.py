"""From a frame to an answer: read the header, find the API, decode, call its handler, encode.

It uses no sockets: the server, or the simulator, passes frames in and writes the answers.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers.answers import API_VERSIONS_KEY, Answer, encode_answer, frame_response
from odradek.handlers.context import CloseConnection, RequestContext
from odradek.handlers.unsupported_features import API_KEYS
from odradek.host.logs import get_logger
from odradek.protocol.framing import RequestHeader, decode_request_header
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from odradek.handlers.api import Api
    from odradek.handlers.context import ClientConnection, RequestForwarder, Services

log = get_logger(__name__)

__all__ = ["API_VERSIONS_KEY", "Answer", "AwaitedAnswer", "Dispatcher", "LaterAnswer", "discard_unstarted"]


class LaterAnswer:
    """The answer to a request that waits for a coordinator. A connection takes it with `then`, which needs no task;
    anyone else can await it."""

    __slots__ = ("_api", "_header", "_response")

    def __init__(self, api: Api, header: RequestHeader, response: WaitingResponse) -> None:
        self._api = api
        self._header = header
        self._response = response

    def then(self, receive: Callable[[Answer | Awaitable[Answer] | CloseConnection], None]) -> None:
        """Pass the answer on when it comes; or that the connection must be closed; or, if the request has to wait for
        something else as well, an awaitable of the answer."""
        self._response.then(lambda response: receive(self._encode(response)))

    def cancel(self) -> None:
        self._response.cancel()

    def _encode(self, response: Any) -> Answer | Awaitable[Answer] | CloseConnection:
        if response is not None and not isinstance(response, (Response, Exception)):
            return _answer_later(self._api, self._header, response)
        try:
            if isinstance(response, Exception):
                raise response
            return encode_answer(self._api, self._header, response)
        except CloseConnection as closing:
            return closing
        except Exception as problem:
            return _failed(self._api, self._header, problem)

    def __await__(self) -> Generator[Any, None, Answer]:
        return _answer_later(self._api, self._header, self._response).__await__()


class AwaitedAnswer:
    """The answer to a request that waits: it is encoded by the task that awaits it."""

    __slots__ = ("_api", "_header", "_response")

    def __init__(self, api: Api, header: RequestHeader, response: Awaitable[Any]) -> None:
        self._api = api
        self._header = header
        self._response = response

    def __await__(self) -> Generator[Any, None, Answer]:
        return _answer_later(self._api, self._header, self._response).__await__()

    def discard(self) -> None:
        """In place of awaiting it, when the connection is closed."""
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
        self._flexible_from = {key: api.request.flexible_from for key, api in apis.items()}.get

    def handle(self, frame: memoryview, connection: ClientConnection) -> Answer | Awaitable[Answer]:
        """The answer as a list of parts with their frame size, or an awaitable of it when it must wait.

        Raises MalformedMessage or CloseConnection when the connection must be closed without an answer. The frame's
        memory is not read after this has returned.
        """
        header = decode_request_header(frame, self._flexible_from)
        api = self._apis.get(header.api_key)
        if api is None:
            self._report_unsupported(header, connection)
            raise MalformedMessage(f"API key {header.api_key} is not one of this broker's")
        version = header.api_version
        if not api.min_version <= version <= api.max_version:
            if header.api_key != API_VERSIONS_KEY:
                raise MalformedMessage(
                    f"{api.name} version {version} is not one of this broker's ({api.min_version} to {api.max_version})"
                )
            # A client with newer versions gets the supported ones in the format of version 0 (KIP-511).
            return frame_response(header.correlation_id, self._services.advertised_apis.unsupported_version(), 0, False)
        if api.is_forwarded and self._services.forwarder is not None:
            return self._forward(api, header, bytes(frame), connection, self._services.forwarder)
        request = api.request.decode(frame, header.body_position, version)
        context = RequestContext(self._services, connection, version, header.client_id)
        try:
            response = api.handle(request, context)
            if response is None or isinstance(response, Response):
                return encode_answer(api, header, response)
        except CloseConnection:
            raise
        except Exception as problem:
            raise _failed(api, header, problem) from problem
        if isinstance(response, WaitingResponse):
            return LaterAnswer(api, header, response)
        return AwaitedAnswer(api, header, response)

    async def _forward(
        self, api: Api, header: RequestHeader, frame: bytes, connection: ClientConnection, forwarder: RequestForwarder
    ) -> Answer:
        try:
            return await forwarder.answer(api, header, frame, connection, self._services)
        except (CloseConnection, MalformedMessage):
            raise
        except Exception as problem:
            raise _failed(api, header, problem) from problem

    def _report_unsupported(self, header: RequestHeader, connection: ClientConnection) -> None:
        feature = API_KEYS.get(header.api_key)
        if feature is not None:
            services = self._services
            services.unsupported_features.report(
                feature, services.host.clock, client=connection.host, client_id=header.client_id
            )


async def _answer_later(api: Api, header: RequestHeader, awaited: Awaitable[Any]) -> Answer:
    try:
        response = await awaited
        if response is not None and not isinstance(response, Response):
            response = await response  # it waited for a coordinator, and waits for something else
        return encode_answer(api, header, response)
    except CloseConnection:
        raise
    except Exception as problem:
        raise _failed(api, header, problem) from problem


def _failed(api: Api, header: RequestHeader, problem: Exception) -> CloseConnection:
    """An exception of a handler is a bug or a disk failure: it is logged, and the client's connection is closed."""
    log.error("request failed", api=api.name, version=header.api_version, client_id=header.client_id, exc_info=problem)
    return CloseConnection(f"{api.name} failed: {problem}")
