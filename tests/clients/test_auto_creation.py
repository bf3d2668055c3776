"""Topics made by asking for them: only where the request allows it, with the broker's numbers, under legal names."""

import time

import pytest

from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import PATIENCE_SECONDS, TopicMetadata, metadata, new_topic_name

UNKNOWN = TopicMetadata("UNKNOWN_TOPIC_OR_PARTITION", 0)
INVALID = TopicMetadata("INVALID_TOPIC_EXCEPTION", 0)


def test_topic_is_not_made_where_the_request_forbids_it(connection: Connection) -> None:
    name = new_topic_name()
    answers = [metadata(connection, name, allow_auto_topic_creation=False) for _ in range(3)]
    assert answers == [UNKNOWN] * 3


def test_topic_is_made_where_the_request_allows_it(connection: Connection) -> None:
    name = new_topic_name()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while metadata(connection, name, allow_auto_topic_creation=True) != TopicMetadata("NONE", 1):
        assert time.monotonic() < deadline
        time.sleep(0.02)  # a poll's pause
    assert metadata(connection, name, allow_auto_topic_creation=False) == TopicMetadata("NONE", 1)


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("name", ["", ".", "..", "not legal", "a/b", "nul\0", "x" * 250, "é"])
def test_illegal_name_is_refused(connection: Connection, name: str, allowed: bool) -> None:
    assert metadata(connection, name, allow_auto_topic_creation=allowed) == INVALID
