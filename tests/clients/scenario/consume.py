"""Chapter: where a consumer may start, and the answers of ListOffsets about it."""

from tests.clients.scenario.produce import consume, produce
from tests.clients.scenario.steps import EPOCH_MS, KEEP_FOREVER, Json, Step, record
from tests.clients.scenario.topics import create

# One batch each, so that a time falls on a batch; the latest time is not the last record's.
TIMES = [record(f"at {seconds}", timestamp=EPOCH_MS + 1000 * seconds) for seconds in (0, 1, 2, 7, 4)]
TOGETHER = [record(f"together {each}", key="k", timestamp=EPOCH_MS + 1000 * each) for each in range(6)]
FRESH = [record("fresh 1", timestamp=EPOCH_MS + 8000), record("fresh 2", timestamp=EPOCH_MS + 8001)]


def offset_at(position: Json, *, topic: str = "times", partition: int = 0) -> Step:
    arguments = {"topic": topic, "partition": partition, "at": position}
    return Step(f"offset at {position} of {topic}-{partition}", "offset", arguments)


def reset(policy: str) -> dict[str, Json]:
    return consume("times", len(TIMES), start=1_000, reset=policy)


STEPS = [
    Step("create for the times", "create_topic", create("times", 2, KEEP_FOREVER)),
    offset_at("earliest", partition=1),
    offset_at("latest", partition=1),
    offset_at("max_timestamp", partition=1),
    offset_at(EPOCH_MS, partition=1),
    *(Step(f"produce {each['value']}", "produce", produce("times", [each])) for each in TIMES),
    Step(
        "produce many together",
        "produce",
        produce("times", TOGETHER, partition=1, codec="lz4"),
    ),
    offset_at("earliest"),
    offset_at("latest"),
    offset_at("max_timestamp"),
    offset_at(0),
    offset_at(EPOCH_MS),
    offset_at(EPOCH_MS + 1),
    offset_at(EPOCH_MS + 2000),
    offset_at(EPOCH_MS + 3000),
    offset_at(EPOCH_MS + 7001),
    offset_at(EPOCH_MS + 3500, partition=1),
    offset_at("max_timestamp", partition=1),
    Step("from the beginning", "consume", consume("times", len(TIMES))),
    Step("from an offset", "consume", consume("times", 2, start=3)),
    Step("from a time", "consume", consume("times", 3, start={"timestamp": EPOCH_MS + 1500})),
    Step("past the end, reset to the earliest", "consume", reset("earliest")),
    Step("past the end, no reset", "consume", reset("none")),
    Step(
        "from the middle of a batch, on both partitions",
        "consume",
        {"topic": "times", "assignments": [[0, 4], [1, 3]], "count": 4, "reset": "none"},
    ),
    Step(
        "from the end, then produce",
        "consume_new",
        {"topic": "times", "partition": 0, "records": FRESH},
    ),
]
