"""Exactly once: read orders, write an invoice for each, and commit the offsets, all in one transaction.

Thirty orders wait in a topic. Workers are killed with SIGKILL, one at each step of a transaction. The next worker has
the same transactional id: its start aborts the transaction that the killed one has left open, and it continues at the
offset of the last transaction that was committed. Readers with `isolation.level=read_committed` see each invoice once.

    python examples/transactions/exactly_once.py [HOST:PORT]
"""

import os
import signal
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from stage import LAST_ORDER, SECONDS, deadline, is_over, run_with_crashes

ORDERS_IN_A_TRANSACTION = 3


def work(servers: str, orders: str, invoices: str, crashes_at: str) -> None:
    """Write invoices until the last order is done, or until the step of the second transaction at which it crashes."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"billing-{orders}"})
    producer.init_transactions(SECONDS)  # fences an earlier worker with this id and aborts its open transaction
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": orders,
            "group.instance.id": "worker",  # a static member: the next worker takes over at once, not after a timeout
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # transactions commit the offsets
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([orders])
    number, last, end = 0, None, deadline()
    while last != LAST_ORDER and not is_over(end):
        messages = [each for each in consumer.consume(ORDERS_IN_A_TRANSACTION, 1.0) if not each.error()]
        if not messages:
            continue
        number += 1

        def step(name: str, is_second: bool = number == 2) -> None:
            if is_second and name == crashes_at:
                os.kill(os.getpid(), signal.SIGKILL)

        producer.begin_transaction()
        step("before produce")
        for message in messages:
            last = message.value().decode()
            producer.produce(invoices, f"invoice {last}", key=message.key())
        producer.flush()
        step("after produce")
        positions = {(each.topic(), each.partition()): each.offset() + 1 for each in messages}
        producer.send_offsets_to_transaction(
            [TopicPartition(*partition, offset) for partition, offset in positions.items()],
            consumer.consumer_group_metadata(),
        )
        step("after offsets")
        producer.flush()
        step("before commit")
        producer.commit_transaction()
        step("after commit")
    consumer.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        run_with_crashes(__file__)
