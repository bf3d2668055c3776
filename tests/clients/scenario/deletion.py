"""Chapter: records deleted up to an offset, topics deleted and made anew."""

from tests.clients.scenario.consume import offset_at
from tests.clients.scenario.produce import consume, produce
from tests.clients.scenario.steps import DONE, EPOCH_MS, KEEP_FOREVER, Json, Step, consumed, offsets, record, refused
from tests.clients.scenario.topics import create, described

UNKNOWN = refused("UNKNOWN_TOPIC_OR_PARTITION")
KEPT = [record(f"kept {each}", timestamp=EPOCH_MS + each) for each in range(6)]


def delete_records(name: str, before: int, expected: Json) -> Step:
    return Step(name, "delete_records", {"topic": "shortened", "partition": 0, "before": before}, expected)


def low(offset: int) -> Json:
    return {"error": "NONE", "low_watermark": offset}


def kept(first: int) -> Json:
    return {"records": [consumed(index, KEPT[index]) for index in range(first, 6)]}


STEPS = [
    Step("create to be shortened", "create_topic", create("shortened", 1, KEEP_FOREVER), DONE),
    Step("fill it", "produce", produce("shortened", KEPT), offsets(0, 6)),
    delete_records("delete two", 2, low(2)),
    offset_at("earliest", 2, topic="shortened"),
    offset_at("latest", 6, topic="shortened"),
    offset_at(EPOCH_MS, 2, EPOCH_MS + 2, topic="shortened"),
    Step("read what is left", "consume", consume("shortened", 4), kept(2)),
    Step(
        "read what is gone, reset to the earliest",
        "consume",
        consume("shortened", 4, start=0, reset="earliest"),
        kept(2),
    ),
    Step(
        "read what is gone, no reset",
        "consume",
        consume("shortened", 4, start=0, reset="none"),
        refused("OFFSET_OUT_OF_RANGE"),
    ),
    delete_records("delete fewer", 1, low(2)),
    delete_records("delete past the end", 100, refused("OFFSET_OUT_OF_RANGE")),
    delete_records("delete all", -1, low(6)),
    offset_at("earliest", 6, topic="shortened"),
    Step("produce after it", "produce", produce("shortened", KEPT[:1]), offsets(6, 1)),
    Step("describe before the deletion", "describe_topic", {"topic": "shortened"}, described("topic 4", 1)),
    Step("delete the topic", "delete_topic", {"topic": "shortened"}, DONE),
    Step("describe the deleted", "describe_topic", {"topic": "shortened"}, UNKNOWN),
    Step("delete it again", "delete_topic", {"topic": "shortened"}, UNKNOWN),
    Step("make it anew", "create_topic", create("shortened", 3, KEEP_FOREVER), DONE),
    Step("describe the new, with another id", "describe_topic", {"topic": "shortened"}, described("topic 5", 3)),
    Step("the new one is empty", "produce", produce("shortened", KEPT[:1]), offsets(0, 1)),
    Step("read the new one", "consume", consume("shortened", 1), {"records": [consumed(0, KEPT[0])]}),
]
