"""Spark's options, and Kafka's settings under librdkafka's names."""

from __future__ import annotations

import pytest

from odradek.conventions.client_properties import SCRAM_MODULE, UntranslatableSetting
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.python_source.offsets import Partition
from odradek.pipelines.spark.python_source.options import EARLIEST, LATEST, Edge, TopicOptions


def test_spark_says_them_without_regard_to_case() -> None:
    options = TopicOptions.of(
        {
            "SUBSCRIBE": "a,b",
            "startingOffsets": '{"a": {"0": 5, "1": -1}}',
            "maxOffsetsPerTrigger": "10",
            "failOnDataLoss": "false",
            "includeHeaders": "true",
            "kafka.bootstrap.servers": "here:9",
            "kafka.fetch.max.wait.ms": "20",
        }
    )
    assert options == TopicOptions(
        topics=("a", "b"),
        pattern=None,
        start=Edge(EARLIEST, {Partition("a", 0): 5, Partition("a", 1): LATEST}),
        end=Edge(LATEST),
        most=10,
        is_loss_fatal=False,
        has_headers=True,
        client=(("bootstrap.servers", "here:9"), ("fetch.wait.max.ms", "20")),
    )


def test_times_and_words_are_edges() -> None:
    options = TopicOptions.of({"subscribe": "a", "startingTimestamp": "17", "endingOffsets": "latest"})
    assert (options.start, options.end) == (Edge(LATEST, time_ms=17), Edge(LATEST))


def test_a_pattern_is_of_whole_names_and_not_of_kafkas_own() -> None:
    options = TopicOptions.of({"subscribePattern": ".*a"})
    assert options.wants("banana")
    assert not options.wants("bananas")
    assert not TopicOptions.of({"subscribePattern": ".*"}).wants("__consumer_offsets")


def test_settings_get_librdkafkas_names() -> None:
    assert librdkafka_settings({
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f'{SCRAM_MODULE} required username="me" password="a\\"b";',
        "ssl.endpoint.identification.algorithm": "",
        "max.poll.records": "5",
        "max.request.size": "99",
    }) == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.endpoint.identification.algorithm": "none",
        "message.max.bytes": "99",
    }  # fmt: skip


def test_what_has_no_counterpart_is_refused() -> None:
    with pytest.raises(UntranslatableSetting, match=r"ssl\.truststore\.location: .* use PEM files"):
        librdkafka_settings({"ssl.truststore.location": "store.jks"})
    with pytest.raises(UntranslatableSetting, match=r"username=.* only"):
        librdkafka_settings({"sasl.jaas.config": "Krb5LoginModule required;"})
    assert librdkafka_settings({"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"}) == {
        "ssl.ca.location": "ca.pem"
    }
