"""A line of the audit log is one line of JSON of bounded size, whatever clients send."""

import json

from hypothesis import given
from hypothesis import strategies as st

from odradek.security.audit.events import Action, Actor, action_fields, as_line, denial_fields
from odradek.security.authorizer import Operation, Resource, ResourceType

ACTOR = Actor("User:alice", "10.0.0.1", "CLIENTS", "console", "Produce")


def test_a_denial_says_who_what_where() -> None:
    fields = denial_fields(ACTOR, Operation.DESCRIBE_CONFIGS, Resource(ResourceType.TRANSACTIONAL_ID, "t"))
    assert json.loads(as_line(fields, 0)) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "outcome": "denied",
        "principal": "User:alice",
        "host": "10.0.0.1",
        "listener": "CLIENTS",
        "client_id": "console",
        "api": "Produce",
        "operation": "DescribeConfigs",
        "resource_type": "TransactionalId",
        "resource": "t",
    }


def test_a_failed_action_has_its_error() -> None:
    fields = action_fields(ACTOR, Action("Create", "Topic", "t", "TOPIC_ALREADY_EXISTS"))
    assert (fields["outcome"], fields["error"]) == ("failed", "TOPIC_ALREADY_EXISTS")
    assert action_fields(ACTOR, Action("Create", "Topic", "t"))["outcome"] == "done"


@given(st.text(), st.text(), st.text())
def test_any_text_gives_one_line_of_ascii(principal: str, client_id: str, name: str) -> None:
    actor = ACTOR._replace(principal=principal * 50, client_id=client_id * 50)
    line = as_line(denial_fields(actor, Operation.READ, Resource(ResourceType.GROUP, name * 50)), 1)
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert len(line) < 13_000
    assert json.loads(line)["resource"].startswith((name * 50)[:300])
