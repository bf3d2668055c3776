"""Chapter: the cluster, and topics created, listed, described, grown; what is refused and with which error."""

from tests.clients.scenario.steps import DONE, KEEP_FOREVER, Json, Step, record, refused


def partition(index: int) -> Json:
    return {"partition": index, "leader": "node", "replicas": ["node"], "in_sync": ["node"]}


def described(topic_id: str, partition_count: int) -> Json:
    partitions = [partition(index) for index in range(partition_count)]
    return {"error": "NONE", "topic_id": topic_id, "internal": False, "partitions": partitions}


def create(topic: str, partitions: int = 1, configs: dict[str, str] | None = None, **more: Json) -> dict[str, Json]:
    arguments = {"topic": topic, "partitions": partitions, "replication_factor": 1, "configs": configs or {}}
    return {**arguments, "validate_only": False, **more}


STEPS = [
    Step("the cluster", "cluster", {}, {"cluster_id": "cluster 1", "nodes": ["node"], "controller": "node"}),
    Step("create a topic", "create_topic", create("plain", 2, KEEP_FOREVER), DONE),
    Step("create it again", "create_topic", create("plain", 2), refused("TOPIC_ALREADY_EXISTS")),
    Step("create with an illegal name", "create_topic", create("not legal"), refused("INVALID_TOPIC_EXCEPTION")),
    Step("create with a long name", "create_topic", create("x" * 250), refused("INVALID_TOPIC_EXCEPTION")),
    Step(
        "create with too many replicas",
        "create_topic",
        create("wide", replication_factor=3),
        refused("INVALID_REPLICATION_FACTOR"),
    ),
    Step(
        "create with no replicas",
        "create_topic",
        create("narrow", replication_factor=0),
        refused("INVALID_REPLICATION_FACTOR"),
    ),
    Step("create with no partitions", "create_topic", create("empty", 0), refused("INVALID_PARTITIONS")),
    Step(
        "create with an unknown setting",
        "create_topic",
        create("unset", 1, {"no.such.setting": "1"}),
        refused("INVALID_CONFIG"),
    ),
    Step(
        "create with a malformed setting",
        "create_topic",
        create("unset", 1, {"retention.ms": "soon"}),
        refused("INVALID_CONFIG"),
    ),
    Step("only check a new topic", "create_topic", create("checked", 3, validate_only=True), DONE),
    Step(
        "only check an existing topic",
        "create_topic",
        create("plain", 3, validate_only=True),
        refused("TOPIC_ALREADY_EXISTS"),
    ),
    Step(
        "create with the broker's own numbers",
        "create_topic",
        create("by-default", -1, replication_factor=-1),
        DONE,
    ),
    Step("list", "list_topics", {}, ["by-default", "plain"]),
    Step("describe", "describe_topic", {"topic": "plain"}, described("topic 1", 2)),
    Step("describe the defaults", "describe_topic", {"topic": "by-default"}, described("topic 2", 1)),
    Step("describe what is not there", "describe_topic", {"topic": "no-topic"}, refused("UNKNOWN_TOPIC_OR_PARTITION")),
    Step("grow", "create_partitions", {"topic": "plain", "count": 4}, DONE),
    Step("shrink", "create_partitions", {"topic": "plain", "count": 2}, refused("INVALID_PARTITIONS")),
    Step("grow by nothing", "create_partitions", {"topic": "plain", "count": 4}, refused("INVALID_PARTITIONS")),
    Step(
        "grow what is not there",
        "create_partitions",
        {"topic": "no-topic", "count": 4},
        refused("UNKNOWN_TOPIC_OR_PARTITION"),
    ),
    Step("describe the grown, with the same id", "describe_topic", {"topic": "plain"}, described("topic 1", 4)),
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
        [{"offset": 0}],
    ),
]
