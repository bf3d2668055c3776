"""Kafka Streams with exactly_once_v2: application and broker are killed and restarted, and the results are exact."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.testing import RunningBroker
from tests.exactly_once.streams_app import StreamsApp
from tests.pipelines.committed import committed_records
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from confluent_kafka import Message

PARTITIONS = 2
PATIENCE_SECONDS = 150.0
LINES = 4_000
KEYS = 6_000
KILLS = 8
WORDS = ["pump", "rig", "well", "valve", "gauge", "flow", "drill", "mast", "crane", "deck"]
pytestmark = [pytest.mark.jvm, pytest.mark.soak, pytest.mark.timeout(PATIENCE_SECONDS + 200)]


def create(broker: RunningBroker, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topics]).values():
        created.result(30)


def produce(broker: RunningBroker, records: Iterable[tuple[str, str, str]]) -> None:
    """Records are topic, key and value."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for topic, key, value in records:
        producer.produce(topic, value, key=key)
        producer.poll(0)
    assert producer.flush(60) == 0


def results_under_kills(
    broker: RunningBroker, app: StreamsApp, topic: str, inputs: list[list[tuple[str, str, str]]], expected: int
) -> list[tuple[str, str]]:
    """Committed results of all inputs. After each input, application or broker are killed amid its results."""
    for number, records in enumerate(inputs):
        before = len(committed_records(broker.bootstrap_servers, topic))
        produce(broker, records)
        await_results(broker, topic, before + 1)
        if number % 3 == 2:
            broker.kill()
            broker.start()
        else:
            app.kill_and_start()
    found = await_results(broker, topic, expected)
    return [((each.key() or b"").decode(), (each.value() or b"").decode()) for each in found]


def await_results(broker: RunningBroker, topic: str, count: int) -> list[Message]:
    def results() -> list[Message] | None:
        found = committed_records(broker.bootstrap_servers, topic)
        return found if len(found) >= count else None

    return eventually(results, f"{count} results", seconds=PATIENCE_SECONDS) or []


def pieces(records: list[tuple[str, str, str]]) -> list[list[tuple[str, str, str]]]:
    return [records[number::KILLS] for number in range(KILLS)]


def test_words_are_counted_once(tmp_path: Path, jvm: None) -> None:
    choices = random.Random(1)
    lines = [("lines", str(number), " ".join(choices.choices(WORDS, k=5))) for number in range(LINES)]
    expected = Counter(word for _topic, _key, line in lines for word in line.split())
    with RunningBroker() as broker:
        create(broker, "lines", "counts")
        app = StreamsApp("word-count", broker.bootstrap_servers, "word-count", tmp_path, ["lines", "counts"])
        with closing(app):
            found = results_under_kills(broker, app, "counts", pieces(lines), expected.total())
    counts = defaultdict(list)
    for word, count in found:
        counts[word].append(int(count))
    assert counts == {word: list(range(1, total + 1)) for word, total in expected.items()}


def test_pairs_are_joined_once(tmp_path: Path, jvm: None) -> None:
    sides = [("orders", str(number), f"order {number}") for number in range(KEYS)]
    sides += [("payments", str(number), f"payment {number}") for number in range(KEYS)]
    topics = ["orders", "payments", "paid"]
    with RunningBroker() as broker:
        create(broker, *topics)
        app = StreamsApp("join", broker.bootstrap_servers, "join", tmp_path, topics)
        with closing(app):
            found = results_under_kills(broker, app, "paid", pieces(sides), KEYS)
    assert Counter(found) == Counter((str(n), f"order {n}+payment {n}") for n in range(KEYS))
