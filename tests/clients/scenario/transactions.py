"""Chapter: transactions that commit and abort, offsets in them, a fenced producer, readers at both isolation levels."""

from tests.clients.scenario.consume import offset_at
from tests.clients.scenario.produce import consume
from tests.clients.scenario.steps import EPOCH_MS, KEEP_FOREVER, Json, Step, record
from tests.clients.scenario.topics import create

TOPIC = "transactions"
COPIES = "copies"
FENCED = "fenced"
KEPT = [record(f"kept {each}", key="k", timestamp=EPOCH_MS + each) for each in range(3)]
DROPPED = [record(f"dropped {each}", timestamp=EPOCH_MS + 10 + each) for each in range(2)]
LAST = [record("last", timestamp=EPOCH_MS + 20)]
OF_THE_FENCED = record("of the fenced producer", timestamp=EPOCH_MS + 30)
OF_THE_NEXT = record("of the next producer", timestamp=EPOCH_MS + 31)


def transaction(name: str, records: list[dict[str, Json]], *, commits: bool) -> Step:
    arguments = {"topic": TOPIC, "partition": 0, "transactional_id": "writer", "records": records, "commits": commits}
    return Step(name, "produce_in_transaction", arguments)


def copy(name: str, count: int, *, commits: bool) -> Step:
    """Records from the group's position on are written to another topic, in one transaction with the group's offset."""
    arguments = {"topic": TOPIC, "target": COPIES, "group": "copier", "transactional_id": "copier"}
    return Step(name, "copy", {**arguments, "count": count, "commits": commits})


def committed(name: str) -> Step:
    return Step(name, "committed", {"topic": TOPIC, "partition": 0, "group": "copier"})


def read(name: str, topic: str, count: int, isolation: str) -> Step:
    return Step(name, "consume", {**consume(topic, count), "isolation": isolation})


STEPS = [
    *(Step(f"create {name}", "create_topic", create(name, 1, KEEP_FOREVER)) for name in (TOPIC, COPIES, FENCED)),
    transaction("commit three", KEPT, commits=True),
    transaction("abort two", DROPPED, commits=False),
    transaction("commit one", LAST, commits=True),
    offset_at("latest", topic=TOPIC),
    read("read the uncommitted", TOPIC, 6, "read_uncommitted"),
    read("read the committed", TOPIC, 4, "read_committed"),
    copy("copy and abort", 4, commits=False),
    committed("nothing is committed"),
    copy("copy and commit", 3, commits=True),
    committed("three are committed"),
    copy("copy the rest", 1, commits=True),
    committed("all are committed"),
    offset_at("latest", topic=COPIES),
    read("read the copies", COPIES, 4, "read_committed"),
    Step(
        "a second producer with the same id",
        "fence",
        {"topic": FENCED, "partition": 0, "transactional_id": "twins", "records": [OF_THE_FENCED, OF_THE_NEXT]},
    ),
    read("read what the fenced left", FENCED, 1, "read_committed"),
    read("read all of it", FENCED, 2, "read_uncommitted"),
]
