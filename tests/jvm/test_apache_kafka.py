"""Apache Kafka, the oracle, starts, answers, and ends with the test run that started it."""

import os
import subprocess

import pytest

from tests.jvm.apache_kafka import ApacheKafka
from tests.jvm.readiness import answers_with_a_broker

pytestmark = [pytest.mark.jvm, pytest.mark.oracle, pytest.mark.timeout(600)]


def test_broker_ends_when_its_input_closes(jvm: None) -> None:
    """When a test run is killed, the kernel closes its end of the pipe."""
    read_end, write_end = os.pipe()
    try:
        kafka = ApacheKafka(stdin=read_end)
        with kafka:
            assert answers_with_a_broker("127.0.0.1", kafka.port)
            os.close(write_end)
            write_end = -1
            assert kafka.wait(timeout_seconds=120) == 0
            assert not answers_with_a_broker("127.0.0.1", kafka.port)
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)


def test_program_without_java_is_not_started(jvm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises((FileNotFoundError, subprocess.SubprocessError)), ApacheKafka():
        pytest.fail("it started")
