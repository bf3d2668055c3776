"""Two ways to commit offsets: by the client in the background, or by a call of your program.

- Automatic (`enable.auto.commit`, the default): every `auto.commit.interval.ms` the client commits the records that it
  has returned. With `enable.auto.offset.store` off, it commits only those that your program has stored: at least once.
- By hand: nothing is committed until `commit` is called, for one message, for given offsets, or for all records read.

    python examples/groups/commits.py [HOST:PORT]
"""

import time

from confluent_kafka import Consumer, TopicPartition
from stage import broker_address, committed_offset, deadline, is_over, new_topic, place_orders


def read(consumer: Consumer, count: int) -> list:
    messages, end = [], deadline()
    while len(messages) < count and not is_over(end):
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            messages.append(message)
    return messages


def wait_for_commit(consumer: Consumer, topic: str, offset: int) -> None:
    end = deadline()
    while committed_offset(consumer, topic) < offset and not is_over(end):
        time.sleep(0.1)


def automatic(servers: str, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-automatic",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            "enable.auto.offset.store": False,
        }
    )
    consumer.subscribe([topic])
    for message in read(consumer, 6)[:4]:
        consumer.store_offsets(message=message)  # processed: its offset may be committed
    wait_for_commit(consumer, topic, 4)
    print(f"automatic: read 6, done with 4, committed {committed_offset(consumer, topic)}")
    consumer.close()


def by_hand(servers: str, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-by-hand",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    messages = read(consumer, 6)
    print(f"by hand: read 6, committed {committed_offset(consumer, topic)}")
    consumer.commit(message=messages[1], asynchronous=False)
    print(f"by hand: the second message was committed: {committed_offset(consumer, topic)}")
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    print(f"by hand: an offset was committed: {committed_offset(consumer, topic)}")
    consumer.commit(asynchronous=False)
    print(f"by hand: all that was read was committed: {committed_offset(consumer, topic)}")
    consumer.close()


def main() -> None:
    servers = broker_address()
    topic = new_topic(servers)
    place_orders(servers, topic, 1, 6)
    automatic(servers, topic)
    by_hand(servers, topic)


if __name__ == "__main__":
    main()
