"""Where Odradek may answer otherwise than Apache Kafka: the one list of such places, each with its reason.

A difference that is not here fails a test.
"""

from dataclasses import dataclass

from tests.clients.scenario.steps import Json, Step


@dataclass(frozen=True, slots=True)
class AcceptedDifference:
    where: str  # the name of a step of the scenario, of a refused batch, or of a setting
    answers: tuple[Json, ...]  # what Odradek may answer instead
    reason: str


_RECORDS_UNREAD = "a batch is bytes: the broker reads its header and its first record (docs/batch-validation.md)"
_NO_SERVER_ERROR = "what a client can cause is no server error"
_CODECS = ("gzip", "snappy", "lz4", "zstd")

SCENARIO: tuple[AcceptedDifference, ...] = ()

BATCHES = (
    AcceptedDifference(
        "a transaction's batch from a producer without transactions",
        ("INVALID_TXN_STATE",),
        "there are no transactional ids to authorise before transactions are built",
    ),
    AcceptedDifference(
        "an unknown codec",
        ("INVALID_RECORD", "UNSUPPORTED_COMPRESSION_TYPE"),
        _NO_SERVER_ERROR,
    ),
    AcceptedDifference(
        "a length before the end",
        ("INVALID_RECORD",),
        "bytes after the batch are seen before its checksum is",
    ),
    *(AcceptedDifference(f"rubbish for {codec}", ("INVALID_RECORD",), _NO_SERVER_ERROR) for codec in _CODECS),
    *(AcceptedDifference(f"{codec} that is cut off", ("INVALID_RECORD",), _NO_SERVER_ERROR) for codec in _CODECS),
    AcceptedDifference("a compressed record at another offset", ("INVALID_RECORD",), _NO_SERVER_ERROR),
    AcceptedDifference("compressed records at one offset", ("NONE",), _RECORDS_UNREAD),
    AcceptedDifference("a record at another offset", ("INVALID_RECORD",), "the offsets of a batch follow each other"),
    AcceptedDifference("fewer compressed records than counted", ("NONE",), _RECORDS_UNREAD),
    AcceptedDifference("rubbish after the first record", ("NONE",), _RECORDS_UNREAD),
)

BATCH_HEADERS = (
    AcceptedDifference("a largest timestamp below the last", ("stored as sent",), _RECORDS_UNREAD),
    AcceptedDifference("a largest timestamp after the last", ("stored as sent",), _RECORDS_UNREAD),
    AcceptedDifference("a largest timestamp in the future", ("INVALID_TIMESTAMP",), _RECORDS_UNREAD),
)


def accepted_answers(broker_name: str, where: str, differences: tuple[AcceptedDifference, ...]) -> tuple[Json, ...]:
    """What a broker may answer besides what Apache Kafka does; nothing for Apache Kafka itself."""
    if broker_name != "odradek":
        return ()
    return tuple(answer for each in differences if each.where == where for answer in each.answers)


def accepted_in_scenario(broker_name: str, step: Step) -> tuple[Json, ...]:
    return accepted_answers(broker_name, step.name, SCENARIO)
