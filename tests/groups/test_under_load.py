"""A group under load, whose members join, leave, are killed and are stopped: every record is processed, none is
skipped, and no committed offset ever moves backwards.

ODRADEK_GROUP_RECORDS sets the length, ODRADEK_GROUP_SEEDS (first-last) the seeds; `make soak` sets both.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.groups.chaos import Chaos
from tests.groups.committed_history import committed_history, regressions
from tests.groups.kinds import MIXED, MixedGroup
from tests.groups.processed import Processed
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.groups.conftest import Start
    from tests.groups.running_member import Partition, RunningMember
    from tests.groups.topics import Topics

RECORDS = int(os.environ.get("ODRADEK_GROUP_RECORDS", "100000"))
FIRST_SEED, LAST_SEED = (int(end) for end in os.environ.get("ODRADEK_GROUP_SEEDS", "1-1").split("-"))
PARTITION_COUNT = 12
RECORDS_A_SECOND = min(100_000, RECORDS // 10)  # for ten seconds at least: time for members to come and go
INTERVAL_S = 0.8
SESSION_MS = 2000
STOP_S = 3.5
DRAIN_S = 120.0

pytestmark = [pytest.mark.more, pytest.mark.timeout(600 + RECORDS // 1000), pytest.mark.jvm, pytest.mark.go]


def keep_producing(topics: Topics) -> None:
    """All the records, at a steady pace."""
    each_turn = RECORDS_A_SECOND // PARTITION_COUNT // 10
    due = time.monotonic()
    left = -(-RECORDS // PARTITION_COUNT)
    while left > 0:
        topics.produce(min(each_turn, left))
        left -= each_turn
        due += 0.1
        time.sleep(max(0.0, due - time.monotonic()))  # a poll's pause: the pace
    topics.flush()


def reports_about(members: list[RunningMember], moved: list[tuple[Partition, int, int]], began: float) -> str:
    """The reports of all members about the partitions whose offsets moved backwards, in the order of arrival."""
    partitions = {partition for partition, _, _ in moved}
    heard = sorted(
        (when - began, repr(member), line["event"], details)
        for member in members
        for when, line in member.reports.lines
        if (details := concerning(line, partitions)) or line["event"] == "refused"
    )
    return "\n".join(
        [f"moved backwards: {moved}", *(f"{when:8.3f} {who} {what} {details}" for when, who, what, details in heard)]
    )


def concerning(line: dict[str, Any], partitions: set[Partition]) -> list[Any]:
    """The parts of a member's report about these partitions."""
    parts = [*line.get("partitions", ()), *line.get("runs", ()), *line.get("offsets", ())]
    return [each for each in parts if (each[0], each[1]) in partitions]


@pytest.mark.parametrize("consumer_session_ms", [3000], ids=["short-session"])
@pytest.mark.parametrize("seed", range(FIRST_SEED, LAST_SEED + 1))
@pytest.mark.parametrize("mixed", [pytest.param(MIXED[0], marks=pytest.mark.soak), MIXED[-1]], ids=str)
def test_every_record_is_processed_and_no_offset_regresses(
    topics: Topics, start: Start, mixed: MixedGroup, seed: int, record_property: Any
) -> None:
    topics.make(topic=PARTITION_COUNT)
    settings = {"protocol": mixed.protocol, "assignor": mixed.assignor, "session_ms": SESSION_MS}

    def join(library: str) -> RunningMember:
        return start(library, f"m{len(chaos.members)}", "topic", **settings)

    chaos = Chaos(seed, mixed.libraries, join)
    chaos.begin()
    began = time.monotonic()
    producing = threading.Thread(target=keep_producing, args=(topics,))
    producing.start()
    while producing.is_alive():
        chaos.unleash(rounds=1, interval_s=INTERVAL_S, stop_s=STOP_S)
    producing.join()
    eventually(lambda: topics.committed() == topics.ends, "everything committed", seconds=DRAIN_S)
    took_s = time.monotonic() - began
    for member in chaos.members:
        if member.is_alive:
            member.leave()
    processed, history = Processed(chaos.members), committed_history(topics.servers)
    figures = {
        "seed": seed,
        "records": sum(topics.ends.values()),
        "repeated": processed.repeated(topics.ends),
        "seconds": round(took_s, 1),
        "members": len(chaos.members),
        **chaos.done,
        "rebalances": sum(member.reports.rebalances for member in chaos.members),
        "commits": sum(len(offsets) for offsets in history.values()),
        "refused": sum(len(member.reports.refused) for member in chaos.members),
    }
    record_property("figures", figures)
    print(f"{mixed}: {figures}")
    assert not processed.skipped(topics.ends)
    assert not (moved := regressions(history)), reports_about(chaos.members, moved, began)
    assert {partition: offsets[-1] for partition, offsets in history.items()} == topics.ends
    assert all(chaos.done[action] for action in ("join", "leave", "kill", "stop")), "nothing was shown"
