"""Every client in a group of its own kind: members share, take over, are fenced, and every record is processed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.groups.committed_history import committed_history, regressions
from tests.groups.kinds import EACH_CLIENT, EVERY_KIND, INCREMENTAL, WITH_RANGE, Kind, parameters
from tests.groups.members.member_settings import CLASSIC
from tests.groups.processed import Processed
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.groups.conftest import Start
    from tests.groups.running_member import RunningMember
    from tests.groups.topics import Topics

pytestmark = pytest.mark.timeout(300)  # the first run on a machine builds the Go member and the Java classes

SHORT_SESSION_MS = 1500  # of the classic protocol
COMMIT_PAUSE_MS = 3000  # time enough to stop a member between a batch and its commit
SHORT_SESSION = pytest.mark.parametrize("consumer_session_ms", [3000], ids=["short-session"])
RANGE = [{("A", 0), ("B", 0)}, {("A", 1), ("B", 1)}, set()]
ROUND_ROBIN = [{("A", 0), ("B", 1)}, {("A", 1)}, {("B", 0)}]
FORGETFUL = Kind("franz-go", CLASSIC, "sticky")  # it assigns from scratch, on Apache Kafka too
STICKY = [kind for kind in EVERY_KIND if "sticky" in kind.assignor and kind != FORGETFUL]
CLASSIC_KINDS = [kind for kind in EVERY_KIND if kind.protocol == CLASSIC]
EACH_ASSIGNOR = [
    "kafka-python-classic-range",
    "confluent-classic-roundrobin",
    "aiokafka-classic-sticky",
    "franz-go-classic-cooperative-sticky",
]
OF_EACH_PROTOCOL = ["kafka-python-classic-cooperative-sticky", "confluent-consumer-uniform"]
EXACT = {"range": RANGE, "roundrobin": ROUND_ROBIN}


def share(members: list[RunningMember], *counts: int) -> bool:
    """Whether each partition has one owner and the members hold so many."""
    held = [member.held for member in members]
    return [len(each) for each in held] == list(counts) and len(set().union(*held)) == sum(counts)


def all_processed(topics: Topics, *members: RunningMember) -> None:
    topics.flush()
    eventually(lambda: not Processed(members).skipped(topics.ends), "every record processed")


@pytest.mark.parametrize("kind", parameters(CLASSIC_KINDS, ["confluent-classic-roundrobin"], EACH_ASSIGNOR))
def test_three_consumers_of_two_topics_share_as_the_assignor_says(topics: Topics, start: Start, kind: Kind) -> None:
    topics.make(A=2, B=2)
    members = [start(kind.library, name, "A", "B", **kind.settings) for name in ("c1", "c2", "c3")]
    if kind.assignor in EXACT:
        eventually(lambda: [each.held for each in members] == EXACT[kind.assignor], f"{kind.assignor} over c1, c2, c3")
    else:
        eventually(lambda: sorted(len(each.held) for each in members) == [1, 1, 2], "as even as can be")
        assert set().union(*(each.held for each in members)) == set(topics.ends)
    for member in members:
        member.leave()


@pytest.mark.parametrize(
    "kind",
    parameters(
        (kind for kind in STICKY if kind != FORGETFUL),
        ["confluent-classic-cooperative-sticky"],
        ["aiokafka-classic-sticky"],
    ),
)
def test_who_stays_keeps_what_it_had(topics: Topics, start: Start, kind: Kind) -> None:
    topics.make(A=2, B=2)
    leaver, *staying = (start(kind.library, name, "A", "B", **kind.settings) for name in ("c1", "c2", "c3"))
    members = [leaver, *staying]
    eventually(lambda: sorted(len(each.held) for each in members) == [1, 1, 2], "as even as can be")
    eventually(
        lambda: set().union(*(each.held for each in members)) == set(topics.ends), "every partition has an owner"
    )
    eventually(lambda: topics.group_state() == "STABLE", "a stable group")
    before = [each.held for each in staying]
    leaver.leave()
    eventually(lambda: share(staying, 2, 2), "two partitions each")
    assert all(had <= each.held for had, each in zip(before, staying, strict=True))
    for member in staying:
        member.leave()


@pytest.mark.parametrize("kind", parameters(WITH_RANGE + INCREMENTAL, OF_EACH_PROTOCOL, map(str, EACH_CLIENT)))
def test_two_members_share_and_one_takes_over_where_the_other_was(topics: Topics, start: Start, kind: Kind) -> None:
    topics.make(topic=4)
    first = start(kind.library, "c1", "topic", **kind.settings)
    topics.produce(200)
    eventually(lambda: share([first], 4), "all partitions")
    all_processed(topics, first)
    second = start(kind.library, "c2", "topic", **kind.settings)
    eventually(lambda: share([first, second], 2, 2), "two partitions each")
    topics.produce(200)
    all_processed(topics, first, second)
    first.leave()
    eventually(lambda: share([second], 4), "all partitions again")
    topics.produce(200)
    all_processed(topics, first, second)
    second.leave()
    assert Processed([first, second]).repeated(topics.ends) == 0, "a taken over partition goes on at its offset"
    assert topics.committed() == topics.ends


@SHORT_SESSION
@pytest.mark.parametrize("kind", parameters(WITH_RANGE, ["kafka-python-classic-range"], ["java-consumer-range"]))
def test_the_partitions_of_a_killed_member_go_to_the_other(topics: Topics, start: Start, kind: Kind) -> None:
    topics.make(topic=2)
    survivor = start(kind.library, "c1", "topic", **kind.settings)
    doomed = start(kind.library, "c2", "topic", session_ms=SHORT_SESSION_MS, **kind.settings)
    eventually(lambda: share([survivor, doomed], 1, 1), "one partition each")
    topics.produce(100)
    all_processed(topics, survivor, doomed)
    doomed.kill()
    eventually(lambda: share([survivor], 2), "both partitions")
    topics.produce(100)
    all_processed(topics, survivor, doomed)
    eventually(lambda: topics.committed() == topics.ends, "everything committed")
    survivor.leave()


@SHORT_SESSION
@pytest.mark.parametrize("kind", parameters(WITH_RANGE, ["confluent-consumer-range"], ["franz-go-classic-range"]))
def test_a_stopped_member_that_comes_back_cannot_commit_over_its_successor(
    topics: Topics, start: Start, kind: Kind
) -> None:
    topics.make(topic=1)
    settings = {"commit_pause_ms": COMMIT_PAUSE_MS, "session_ms": SHORT_SESSION_MS, **kind.settings}
    stopped = start(kind.library, "c1", "topic", **settings)
    eventually(lambda: share([stopped], 1), "the one partition")
    topics.produce(100)
    topics.flush()
    eventually(lambda: bool(stopped.reports.runs), "a batch processed and not committed")
    stopped.stop()
    assert not stopped.reports.committed
    successor = start(kind.library, "c2", "topic", **kind.settings)
    eventually(lambda: successor.reports.committed == {("topic", 0): 100}, "the successor has committed")
    topics.produce(100)
    topics.flush()
    eventually(lambda: topics.committed() == {("topic", 0): 200}, "the successor is ahead")
    stopped.go_on()
    eventually(lambda: bool(stopped.reports.refused), "the late commit refused")
    eventually(lambda: not successor.held or not stopped.held, "one owner")
    assert not stopped.reports.committed
    successor.leave()
    stopped.leave()
    assert topics.committed() == {("topic", 0): 200}
    assert not regressions(committed_history(topics.servers))
