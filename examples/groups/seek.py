"""Start at the oldest record, at the end, or at a point in time, independent of the committed offsets.

python examples/groups/seek.py [HOST:PORT]
"""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from stage import broker_address, deadline, is_over, new_topic, place_orders


def next_order(consumer: Consumer) -> str:
    end = deadline()
    while not is_over(end):
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            return message.value().decode()
    raise AssertionError("unreachable")


def main() -> None:
    servers = broker_address()
    topic = new_topic(servers)
    place_orders(servers, topic, 1, 3)
    time.sleep(0.05)
    noon_ms = int(time.time() * 1000)
    time.sleep(0.05)
    place_orders(servers, topic, 4, 6)

    settings = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    print(f"a new group begins with order {next_order(consumer)}")  # a consumer can seek once it has its partitions

    (at_noon,) = consumer.offsets_for_times([TopicPartition(topic, 0, noon_ms)], timeout=10)
    consumer.seek(at_noon)
    print(f"from a point in time: order {next_order(consumer)}")

    consumer.seek(TopicPartition(topic, 0, OFFSET_BEGINNING))
    print(f"from the oldest: order {next_order(consumer)}")

    # OFFSET_END would be looked up in the background, possibly after the next order was produced.
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.seek(TopicPartition(topic, 0, end))
    place_orders(servers, topic, 7, 7)
    print(f"from the end: order {next_order(consumer)}")
    consumer.close()


if __name__ == "__main__":
    main()
