"""Brokers of an older version of this repository are replaced by the present one, one after another, under load."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in __all__
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.faults.report import progress
from tests.faults.running import Run
from tests.house.test_tidy import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.soak, pytest.mark.timeout(420)]

# The first commit with clusters for tests, and the last one that registers no metadata level.
VERSIONS = {
    "first": "7387df1f1003d946521bfe49e5f9008ddc230e33",
    "recent": "44e158756a2ec7410f7ef508fe9d5741f7e86aef",
}


def source_of(commit: str, directory: Path) -> str:
    """The sources of a commit, for PYTHONPATH."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the history of this checkout does not reach back to {commit[:7]}")
    subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
    return str(directory / "src")


def add_user(run: Run) -> str:
    """The name of the error; empty if the user was added."""
    admin = AdminClient({"bootstrap.servers": run.cluster.bootstrap_servers, "log_level": 0})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion("ada", credential, b"secret")
    try:
        admin.alter_user_scram_credentials([upsertion], request_timeout=30)["ada"].result(60)
    except KafkaException as problem:
        return str(problem.args[0].name())
    return ""


def add_topic(run: Run, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": run.cluster.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, 3, 3)], operation_timeout=60)[name].result(90)
    run.wait_for_in_sync()


def replace_broker(run: Run, node_id: int) -> None:
    run.cluster.stop(node_id)
    run.cluster.start(node_id)
    run.wait_for_in_sync()


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_are_upgraded_one_after_another(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, present = source_of(VERSIONS[version], tmp_path), str(ROOT / "src")
    monkeypatch.setenv("PYTHONPATH", older)
    with Run(records_per_s=500) as run:
        last = run.view().controller
        monkeypatch.setenv("PYTHONPATH", present)
        for node_id in {1, 2, 3} - {last}:
            replace_broker(run, node_id)
        assert run.view().controller == last, "the controller stays where it is until its broker is stopped"
        add_topic(run, "made-by-the-older-controller")

        # The present version is the controller, and a broker of the older one returns.
        monkeypatch.setenv("PYTHONPATH", older)
        replace_broker(run, last)
        assert run.view().controller != last
        assert add_user(run) == "UNSUPPORTED_VERSION", "the older broker could not read the change"
        add_topic(run, "made-by-the-present-controller")

        monkeypatch.setenv("PYTHONPATH", present)
        replace_broker(run, last)
        run.wait_for("a user, which every broker can read", lambda: add_user(run) == "")
        add_topic(run, "made-after-the-upgrade")
        verdict = run.finish()
        progress(f"{version}: {verdict}")
        assert verdict.is_clean, str(verdict)
        assert run.problems == []
