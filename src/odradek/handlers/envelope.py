"""Envelope, version 0: a client's request that another broker has received and the controller decides.

It is handled with the principal, the address and the listener of the client. Only the APIs that brokers forward are
accepted, and only from brokers (ClusterAction). An answer with NOT_CONTROLLER is an error of the envelope, as is a
failure of the metadata store: the broker retries.
"""

from __future__ import annotations

import ipaddress

from odradek.handlers.answers import encode_answer
from odradek.handlers.api import FlexibleVersions
from odradek.handlers.broker_access import is_broker_request
from odradek.handlers.context import ClientConnection, RequestContext
from odradek.handlers.forwarding import decide_locally
from odradek.handlers.request_record import count_errors
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import decode_request_header
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.security.principal_codec import decode_principal
from odradek.security.principals import ANONYMOUS

_SIZE_BYTES = 4


async def handle(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
    services = context.services
    if not is_broker_request(context):
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if services.controller.local() is None:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    principal, listener = ANONYMOUS, ""
    try:
        if request.request_principal is not None:
            principal, listener = decode_principal(bytes(request.request_principal))
    except MalformedMessage:
        return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    host = _address(bytes(request.client_host_address))
    client = ClientConnection(listener or context.connection.listener_name, host)
    client.principal = principal
    frame = bytes(request.request_data)
    try:
        header = decode_request_header(memoryview(frame), FlexibleVersions(services.apis).__getitem__)
        api = services.apis.get(header.api_key)
        if api is None or not api.is_forwarded:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        if not api.min_version <= header.api_version <= api.max_version:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        embedded = api.request.decode(memoryview(frame), header.body_position, header.api_version)
    except MalformedMessage:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    embedded_context = RequestContext(services, client, header.api_version, header.client_id, api.name)
    response = await decide_locally(api, embedded, embedded_context)
    if response is None:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    count_errors(services.metrics.requests.of(api.name), response)
    answer = encode_answer(api, header, response) or []
    data = b"".join(bytes(part) for part in answer)  # type: ignore[arg-type]  # no slices in these answers
    return EnvelopeResponse(response_data=data[_SIZE_BYTES:], metadata_version=services.metadata.applied_version)


def _address(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed)) if len(packed) in (4, 16) else "unknown"
