"""At least once: process first, then commit. A crash in between repeats an order, and none is ever lost.

Ten orders wait in a topic. The worker is killed with SIGKILL at the worst moment for this mode, after it has processed
order 5 and before it has committed it. A second worker goes on where the group had committed, so processing must bear a
repetition: write them under their number, or remember the last number beside the result.

    python examples/groups/at_least_once.py [HOST:PORT]
"""

import os
import signal

from confluent_kafka import Consumer
from stage import LAST_ORDER, WORST_MOMENT, deadline, is_over, live_twice


def work(servers: str, topic: str, dies: bool) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "group.instance.id": "worker",  # a static member: its successor takes over at once, not after a timeout
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    end = deadline()
    while not is_over(end):
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        order = message.value().decode()
        print(order, flush=True)  # 1. this is the processing
        if dies and order == WORST_MOMENT:
            os.kill(os.getpid(), signal.SIGKILL)
        consumer.commit(message=message, asynchronous=False)  # 2. only now it will not come again
        if order == LAST_ORDER:
            break
    consumer.close()


if __name__ == "__main__":
    live_twice(__file__, work)
