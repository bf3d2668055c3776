"""One group in which every member speaks through another client, while records keep coming."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.groups.kinds import MIXED, MixedGroup
from tests.groups.processed import Processed
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.groups.conftest import Start
    from tests.groups.running_member import RunningMember
    from tests.groups.topics import Topics

pytestmark = [pytest.mark.timeout(300), pytest.mark.jvm, pytest.mark.go]

# Of both protocols; the others differ in the assignor only.
SUITES: dict[MixedGroup, Any] = dict.fromkeys((MIXED[0], MIXED[-1]), pytest.mark.more)
PARTITION_COUNT = 10
RECORDS_A_TURN = 20  # per partition
TURN_S = 0.1


def shared_evenly(members: list[RunningMember]) -> bool:
    """Each partition has one owner, and the members' shares differ by at most one."""
    held = [member.held for member in members]
    counts = [len(each) for each in held]
    return sum(counts) == len(set().union(*held)) == PARTITION_COUNT and max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    "mixed", [pytest.param(each, marks=SUITES.get(each, pytest.mark.soak)) for each in MIXED], ids=str
)
def test_every_record_is_processed_once_while_clients_come_and_go(
    topics: Topics, start: Start, mixed: MixedGroup
) -> None:
    topics.make(topic=PARTITION_COUNT)
    enough = threading.Event()

    def keep_producing() -> None:
        while not enough.wait(TURN_S):
            topics.produce(RECORDS_A_TURN)

    producing = threading.Thread(target=keep_producing)
    producing.start()
    try:
        members: list[RunningMember] = []
        for number, library in enumerate(mixed.libraries):
            members.append(start(library, f"c{number}", "topic", protocol=mixed.protocol, assignor=mixed.assignor))
            eventually(lambda: shared_evenly(members), f"{members} share")
        staying = list(members)
        while len(staying) > 1:
            staying.pop(0).leave()
            eventually(lambda: shared_evenly(staying), f"{staying} share")
    finally:
        enough.set()
        producing.join()
    topics.flush()
    eventually(lambda: not Processed(members).skipped(topics.ends), "every record processed")
    staying[0].leave()
    assert all(member.reports.runs for member in members)
    assert Processed(members).repeated(topics.ends) == 0
    assert topics.committed() == topics.ends
