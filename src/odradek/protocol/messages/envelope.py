"""Envelope, API 58: version 0. A request of a client that a broker forwards to the controller.

`metadata_version` is a tagged field that Kafka does not have: the version of the metadata that the controller's broker
had applied when it answered.
"""

from odradek.protocol.schema import Request, Response, bytes_, int16, int64


class EnvelopeRequest(Request, api_key=58, versions=(0, 0), flexible=0):
    request_data: bytes = bytes_()
    request_principal: bytes | None = bytes_(nullable="0+")
    client_host_address: bytes = bytes_()


class EnvelopeResponse(Response, api_key=58, versions=(0, 0), flexible=0):
    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
    metadata_version: int = int64(default=-1, tag=1000, tagged="0+")
