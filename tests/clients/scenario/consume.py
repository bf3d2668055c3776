"""Chapter: where a consumer may start, and what ListOffsets says about it."""

from tests.clients.scenario.produce import consume, produce
from tests.clients.scenario.steps import DONE, EPOCH_MS, KEEP_FOREVER, Json, Step, consumed, offsets, record, refused
from tests.clients.scenario.topics import create

# One batch each, so that a time falls on a batch; the latest time is not the last record's.
TIMES = [record(f"at {seconds}", timestamp=EPOCH_MS + 1000 * seconds) for seconds in (0, 1, 2, 7, 4)]
TOGETHER = [record(f"together {each}", key="k", timestamp=EPOCH_MS + 1000 * each) for each in range(6)]
FRESH = [record("fresh 1", timestamp=EPOCH_MS + 8000), record("fresh 2", timestamp=EPOCH_MS + 8001)]


def offset_at(place: Json, offset: int, timestamp: int = -1, *, topic: str = "times", partition: int = 0) -> Step:
    arguments = {"topic": topic, "partition": partition, "at": place}
    return Step(f"offset at {place} of {topic}-{partition}", "offset", arguments, _at(offset, timestamp))


def _at(offset: int, timestamp: int) -> dict[str, Json]:
    return {"offset": offset} if timestamp == -1 else {"offset": offset, "at_timestamp": timestamp}


def times(first: int, last: int) -> Json:
    return {"records": [consumed(index, TIMES[index]) for index in range(first, last + 1)]}


def reset(policy: str) -> dict[str, Json]:
    return consume("times", len(TIMES), start=1_000, reset=policy)


STEPS = [
    Step("create for the times", "create_topic", create("times", 2, KEEP_FOREVER), DONE),
    offset_at("earliest", 0, topic="times", partition=1),
    offset_at("latest", 0, topic="times", partition=1),
    offset_at("max_timestamp", -1, topic="times", partition=1),
    offset_at(EPOCH_MS, -1, topic="times", partition=1),
    *(
        Step(f"produce {each['value']}", "produce", produce("times", [each]), offsets(index, 1))
        for index, each in enumerate(TIMES)
    ),
    Step(
        "produce many together",
        "produce",
        produce("times", TOGETHER, partition=1, codec="lz4"),
        offsets(0, len(TOGETHER)),
    ),
    offset_at("earliest", 0),
    offset_at("latest", len(TIMES)),
    offset_at("max_timestamp", 3, EPOCH_MS + 7000),
    offset_at(0, 0, EPOCH_MS),
    offset_at(EPOCH_MS, 0, EPOCH_MS),
    offset_at(EPOCH_MS + 1, 1, EPOCH_MS + 1000),
    offset_at(EPOCH_MS + 2000, 2, EPOCH_MS + 2000),
    offset_at(EPOCH_MS + 3000, 3, EPOCH_MS + 7000),
    offset_at(EPOCH_MS + 7001, -1),
    offset_at(EPOCH_MS + 3500, 4, EPOCH_MS + 4000, partition=1),
    offset_at("max_timestamp", 5, EPOCH_MS + 5000, partition=1),
    Step("from the beginning", "consume", consume("times", len(TIMES)), times(0, 4)),
    Step("from an offset", "consume", consume("times", 2, start=3), times(3, 4)),
    Step("from a time", "consume", consume("times", 3, start={"timestamp": EPOCH_MS + 1500}), times(2, 4)),
    Step("past the end, reset to the earliest", "consume", reset("earliest"), times(0, 4)),
    Step("past the end, no reset", "consume", reset("none"), refused("OFFSET_OUT_OF_RANGE")),
    Step(
        "from the middle of a batch, on both partitions",
        "consume",
        {"topic": "times", "assignments": [[0, 4], [1, 3]], "count": 4, "reset": "none"},
        {
            "records": [
                consumed(4, TIMES[4]),
                *(consumed(index, TOGETHER[index], partition=1) for index in (3, 4, 5)),
            ]
        },
    ),
    Step(
        "from the end, then produce",
        "consume_new",
        {"topic": "times", "partition": 0, "records": FRESH},
        {"records": [consumed(len(TIMES) + index, each) for index, each in enumerate(FRESH)]},
    ),
]
