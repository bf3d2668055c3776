"""Topics on Odradek and on Apache Kafka, whose answers must be the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.python_source.reading import consumer_of
from odradek.pipelines.spark.python_source.writing import producer_of
from tests.pipelines.spark.python_source.cluster import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningBroker
    from tests.jvm.shared_kafka import KafkaAddress


@pytest.fixture(params=["odradek", pytest.param("apache_kafka", marks=[pytest.mark.jvm, pytest.mark.oracle])])
def topics(request: pytest.FixtureRequest) -> Iterator[Topics]:
    name = "odradek_session_broker" if request.param == "odradek" else "apache_kafka"
    running: RunningBroker | KafkaAddress = request.getfixturevalue(name)
    yield Topics(running.bootstrap_servers)
    consumer_of.cache_clear()
    producer_of.cache_clear()
