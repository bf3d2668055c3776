"""At least once: process first, then commit. A crash in between repeats an order; no order is lost.

Ten orders wait in a topic. The worker is killed with SIGKILL at the worst moment for this mode, after it has processed
order 5 and before it has committed it. A second worker continues at the committed offset and processes
order 5 again. Processing must therefore be idempotent: store each result under the number of its order, or store the
last number with the result.

    python examples/groups/at_least_once.py [HOST:PORT]
"""

import os
import signal

from confluent_kafka import Consumer
from stage import LAST_ORDER, WORST_MOMENT, deadline, is_over, run_with_crash


def work(servers: str, topic: str, crashes: bool) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "group.instance.id": "worker",  # a static member: the second worker takes over at once, not after a timeout
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
        if crashes and order == WORST_MOMENT:
            os.kill(os.getpid(), signal.SIGKILL)
        consumer.commit(message=message, asynchronous=False)  # 2. from here on it is not delivered again
        if order == LAST_ORDER:
            break
    consumer.close()


if __name__ == "__main__":
    run_with_crash(__file__, work)
