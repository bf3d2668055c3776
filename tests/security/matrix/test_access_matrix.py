"""Every API × every right: Odradek answers with the errors, rights and names that Apache Kafka answers with.

`make oracle ARGS=--update` records the answers of Apache Kafka again.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jvm.apache_kafka import ApacheKafka
from tests.security.matrix.brokers import AUTHORIZER, MatrixBroker, SimulatedMatrixBroker, WireMatrixBroker
from tests.security.matrix.rights import CASES
from tests.security.matrix.running import HIDDEN, prepare, run_case

RECORDED = Path(__file__).parent / "recorded_answers.jsonl"


def rows_of(broker: MatrixBroker) -> Iterator[str]:
    node_id = prepare(broker)
    for number, rights in enumerate(CASES):
        for label, answer in run_case(broker, number, rights, node_id):
            yield json.dumps({"rights": rights.label, "question": label, "answer": answer})


def test_answers_are_those_of_apache_kafka() -> None:
    broker = SimulatedMatrixBroker()
    try:
        rows = list(rows_of(broker))
    finally:
        broker.close()
    recorded = RECORDED.read_text().splitlines()
    differing = [(ours, theirs) for ours, theirs in zip(rows, recorded, strict=True) if ours != theirs]
    report = "\n".join(f"{ours}\n  Apache Kafka: {theirs}" for ours, theirs in differing[:40])
    assert not differing, f"{len(differing)} of {len(rows)} answers differ\n{report}"


def test_no_answer_reveals_what_the_client_may_not_know() -> None:
    assert HIDDEN not in RECORDED.read_text()


@pytest.mark.jvm
@pytest.mark.oracle
@pytest.mark.timeout(1200)
def test_apache_kafka_answers_as_recorded(jvm: None, request: pytest.FixtureRequest) -> None:
    with ApacheKafka(AUTHORIZER) as kafka:
        broker = WireMatrixBroker(kafka.port)
        try:
            rows = list(rows_of(broker))
        finally:
            broker.close()
    print(f"{len(rows)} answers")
    if request.config.getoption("--update"):
        RECORDED.write_text("".join(row + "\n" for row in rows))
    assert RECORDED.read_text().splitlines() == rows
