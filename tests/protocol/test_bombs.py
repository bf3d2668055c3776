"""No bytes make a decoder allocate much more than they are: counts are bounded by the bytes that are left."""

import contextlib
import json
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.handlers.registry import build_cluster_registry
from odradek.protocol.framing import decode_request_header
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Request
from odradek.protocol.varints import encode_unsigned_varint

ROOT = Path(__file__).parents[2]
HEADER = "header"
FRAME_BYTES = 4096
LARGEST_RATIO = 256  # 16 MiB for the 64 KiB that a client may send before it is authenticated
REQUESTS = sorted(
    {api.request for api in build_cluster_registry().values()}, key=lambda request: (request.api_key, request.__name__)
)


def bombs() -> list[bytes]:
    """Bytes that declare much: every byte a small count, or the largest count that the bytes allow, or more."""
    filled = [bytes([value]) * FRAME_BYTES for value in (0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0xFF)]
    counts = [FRAME_BYTES // size for size in (1, 2, 3, 4, 8, 16)]
    filled += [struct.pack(">i", count) + bytes(FRAME_BYTES) for count in counts]
    filled += [encode_unsigned_varint(count) + b"\1" * FRAME_BYTES for count in counts]
    filled += [struct.pack(">i", 2**31 - 1) * (FRAME_BYTES // 4), encode_unsigned_varint(2**31) * (FRAME_BYTES // 5)]
    return filled


def peak_bytes(decode: Callable[[memoryview], object], data: bytes) -> int:
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    with contextlib.suppress(MalformedMessage):
        decode(memoryview(data))
    return tracemalloc.get_traced_memory()[1] - before


@pytest.fixture(scope="module")
def ratios() -> dict[str, float]:
    """Bytes allocated for each byte of the worst bomb, by what was decoded. They are measured in a separate process:
    Python 3.11 may abort if tracemalloc is stopped while another thread allocates, and test workers have threads."""
    done = subprocess.run([sys.executable, "-m", __name__], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [*(each.__name__ for each in REQUESTS), HEADER])
def test_a_request_allocates_in_proportion_to_its_bytes(ratios: dict[str, float], name: str) -> None:
    assert ratios[name] < LARGEST_RATIO


def largest_ratio(request_type: type[Request]) -> float:
    first, last = request_type.versions
    versions = sorted({first, last, min(max(request_type.flexible_from or first, first), last)})
    largest = 0.0
    for version in versions:
        _compile(request_type, version)
        for bomb in bombs():
            # Behind leading fields of any size there is an array that the count belongs to.
            for position in (0, 1, 2, 3, 5, 8, 13, 16):
                frame = bytes(position) + bomb
                used = peak_bytes(lambda view, version=version: request_type.decode(view, 0, version), frame)  # type: ignore[misc]  # a default
                largest = max(largest, used / len(frame))
    return largest


def largest_ratio_of_header() -> float:
    return max(
        peak_bytes(lambda view: decode_request_header(view, lambda _: 0), head + bomb) / len(bomb)
        for bomb in bombs()
        for head in (b"", struct.pack(">hhih", 3, 12, 1, 4) + b"name")
    )


def _compile(request_type: type[Request], version: int) -> None:
    """Decoders are compiled on first use, which takes memory of its own."""
    with contextlib.suppress(MalformedMessage):
        request_type.decode(memoryview(bytes(64)), 0, version)


if __name__ == "__main__":
    tracemalloc.start()
    measured = {each.__name__: largest_ratio(each) for each in REQUESTS}
    print(json.dumps({**measured, HEADER: largest_ratio_of_header()}))
