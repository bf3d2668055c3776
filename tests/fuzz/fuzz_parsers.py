"""Coverage-guided fuzzing of parsers alone, without a broker: `python -m tests.fuzz.fuzz_parsers GROUP [options]`.

GROUP is `first`, what a peer reaches before it is authenticated (request headers, ApiVersions, SASL messages), or
`all`, every request in every version, record batches and principals. The first bytes of the input choose the parser.
Invalid bytes raise MalformedMessage; any other exception, and any input that takes long, is a bug.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import atheris

from tests.fuzz.instrumented import all_but

# Not the tables of messages: to instrument them takes seconds, and their decoders are compiled and instrumented below.
INSTRUMENTED = [
    "odradek.protocol.batch",
    "odradek.protocol.compression",
    "odradek.protocol.framing",
    "odradek.protocol.records",
    "odradek.protocol.tagged_fields",
    "odradek.protocol.varints",
    "odradek.security.principal_codec",
    "odradek.telemetry.otlp",
]

with atheris.instrument_imports(["odradek"], exclude=all_but(*INSTRUMENTED)):
    from odradek.handlers.registry import build_cluster_registry
    from odradek.protocol.batch import HEADER_SIZE_BYTES
    from odradek.protocol.compression import Compression, decompress
    from odradek.protocol.framing import decode_request_header
    from odradek.protocol.malformed import MalformedMessage
    from odradek.protocol.records import read_records
    from odradek.security.principal_codec import decode_principal
    from odradek.telemetry.otlp import read_metrics

Parser = Callable[[memoryview], object]

FIRST_APIS = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
DECOMPRESSED_LIMIT_BYTES = 1 << 16
_CHOICE_BYTES = 2


def parsers(group: str) -> list[Parser]:
    apis = build_cluster_registry()
    flexible_from = {key: api.request.flexible_from for key, api in apis.items()}.get

    def decoder(api_key: int, version: int) -> Parser:
        request = apis[api_key].request
        with contextlib.suppress(MalformedMessage):
            request.decode(memoryview(b""), 0, version)  # compiles the decoder, which is not a module that is imported
        decode = atheris.instrument_func(request._decoders[version])
        return lambda data: decode(data, 0)

    def decoders(wants_first: bool) -> list[Parser]:
        return [
            decoder(api.key, version)
            for api in apis.values()
            if (api.name in FIRST_APIS) is wants_first
            for version in range(api.min_version, api.max_version + 1)
        ]

    first = [lambda data: decode_request_header(data, flexible_from), *decoders(True)]
    if group == "first":
        return first
    others = decoders(False)
    others.append(lambda data: decode_principal(bytes(data)))
    others.append(_read_batch)
    others.append(lambda data: read_metrics(bytes(data)))
    others += [_decompressor(codec) for codec in Compression]
    return first + others


def _read_batch(data: memoryview) -> None:
    if len(data) >= HEADER_SIZE_BYTES:
        list(read_records(data, DECOMPRESSED_LIMIT_BYTES))


def _decompressor(codec: Compression) -> Parser:
    return lambda data: decompress(codec, bytes(data), DECOMPRESSED_LIMIT_BYTES)


def main() -> None:
    chosen = parsers(sys.argv.pop(1))

    def target(data: bytes) -> None:
        if len(data) <= _CHOICE_BYTES:
            return
        parse = chosen[int.from_bytes(data[:_CHOICE_BYTES], "big") % len(chosen)]
        try:
            parse(memoryview(data)[_CHOICE_BYTES:])
        except MalformedMessage:
            return

    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
