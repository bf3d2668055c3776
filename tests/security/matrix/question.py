"""One request of the access matrix, and the record batches that requests contain."""

from typing import Any, NamedTuple

from odradek.protocol.messages import produce
from odradek.protocol.records import Record, build_batch
from odradek.protocol.schema import Request, Response

UNKNOWN_PRODUCER_ID = 4_000_000  # no broker has given it out


class Question(NamedTuple):
    label: str
    request: Request
    response: type[Response]
    version: int | None = None


def record_batch(*, transactional: bool = False) -> memoryview:
    identity: dict[str, Any] = {"producer_id": UNKNOWN_PRODUCER_ID, "producer_epoch": 0, "base_sequence": 0}
    records = [Record(offset=0, timestamp=1_700_000_000_000, key=None, value=b"value", headers=())]
    return memoryview(build_batch(records, transactional=transactional, **(identity if transactional else {})))


def produce_request(topics: tuple[str, ...], transactional_id: str | None = None) -> produce.ProduceRequest:
    batch = record_batch(transactional=transactional_id is not None)
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            produce.TopicProduceData(name=name, partition_data=[produce.PartitionProduceData(index=0, records=batch)])
            for name in topics
        ],
    )
