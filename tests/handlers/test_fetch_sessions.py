"""KIP-227's rules: who gets a session, what an epoch means, and what an incremental answer may leave out."""

import random
from uuid import UUID

import pytest

from odradek.handlers import fetch_sessions
from odradek.handlers.fetch_sessions import EVICTABLE_AFTER_MS, FetchKey, FetchSession, FetchSessions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from odradek.replica.fetch_result import FetchResult

BY_NAME, BY_ID = 12, 13
TOPIC_ID = UUID(int=7)


class HandClock:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.milliseconds = 0.0

    def now_ms(self) -> int:
        return int(self.milliseconds)

    def monotonic_ms(self) -> float:
        return self.milliseconds

    def call_after(self, delay_ms: float, callback: object) -> object:
        raise AssertionError("sessions set no timers")


class SeededEntropy:
    def __init__(self) -> None:
        self._random = random.Random(1)

    def uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128))

    def random_below(self, bound: int) -> int:
        return self._random.randrange(bound)


def sessions(slots: int = 10, clock: HandClock | None = None) -> FetchSessions:
    return FetchSessions(slots, clock or HandClock(), SeededEntropy())  # type: ignore[arg-type]  # a clock without timers


def request(
    *offsets: int, session_id: int = 0, epoch: int = 0, forgotten: tuple[int, ...] = (), topic: str = "t"
) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)
        for index, offset in enumerate(offsets)
    ]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=topic, topic_id=TOPIC_ID, partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic=topic, topic_id=TOPIC_ID, partitions=list(forgotten))],
    )


def begun(all_sessions: FetchSessions, wanted: FetchRequest, version: int = BY_ID) -> FetchSession:
    session = all_sessions.begin(wanted, version)
    assert isinstance(session, FetchSession)
    return session


def test_a_fetch_of_nothing_opens_no_session() -> None:
    assert begun(sessions(), request()).session_id == 0


def test_what_gave_data_is_served_last_next_time() -> None:
    first = begun(sessions(), request(0, 0, 0))
    first.served(FetchKey(TOPIC_ID, 0))
    assert [key.partition for key in first.partitions] == [1, 2, 0]


def test_an_incremental_answer_mentions_only_what_changed() -> None:
    partition = next(iter(begun(sessions(), request(0)).partitions.values()))
    quiet = FetchResult(ErrorCode.NONE, high_watermark=10, log_start_offset=0)
    assert partition.has_changed(quiet)
    partition.reported(quiet)
    assert not partition.has_changed(quiet)
    assert partition.has_changed(FetchResult(ErrorCode.NONE, high_watermark=11, log_start_offset=0))
    assert partition.has_changed(FetchResult(ErrorCode.NONE, high_watermark=10, log_start_offset=3))
    failed = FetchResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert partition.has_changed(failed)
    partition.reported(failed)
    assert partition.has_changed(quiet), "after an error the next successful answer counts as changed"


def test_a_full_cache_keeps_sessions_in_use_and_serves_newcomers_without_one() -> None:
    clock = HandClock()
    all_sessions = sessions(slots=2, clock=clock)
    old, used = begun(all_sessions, request(0)), begun(all_sessions, request(0))
    assert begun(all_sessions, request(0)).session_id == 0
    clock.milliseconds = EVICTABLE_AFTER_MS + 1
    begun(all_sessions, request(0, session_id=used.session_id, epoch=1))
    assert begun(all_sessions, request(0)).session_id > 0
    gone = request(0, session_id=old.session_id, epoch=1)
    assert all_sessions.begin(gone, BY_ID) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(all_sessions) == 2


def named(number: int, count: int, session_id: int = 0, epoch: int = 0) -> FetchRequest:
    """A fetch of so many partitions of a topic with this number."""
    return request(*[0] * count, session_id=session_id, epoch=epoch, topic=f"t{number}")


def test_partitions_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    clock = HandClock()
    cache = sessions(clock=clock)
    old, used = (begun(cache, named(number, 4), BY_NAME) for number in range(2))
    third = begun(cache, named(2, 3), BY_NAME)
    assert (third.session_id, len(third.partitions)) == (0, 3), "served, but not remembered"
    assert (len(cache), cache.partition_count) == (2, 8)
    clock.milliseconds = EVICTABLE_AFTER_MS + 1
    begun(cache, request(session_id=used.session_id, epoch=1), BY_NAME)
    assert begun(cache, named(2, 3), BY_NAME).session_id > 0, "the place of a session that is not used"
    assert (len(cache), cache.partition_count) == (2, 7)
    gone = request(session_id=old.session_id, epoch=1)
    assert cache.begin(gone, BY_NAME) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_grows_over_the_bound_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    cache = sessions()
    session = begun(cache, named(0, 4), BY_NAME)
    begun(cache, named(1, 4, session.session_id, 1), BY_NAME)
    assert cache.partition_count == 8
    grown = cache.begin(named(2, 4, session.session_id, 2), BY_NAME)
    assert grown is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(cache), cache.partition_count) == (0, 0)


def test_forgotten_partitions_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    cache = sessions()
    session = begun(cache, request(*[0] * 8))
    begun(cache, request(session_id=session.session_id, epoch=1, forgotten=(0, 1, 2, 3)))
    assert cache.partition_count == 4
    other = begun(cache, named(1, 6), BY_NAME)
    assert other.session_id > 0
    begun(cache, request(0, session_id=other.session_id, epoch=-1), BY_NAME)
    assert cache.partition_count == 4


def test_a_consumer_with_many_partitions_gets_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each incremental fetch would visit all of them, for 60 bytes of request."""
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS_OF_SESSION", 5)
    cache = sessions()
    assert begun(cache, named(0, 6), BY_NAME).session_id == 0
    session = begun(cache, named(0, 5), BY_NAME)
    assert session.session_id > 0
    grown = cache.begin(named(1, 1, session.session_id, 1), BY_NAME)
    assert grown is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_followers_are_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    cache = sessions()
    follower = cache.begin(named(0, 20), BY_NAME, is_follower=True)
    assert isinstance(follower, FetchSession)
    assert follower.session_id > 0
    assert cache.partition_count == 0


def test_offsets_in_an_answer_with_a_divergence_do_not_count_as_known() -> None:
    """A follower truncates its log and ignores them."""
    cache = sessions()
    session = cache.begin(request(0), BY_ID)
    assert isinstance(session, FetchSession)
    (wanted,) = session.partitions.values()
    diverged = FetchResult(ErrorCode.NONE, 5, 5, 0)
    diverged.diverging_epoch = 3
    wanted.reported(diverged)
    assert wanted.has_changed(FetchResult(ErrorCode.NONE, 5, 5, 0))


def test_a_follower_in_another_leader_epoch_learns_all_offsets_again() -> None:
    cache = sessions()
    session = cache.begin(request(0), BY_ID)
    assert isinstance(session, FetchSession)
    (wanted,) = session.partitions.values()
    known = FetchResult(ErrorCode.NONE, 5, 5, 0)
    wanted.reported(known)
    assert not wanted.has_changed(known)
    newer = request(0, session_id=session.session_id, epoch=session.epoch)
    newer.topics[0].partitions[0].current_leader_epoch = 4
    assert cache.begin(newer, BY_ID) is session
    assert wanted.has_changed(known)


def test_a_follower_has_one_session_and_visits_all_partitions_under_a_new_registration() -> None:
    cache = sessions()
    first = cache.begin(request(0, 0), BY_ID)
    assert isinstance(first, FetchSession)
    cache.watch_for(first, 1, 10)
    assert len(first.to_visit()) == 2
    assert first.watch is not None
    first.watch.changed.clear()
    cache.watch_for(first, 1, 10)
    assert first.to_visit() == ()
    assert cache.begin(request(7, session_id=first.session_id, epoch=first.epoch), BY_ID) is first
    assert [each.fetch_offset for each in first.to_visit()] == [7]
    cache.watch_for(first, 1, 11)
    assert len(first.to_visit()) == 2
    second = cache.begin(request(0), BY_ID)
    assert isinstance(second, FetchSession)
    cache.watch_for(second, 1, 11)
    missing = cache.begin(request(session_id=first.session_id, epoch=first.epoch), BY_ID)
    assert missing is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
