"""Topics made by asking for them: only where the request allows it, with the broker's numbers, under legal names."""

import pytest

from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import TopicMetadata, metadata, new_topic_name
from tests.waiting import eventually

UNKNOWN = TopicMetadata("UNKNOWN_TOPIC_OR_PARTITION", 0)
INVALID = TopicMetadata("INVALID_TOPIC_EXCEPTION", 0)


def test_topic_is_not_made_where_the_request_forbids_it(connection: Connection) -> None:
    name = new_topic_name()
    answers = [metadata(connection, name, allow_auto_topic_creation=False) for _ in range(3)]
    assert answers == [UNKNOWN] * 3


def test_topic_is_made_where_the_request_allows_it(connection: Connection) -> None:
    name = new_topic_name()
    eventually(lambda: metadata(connection, name, allow_auto_topic_creation=True) == TopicMetadata("NONE", 1))
    assert metadata(connection, name, allow_auto_topic_creation=False) == TopicMetadata("NONE", 1)


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("name", ["", ".", "..", "not legal", "a/b", "nul\0", "x" * 250, "é"])
def test_illegal_name_is_refused(connection: Connection, name: str, allowed: bool) -> None:
    assert metadata(connection, name, allow_auto_topic_creation=allowed) == INVALID
