"""Chapter: records of every shape, by every codec and acks, up to the limits; and what a consumer then reads."""

from tests.clients.scenario.steps import EPOCH_MS, FAR_FUTURE_MS, KEEP_FOREVER, Json, Step, record
from tests.clients.scenario.topics import create

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, -1)


def produce(topic: str, records: list[dict[str, Json]], partition: int = 0, **more: Json) -> dict[str, Json]:
    arguments = {"topic": topic, "partition": partition, "codec": "none", "acks": -1, "idempotent": False}
    return {**arguments, "records": records, **more}


def consume(topic: str, count: int, start: Json = "beginning", reset: str = "none") -> dict[str, Json]:
    return {"topic": topic, "assignments": [[0, start]], "count": count, "reset": reset}


def _codec_steps() -> list[Step]:
    """Three records with each codec and acks; acks=0 has no answer, so the end offset is awaited after it."""
    steps = [Step("create for the codecs", "create_topic", create("codecs", 1, KEEP_FOREVER))]
    first = 0
    for codec in CODECS:
        for acks in ACKS:
            records = [
                record(f"{codec} {acks} " + "again " * 8, key=f"{codec}-{each}", timestamp=EPOCH_MS + first + each)
                for each in range(3)
            ]
            arguments = produce("codecs", records, codec=codec, acks=acks)
            steps.append(Step(f"produce with {codec} and acks {acks}", "produce", arguments))
            first += len(records)
            if acks == 0:
                arguments = {"topic": "codecs", "partition": 0, "at": "latest"}
                steps.append(Step(f"end after {codec} and acks 0", "offset", arguments))
    steps.append(Step("read what each codec wrote", "consume", consume("codecs", first)))
    return steps


SHAPES = [
    record("no key", timestamp=EPOCH_MS),
    record("", key="", timestamp=EPOCH_MS + 1),
    record(None, key="\x00\xff\x80 bytes", timestamp=EPOCH_MS + 2),
    record(
        "headers",
        key="k",
        headers=[("same", "1"), ("same", "2"), ("empty", ""), ("bytes", "\x00\xff")],
        timestamp=EPOCH_MS + 3,
    ),
    record("a null header", headers=[("null", None), ("", "no name")], timestamp=EPOCH_MS + 3),
    record({"fill": "x", "length": 1_000_000}, key="large", timestamp=EPOCH_MS + 4),
    record("later is earlier", timestamp=EPOCH_MS - 1000),
]
NOW_RECORD = record("without a time")
IDEMPOTENT = [record(f"once {each}", key="k", timestamp=EPOCH_MS + 100 + each) for each in range(4)]


def _untimed_steps() -> list[Step]:
    """Records whose time is the client's own, which is all that the console producer can send."""
    steps = [Step("create for the untimed", "create_topic", create("untimed"))]
    for codec in CODECS:
        records = [
            record(f"{codec} again again again", key="k", headers=[("a", "1"), ("b", codec), ("a", "2")]),
            record("no key and no headers"),
            record(None, key="tombstone"),
        ]
        steps.append(Step(f"untimed with {codec}", "produce", produce("untimed", records, codec=codec)))
    steps.append(Step("read the untimed", "consume", consume("untimed", 3 * len(CODECS))))
    return steps


STEPS = [
    *_codec_steps(),
    Step("create for the shapes", "create_topic", create("shapes", 1, KEEP_FOREVER)),
    *(Step(f"produce shape {index}", "produce", produce("shapes", [shape])) for index, shape in enumerate(SHAPES)),
    Step(
        "read the shapes",
        "consume",
        consume("shapes", len(SHAPES)),
    ),
    Step(
        "a record past the default limit",
        "produce",
        produce("shapes", [record({"fill": "x", "length": 1_048_600})]),
    ),
    Step("create with a small limit", "create_topic", create("small", 1, {"max.message.bytes": "1000"})),
    Step(
        "a record past the topic's limit",
        "produce",
        produce("small", [record({"fill": "x", "length": 2_000})]),
    ),
    Step(
        "a record that compresses to under the limit",
        "produce",
        produce("small", [record({"fill": "x", "length": 2_000})], codec="gzip"),
    ),
    Step(
        "a record from the far future",
        "produce",
        produce("shapes", [record("too soon", timestamp=FAR_FUTURE_MS)]),
    ),
    Step("create compacted", "create_topic", create("compacted", 1, {"cleanup.policy": "compact"})),
    Step(
        "no key for a compacted topic",
        "produce",
        produce("compacted", [record("no key")]),
    ),
    Step("a key for a compacted topic", "produce", produce("compacted", [record("v", key="k")])),
    Step(
        "idempotent",
        "produce",
        produce("shapes", IDEMPOTENT, idempotent=True),
    ),
    Step(
        "read what the idempotent producer wrote",
        "consume",
        consume("shapes", len(IDEMPOTENT), start=len(SHAPES)),
    ),
    Step(
        "create with append time",
        "create_topic",
        create("append-time", 1, {"message.timestamp.type": "LogAppendTime"}),
    ),
    Step("append time, plain", "produce", produce("append-time", [SHAPES[0]])),
    Step("append time, gzip", "produce", produce("append-time", SHAPES[1:4], codec="gzip")),
    Step(
        "read with append time",
        "consume",
        consume("append-time", 4),
    ),
    Step(
        "create recompressed",
        "create_topic",
        create("recompressed", 1, {"compression.type": "zstd", **KEEP_FOREVER}),
    ),
    *(
        Step(
            f"recompressed from {codec}",
            "produce",
            produce("recompressed", SHAPES[:4], codec=codec),
        )
        for codec in CODECS
    ),
    Step(
        "read the recompressed",
        "consume",
        consume("recompressed", 20),
    ),
    *_untimed_steps(),
    Step("produce to a topic that is made by it", "produce", produce("made-by-use", [NOW_RECORD])),
    Step("describe what was made by use", "describe_topic", {"topic": "made-by-use"}),
    Step(
        "read what was made by use",
        "consume",
        consume("made-by-use", 1),
    ),
]
