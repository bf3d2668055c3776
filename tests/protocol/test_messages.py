"""Every message round-trips in every version, with any values."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, Request, Response
from tests.example_counts import examples
from tests.protocol.tables import CASE_NAMES, CASES, MESSAGES, join, structs

CHANGED_BYTES = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
FEW = settings(max_examples=examples(2), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def is_edge(message: type[Message], version: int) -> bool:
    """The oldest, the newest and the first flexible version; the bytes of all are compared with other libraries."""
    return version in {*message.versions, message.flexible_from}


@pytest.mark.parametrize(
    ("message", "version"),
    [pytest.param(*case, marks=[] if is_edge(*case) else [pytest.mark.soak]) for case in CASES],
    ids=CASE_NAMES,
)
@FEW
@given(data=st.data())
def test_a_message_comes_back_from_its_bytes_and_not_from_a_part_of_them(
    message: type[Message], version: int, data: st.DataObject
) -> None:
    sent = data.draw(structs(message, version))
    encoded = join(sent, version)
    received = message.decode(memoryview(encoded), 0, version)
    assert received == sent
    assert type(received) is message
    assert join(received, version) == encoded
    # Where the message stands in its frame makes no difference, nor does what comes after it.
    assert message.decode(memoryview(b"before" + encoded + b"after"), 6, version) == sent
    if encoded:
        place = data.draw(st.integers(0, len(encoded) - 1))
        check_damaged(message, version, encoded, place, data.draw(st.sampled_from(CHANGED_BYTES)))


def check_damaged(message: type[Message], version: int, encoded: bytes, place: int, changed_byte: int) -> None:
    """A message that is cut off is malformed, and a changed byte does no harm."""
    with pytest.raises(MalformedMessage):
        message.decode(memoryview(encoded)[:place], 0, version)
    changed = bytearray(encoded)
    changed[place] = changed_byte
    with contextlib.suppress(MalformedMessage):
        message.decode(memoryview(changed), 0, version)


@settings(max_examples=examples(400), deadline=None)
@given(case=st.sampled_from(CASES), noise=st.binary(max_size=60) | st.binary(max_size=30).map((b"\xff" * 30).__add__))
def test_noise_is_decoded_or_malformed_and_nothing_else(case: tuple[type[Message], int], noise: bytes) -> None:
    message, version = case
    with contextlib.suppress(MalformedMessage):
        message.decode(memoryview(noise), 0, version)


def test_each_api_has_one_request_and_one_response_of_the_same_versions() -> None:
    requests = {message.api_key: message for message in MESSAGES if issubclass(message, Request)}
    responses = {message.api_key: message for message in MESSAGES if issubclass(message, Response)}
    assert requests.keys() == responses.keys()
    assert len(requests) + len(responses) == len(MESSAGES)
    for api_key, request in requests.items():
        response = responses[api_key]
        assert (request.versions, request.flexible_from) == (response.versions, response.flexible_from)
        assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")


@pytest.mark.parametrize("message", MESSAGES, ids=[message.__name__ for message in MESSAGES])
def test_the_default_message_can_be_sent_in_every_version(message: type[Message]) -> None:
    for version in (version for other, version in CASES if other is message):
        assert message.decode(memoryview(join(message(), version)), 0, version) == message(), version
