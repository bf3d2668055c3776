"""Retention as clients see it: old records go in time, and no earlier."""

import errno
from collections.abc import Iterator

import pytest

from odradek.log.retention import expire_to
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, produce
from tests.replica.test_housekeeping import pass_time

HOUR = 3600
DAY_MS = 24 * HOUR * 1000


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_retention_check_interval_ms="300000")
    yield broker
    broker.close()


def produce_now(broker: SimulatedBroker, name: str) -> None:
    produce(broker, name, batch(timestamps=[broker.simulation.clock.now_ms()]))


def offsets(broker: SimulatedBroker, name: str) -> tuple[int, int]:
    log = broker.partition(name).log
    return log.log_start_offset, log.log_end_offset


def fetch_error(broker: SimulatedBroker, name: str, offset: int) -> int:
    topic_id = broker.partition(name).topic_id
    wanted = FetchTopic(topic=name, topic_id=topic_id, partitions=[FetchPartition(partition=0, fetch_offset=offset)])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[wanted])
    return broker.call(request, FetchResponse, 13).responses[0].partitions[0].error_code


def test_records_go_when_they_are_old_and_not_before(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, retention_ms=str(HOUR * 1000), segment_ms=str(600 * 1000))
    produce_now(broker, name)
    pass_time(broker, 1800)
    produce_now(broker, name)
    pass_time(broker, 1700)
    assert offsets(broker, name) == (0, 2)
    pass_time(broker, 500)
    assert offsets(broker, name) == (1, 2)
    assert fetch_error(broker, name, 0) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch_error(broker, name, 1) == ErrorCode.NONE
    pass_time(broker, 1 * HOUR)
    assert offsets(broker, name) == (2, 2), "the active segment too"
    pass_time(broker, 120)
    files = broker.simulation.disk.list_directory(f"/data/{name}-0")
    assert [each for each in files if ".log" in each] == [f"{2:020d}.log"], "files go after their delay"


def test_by_default_a_week(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce_now(broker, name)
    broker.simulation.clock.advance(7 * DAY_MS - 400_000)
    pass_time(broker, 320)
    assert offsets(broker, name) == (0, 1)
    pass_time(broker, 400)
    assert offsets(broker, name) == (1, 1)


def test_an_altered_setting_counts_at_the_next_check(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, retention_ms="-1", retention_bytes="0")
    produce_now(broker, name)
    pass_time(broker, 301)
    assert offsets(broker, name) == (1, 1)


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_start_is_remembered(broker: SimulatedBroker, name: str, is_clean: bool) -> None:
    create_topic(broker, name, retention_ms="1000")
    produce_now(broker, name)
    pass_time(broker, 302)
    assert offsets(broker, name) == (1, 1)
    if is_clean:
        broker.restart()
    else:
        broker.kill()
    assert offsets(broker, name) == (1, 1)


def test_a_clock_set_days_ahead_deletes_nothing(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name)
    produce_now(broker, name)
    broker.simulation.clock.wall_offset_ms += 30 * DAY_MS
    pass_time(broker, HOUR)
    assert offsets(broker, name) == (0, 1)
    broker.simulation.clock.wall_offset_ms -= 30 * DAY_MS
    pass_time(broker, HOUR)
    assert offsets(broker, name) == (0, 1)
    caplog.clear()


def test_deleted_records_take_their_segments_along(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0", file_delete_delay_ms="0")
    for _ in range(100):
        produce_now(broker, name)
    log = broker.partition(name).log
    before = len(log.segments)
    delete_records(broker, name, 90)
    assert len(log.segments) < before / 2
    assert log.segments[1].base_offset > 90
    pass_time(broker, 2)
    files = broker.simulation.disk.list_directory(f"/data/{name}-0")
    assert len([each for each in files if ".log" in each]) == len(log.segments)


@pytest.mark.parametrize("deletes_records", [False, True])
def test_segments_stay_until_the_log_start_is_checkpointed(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture, deletes_records: bool
) -> None:
    """Also in the rounds after the one that moved the log start."""
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0", retention_ms="-1")
    for _ in range(20):
        produce_now(broker, name)
    log = broker.partition(name).log
    before = len(log.segments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker.simulation.disk, "replace_file", refuse)
        if deletes_records:
            assert delete_records(broker, name, 10).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        else:
            expire_to(log, 10)
        pass_time(broker, 1000)
        assert len(log.segments) == before
    pass_time(broker, 302)
    assert len(log.segments) < before
    assert f"{name} 0 10" in broker.simulation.disk.read_file("/data/log-start-offset-checkpoint").decode()
    caplog.clear()


def refuse(path: str, data: bytes) -> None:
    raise OSError(errno.ENOSPC, "disk full", path)
