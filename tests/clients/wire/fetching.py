"""Fetch (version 11) by hand."""

from tests.clients.error_names import error_name
from tests.clients.wire.connection import Connection, array, int8, int32, int64, string
from tests.clients.wire.requests import FETCH

LARGE = 10 << 20


def fetch_records(connection: Connection, topic: str, offset: int = 0) -> bytes:
    """What partition 0 has from this offset on."""
    wanted = string(topic) + array([int32(0) + int32(-1) + int64(offset) + int64(-1) + int32(LARGE)])
    body = int32(-1) + int32(0) + int32(0) + int32(LARGE) + int8(0) + int32(0) + int32(-1)
    answer = connection.ask(FETCH, 11, body + array([wanted]) + array([]) + string(""))
    answer.int32(), answer.int16(), answer.int32(), answer.int32(), answer.string(), answer.int32(), answer.int32()
    assert error_name(answer.int16()) == "NONE"
    answer.int64(), answer.int64(), answer.int64()  # high watermark, last stable offset, log start offset
    answer.take(16 * max(answer.int32(), 0))  # aborted transactions
    answer.int32()  # preferred read replica
    return answer.blob() or b""
