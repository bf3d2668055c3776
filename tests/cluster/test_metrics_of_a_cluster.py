"""The metrics of three brokers say what happens to the cluster: a broker is killed and comes back."""

from confluent_kafka import Producer

from odradek.testing import RunningCluster
from tests.metrics.exposed import Exposed, exposed, page
from tests.waiting import eventually

SECONDS = 60.0


def total(found: list[Exposed], name: str) -> float:
    return sum(each.value(name) for each in found)


def test_a_killed_broker_shows_in_the_metrics_of_the_others(odradek_cluster: RunningCluster) -> None:
    cluster = odradek_cluster
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(300):
        producer.produce("orders", b"x" * 100, str(number))
    assert producer.flush(SECONDS) == 0
    found = [exposed(each) for each in cluster.brokers.values()]
    assert total(found, "odradek_controller_active") == 1
    assert total(found, "odradek_zookeeper_connected") == 3
    assert total(found, "odradek_topic_records_in_total") == 300
    assert total(found, "odradek_replication_bytes_in_total") > 0
    assert total(found, "odradek_replication_bytes_out_total") > 0
    everyone = list(cluster.brokers.values())
    eventually(lambda: total([exposed(each) for each in everyone], "odradek_under_replicated_partitions") == 0)
    eventually(lambda: {exposed(each).value("odradek_active_brokers") for each in everyone} == {3})
    assert (
        sum(each.value("odradek_request_stage_seconds_total", api="Produce", stage="replication") for each in found) > 0
    )

    cluster.kill(1)
    alive = [cluster.brokers[2], cluster.brokers[3]]
    eventually(lambda: total([exposed(each) for each in alive], "odradek_under_replicated_partitions") > 0)
    eventually(lambda: {exposed(each).value("odradek_active_brokers") for each in alive} == {2})
    assert total([exposed(each) for each in alive], "odradek_offline_partitions") == 0
    for number in range(300):
        producer.produce("orders", b"x" * 100, str(number))
    assert producer.flush(SECONDS) == 0

    cluster.start(1)
    eventually(lambda: total([exposed(each) for each in alive], "odradek_under_replicated_partitions") == 0)
    assert total([exposed(each) for each in alive], "odradek_isr_expands_total") > 0
    assert page(cluster.brokers[1], "/ready").status == 200
