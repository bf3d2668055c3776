"""The bench's reader that decodes nothing asks both brokers as a consumer would, and is answered."""

from bench.discarding_consumer import DiscardingConsumer
from tests.clients.conftest import Target
from tests.clients.wire.batches import Batch
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import produce

LARGE = Batch(values=[bytes(300_000)] * 2).encode()  # one and a half of them are what it asks for at a time


def test_it_asks_for_every_record_of_every_partition(target: Target, connection: Connection, topic: str) -> None:
    for partition in (0, 0, 0, 1):
        assert produce(connection, topic, LARGE, partition=partition).error == "NONE"
    consumer = DiscardingConsumer(target.bootstrap_servers, topic)
    asked = consumer.learn(2, 8)
    assert asked == [{0: 0, 1: 0}, {0: 2, 1: 2}, {0: 4, 1: 2}]
    consumer.read(asked)
    assert consumer.learn(2, 8) == asked, "the answers that it threw away ended where they should"
    consumer.close()
