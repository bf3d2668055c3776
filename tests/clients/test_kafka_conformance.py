"""Apache Kafka's own tests on Odradek: of these classes, those that a single Apache Kafka passes.

The harness and its reference list lie beside the checkout (../shared/conformance), not in it.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.jvm.build_cache import cache_directory, exclusive

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
HARNESS = ROOT.parent / "shared" / "conformance"
RUNS_ALL = "CONFORMANCE" in os.environ
LAUNCH = Path(__file__).with_name("conformance_launch.py")

# Their tests take minutes, or judge by how long something took: `make conformance` runs them, with nothing beside.
LONG_CLASSES = [
    "kafka.server.ConsumerGroupHeartbeatRequestTest",
    "kafka.server.ConsumerProtocolMigrationTest",
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerAssignTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCloseTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerPollTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerSubscriptionTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerTest",
    "org.apache.kafka.tools.consumer.group.DeleteConsumerGroupsTest",
    "org.apache.kafka.tools.consumer.group.ListConsumerGroupTest",
]
# The longest first. They wait more than they work, so some are run side by side.
CLASSES = [
    "kafka.server.ListGroupsRequestTest",
    "org.apache.kafka.tools.ConfigCommandIntegrationTest",
    "org.apache.kafka.tools.consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
    "org.apache.kafka.clients.consumer.ConsumerTopicCreationTest",
    "kafka.server.HeartbeatRequestTest",
    "kafka.server.DeleteGroupsRequestTest",
    "kafka.server.JoinGroupRequestTest",
    "org.apache.kafka.clients.producer.ProducerCompressionTest",
    "org.apache.kafka.tools.ClusterToolTest",
    "kafka.server.ApiVersionsRequestTest",
    "kafka.server.DescribeGroupsRequestTest",
    "kafka.server.OffsetCommitRequestTest",
    "kafka.server.OffsetDeleteRequestTest",
    "org.apache.kafka.tools.BrokerApiVersionsCommandTest",
    "org.apache.kafka.tools.DeleteRecordsCommandTest",
    "org.apache.kafka.tools.GroupsCommandTest",
    "org.apache.kafka.tools.LogDirsCommandTest",
]
SIDE_BY_SIDE = 4
TOGETHER = [CLASSES[first : first + SIDE_BY_SIDE] for first in range(0, len(CLASSES), SIDE_BY_SIDE)]
GROUPS = [[each] for each in (*CLASSES, *LONG_CLASSES)] if RUNS_ALL else TOGETHER
# Not run: org.apache.kafka.clients.producer.ProducerIntegrationTest; its nine reference tests are all of transactions.

# What does not pass yet, and the API that it asks for. The list must be exact: what begins to pass has to leave it.
LATER = {
    "testApiVersionsRequestValidationV0()[1]": "counts the APIs: wants all 75 of Kafka's advertised",
    "testGroupCommand(ClusterInstance)[1]": "makes a share group too: ShareGroupHeartbeat",
}


def reference(class_name: str) -> set[str]:
    """The tests of a class that Apache Kafka itself passes in this harness."""
    lines = (line.split("\t") for line in (HARNESS / "reference.tsv").read_text().splitlines())
    return {test for name, test, *_more in lines if name == class_name}


def outcomes(reports: Path) -> dict[str, str]:
    """What became of each test: an empty string if it passed, else the first line of what it said."""
    told = {}
    for report in reports.glob("TEST-*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            failed = [case.find(kind) for kind in ("failure", "error", "skipped")]
            said = [each.get("message") or each.text or "failed" for each in failed if each is not None]
            told[case.get("name", "")] = said[0].splitlines()[0] if said else ""
    return told


@contextlib.contextmanager
def prepared_once() -> Iterator[None]:
    """The harness fetches its jars in its first run, and is not made for two first runs at once."""
    cache = cache_directory() / "conformance"
    if (cache / "libs" / ".done").exists() and (cache / "shim").exists():
        yield
        return
    with exclusive(cache_directory() / "conformance.lock"):
        yield


def run(class_name: str, reports: Path) -> dict[str, str]:
    """What became of the tests of a class."""
    environment = {**os.environ, "KEEP": str(reports), "TEST_TIMEOUT": "60s", "CLASS_TIMEOUT": "840"}
    command = [str(HARNESS / "run"), "--launch", f"{sys.executable} {LAUNCH}", class_name]
    with prepared_once():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    told = outcomes(reports / class_name)
    assert told, f"the harness ran nothing: {done.stdout[-1000:]} {done.stderr[-1000:]}"
    return told


def named(class_names: list[str]) -> str:
    return "+".join(each.rpartition(".")[2] for each in class_names)


@pytest.mark.parametrize("class_names", GROUPS, ids=named)
def test_kafkas_own_tests_pass(class_names: list[str], jvm: None, tmp_path: Path) -> None:
    if not HARNESS.is_dir():
        pytest.skip("Apache Kafka's own tests are not beside this checkout (../shared/conformance)")
    with ThreadPoolExecutor(len(class_names)) as beside:
        found = list(beside.map(lambda class_name: run(class_name, tmp_path), class_names))
    for class_name, told in zip(class_names, found, strict=True):
        expected = reference(class_name)
        assert expected, f"no reference for {class_name}"
        failed = {test: told.get(test, "was not run") for test in expected if told.get(test, "was not run")}
        assert failed.keys() == expected & LATER.keys(), (
            f"{len(expected) - len(failed)} of {len(expected)} passed of {class_name}: {failed}"
        )


def test_the_reference_tells_how_many_pass() -> None:
    if not HARNESS.is_dir():
        pytest.skip("Apache Kafka's own tests are not beside this checkout (../shared/conformance)")
    total = sum(len(reference(class_name)) for class_name in [*CLASSES, *LONG_CLASSES])
    told = " ".join((ROOT / "docs" / "reference.md").read_text().split())
    assert f"{total - len(LATER)} of the {total} tests" in told
