"""Incremental fetch sessions as a client sees them: only what changed is asked for, only what is new is returned."""

from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse, FetchTopic, ForgottenTopic
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    batch,
    begin_fetch,
    create_topic,
    delete_records,
    delete_topic,
    fetch_all,
    fetch_request,
    produce,
    size_of,
    wanted,
)

SIZE = len(batch())
LONG_MS = 10_000


@pytest.fixture
def topic(broker: AnyBroker, name: str) -> UUID:
    return filled_topic(broker, name)


def filled_topic(broker: AnyBroker, name: str) -> UUID:
    """Three partitions with one record each."""
    topic_id = create_topic(broker, name, 3)
    for partition in range(3):
        produce(broker, topic_id, partition=partition)
    return topic_id


def open_session(broker: AnyBroker, topics: list[FetchTopic]) -> int:
    answer = fetch_all(broker, fetch_request(topics, session=(0, 0)), 18)
    assert answer.session_id > 0
    return answer.session_id


def go_on(
    broker: AnyBroker, session: int, epoch: int, topics: list[FetchTopic] | None = None, *, forgotten: object = None
) -> FetchResponse:
    forgotten_topics = [forgotten] if isinstance(forgotten, ForgottenTopic) else []
    return fetch_all(broker, fetch_request(topics or [], session=(session, epoch), forgotten=forgotten_topics), 18)


def reported(answer: FetchResponse) -> dict[int, int]:
    """Partition and size, of what the answer mentions."""
    assert answer.error_code == ErrorCode.NONE
    return {each.partition_index: size_of(each) for topic in answer.responses for each in topic.partitions}


def test_the_first_answer_is_full_and_the_next_has_only_news(broker: AnyBroker, topic: UUID) -> None:
    ends = [wanted(topic, 1, partition=index) for index in range(3)]
    answer = fetch_all(broker, fetch_request(ends, session=(0, 0)), 18)
    assert reported(answer) == {0: 0, 1: 0, 2: 0}
    session = answer.session_id
    again = go_on(broker, session, 1)
    assert (reported(again), again.session_id) == ({}, session)
    produce(broker, topic, partition=1)
    assert reported(go_on(broker, session, 2)) == {1: SIZE}
    assert reported(go_on(broker, session, 3)) == {1: SIZE}, "the client did not move on"
    assert reported(go_on(broker, session, 4, [wanted(topic, 2, partition=1)])) == {}


def test_a_new_high_watermark_without_data_is_news(broker: AnyBroker, topic: UUID) -> None:
    """A small limit: only one partition gives bytes, the other tells how far it has come."""
    ends = [wanted(topic, 1, partition=index) for index in range(2)]
    session = open_session(broker, ends)
    for partition in range(2):
        produce(broker, topic, partition=partition)
    small = fetch_request([], session=(session, 1), max_bytes=1)
    first = fetch_all(broker, small, 18)
    assert sorted(reported(first).values()) == [0, SIZE]


def test_a_moved_start_is_news(broker: AnyBroker, name: str, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic, 1)])
    delete_records(broker, name, 1)
    assert reported(go_on(broker, session, 1)) == {0: 0}
    assert reported(go_on(broker, session, 2)) == {}


def test_a_partition_can_be_added_and_forgotten(broker: AnyBroker, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic)])
    assert reported(go_on(broker, session, 1, [wanted(topic, partition=1)])) == {0: SIZE, 1: SIZE}
    forgotten = ForgottenTopic(topic_id=topic, partitions=[0])
    assert reported(go_on(broker, session, 2, forgotten=forgotten)) == {1: SIZE}
    assert reported(go_on(broker, session, 3)) == {1: SIZE}


def test_what_gave_data_goes_to_the_back(broker: AnyBroker, topic: UUID) -> None:
    """With room for one batch, every partition gets its turn."""
    session = open_session(broker, [wanted(topic, 1, partition=index) for index in range(3)])
    for partition in range(3):
        produce(broker, topic, partition=partition)
    served = []
    for epoch in (1, 2, 3):
        answer = fetch_all(broker, fetch_request([], session=(session, epoch), max_bytes=1), 18)
        served += [partition for partition, size in reported(answer).items() if size]
    assert sorted(served) == [0, 1, 2]


def test_errors_of_a_session_have_their_names(broker: AnyBroker, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic)])
    wrong = go_on(broker, session, 5)
    assert (wrong.error_code, wrong.session_id, wrong.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    assert go_on(broker, session + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert reported(go_on(broker, session, 1)) == {0: SIZE}, "a wrong epoch does not end the session"
    assert go_on(broker, session, 1).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH, "an epoch is used once"


def test_the_final_epoch_ends_a_session(broker: AnyBroker, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic)])
    last = go_on(broker, session, -1, [wanted(topic)])
    assert (reported(last), last.session_id) == ({0: SIZE}, 0)
    assert go_on(broker, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_epoch_0_replaces_a_session(broker: AnyBroker, topic: UUID) -> None:
    old = open_session(broker, [wanted(topic)])
    answer = go_on(broker, old, 0, [wanted(topic, partition=1)])
    assert reported(answer) == {1: SIZE}
    assert answer.session_id not in (0, old)
    assert go_on(broker, old, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_forgets_its_last_partition_is_over(broker: AnyBroker, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic)])
    empty = go_on(broker, session, 1, forgotten=ForgottenTopic(topic_id=topic, partitions=[0]))
    assert (reported(empty), empty.session_id) == ({}, 0)
    assert go_on(broker, session, 2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_by_id_takes_no_names(broker: AnyBroker, name: str, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic)])
    answer = fetch_all(broker, fetch_request([wanted(name)], session=(session, 1)), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_deleted_topic_is_reported_again_and_again(broker: AnyBroker, name: str, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic, 1)])
    delete_topic(broker, name)
    for epoch in (1, 2):
        answer = go_on(broker, session, epoch)
        # Apache Kafka's session remembers the name.
        unknown = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)[broker.is_apache_kafka]
        assert answer.responses[0].partitions[0].error_code == unknown


def test_a_session_waits_for_what_it_remembers(broker: AnyBroker, topic: UUID) -> None:
    session = open_session(broker, [wanted(topic, 1, partition=index) for index in range(3)])
    began = broker.elapsed_ms()
    waiting = broker.begin(fetch_request([], session=(session, 1), max_wait_ms=LONG_MS), FetchResponse, 18)
    produce(broker, topic, partition=2)
    assert reported(waiting.result()) == {2: SIZE}
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_sessions_by_name_work_too(broker: AnyBroker, name: str, topic: UUID) -> None:
    opened = fetch_all(broker, fetch_request([wanted(name)], session=(0, 0)), 7)
    assert reported(opened) == {0: SIZE}
    more = fetch_all(broker, fetch_request([], session=(opened.session_id, 1)), 7)
    assert (reported(more), more.responses[0].topic) == ({0: SIZE}, name)


def test_two_requests_of_one_session_do_not_trip_over_each_other(simulated: SimulatedBroker, name: str) -> None:
    """The first waits while the second, on another connection, forgets its partition."""
    topic = filled_topic(simulated, name)
    session = open_session(simulated, [wanted(topic, 1), wanted(topic, 1, partition=1)])
    first = simulated.begin(fetch_request([], session=(session, 1), max_wait_ms=500), FetchResponse, 18)
    forgotten = ForgottenTopic(topic_id=topic, partitions=[0])
    assert reported(go_on(simulated, session, 2, forgotten=forgotten)) == {}
    produce(simulated, topic, partition=1)
    assert reported(first.result()) == {1: SIZE}


def test_a_full_fetch_without_a_session_waits_like_any_other(broker: AnyBroker, topic: UUID) -> None:
    waiting = begin_fetch(broker, fetch_request([wanted(topic, 1)], session=(0, 0), max_wait_ms=LONG_MS))
    produce(broker, topic)
    assert reported(waiting.result()) == {0: SIZE}
