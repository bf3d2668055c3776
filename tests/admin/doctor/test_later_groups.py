"""The second sample of groups, with which the growth of their lag is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.admin.doctor import cluster_facts
from odradek.admin.doctor.cluster_facts import GroupFacts, Limits
from odradek.admin.doctor.cluster_rules import CHECKS
from odradek.admin.doctor.findings import exit_code, run_checks
from odradek.admin.doctor.reader import OutOfTime, Reader


@pytest.mark.parametrize(("state", "skipped"), [("Stable", True), ("Dead", False)])
def test_groups_whose_lag_is_not_read_again_are_not_examined_for_growth(
    monkeypatch: pytest.MonkeyPatch, state: str, skipped: bool
) -> None:
    samples: list[Any] = [[GroupFacts("billing", state, 5)], OutOfTime("60 s were over")]

    def read_sample(*_: object) -> Any:
        sample = samples.pop(0)
        if isinstance(sample, Exception):
            raise sample
        return sample

    nothing = SimpleNamespace(is_restricted=False, is_denied=False, brokers={})
    for name in ("BrokerRequests", "read_state", "all_at_once", "read_disks", "read_hanging", "read_open_files"):
        monkeypatch.setattr(cluster_facts, name, lambda *_, **_more: nothing)
    monkeypatch.setattr(cluster_facts, "newest_internal_records", lambda *_: {})
    monkeypatch.setattr(cluster_facts, "read_groups", read_sample)
    cluster: Any = SimpleNamespace(bootstrap_servers="127.0.0.1:9092")
    facts = cluster_facts.read_cluster(cluster, Reader(10), 0.001, Limits())
    results = {each.name: each for each in run_checks([each for each in CHECKS if "groups" in each.needs], facts)}
    assert results["group-lag-growing"].skipped == "60 s were over"
    assert results["group-lag"].skipped is None
    assert (results["group-unstable"].skipped is not None) is skipped  # what the first sample shows is reported
    assert exit_code(list(results.values())) == 3
