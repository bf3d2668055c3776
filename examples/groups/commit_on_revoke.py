"""A rebalance listener that commits on revoke, while the consumer still owns the partition.

The first consumer reads without committing, to save requests. When a second one joins, the group revokes partitions of
the first. Its listener commits the offsets that it has reached, and the next owner of each partition continues there:
no record is read twice.

    python examples/groups/commit_on_revoke.py [HOST:PORT]
"""

from confluent_kafka import Consumer, TopicPartition
from stage import broker_address, deadline, is_over, new_topic, place_orders


class Reader:
    def __init__(self, name: str, servers: str, topic: str) -> None:
        self.name = name
        self.orders: list[int] = []
        self.done: dict[int, int] = {}  # per partition, the offset after the last record that was read
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 500,  # the longest time until it learns of a rebalance
            }
        )
        self.consumer.subscribe([topic], on_assign=self.assigned, on_revoke=self.revoked)

    def assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        print(f"{self.name} gets {sorted(each.partition for each in partitions)}")

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        offsets = [
            TopicPartition(each.topic, each.partition, self.done.pop(each.partition))
            for each in partitions
            if each.partition in self.done
        ]
        if offsets:
            consumer.commit(offsets=offsets, asynchronous=False)
            print(f"{self.name} commits on revoke: {sorted((each.partition, each.offset) for each in offsets)}")

    def read(self) -> None:
        message = self.consumer.poll(0.1)
        if message is not None and not message.error():
            self.orders.append(int(message.value()))
            self.done[message.partition()] = message.offset() + 1


def main() -> None:
    servers = broker_address()
    topic = new_topic(servers, partitions=2)
    place_orders(servers, topic, 1, 20, partitions=2)
    first = Reader("first", servers, topic)
    end = deadline()
    while len(first.orders) < 20 and not is_over(end):
        first.read()
    second = Reader("second", servers, topic)
    while not second.consumer.assignment() and not is_over(end):
        first.read()
        second.read()
    place_orders(servers, topic, 21, 40, partitions=2)
    while len(first.orders) + len(second.orders) < 40 and not is_over(end):
        first.read()
        second.read()
    for reader in (first, second):
        reader.consumer.close()  # this revokes the partitions
    orders = sorted(first.orders + second.orders)
    print(
        f"first read {len(first.orders)}, second read {len(second.orders)}; each once: {orders == list(range(1, 41))}"
    )


if __name__ == "__main__":
    main()
