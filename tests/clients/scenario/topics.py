"""Chapter: the cluster, and topics created, listed, described and grown; requests that are refused."""

from tests.clients.scenario.steps import KEEP_FOREVER, Json, Step, record


def create(topic: str, partitions: int = 1, configs: dict[str, str] | None = None, **more: Json) -> dict[str, Json]:
    arguments = {"topic": topic, "partitions": partitions, "replication_factor": 1, "configs": configs or {}}
    return {**arguments, "validate_only": False, **more}


STEPS = [
    Step("the cluster", "cluster", {}),
    Step("create a topic", "create_topic", create("plain", 2, KEEP_FOREVER)),
    Step("create it again", "create_topic", create("plain", 2)),
    Step("create with an illegal name", "create_topic", create("not legal")),
    Step("create with a long name", "create_topic", create("x" * 250)),
    Step(
        "create with too many replicas",
        "create_topic",
        create("wide", replication_factor=3),
    ),
    Step(
        "create with no replicas",
        "create_topic",
        create("narrow", replication_factor=0),
    ),
    Step("create with no partitions", "create_topic", create("empty", 0)),
    Step(
        "create with an unknown setting",
        "create_topic",
        create("unset", 1, {"no.such.setting": "1"}),
    ),
    Step(
        "create with a malformed setting",
        "create_topic",
        create("unset", 1, {"retention.ms": "soon"}),
    ),
    Step("only check a new topic", "create_topic", create("checked", 3, validate_only=True)),
    Step(
        "only check an existing topic",
        "create_topic",
        create("plain", 3, validate_only=True),
    ),
    Step(
        "create with the broker's own numbers",
        "create_topic",
        create("by-default", -1, replication_factor=-1),
    ),
    Step("list", "list_topics", {}),
    Step("describe", "describe_topic", {"topic": "plain"}),
    Step("describe the defaults", "describe_topic", {"topic": "by-default"}),
    Step("describe what is not there", "describe_topic", {"topic": "no-topic"}),
    Step("grow", "create_partitions", {"topic": "plain", "count": 4}),
    Step("shrink", "create_partitions", {"topic": "plain", "count": 2}),
    Step("grow by nothing", "create_partitions", {"topic": "plain", "count": 4}),
    Step(
        "grow what is not there",
        "create_partitions",
        {"topic": "no-topic", "count": 4},
    ),
    Step("describe the grown, with the same id", "describe_topic", {"topic": "plain"}),
    Step(
        "produce to a new partition",
        "produce",
        {
            "topic": "plain",
            "partition": 3,
            "codec": "none",
            "acks": -1,
            "idempotent": False,
            "records": [record("first", timestamp=1_600_000_000_000)],
        },
    ),
]
