"""librdkafka's own tests, from the sources that its package for Node.js carries, in its quick mode.

Some parse JSON with RapidJSON (0053, 0098, 0101, 0110) and need its header files, Debian's package `rapidjson-dev`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.client_suites.brokers import running
from tests.client_suites.suite import FAILED, PASSED, SKIPPED, Outcome, Suite, run_to_end
from tests.jvm import jars
from tests.jvm.build_cache import build_once, cache_directory, content_digest

if TYPE_CHECKING:
    from odradek.local.running_broker import Property
    from tests.client_suites.suite import Run

PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
INTEGRITY = "KVePUBn21EqCVP9mfxzEuM3SYJHHEF7X+iiC2e43QQgDSyEaksInmCGooT3w5q+cNAdkSCrK71j0ICfqoSqZLw=="  # SHA-512
SOURCE = Path("package") / "deps" / "librdkafka"
KAFKA = Path("kafka")  # the directory in which its tests look for the scripts of Apache Kafka
RAPIDJSON = Path("/usr/include/rapidjson/schema.h")
FEATURES = ["--disable-gssapi", "--disable-curl", "--disable-ssl", "--disable-optimization"]
BUILD = [["bash", "./configure", *FEATURES], ["make", "-j2", "libs"], ["make", "-j2", "-C", "tests", "test-runner"]]
TEST = re.compile(r"^ +_TEST\((\d{4}_\w+),?\s*([^,)]*)", re.MULTILINE)
SUMMARY = re.compile(r"^\| *(\w+) +\| +\w+ \| +[\d.]+s +\| *(.*)$", re.MULTILINE)
COLOURS = re.compile(r"\x1b\[[\d;]*m")
PROPERTIES: dict[str, Property] = {
    "auto.create.topics.enable": True,
    "num.partitions": 4,
    "group.initial.rebalance.delay.ms": 1000,  # 0118 expects the first generation to have both of its consumers
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
    "super.users": "User:ANONYMOUS",
}
_SCRIPTS = "runs the scripts of Apache Kafka"
_THREE_REPLICAS = "creates topics of three replicas"
LEFT_OUT = {
    "0052_msg_timestamps": _SCRIPTS,
    "0064_interceptors": "needs OpenSSL in the build of librdkafka",
    "0077_compaction": _SCRIPTS,
    "0098_consumer_txn@1": _THREE_REPLICAS,
    "0101_fetch_from_follower@1": _THREE_REPLICAS,
    "0103_transactions@1": _THREE_REPLICAS,
    "0109_auto_create_topics": _SCRIPTS,
    "0115_producer_auth": _SCRIPTS,
    "0119_consumer_auth": _SCRIPTS,
    "0184_share_consumer_topic_recreate": "needs share groups",
}
# It sets log.cleanup.policy=compact for the whole broker, which then refuses records without a key of other tests, and
# expects static members to be gone a second after their session timeout.
ALONE = "0081"
NOT_IN_SUITE = "librdkafka leaves it out: it is started by hand, or a known issue"
STATES = {"PASSED": PASSED, "SKIPPED": SKIPPED, "DNS": SKIPPED}
TIMEOUT_S = 40 * 60


@cache
def test_directory() -> Path:
    """The directory of the tests, with the program that runs them."""

    def build(directory: Path) -> None:
        _execute(["npm", "pack", "--silent", PACKAGE], directory)
        (archive,) = directory.glob("*.tgz")
        if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != INTEGRITY:
            raise RuntimeError(f"{PACKAGE} is not the package whose SHA-512 is in {Path(__file__).name}")
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")
        for script in [*(directory / SOURCE).glob("*.py"), *(directory / SOURCE / "mklove").rglob("*")]:
            script.chmod(0o755)
        for command in BUILD:
            _execute(command, directory / SOURCE)
        programs = directory / SOURCE / "tests" / "java"
        _execute(["javac", "-cp", jars.classpath(), *map(str, programs.glob("*.java"))], programs)
        run_class = directory / KAFKA / "bin" / "kafka-run-class.sh"
        run_class.parent.mkdir(parents=True)
        run_class.write_text(f'#!/bin/sh\nexec java -cp "$CLASSPATH:{jars.classpath()}" "$@"\n')
        run_class.chmod(0o755)

    files = [Path(__file__), jars.POM]
    name = f"librdkafka-{content_digest(files)}{'' if RAPIDJSON.exists() else '-without-rapidjson'}"
    return build_once(cache_directory() / name, files, build) / SOURCE / "tests"


def _execute(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-2000:]}")


def names() -> frozenset[str]:
    """Of the tests that talk to a broker."""
    tests = TEST.findall((test_directory() / "test.c").read_text())
    return frozenset(name for name, flags in tests if "LOCAL" not in flags)


def execute(run: Run) -> dict[str, Outcome]:
    skipped = {name[:4] for name in run.left_out}
    with running(run.brokers, PROPERTIES) as bootstrap_servers:
        (run.directory / "test.conf").write_text(f"metadata.broker.list={bootstrap_servers}\n")
        found = _run(run, "others", {"TESTS_SKIP": ",".join(sorted({*skipped, ALONE}))})
        alone = _run(run, "alone", {"TESTS": ALONE})
        found |= {name: outcome for name, outcome in alone.items() if name.startswith(ALONE)}  # others are skipped
    return {name: Outcome(FAILED, "is not in the report") for name in names() - run.left_out} | {
        name: outcome for name, outcome in found.items() if name in names()
    }


def _run(run: Run, part: str, choice: dict[str, str]) -> dict[str, Outcome]:
    output, report = run.directory / f"{part}.txt", run.directory / f"{part}.json"
    environment = {
        **os.environ,
        **choice,
        "RDKAFKA_TEST_CONF": str(run.directory / "test.conf"),
        "TEST_REPORT": str(report),
        "TEST_KAFKA_VERSION": "4.3.1",
        "KAFKA_PATH": str(test_directory().parents[3] / KAFKA),
        "LD_LIBRARY_PATH": f"{test_directory().parent / 'src'}:{test_directory().parent / 'src-cpp'}",
    }
    run_to_end(["./test-runner", "-L", "-K", "-Q", "-E", "-p2"], test_directory(), environment, output, TIMEOUT_S)
    text = COLOURS.sub("", output.read_text(errors="replace"))
    if not report.exists():
        raise RuntimeError(f"librdkafka's tests wrote no report: {text[-2000:]}")
    reasons = dict(SUMMARY.findall(text))
    return {
        name: Outcome(STATES[test["state"]], reasons.get(name, test["extra"]).strip() or NOT_IN_SUITE)
        if test["state"] in STATES
        else Outcome(FAILED, reasons.get(name, test["extra"]).strip())
        for name, test in json.loads(report.read_text())["tests"].items()
    }


SUITE = Suite("librdkafka", (1, 3), execute, names, 80, LEFT_OUT)
