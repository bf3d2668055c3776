"""The channel of a broker in a cluster: to the controller in this process, or to the one that the metadata names.

Requests of clients are forwarded as bytes before a handler runs (`handlers/forwarding`), so that a handler asks only
on the controller's broker. Requests of the broker itself (its state, in-sync sets, producer ids, topics of coordinators
and topics that are created on demand) are sent from every broker, and sent again when the controller changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from odradek.client.broker_connection import BrokerUnavailable
from odradek.controller.broker_requests import WIRE_REQUESTS, NotController, Sender, check_topics
from odradek.controller.channel import LocalControllerChannel, RefusingChannel
from odradek.controller.metadata_writer import ControllerFenced
from odradek.controller.requests import BROKER_REQUEST_TIMEOUT_MS, CreateTopics
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from odradek.controller.broker_requests import WireRequest
    from odradek.controller.channel import ControllerChannel
    from odradek.controller.decisions.request_results import TopicResult
    from odradek.controller.requests import Ask
    from odradek.controller.route import ControllerRoute, Deadline
    from odradek.metadata.cache import MetadataCache

R = TypeVar("R")

_NOT_CONTROLLER = Refusal(ErrorCode.NOT_CONTROLLER, "This broker is not the controller any more.")
_EXISTS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class ClusterControllerChannel:
    def __init__(self, route: ControllerRoute, cache: MetadataCache) -> None:
        self._route = route
        self._cache = cache

    def local(self) -> ControllerChannel | None:
        controller = self._route.local
        return None if controller is None else LocalControllerChannel(controller, self._cache)

    async def ask(self, request: Ask[R]) -> R:
        """`StoreError` when no controller has decided within the request's timeout. A controller on another broker is
        heard after the timeout too: it may have begun the change, and its answer says whether that was made."""
        wire = WIRE_REQUESTS.get(type(request))
        if wire is None:  # a client's request, whose handler runs on the controller's broker
            return await (self.local() or RefusingChannel(_NOT_CONTROLLER)).ask(request)
        deadline = self._route.deadline(request.timeout_ms)
        while True:
            try:
                return await self._attempt(replace(request, timeout_ms=deadline.remaining_ms), wire, deadline)
            except (BrokerUnavailable, ControllerFenced, NotController) as problem:
                if not wire.is_retried:
                    raise
                if not await self._route.pause(deadline):
                    raise StoreError(f"no controller has answered in time: {problem}") from problem

    async def _attempt(self, request: Ask[R], wire: WireRequest, deadline: Deadline) -> R:
        local = self.local()
        if local is not None:  # the client's quotas apply here only: they are those of this broker
            answer = await local.ask(request)
            if isinstance(request, CreateTopics):
                check_topics(cast("list[TopicResult]", answer))
            return answer
        message = wire.encode(request, self._sender)
        client = self._route.client(wire.purpose)
        response = await client.call(message, wire.response, timeout_ms=BROKER_REQUEST_TIMEOUT_MS, version=wire.version)
        result: R = wire.decode(response, request)
        if isinstance(request, CreateTopics) and not request.validate_only:
            topics = cast("list[TopicResult]", result)
            created = {each.name for each in topics if each.name is not None and each.error in _EXISTS}
            await self._route.wait_until_topics_exist(created, deadline)
        return result

    @property
    def _sender(self) -> Sender:
        node_id = self._cache.broker_config.node_id
        registered = self._cache.image.brokers.get(node_id)
        return Sender(node_id, NO_BROKER_EPOCH if registered is None else registered.broker_epoch)
