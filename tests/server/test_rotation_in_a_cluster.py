"""The certificate of three brokers, with which they serve clients and each other over mutual TLS, is replaced again and
again while clients of librdkafka and of Java produce with acks=all and consume: no request fails. Clients do not retry.

Afterwards a broker restarts, so that all connections of it and to it are made with the last certificate.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.local.running_cluster import BROKER_LISTENER, RunningCluster
from tests.jvm.tools import run_tool
from tests.security.tls.certificates import HOSTS, CertificateFiles, authority, write_certificates
from tests.server.test_rotation_under_load import Counts
from tests.waiting import eventually
from tests.wire import WireClient

pytestmark = [pytest.mark.soak, pytest.mark.jvm, pytest.mark.timeout(400)]
BROKERS, CERTIFICATES = 3, 3
LOAD_S, PATIENCE_S = 20.0, 120.0
TOPIC = "orders"
JAVA_RECORDS, JAVA_RECORDS_PER_S = 2_000, 100


def test_no_request_fails_while_the_certificate_of_all_brokers_rotates(jvm: None, tmp_path: Path) -> None:
    files = write_certificates(tmp_path)
    properties = {
        "listener.security.protocol.map": f"{BROKER_LISTENER}:SSL,PLAINTEXT:SSL",
        **files.listener_properties(),
    }
    with RunningCluster(BROKERS, properties, has_network=False) as running:
        client: dict[str, Any] = {"bootstrap.servers": running.bootstrap_servers, **files.client_properties()}
        admin = AdminClient(client)
        admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(PATIENCE_S)
        eventually(lambda: in_sync(admin) == [BROKERS] * 3, "the replicas")
        counts, is_over = Counts(), threading.Event()
        loads: list[Callable[[], None]] = [
            lambda: produce_by_librdkafka(client, counts, is_over),
            lambda: consume_by_librdkafka(client, counts, is_over),
            lambda: produce_by_java(running.bootstrap_servers, files, counts),
        ]
        with ThreadPoolExecutor(len(loads)) as threads:
            started = [threads.submit(load) for load in loads]
            try:
                served = rotate(running, files, counts)
                started[-1].result(PATIENCE_S)
            finally:
                is_over.set()
            for each in started:
                each.result(PATIENCE_S)
        print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.done.items())))
        print(f"{len(served)} certificates served by all brokers on both listeners, {len(counts.failures)} failures")
        assert not counts.failures
        assert counts.done["records consumed"] > 100
        assert counts.done["records of Java"] == JAVA_RECORDS
        running.stop(BROKERS)
        running.start(BROKERS)
        eventually(lambda: in_sync(admin) == [BROKERS] * 3, "the return of a broker")


def rotate(running: RunningCluster, files: CertificateFiles, counts: Counts) -> set[str]:
    """Until the time is over and enough certificates were served. Their serial numbers."""
    ports = [port for broker in running.brokers.values() for port in listener_ports(broker.properties["listeners"])]
    assert len(ports) == 2 * BROKERS
    began, served = time.monotonic(), {serial_of(files, ports[0])}
    while time.monotonic() - began < LOAD_S or len(served) < CERTIFICATES:
        former = serial_of(files, ports[0])
        new = Path(f"{files.broker}.new")
        new.write_text(authority().issue("broker", HOSTS))
        os.replace(new, files.broker)
        counts.add("certificates written")

        def is_served_everywhere(former: str = former) -> bool:
            serials = {serial_of(files, port) for port in ports}
            return len(serials) == 1 and serials != {former}

        eventually(is_served_everywhere, "the new certificate on all listeners")
        served.add(serial_of(files, ports[0]))
    return served


def listener_ports(listeners: object) -> list[int]:
    return [int(each.rpartition(":")[2]) for each in str(listeners).split(",")]


def serial_of(files: CertificateFiles, port: int) -> str:
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.client)
    with WireClient(port) as wire, context.wrap_socket(wire.socket, server_hostname="127.0.0.1") as secured:
        certificate = secured.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])


def in_sync(admin: AdminClient) -> list[int]:
    return [len(each.isrs) for each in admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions.values()]


def produce_by_librdkafka(client: dict[str, str], counts: Counts, is_over: threading.Event) -> None:
    """One producer that stays, and a new one each second."""
    settings = {**client, "retries": 0, "linger.ms": 0, "acks": "all", "error_cb": counts.note_error}
    staying = Producer(settings)
    while not is_over.is_set():
        passing = Producer(settings)
        until = time.monotonic() + 1
        while time.monotonic() < until and not is_over.is_set():
            for producer in (staying, passing):
                producer.produce(TOPIC, b"value", on_delivery=counts.note_delivery)
                producer.poll(0)
            is_over.wait(0.02)
        assert passing.flush(PATIENCE_S) == 0
    assert staying.flush(PATIENCE_S) == 0


def consume_by_librdkafka(client: dict[str, str], counts: Counts, is_over: threading.Event) -> None:
    def failed(error: object) -> None:
        counts.fail("consumer", error)

    settings = {"group.id": "billing", "auto.offset.reset": "earliest", "error_cb": failed}
    consumer = Consumer({**client, **settings})
    consumer.subscribe([TOPIC])
    while not is_over.is_set():
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                counts.add("records consumed")
            else:
                counts.fail("fetch", message.error())
    consumer.close()


def produce_by_java(bootstrap_servers: str, files: CertificateFiles, counts: Counts) -> None:
    """kafka-producer-perf-test prints the exception of each request that fails."""
    settings = files.directory / "java.properties"
    settings.write_text(
        "security.protocol=SSL\nacks=all\nretries=0\nenable.idempotence=false\nlinger.ms=0\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
    )
    arguments = ["--bootstrap-server", bootstrap_servers, "--topic", TOPIC, "--record-size", "100"]
    arguments += ["--num-records", str(JAVA_RECORDS), "--throughput", str(JAVA_RECORDS_PER_S)]
    done = run_tool(
        "kafka-producer-perf-test", *arguments, "--command-config", str(settings), timeout_seconds=PATIENCE_S
    )
    if done.status != 0 or "Exception" in done.output + done.errors:
        counts.fail("Java", (done.output + done.errors)[-2000:])
    elif f"{JAVA_RECORDS} records sent" in done.output:
        counts.add("records of Java", JAVA_RECORDS)
