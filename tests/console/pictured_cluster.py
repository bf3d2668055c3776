"""What the pictures of the console show: topics that are written and read, a group that lags, a transaction, users,
access rules and quotas."""

from __future__ import annotations

import json
import random
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer

from odradek.admin.acls import Access, Selection, Subjects, bindings, create
from odradek.admin.cluster import Cluster
from odradek.admin.quotas import Part, alter_quotas
from odradek.admin.users import set_password
from odradek.security.acls.bindings import PatternType, Permission
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOPICS = {"orders": 12, "payments": 4, "shipments": 6, "customers": 3, "audit.log": 1, "rates.daily": 2}
GROUP, SECOND_GROUP, IDLE_GROUP, TRANSACTION = "billing", "warehouse", "reports", "billing-1"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
BOTH = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
USERS = {"alice": BOTH[1:], "billing": BOTH, "reports": BOTH[1:], "warehouse": BOTH}


def order_of(number: int, drawn: random.Random) -> dict[str, object]:
    return {
        "order": number,
        "customer": f"c-{drawn.randint(1, 400)}",
        "amount": drawn.randint(100, 9999) / 100,
        "items": [{"sku": f"valve-{drawn.randint(1, 40)}", "count": drawn.randint(1, 5)}],
        "express": drawn.random() < 0.2,
    }


def write(bootstrap_servers: str, is_over: threading.Event) -> None:
    drawn = random.Random(7)
    # Few requests at a time, so that a machine with other work batches records and does not fall behind.
    producer, number = Producer({"bootstrap.servers": bootstrap_servers, "max.in.flight": 5}), 0
    while not is_over.wait(0.1):
        for _ in range(drawn.randint(8, 30)):
            number += 1
            key = str(number)
            producer.produce("orders", json.dumps(order_of(number, drawn)), key, headers=[("source", b"shop")])
            if drawn.random() < 0.6:
                producer.produce("payments", json.dumps({"order": number, "state": "paid"}), key)
            if drawn.random() < 0.3:
                producer.produce("shipments", json.dumps({"order": number, "carrier": "rail"}), key)
        producer.produce("audit.log", f"order {number} was written by the shop")
        producer.poll(0)
    producer.flush(30)


def read(bootstrap_servers: str, group: str, topics: list[str], most: int, is_over: threading.Event) -> None:
    """At most `most` records in a fifth of a second."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": group, "client.id": group}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(topics)
    while not is_over.wait(0.1):
        consumer.consume(most, timeout=0.1)
    consumer.close()


def read_once(bootstrap_servers: str, group: str, topic: str) -> None:
    """As a group that has committed, and has no members."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    consumer.consume(200, timeout=30)
    consumer.commit(asynchronous=False)
    consumer.close()


def grant(cluster: Cluster) -> None:
    """Users, their access rules and their quotas."""
    for name, mechanisms in USERS.items():
        set_password(cluster, name, f"the secret of {name}", dict.fromkeys(mechanisms, 4096))

    def rule(user: str, selection: Selection, access: Access, permission: Permission = Permission.ALLOW) -> None:
        subjects = [Subjects((f"User:{user}",), (), permission)]
        pattern = PatternType.PREFIXED if permission is Permission.DENY else PatternType.LITERAL
        create(cluster, bindings(selection, access, subjects, pattern))

    rule("billing", Selection(topics=("orders", "payments"), groups=(GROUP,)), Access(consumer=True))
    rule("warehouse", Selection(topics=("shipments",)), Access(producer=True))
    rule("reports", Selection(topics=("orders",)), Access((Operation.READ, Operation.DESCRIBE)))
    rule("*", Selection(topics=("pay",)), Access((Operation.DELETE,)), Permission.DENY)
    alter_quotas(cluster, (Part("user", "reports"),), {"consumer_byte_rate": 5_000_000.0})
    alter_quotas(cluster, (Part("user", None),), {"producer_byte_rate": 20_000_000.0})
    alter_quotas(cluster, (Part("ip", None),), {"connection_creation_rate": 50.0})


@contextmanager
def pictured(bootstrap_servers: str) -> Iterator[None]:
    cluster = Cluster(bootstrap_servers, {})
    for name, partitions in TOPICS.items():
        cluster.create_topic(name, partitions)
    grant(cluster)
    settings = {"bootstrap.servers": bootstrap_servers}
    open_transaction = Producer({**settings, "transactional.id": TRANSACTION, "transaction.timeout.ms": 900_000})
    open_transaction.init_transactions(60)
    open_transaction.begin_transaction()
    open_transaction.produce("customers", b'{"customer": "c-1", "state": "held"}', b"c-1")
    open_transaction.flush(30)
    is_over = threading.Event()
    work: list[tuple[Callable[..., None], tuple[object, ...]]] = [
        (write, (bootstrap_servers, is_over)),
        (read, (bootstrap_servers, GROUP, ["orders", "payments"], 20, is_over)),
        (read, (bootstrap_servers, SECOND_GROUP, ["shipments"], 500, is_over)),
    ]
    threads = [threading.Thread(target=function, args=arguments) for function, arguments in work]
    for thread in threads:
        thread.start()
    try:
        read_once(bootstrap_servers, IDLE_GROUP, "payments")
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
