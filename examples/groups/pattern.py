"""A pattern instead of names: a topic that matches is read as soon as it exists, without a restart.

A name that begins with ^ is a pattern. The client looks for new topics every `topic.metadata.refresh.interval.ms`.

    python examples/groups/pattern.py [HOST:PORT]
"""

import uuid

from confluent_kafka import Consumer
from stage import broker_address, deadline, is_over, new_topic, place_orders


def read_from(consumer: Consumer, topic: str) -> str:
    end = deadline()
    while not is_over(end):
        message = consumer.poll(1.0)
        if message is not None and not message.error() and message.topic() == topic:
            return message.value().decode()
    raise AssertionError("unreachable")


def main() -> None:
    servers = broker_address()
    shop = f"shop-{uuid.uuid4().hex[:6]}"
    books = new_topic(servers, f"{shop}.books")
    place_orders(servers, books, 1, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": shop,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    consumer.subscribe([f"^{shop}\\..*"])
    print(f"books: order {read_from(consumer, books)}")
    music = new_topic(servers, f"{shop}.music")
    place_orders(servers, music, 2, 2)
    print(f"music, which is new: order {read_from(consumer, music)}")
    consumer.close()


if __name__ == "__main__":
    main()
