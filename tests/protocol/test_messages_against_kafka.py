"""The tables that kafka-python lacks say the same as Apache Kafka's own classes: value by value, byte by byte."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.schema import Message
from tests.example_counts import examples
from tests.jvm.kafka_messages import MessageSession
from tests.protocol.tables import CASES, NOT_IN_KAFKA_PYTHON, structs

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]
NEWER = [(message, version) for message, version in CASES if message.api_key in NOT_IN_KAFKA_PYTHON]
NAMES = [f"{message.__name__}-{version}" for message, version in NEWER]
SOME = settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def kafka(jvm: None) -> Iterator[MessageSession]:
    with MessageSession() as session:
        yield session


@pytest.mark.parametrize(("message", "version"), NEWER, ids=NAMES)
def test_numbers_and_defaults_are_kafkas(kafka: MessageSession, message: type[Message], version: int) -> None:
    kafka.check_table(f"org.apache.kafka.common.message.{message.__name__}Data", message, version)


@pytest.mark.parametrize(("message", "version"), NEWER, ids=NAMES)
@SOME
@given(data=st.data())
def test_kafka_reads_and_writes_the_same_bytes(
    kafka: MessageSession, message: type[Message], version: int, data: st.DataObject
) -> None:
    sent = data.draw(structs(message, version))
    kafka.check(f"org.apache.kafka.common.message.{message.__name__}Data", sent, version)
