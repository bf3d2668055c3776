"""At least once: process first, then commit. A crash in between repeats an order, and none is ever lost.

Ten orders wait in a topic. The worker is killed with SIGKILL at the worst moment for this mode, after it has processed
order 5 and before it has committed it. A second worker goes on where the group had committed, so processing must bear a
repetition: write them under their number, or remember the last number beside the result.

    python examples/groups/at_least_once.py [HOST:PORT]
"""

import os
import signal
import subprocess
import sys

from confluent_kafka import Consumer
from stage import broker_address, deadline, is_over, new_topic, place_orders

ORDERS = range(1, 11)
WORST_MOMENT = "5"


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
        if order == str(ORDERS[-1]):
            break
    consumer.close()


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], sys.argv[3], dies=sys.argv[4] == "dies")
        return
    servers = broker_address()
    topic = new_topic(servers)
    place_orders(servers, topic, ORDERS[0], ORDERS[-1])
    processed = []
    for fate in ("dies", "lives"):
        worker = [sys.executable, __file__, "work", servers, topic, fate]
        run = subprocess.run(worker, stdout=subprocess.PIPE, text=True, check=False)
        processed += run.stdout.split()
        print(f"the worker {fate}, having processed: {' '.join(run.stdout.split())}")
    lost = [str(order) for order in ORDERS if str(order) not in processed]
    repeated = sorted({order for order in processed if processed.count(order) > 1})
    print(f"lost: {' '.join(lost) or 'none'}; processed twice: {' '.join(repeated) or 'none'}")


if __name__ == "__main__":
    main()
