"""Chapter: records deleted up to an offset; topics deleted and created again."""

from tests.clients.scenario.consume import offset_at
from tests.clients.scenario.produce import consume, produce
from tests.clients.scenario.steps import EPOCH_MS, KEEP_FOREVER, Step, record
from tests.clients.scenario.topics import create

KEPT = [record(f"kept {each}", timestamp=EPOCH_MS + each) for each in range(6)]


def delete_records(name: str, before: int) -> Step:
    return Step(name, "delete_records", {"topic": "shortened", "partition": 0, "before": before})


STEPS = [
    Step("create to be shortened", "create_topic", create("shortened", 1, KEEP_FOREVER)),
    Step("fill it", "produce", produce("shortened", KEPT)),
    delete_records("delete two", 2),
    offset_at("earliest", topic="shortened"),
    offset_at("latest", topic="shortened"),
    offset_at(EPOCH_MS, topic="shortened"),
    Step("read what is left", "consume", consume("shortened", 4)),
    Step(
        "read what is gone, reset to the earliest",
        "consume",
        consume("shortened", 4, start=0, reset="earliest"),
    ),
    Step(
        "read what is gone, no reset",
        "consume",
        consume("shortened", 4, start=0, reset="none"),
    ),
    delete_records("delete fewer", 1),
    delete_records("delete past the end", 100),
    delete_records("delete all", -1),
    offset_at("earliest", topic="shortened"),
    Step("produce after it", "produce", produce("shortened", KEPT[:1])),
    Step("describe before the deletion", "describe_topic", {"topic": "shortened"}),
    Step("delete the topic", "delete_topic", {"topic": "shortened"}),
    Step("describe the deleted", "describe_topic", {"topic": "shortened"}),
    Step("delete it again", "delete_topic", {"topic": "shortened"}),
    Step("create it again", "create_topic", create("shortened", 3, KEEP_FOREVER)),
    Step("describe the new, with another id", "describe_topic", {"topic": "shortened"}),
    Step("the new one is empty", "produce", produce("shortened", KEPT[:1])),
    Step("read the new one", "consume", consume("shortened", 1)),
]
