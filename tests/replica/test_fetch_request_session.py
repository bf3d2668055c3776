"""A follower's fetch session: what each request names, and what ends a session."""

from uuid import UUID

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.replica.fetch_request_session import FetchPosition, FetchRequestSession, PartitionKey

FIRST, SECOND = (PartitionKey(UUID(int=1), index) for index in (0, 1))
SESSION_ID = 77


def position(offset: int) -> FetchPosition:
    return FetchPosition(offset, 3, 3, 0, 1024)


def fill(session: FetchRequestSession, **offsets: int | None) -> FetchRequest:
    """None for a partition that is not fetched any more."""
    request = FetchRequest()
    keys = {"first": FIRST, "second": SECOND}
    changes = {keys[name]: None if offset is None else position(offset) for name, offset in offsets.items()}
    session.fill(request, changes)
    return request


def named(request: FetchRequest) -> list[tuple[int, int]]:
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def accept(session: FetchRequestSession, error: ErrorCode = ErrorCode.NONE, session_id: int = SESSION_ID) -> bool:
    return session.accept(FetchResponse(error_code=error, session_id=session_id))


def test_only_changed_partitions_are_named() -> None:
    session = FetchRequestSession()
    request = fill(session, first=5, second=6)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 5), (1, 6)])
    assert accept(session)
    request = fill(session, first=5, second=9)
    assert (request.session_id, request.session_epoch, named(request)) == (SESSION_ID, 1, [(1, 9)])
    assert accept(session)
    request = fill(session, first=None, second=9)
    assert (request.session_epoch, named(request)) == (2, [])
    assert [each.partitions for each in request.forgotten_topics_data] == [[0]]


def test_a_session_that_is_unknown_is_begun_again() -> None:
    session = FetchRequestSession()
    fill(session, first=5)
    accept(session)
    fill(session, first=5)
    assert not accept(session, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    request = fill(session, first=5)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 5)])


def test_a_request_without_a_response_closes_the_session() -> None:
    session = FetchRequestSession()
    fill(session, first=5)
    accept(session)
    fill(session, first=6)
    session.reset()
    request = fill(session, first=6)
    assert (request.session_id, request.session_epoch, named(request)) == (SESSION_ID, 0, [(0, 6)])


def test_a_leader_without_room_for_a_session_gets_all_partitions_each_time() -> None:
    session = FetchRequestSession()
    fill(session, first=5)
    assert accept(session, session_id=0)
    assert named(fill(session)) == [(0, 5)]
