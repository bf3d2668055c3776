"""The error codes of a response are found wherever they are."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.compile_error_finder import error_finder
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.schema import Response, Struct
from tests.example_counts import examples
from tests.protocol.tables import MESSAGES, structs

RESPONSES = [message for message in MESSAGES if issubclass(message, Response)]


def codes_of(value: Any) -> set[int]:
    """By walking over everything."""
    if isinstance(value, list):
        return set().union(*map(codes_of, value))
    if not isinstance(value, Struct):
        return set()
    own = {code} if (code := getattr(value, "error_code", 0)) else set()
    arrays = [getattr(value, field.name) for field in type(value).fields if field.kind == "array"]
    return own | set().union(*map(codes_of, arrays))


@pytest.mark.parametrize("message", RESPONSES, ids=lambda message: message.__name__)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_it_finds_what_a_walk_finds(message: type[Response], data: st.DataObject) -> None:
    response = data.draw(structs(message, message.versions[1]))
    assert (error_finder(message)(response) or set()) == codes_of(response)


def test_no_errors_are_none() -> None:
    fetched = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(partition_index=0)])])
    assert error_finder(FetchResponse)(fetched) is None


def test_each_code_comes_once() -> None:
    refused = [PartitionProduceResponse(index=index, error_code=3) for index in range(3)]
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=refused)])
    assert error_finder(ProduceResponse)(response) == {3}
