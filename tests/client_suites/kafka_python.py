"""kafka-python's integration tests, from its source distribution, which lacks two modules of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from tests.client_suites.brokers import running
from tests.client_suites.suite import FAILED, PASSED, SKIPPED, Outcome, Suite, run_to_end
from tests.jvm.build_cache import build_once, cache_directory, content_digest

if TYPE_CHECKING:
    from odradek.local.running_broker import Property
    from tests.client_suites.suite import Run

LOCK = Path(__file__).parents[2] / "locks" / "dev.txt"
TESTS = "test/integration"
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

class SpawnedService:
    pass
"""
TEST_TIMEOUT_S = 120
TIMEOUT_S = 30 * 60
PROPERTIES: dict[str, Property] = {  # of the brokers that the tests would start
    "num.partitions": 4,
    "group.min.session.timeout.ms": 1000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
    "super.users": "User:ANONYMOUS",
}
_STARTS_BROKERS = "starts a broker of its own, by the scripts of Apache Kafka"


def source() -> Path:
    """The unpacked source distribution of the version in the lock."""

    def unpack(directory: Path) -> None:
        lines = LOCK.read_text().splitlines()
        begin = next(number for number, line in enumerate(lines) if line.startswith("kafka-python=="))
        end = next(number for number in range(begin, len(lines)) if not lines[number].endswith("\\"))
        (directory / "requirement.txt").write_text("\n".join(lines[begin : end + 1]) + "\n")
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        command += ["--require-hashes", "-r", "requirement.txt"]
        subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, check=True)
        (archive,) = directory.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")
        (unpacked,) = directory.glob("kafka_python-*/")
        (unpacked / "test" / "__init__.py").touch()
        (unpacked / "test" / "service.py").write_text(SERVICE)

    files = [LOCK, Path(__file__)]
    kept = build_once(cache_directory() / f"kafka-python-source-{content_digest(files)}", files, unpack)
    return next(path for path in kept.glob("kafka_python-*") if path.is_dir())


def names() -> frozenset[str]:
    return frozenset(path.name for path in (source() / TESTS).glob("test_*.py")) | {
        name for path in (source() / TESTS).glob("test_*.py") for name in _functions(path)
    }


def _functions(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line.partition("(")[0].removeprefix("def ") for line in lines if line.startswith("def test_")]


def execute(run: Run) -> dict[str, Outcome]:
    report = run.directory / "report.xml"
    left_out = [f"--ignore={TESTS}/{name}" for name in run.left_out if name.endswith(".py")]
    left_out += [
        f"--deselect={TESTS}/{path.name}::{name}"
        for path in (source() / TESTS).glob("test_*.py")
        for name in run.left_out.intersection(_functions(path))
    ]
    properties = PROPERTIES | ({"node.id": 0} if run.brokers == 1 else {})
    with running(run.brokers, properties) as bootstrap_servers:
        run_to_end(
            [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:odradek",
             "-o", "addopts=", f"--timeout={TEST_TIMEOUT_S}",
             f"--junitxml={report}", *left_out, TESTS],
            source(),
            {
                **os.environ,
                "KAFKA_URI": f"kafka://{bootstrap_servers.partition(',')[0]}",
                "KAFKA_VERSION": "4.3",
                "KAFKA_ROOT": str(run.directory),
            },
            run.directory / "output.txt",
            TIMEOUT_S,
        )  # fmt: skip
    if not report.exists():
        raise RuntimeError(
            f"kafka-python's tests wrote no report: {(run.directory / 'output.txt').read_text()[-2000:]}"
        )
    return {
        f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}": _outcome(case)
        for case in ElementTree.parse(report).getroot().iter("testcase")
    }


def _outcome(case: ElementTree.Element) -> Outcome:
    for kind, state in (("failure", FAILED), ("error", FAILED), ("skipped", SKIPPED)):
        if (found := case.find(kind)) is not None:
            text = found.get("message") or "" if state == SKIPPED else (found.text or "")[-2000:]
            return Outcome(state, text)
    return Outcome(PASSED)


LEFT_OUT = {
    "test_ssl_integration.py": _STARTS_BROKERS,
    "test_describe_metadata_quorum": "describes the quorum of KRaft",
    "test_create_partitions@3": "expects a broker with id 0",
    "test_delete_records@3": "expects one poll to return the records of all brokers",
    "test_alter_replica_log_dirs@3": "expects the replica on the broker that answers first",
}
SUITE = Suite("kafka-python", (1, 3), execute, names, 40, LEFT_OUT)
